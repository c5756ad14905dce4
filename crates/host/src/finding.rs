//! What a check has found, and what mends it.

use serde::Serialize;
use std::fmt;

/// How much a bad finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Good to know.
    Info,
    /// It costs determinism.
    Warning,
    /// A promise cannot be kept with it.
    Critical,
}

/// How it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// As it should be.
    Good,
    /// Not as it should be.
    Bad,
    /// The file is absent, may not be read, or is not understood; or nobody has measured it.
    Unknown,
}

/// What mends it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Fix {
    /// A parameter on the kernel's command line, from the next boot on.
    Boot {
        /// Its name.
        name: String,
        /// Its value, if it has one.
        value: Option<String>,
    },
    /// A value for a file of the kernel: `tune --apply` writes it, and can put the old one back.
    Write {
        /// The file, without the slash in front.
        path: String,
        /// The value.
        value: String,
    },
    /// A command, for whoever knows that nobody needs it otherwise.
    Command {
        /// As it is typed.
        line: String,
    },
    /// Something that no command does.
    Advice {
        /// What to do.
        text: String,
    },
}

impl Fix {
    pub(crate) fn boot(name: &str, value: impl Into<String>) -> Self {
        Fix::Boot { name: name.to_owned(), value: Some(value.into()) }
    }

    pub(crate) fn write(path: impl Into<String>, value: impl Into<String>) -> Self {
        Fix::Write { path: path.into(), value: value.into() }
    }

    pub(crate) fn sysctl(name: &str, value: impl Into<String>) -> Self {
        Fix::write(format!("proc/sys/{}", name.replace('.', "/")), value)
    }

    pub(crate) fn command(line: impl Into<String>) -> Self {
        Fix::Command { line: line.into() }
    }

    pub(crate) fn advice(text: impl Into<String>) -> Self {
        Fix::Advice { text: text.into() }
    }
}

impl fmt::Display for Fix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fix::Boot { name, value: Some(value) } => write!(f, "boot with {name}={value}"),
            Fix::Boot { name, value: None } => write!(f, "boot with {name}"),
            Fix::Write { path, value } => match sysctl_name(path) {
                Some(name) => write!(f, "sysctl {name}={value}"),
                None => write!(f, "echo {value} > /{path}"),
            },
            Fix::Command { line } => f.write_str(line),
            Fix::Advice { text } => f.write_str(text),
        }
    }
}

/// `kernel.timer_migration` for `proc/sys/kernel/timer_migration`.
#[must_use]
pub fn sysctl_name(path: &str) -> Option<String> {
    path.strip_prefix("proc/sys/").map(|name| name.replace('/', "."))
}

/// Fixes for a sentence: those of one kind together, many files of one value in a pattern.
#[must_use]
pub fn in_words(fixes: &[Fix]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let boots: Vec<String> = fixes
        .iter()
        .filter(|fix| matches!(fix, Fix::Boot { .. }))
        .map(|fix| fix.to_string().trim_start_matches("boot with ").to_owned())
        .collect();
    if !boots.is_empty() {
        lines.push(format!("boot with {}", boots.join(" ")));
    }
    let mut files: Vec<(String, &str, Vec<String>)> = Vec::new();
    for fix in fixes {
        match fix {
            Fix::Boot { .. } => {}
            Fix::Write { path, value } if sysctl_name(path).is_none() => {
                let (pattern, number) = without_number(path);
                match files.iter_mut().find(|(known, same, _)| *known == pattern && same == value) {
                    Some((.., numbers)) => numbers.push(number),
                    None => files.push((pattern, value, vec![number])),
                }
            }
            other => lines.push(other.to_string()),
        }
    }
    for (pattern, value, numbers) in files {
        lines.push(match &numbers[..] {
            [one] => format!("echo {value} > /{}", pattern.replacen("{}", one, 1)),
            many => format!(
                "echo {value} | tee /{}",
                pattern.replacen("{}", &format!("{{{}}}", many.join(",")), 1)
            ),
        });
    }
    lines
}

/// A path with its last number taken out: `proc/irq/{}/smp_affinity_list` and `24`.
fn without_number(path: &str) -> (String, String) {
    let parts: Vec<&str> = path.split('/').collect();
    for (place, part) in parts.iter().enumerate().rev() {
        let letters = part.trim_end_matches(|c: char| c.is_ascii_digit());
        let number = &part[letters.len()..];
        if !number.is_empty() && (letters.is_empty() || letters == "cpu") {
            let mut pattern: Vec<String> = parts.iter().map(ToString::to_string).collect();
            pattern[place] = format!("{letters}{{}}");
            return (pattern.join("/"), number.to_owned());
        }
    }
    (path.to_owned(), String::new())
}

/// What a check says of a machine.
#[derive(Debug, Clone)]
pub struct Judged {
    /// How it stands.
    pub state: State,
    /// Where it is not the usual one of the check.
    pub severity: Option<Severity>,
    /// What was seen: the thing and its value, in a sentence.
    pub evidence: String,
    /// What mends it; the first one first.
    pub fixes: Vec<Fix>,
}

impl Judged {
    pub(crate) fn good(evidence: impl Into<String>) -> Self {
        Judged { state: State::Good, severity: None, evidence: evidence.into(), fixes: Vec::new() }
    }

    pub(crate) fn bad(evidence: impl Into<String>) -> Self {
        Judged { state: State::Bad, ..Judged::good(evidence) }
    }

    pub(crate) fn unknown(why: impl Into<String>) -> Self {
        Judged { state: State::Unknown, ..Judged::good(why) }
    }

    pub(crate) fn with_severity(self, severity: Severity) -> Self {
        Judged { severity: Some(severity), ..self }
    }

    pub(crate) fn fix(mut self, fix: Fix) -> Self {
        self.fixes.push(fix);
        self
    }

    pub(crate) fn fixes(mut self, fixes: impl IntoIterator<Item = Fix>) -> Self {
        self.fixes.extend(fixes);
        self
    }
}

/// What a check has found on a machine.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// Which check.
    pub id: &'static str,
    /// How it stands.
    pub state: State,
    /// How much it matters, where it is bad.
    pub severity: Severity,
    /// What the check is about.
    pub title: &'static str,
    /// What was seen, or why nothing could be.
    pub evidence: String,
    /// What mends it.
    pub fixes: Vec<Fix>,
    /// What its causes have cost in the run of a record, in milliseconds; nothing without a record that says so.
    pub lost_ms: Option<f64>,
    /// Where the book explains it.
    pub page: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixes_of_one_kind_go_together() {
        let fixes = [
            Fix::boot("isolcpus", "2-3"),
            Fix::write("proc/irq/24/smp_affinity_list", "0-1"),
            Fix::sysctl("vm.stat_interval", "10"),
            Fix::boot("nohz_full", "2-3"),
            Fix::write("proc/irq/25/smp_affinity_list", "0-1"),
            Fix::write("sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "performance"),
        ];
        assert_eq!(
            in_words(&fixes),
            [
                "boot with isolcpus=2-3 nohz_full=2-3",
                "sysctl vm.stat_interval=10",
                "echo 0-1 | tee /proc/irq/{24,25}/smp_affinity_list",
                "echo performance > /sys/devices/system/cpu/cpu2/cpufreq/scaling_governor",
            ]
        );
    }
}
