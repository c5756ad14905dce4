//! From a case to ranked findings and a verdict, as a pure function.

use crate::case::MachineCase;
use crate::causes::Causes;
use crate::checks;
use crate::finding::{Finding, Severity, State};
use serde::Serialize;
use std::cmp::Reverse;

/// Result of an examination.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The quiet cores.
    pub cpus: String,
    /// How they were chosen.
    pub why_cpus: String,
    /// Findings: bad ones first, the worst of them first; then unknown ones, then good ones.
    pub findings: Vec<Finding>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// Judges a machine by all checks.
#[must_use]
pub fn examine(case: &MachineCase) -> Report {
    let mut findings: Vec<Finding> = checks::all()
        .map(|check| {
            let judged = (check.judge)(case);
            let lost_ms = case.causes.as_ref().and_then(|causes| causes.lost_ms(check.id));
            Finding {
                id: check.id,
                state: judged.state,
                severity: judged.severity.unwrap_or(check.severity),
                title: check.title,
                evidence: printable(&judged.evidence),
                fixes: judged.fixes,
                lost_ms,
                page: format!("docs/book/src/findings.md#{}", check.id),
            }
        })
        .collect();
    // The sort is stable: findings of equal rank keep the order of the checks.
    findings.sort_by_key(rank);
    let note = case.causes.as_ref().and_then(Causes::note);
    Report {
        cpus: case.cpus.to_string(),
        why_cpus: case.why_cpus.clone(),
        findings,
        notes: note.map(str::to_owned).into_iter().collect(),
    }
}

/// Replaces control characters, so that a machine's files cannot steer a terminal.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Sort key: bad, unknown, good; among the bad ones critical first, then by cost in the record, then by
/// severity.
fn rank(finding: &Finding) -> (u8, bool, Reverse<u64>, Reverse<Severity>) {
    let state = match finding.state {
        State::Bad => 0,
        State::Unknown => 1,
        State::Good => 2,
    };
    let lost_ns = finding.lost_ms.filter(|_| state == 0).map_or(0, |ms| (ms * 1e6) as u64);
    (state, finding.severity != Severity::Critical, Reverse(lost_ns), Reverse(finding.severity))
}

impl Finding {
    /// Whether the record shows that its causes cost nothing, so that fixing it can wait.
    #[must_use]
    pub fn cost_nothing(&self) -> bool {
        self.state == State::Bad && self.lost_ms == Some(0.0)
    }
}

impl Report {
    /// Returns the bad findings of at least this severity.
    pub fn bad(&self, least: Severity) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.state == State::Bad && finding.severity >= least)
    }

    /// Number of findings in this state.
    #[must_use]
    pub fn count(&self, state: State) -> usize {
        self.findings.iter().filter(|finding| finding.state == state).count()
    }

    /// Number of bad findings with exactly this severity.
    #[must_use]
    pub fn count_bad(&self, severity: Severity) -> usize {
        self.bad(severity).filter(|finding| finding.severity == severity).count()
    }

    /// Verdict in a few words.
    #[must_use]
    pub fn verdict(&self) -> &'static str {
        match (self.count_bad(Severity::Critical), self.count_bad(Severity::Warning)) {
            (0, 0) => "fit for real time",
            (0, _) => "fit, at a cost to determinism",
            _ => "not fit: it cannot meet deadlines reliably",
        }
    }
}
