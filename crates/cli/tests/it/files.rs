//! Hostile files: every one is answered with a message and status 1, and none hangs.

use super::harness::{Answer, Place};
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::symlink;

/// Checks this text as a pipeline.
fn answer(text: impl AsRef<[u8]>) -> Answer {
    let place = Place::new();
    fs::write(place.path("hostile.toml"), text).expect("a file");
    place.onbeat(&["check", "hostile.toml"])
}

fn operator(lines: &str) -> String {
    format!("[[operator]]\nname = \"it\"\n{lines}\n")
}

/// Deep brackets, deep tables, a deep key, a long name and a number with many digits.
fn huge_texts() -> [String; 5] {
    [
        format!("x = {}{}", "[".repeat(10_000), "]".repeat(10_000)),
        format!("x = {}1{}", "{ x = ".repeat(10_000), " }".repeat(10_000)),
        format!("{} = 1", vec!["x"; 10_000].join(".")),
        format!("name = \"{}\"", "x".repeat(1 << 20)),
        "9".repeat(400),
    ]
}

/// Hostile pipelines: title, text of the file, part of the message.
fn hostile_pipelines() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let [deep, tables, keys, long, huge] = huge_texts();
    vec![
        ("NUL", b"name = \"a\0b\"".to_vec(), "hostile.toml:1:"),
        ("only NULs", vec![0; 4096], "not TOML"),
        ("no UTF-8", vec![b'n', 0xff, 0xfe], "is not UTF-8 text"),
        ("an escaped NUL", b"name = \"a\\u0000b\"".to_vec(), "cannot name a pipeline"),
        ("deep brackets", deep.into_bytes(), "hostile.toml:1:"),
        ("deep tables", tables.into_bytes(), "hostile.toml:1:"),
        ("a deep key", keys.into_bytes(), "hostile.toml:1:"),
        ("a long name", long.into_bytes(), "cannot name a pipeline"),
        ("a huge integer", format!("workers = {huge}").into_bytes(), "hostile.toml:1:11"),
        ("a huge rate", operator(&format!("kind = \"counter\"\nrate = {huge}")).into_bytes(), "too large"),
        (
            "a frequency beyond all numbers",
            operator(&format!("kind = \"counter\"\nrate = \"{huge} Hz\"")).into_bytes(),
            "hostile.toml:4:",
        ),
        (
            "a fraction beyond all numbers",
            operator(&format!("kind = \"saxpy\"\na = {huge}.5")).into_bytes(),
            "hostile.toml:4:",
        ),
        (
            "tables where a number is",
            operator(&format!("kind = \"counter\"\ncount = {}1{}", "[".repeat(50), "]".repeat(50)))
                .into_bytes(),
            "hostile.toml:4:",
        ),
        (
            "a date for a number",
            operator("kind = \"counter\"\ncount = 1979-05-27").into_bytes(),
            "hostile.toml:4:",
        ),
        ("a name of NULs", operator("kind = \"\\u0000\"").into_bytes(), "hostile.toml:3:"),
        (
            "a huge count",
            operator(&format!("kind = \"counter\"\ncount = {huge}")).into_bytes(),
            "hostile.toml:4:",
        ),
        ("a huge exponent", operator("kind = \"saxpy\"\na = 1e999").into_bytes(), "`a`"),
        ("not a number", operator("kind = \"freq.shift\"\nshift = nan").into_bytes(), "`shift`"),
        ("a huge capacity", b"[defaults]\ncapacity = 9223372036854775807".to_vec(), "capacity"),
        ("a huge quantum", b"[defaults]\nquantum = \"9e18 GiB\"".to_vec(), "quantum"),
        ("a duration without end", b"duration = \"1e300 d\"".to_vec(), "duration"),
        (
            "a port beyond",
            operator("kind = \"udp.source\"\nbind = \"127.0.0.1:65536\"").into_bytes(),
            "`bind` is",
        ),
        ("no port", operator("kind = \"udp.sink\"\naddress = \"localhost\"").into_bytes(), "`address` is"),
        (
            "a host with a NUL",
            operator("kind = \"tcp.sink\"\nconnect = \"a\\u0000b\"").into_bytes(),
            "`connect` is",
        ),
        (
            "two peers",
            operator("kind = \"tcp.source\"\nconnect = \"a:1\"\nlisten = \"a:1\"").into_bytes(),
            "not both",
        ),
        ("no peer", operator("kind = \"tcp.source\"").into_bytes(), "needs `connect`"),
        (
            "small datagrams",
            operator("kind = \"udp.sink\"\naddress = \"a:1\"\nsize = 3").into_bytes(),
            "`size` is 3",
        ),
        (
            "the wrong samples",
            operator("kind = \"stdin.source\"\nformat = \"cu8\"").into_bytes(),
            "`format` is cu8",
        ),
        ("half a file", b"[[operator".to_vec(), "hostile.toml:1:"),
    ]
}

#[test]
fn hostile_pipelines_are_refused() {
    let mut wrong = Vec::new();
    for (title, text, expected) in hostile_pipelines() {
        let answer = answer(text);
        let short = answer.stderr.len() < 2_000 && !answer.stderr.contains(['\0', '\u{1b}']);
        if answer.status != Some(1)
            || !answer.stderr.contains(expected)
            || !short
            || !answer.stdout.is_empty()
        {
            let said: String = answer.stderr.chars().take(500).collect();
            wrong.push(format!("{title}: {:?} {said}", answer.status));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_no_file_is_no_pipeline() {
    let place = Place::new();
    place.fifo("pipe.toml");
    fs::create_dir(place.path("folder.toml")).expect("a folder");
    symlink("loop2.toml", place.path("loop.toml")).expect("a link");
    symlink("loop.toml", place.path("loop2.toml")).expect("a link");
    for (name, expected) in [
        ("pipe.toml", "it is a pipe, a socket or a device, not a regular file"),
        ("folder.toml", "it is a folder, not a regular file"),
        ("loop.toml", "Too many levels of symbolic links"),
        ("/dev/zero", "it is a pipe, a socket or a device, not a regular file"),
        ("count.toml/x", "Not a directory"),
    ] {
        for command in ["run", "plan", "check"] {
            let answer = place.onbeat(&[command, name]);
            assert_eq!(answer.status, Some(1), "{command} {name}: {answer:?}");
            assert!(answer.stderr.contains(expected), "{command} {name}: {}", answer.stderr);
        }
    }
}

/// Text of a pipeline under construction.
struct Text(String);

impl Text {
    fn add(&mut self, name: &str, kind: &str, parameter: &str, from: Option<&str>) {
        writeln!(self.0, "[[operator]]\nname = \"{name}\"\nkind = \"{kind}\"\n{parameter}")
            .expect("a string");
        if let Some(from) = from {
            writeln!(self.0, "[[edge]]\nfrom = \"{from}\"\nto = \"{name}\"").expect("a string");
        }
    }
}

/// Returns a chain of operators.
fn chain(count: usize) -> String {
    let mut text = Text(String::from("name = \"many\"\n"));
    text.add("n0", "counter", "count = 3", None);
    for number in 1..count - 1 {
        text.add(&format!("n{number}"), "load.count", "count = 1", Some(&format!("n{}", number - 1)));
    }
    text.add("end", "count.sink", "", Some(&format!("n{}", count - 2)));
    text.0
}

/// Returns a fan of operators, each of which changes the chunks.
fn fan(count: usize) -> String {
    let mut text = Text(String::from("name = \"many\"\n[defaults]\nquantum = 64\ncapacity = 1\n"));
    text.add("all", "null.source", "count = 3", None);
    for number in 0..(count - 1) / 3 {
        let [a, b, c] = ["a", "b", "c"].map(|letter| format!("{letter}{number}"));
        text.add(&a, "saxpy", "a = 1\nb = 1", Some("all"));
        text.add(&b, "delay", "samples = 1", Some(&a));
        text.add(&c, "null.sink", "", Some(&b));
    }
    text.0
}

#[test]
fn ten_thousand_operators_are_not_too_many() {
    let place = Place::new();
    for text in [chain(10_000), fan(10_000)] {
        fs::write(place.path("many.toml"), text).expect("a file");
        for scheduler in ["greedy", "pinned", "event"] {
            let scheduler = ["--scheduler", scheduler];
            let answer = place.onbeat(&[&["plan", "many.toml"][..], &scheduler].concat());
            assert_eq!(answer.status, Some(0), "{scheduler:?}: {}", answer.stderr);
            let shown: String = answer.stdout.chars().take(200).collect();
            assert!(answer.stdout.contains("10000 operators, 9999 edges"), "{scheduler:?}: {shown}");
        }
        let answer = place.onbeat(&["run", "many.toml", "-q"]);
        assert_eq!(answer.status, Some(0), "{}", answer.stderr);
    }
}

/// Relative paths have nothing to do with a port that is not there: its own fix is the only one. The place of
/// the value is shown.
#[test]
fn a_missing_device_is_not_taken_for_a_file() {
    let place = Place::new();
    let text = "[[operator]]\nname = \"line\"\nkind = \"serial.source.text\"\nport = \"/dev/no-such-port\"\n\
                [[operator]]\nname = \"end\"\nkind = \"text.sink\"\npath = \"a.txt\"\n[[edge]]\nfrom = \"line\"\nto = \"end\"\n";
    fs::write(place.path("line.toml"), text).unwrap();
    for command in ["check", "run"] {
        let wrong = place.onbeat(&[command, "line.toml"]);
        assert!(wrong.status == Some(1) && wrong.stderr.contains("there is no such file; "), "{wrong:?}");
        assert!(!wrong.stderr.contains("relative paths"), "{wrong:?}");
        assert!(wrong.stderr.contains("line.toml:4:8: operator `line`: "), "{wrong:?}");
    }
}

/// A source of a file that is not there, and its sink.
fn source(name: &str) -> String {
    format!(
        "[[operator]]\nname = \"{name}\"\nkind = \"wav.source\"\npath = \"{name}.wav\"\n\
         [[operator]]\nname = \"end-{name}\"\nkind = \"null.sink\"\n\
         [[edge]]\nfrom = \"{name}\"\nto = \"end-{name}\"\n"
    )
}

#[test]
fn an_error_is_placed_at_its_value_in_the_file_or_in_the_setting() {
    let place = Place::new();
    fs::write(place.path("gone.toml"), source("gone")).unwrap();
    fs::write(place.path("empty.wav"), "").unwrap();
    for command in ["check", "run"] {
        let at = |options: &[&str]| place.onbeat(&[&[command, "gone.toml"], options].concat()).stderr;
        let text = at(&[]);
        assert!(text.contains("gone.toml:4:8: operator `gone`: ") && text.contains("^^^^^^^^^^\n"), "{text}");
        for file in ["no.wav", "empty.wav"] {
            let text = at(&["--set", &format!("gone.path={file}")]);
            assert!(text.contains(&format!("--set gone.path={file}: operator `gone`: ")), "{text}");
        }
    }
}

#[test]
fn of_two_operators_that_fail_at_once_the_one_that_is_named_is_shown() {
    let place = Place::new();
    let text = ["scheduler = \"pinned\"\nworkers = 2\n".to_string(), source("one"), source("two")].concat();
    fs::write(place.path("both.toml"), text).unwrap();
    for _ in 0..5 {
        let text = place.onbeat(&["run", "both.toml"]).stderr;
        let is_named = |name: &&str| text.contains(&format!("operator `{name}`: "));
        let named = ["one", "two"].into_iter().find(is_named).expect("one of them");
        assert!(text.contains(&format!("| path = \"{named}.wav\"")), "{text}");
    }
}
