//! Findings, and the fixes for them.

use serde::Serialize;
use std::fmt;

/// Severity of a bad finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Costs determinism.
    Warning,
    /// Prevents the machine from meeting its deadlines.
    Critical,
}

/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// As it should be.
    Good,
    /// Not as it should be.
    Bad,
    /// The file is absent, unreadable or not understood; or the value was not measured.
    Unknown,
}

/// A way to fix a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Fix {
    /// Parameter on the kernel's command line, from the next boot on.
    Boot {
        /// Its name.
        name: String,
        /// Its value, if it has one.
        value: Option<String>,
    },
    /// Value for a kernel file: `tune --apply` writes it, and can restore the old one.
    Write {
        /// File, without the leading slash.
        path: String,
        /// The value.
        value: String,
    },
    /// Command to run by hand, if nothing else on the machine needs the old state.
    Command {
        /// The command line.
        line: String,
    },
    /// Advice that no single command can carry out.
    Advice {
        /// The advice.
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

/// Turns `proc/sys/kernel/timer_migration` into `kernel.timer_migration`.
#[must_use]
pub fn sysctl_name(path: &str) -> Option<String> {
    path.strip_prefix("proc/sys/").map(|name| name.replace('/', "."))
}

/// Describes fixes in a sentence. Fixes of one kind are merged; files that get the same value become one
/// pattern.
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

/// Replaces the last number of a path: returns `proc/irq/{}/smp_affinity_list` and `24`.
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

/// Result of a check on a machine.
#[derive(Debug, Clone)]
pub struct Judgement {
    /// Good, bad or unknown.
    pub state: State,
    /// Severity, if it differs from the check's usual one.
    pub severity: Option<Severity>,
    /// Observation: the setting and its value, in a sentence.
    pub evidence: String,
    /// Fixes, the recommended one first.
    pub fixes: Vec<Fix>,
}

impl Judgement {
    pub(crate) fn good(evidence: impl Into<String>) -> Self {
        Judgement { state: State::Good, severity: None, evidence: evidence.into(), fixes: Vec::new() }
    }

    pub(crate) fn bad(evidence: impl Into<String>) -> Self {
        Judgement { state: State::Bad, ..Judgement::good(evidence) }
    }

    pub(crate) fn unknown(why: impl Into<String>) -> Self {
        Judgement { state: State::Unknown, ..Judgement::good(why) }
    }

    pub(crate) fn with_severity(self, severity: Severity) -> Self {
        Judgement { severity: Some(severity), ..self }
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

/// Result of a check, with the check's texts.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// Identifier of the check.
    pub id: &'static str,
    /// Good, bad or unknown.
    pub state: State,
    /// Severity if it is bad.
    pub severity: Severity,
    /// Title of the check.
    pub title: &'static str,
    /// Observation, or the reason why there is none.
    pub evidence: String,
    /// Fixes.
    pub fixes: Vec<Fix>,
    /// Cost of its causes in a recorded run, in milliseconds; `None` without a record that says so.
    pub lost_ms: Option<f64>,
    /// Page of the book that explains it.
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
