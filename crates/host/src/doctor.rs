//! From a case to findings, worst first, and a verdict: a function of nothing else.

use crate::case::Case;
use crate::causes::Causes;
use crate::checks;
use crate::finding::{Finding, Severity, State};
use serde::Serialize;
use std::cmp::Reverse;

/// Everything that was found.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The cores that are to be quiet.
    pub cpus: String,
    /// Why these.
    pub why_cpus: String,
    /// Bad ones first, the worst of them first; then what is not known, then what is good.
    pub findings: Vec<Finding>,
    /// What a reader has to know.
    pub notes: Vec<String>,
}

/// Judges a machine by all checks.
#[must_use]
pub fn examine(case: &Case) -> Report {
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
    // The order within one rank is that of the checks.
    findings.sort_by_key(rank);
    let note = case.causes.as_ref().and_then(Causes::note);
    Report {
        cpus: case.cpus.to_string(),
        why_cpus: case.why_cpus.clone(),
        findings,
        notes: note.map(str::to_owned).into_iter().collect(),
    }
}

/// What a machine says does not steer a terminal.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Bad before unknown before good; of the bad ones critical first, then what has cost most, then by severity.
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
    /// Whether the record shows that its causes have cost nothing, so that mending it may be left.
    #[must_use]
    pub fn cost_nothing(&self) -> bool {
        self.state == State::Bad && self.lost_ms == Some(0.0)
    }
}

impl Report {
    /// The bad ones of at least that severity.
    pub fn bad(&self, least: Severity) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.state == State::Bad && finding.severity >= least)
    }

    /// How many are in that state.
    #[must_use]
    pub fn count(&self, state: State) -> usize {
        self.findings.iter().filter(|finding| finding.state == state).count()
    }

    /// How many bad ones have exactly that severity.
    #[must_use]
    pub fn count_bad(&self, severity: Severity) -> usize {
        self.bad(severity).filter(|finding| finding.severity == severity).count()
    }

    /// In a sentence.
    #[must_use]
    pub fn verdict(&self) -> &'static str {
        match (self.count_bad(Severity::Critical), self.count_bad(Severity::Warning)) {
            (0, 0) => "fit for real time",
            (0, _) => "fit, with costs to its determinism",
            _ => "not fit: its promises cannot be kept",
        }
    }
}
