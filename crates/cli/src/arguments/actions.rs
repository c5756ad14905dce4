//! Actions at a limit or at the end, in rtla's syntax: `trace,file=x.txt`, `signal,num=10,pid=parent`,
//! `shell,command=...`, `continue`.

use std::path::PathBuf;
use std::str::FromStr;

/// An action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Write the latest kernel events to this file, or to the default file.
    Trace(Option<PathBuf>),
    /// Send a signal to a process; `None` is the parent process.
    Signal { number: u8, pid: Option<u32> },
    /// Run a shell command.
    Shell(String),
    /// Continue measuring or running.
    Continue,
}

impl FromStr for Action {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORMS: &str =
            "write trace[,file=FILE], signal,num=N,pid=PID|parent, shell,command=COMMAND or continue";
        let (kind, rest) = text.split_once(',').unwrap_or((text, ""));
        // A command can contain commas.
        if kind == "shell" {
            let command = rest.strip_prefix("command=").filter(|command| !command.trim().is_empty());
            return command.map(|command| Action::Shell(command.to_owned())).ok_or_else(|| FORMS.to_owned());
        }
        let mut keys: Vec<(&str, &str)> = Vec::new();
        for part in rest.split(',').filter(|part| !part.is_empty()) {
            keys.push(part.split_once('=').filter(|(_, value)| !value.is_empty()).ok_or(FORMS)?);
        }
        let value = |key: &str| keys.iter().find(|(known, _)| *known == key).map(|(_, value)| *value);
        let knows = |known: &[&str]| keys.iter().all(|(key, _)| known.contains(key));
        match kind {
            "trace" if knows(&["file"]) => Ok(Action::Trace(value("file").map(PathBuf::from))),
            "signal" if knows(&["num", "pid"]) => {
                let number = value("num")
                    .and_then(|number| number.parse().ok())
                    .filter(|number| (1..=64).contains(number));
                let pid = match value("pid") {
                    Some("parent") => Some(None),
                    Some(pid) => pid.parse().ok().filter(|pid| *pid > 1).map(Some),
                    None => None,
                };
                match (number, pid) {
                    (Some(number), Some(pid)) => Ok(Action::Signal { number, pid }),
                    _ => Err(
                        "the signal number must be 1 to 64 and the PID above 1, e.g. signal,num=10,pid=parent"
                            .to_owned(),
                    ),
                }
            }
            "continue" if rest.is_empty() => Ok(Action::Continue),
            _ => Err(FORMS.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Action;

    #[test]
    fn actions_are_read_as_rtla_writes_them() {
        for (text, action) in [
            ("trace", Action::Trace(None)),
            ("trace,file=x.txt", Action::Trace(Some("x.txt".into()))),
            ("signal,num=10,pid=parent", Action::Signal { number: 10, pid: None }),
            ("signal,pid=77,num=2", Action::Signal { number: 2, pid: Some(77) }),
            ("continue", Action::Continue),
            ("shell,command=echo a, b", Action::Shell("echo a, b".into())),
        ] {
            assert_eq!(text.parse(), Ok(action), "{text}");
        }
        for text in [
            "",
            "tarce",
            "trace,fiel=x",
            "trace,file=",
            "signal",
            "signal,num=0,pid=5",
            "signal,num=9,pid=1",
            "signal,num=9,pid=-1",
            "shell",
            "shell,command= ",
            "continue,now",
        ] {
            assert!(text.parse::<Action>().is_err(), "{text}");
        }
    }
}
