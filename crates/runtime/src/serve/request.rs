//! What may be asked: a JSON object on a line.

use crate::base::wording::plain;
use crate::base::wording::{near, quoted};
use crate::operator::message::Value;
use serde::Deserialize;
use serde_json::{Map, Value as Json};

/// Of the protocol.
pub(super) const VERSION: u64 = 1;

/// Most bytes of a request, its line end included.
pub(super) const LINE_BYTES: usize = 64 << 10;

/// What may be asked for, by name.
pub(super) const COMMANDS: [&str; 9] =
    ["hello", "status", "pause", "resume", "set", "stop", "gate", "ring", "fetch"];

/// A request. An operator that is not named means all.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Request {
    /// Who is there?
    Hello {},
    Status {},
    Pause {
        operator: Option<String>,
    },
    Resume {
        operator: Option<String>,
    },
    Set {
        operator: String,
        parameter: String,
        value: Value,
        sample: Option<u64>,
    },
    Stop {
        operator: Option<String>,
    },
    Gate {
        name: String,
        open: bool,
    },
    Ring {
        name: String,
    },
    Fetch {
        operator: String,
    },
}

impl Request {
    /// Of a line, with or without its end. The error is for a person.
    pub fn read(line: &[u8]) -> Result<Self, String> {
        let wrong = |error: serde_json::Error| {
            // The place is that in the line, and there is one line.
            let text = error.to_string();
            let text = text.split(" at line ").next().unwrap_or("").to_string();
            let place = match error.column() {
                0 => String::new(),
                column => format!(" at byte {column}"),
            };
            format!("no request: not JSON: {text}{place}")
        };
        let Json::Object(mut fields) = serde_json::from_slice::<Json>(line).map_err(wrong)? else {
            return Err(
                "no request: expected an object, such as {\"version\":1,\"command\":\"status\"}".to_string()
            );
        };
        match fields.remove("version") {
            Some(version) if version == VERSION => {}
            Some(version) => {
                let version = shown(&version);
                return Err(format!("version {version} of the protocol is not spoken here: it is {VERSION}"));
            }
            None => return Err(format!("no request: it lacks \"version\":{VERSION}")),
        }
        check_command(&fields)?;
        Request::deserialize(Json::Object(fields))
            .map_err(|error| format!("no request: {}", plain(&error.to_string()).0))
    }
}

fn check_command(fields: &Map<String, Json>) -> Result<(), String> {
    match fields.get("command") {
        Some(Json::String(command)) if COMMANDS.contains(&command.as_str()) => Ok(()),
        Some(Json::String(command)) => {
            let hint = near(command, COMMANDS.into_iter());
            Err(format!("there is no command {}{hint}", quoted(command)))
        }
        Some(other) => Err(format!("no request: its \"command\" is {}, and no string", shown(other))),
        None => Err("no request: it lacks \"command\"".to_string()),
    }
}

/// As much of it as an error may have.
fn shown(value: &Json) -> String {
    let text = value.to_string();
    if text.chars().count() > 40 { text.chars().take(40).chain(['…']).collect() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn requests_are_read() {
        let iq = || Some("iq".to_string());
        let set = |value, sample| {
            let (operator, parameter) = ("iq".to_string(), "gain".to_string());
            Request::Set { operator, parameter, value, sample }
        };
        for (fields, request) in [
            (r#""command":"hello""#, Request::Hello {}),
            (r#""command":"status""#, Request::Status {}),
            (r#""command":"pause""#, Request::Pause { operator: None }),
            (r#""command":"pause","operator":null"#, Request::Pause { operator: None }),
            (r#""operator":"iq","command":"resume""#, Request::Resume { operator: iq() }),
            (r#""command":"stop","operator":"iq""#, Request::Stop { operator: iq() }),
            (r#""command":"set","operator":"iq","parameter":"gain","value":2"#, set(Value::Int(2), None)),
            (
                r#""command":"set","operator":"iq","parameter":"gain","value":-0.5,"sample":0"#,
                set(Value::Float(-0.5), Some(0)),
            ),
            (
                r#""command":"set","operator":"iq","parameter":"gain","value":"3 dB","sample":18446744073709551615"#,
                set(Value::Text("3 dB".into()), Some(u64::MAX)),
            ),
            (
                r#""command":"set","operator":"iq","parameter":"gain","value":true"#,
                set(Value::Bool(true), None),
            ),
            (
                r#""command":"gate","name":"g","open":false"#,
                Request::Gate { name: "g".to_string(), open: false },
            ),
            (r#""command":"ring","name":"e""#, Request::Ring { name: "e".to_string() }),
            (r#""command":"fetch","operator":"iq""#, Request::Fetch { operator: "iq".to_string() }),
        ] {
            for line in
                [format!("{{\"version\":1,{fields}}}\n"), format!(" {{ {fields} , \"version\" : 1 }} \r\n")]
            {
                assert_eq!(Request::read(line.as_bytes()).as_ref(), Ok(&request), "{line}");
            }
        }
    }

    #[test]
    fn what_is_no_request_is_said_in_plain_words() {
        let deep = "[".repeat(60_000);
        let long = format!("{{\"version\":1,\"command\":\"{}\"}}", "x".repeat(60_000));
        let cases: &[(&[u8], &str)] = &[
            (b"", "not JSON: EOF while parsing a value"),
            (b"\n", "not JSON: EOF while parsing a value"),
            (b"status\n", "not JSON: expected value at byte 1"),
            (b"GET / HTTP/1.1\r\n", "not JSON"),
            (b"\0\0\0\0\0\0\0\0", "not JSON"),
            (b"\xff\xfe\xfd", "not JSON"),
            (b"{\"version\":1,\"command\":\"\xff\"}", "not JSON: invalid unicode code point"),
            (b"{\"version\":1,\"command\":\"status\"", "not JSON: EOF while parsing an object"),
            (b"{\"version\":1,\"command\":\"status\"} {}", "not JSON: trailing characters"),
            (deep.as_bytes(), "not JSON: recursion limit exceeded"),
            (b"[]", "expected an object"),
            (b"1e999", "not JSON: number out of range"),
            (b"null", "expected an object"),
            (b"{}", "it lacks \"version\":1"),
            (b"{\"command\":\"status\"}", "it lacks \"version\":1"),
            (b"{\"version\":2,\"command\":\"status\"}", "version 2 of the protocol is not spoken here: it is 1"),
            (b"{\"version\":\"1\",\"command\":\"status\"}", "version \"1\" of the protocol"),
            (b"{\"version\":1.5,\"command\":\"status\"}", "version 1.5 of the protocol"),
            (b"{\"version\":1}", "it lacks \"command\""),
            (b"{\"version\":1,\"command\":7}", "its \"command\" is 7, and no string"),
            (b"{\"version\":1,\"command\":\"puase\"}", "there is no command `puase`: did you mean `pause`?"),
            (b"{\"version\":1,\"command\":\"Status\"}", "there is no command `Status`: did you mean `status`?"),
            (long.as_bytes(), "there is no command `xxx"),
            (b"{\"version\":1,\"command\":\"status\",\"operator\":\"a\"}", "unknown field `operator`"),
            (b"{\"version\":1,\"command\":\"pause\",\"operater\":\"a\"}", "unknown key `operater`: did you mean `operator`?"),
            (b"{\"version\":1,\"command\":\"pause\",\"operator\":7}", "expected a string"),
            (b"{\"version\":1,\"command\":\"set\",\"operator\":\"a\"}", "missing field `parameter`"),
            (
                b"{\"version\":1,\"command\":\"set\",\"operator\":\"a\",\"parameter\":\"b\",\"value\":[1]}",
                "expected a number, a boolean or a string",
            ),
            (
                b"{\"version\":1,\"command\":\"set\",\"operator\":\"a\",\"parameter\":\"b\",\"value\":null}",
                "expected a number, a boolean or a string",
            ),
            (
                b"{\"version\":1,\"command\":\"set\",\"operator\":\"a\",\"parameter\":\"b\",\"value\":1,\"sample\":-1}",
                "-1",
            ),
            (
                b"{\"version\":1,\"command\":\"set\",\"operator\":\"a\",\"parameter\":\"b\",\"value\":1,\"sample\":1e30}",
                "1e+30",
            ),
            (b"{\"version\":1,\"command\":\"gate\",\"name\":\"g\"}", "missing field `open`"),
            (b"{\"version\":1,\"command\":\"gate\",\"name\":\"g\",\"open\":1}", "expected"),
            (b"{\"version\":1,\"command\":\"ring\"}", "missing field `name`"),
        ];
        for (line, part) in cases {
            let error = Request::read(line).unwrap_err();
            assert!(error.contains(part), "{error:?} lacks {part:?}");
            assert!(error.len() < 400, "{error}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

        #[test]
        fn whatever_comes_is_answered(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            if let Err(error) = Request::read(&bytes) {
                prop_assert!(!error.is_empty());
            }
        }

        /// Near to what is asked: a good request with some of its bytes changed, doubled or cut off.
        #[test]
        fn what_was_a_request_is_answered_too(
            changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..6),
            length in 0usize..100,
        ) {
            let good = br#"{"version":1,"command":"set","operator":"iq","parameter":"gain","value":2.5,"sample":1000}"#;
            let mut line = good.repeat(2);
            for (place, byte) in changes {
                let place = place % good.len();
                line[place] = byte;
            }
            line.truncate(length);
            if let Err(error) = Request::read(&line) {
                prop_assert!(!error.is_empty());
            }
        }
    }
}
