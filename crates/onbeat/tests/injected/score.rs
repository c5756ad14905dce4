//! How often the verdicts are right.

use onbeat::Record;
use onbeat::trace::CauseClass;
use onbeat::trace::cause::Part;
use std::ops::Range;

/// Expected cause of a case: its class, and a prefix of its name.
#[derive(Debug, Clone, Copy)]
pub struct Expected {
    pub class: CauseClass,
    pub name: &'static str,
}

impl Expected {
    pub fn is(self, part: &Part) -> bool {
        part.class == self.class && part.name.starts_with(self.name)
    }
}

/// Number of misses with the injected cause, and number of correct verdicts on them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Score {
    pub misses: usize,
    /// Verdicts whose first cause has this class and name.
    pub named: usize,
    /// Verdicts whose time is also within 20 % of the truth.
    pub timed: usize,
}

/// `truth` is when the cause was there, in nanoseconds of `CLOCK_MONOTONIC`; `start_ns` is when the run began
/// on that clock.
pub fn score(what: &str, record: &Record, start_ns: u64, truth: &[Range<u64>], expected: Expected) -> Score {
    let mut score = Score::default();
    let mut wrong = Vec::new();
    for miss in &record.misses {
        let end_ns = start_ns + miss.time_ns;
        let window = end_ns - miss.value_ns..end_ns;
        let inside = |at: &Range<u64>| at.end.min(window.end).saturating_sub(at.start.max(window.start));
        let true_ns: u64 = truth.iter().map(inside).sum();
        let Some(verdict) = &miss.verdict else { continue };
        if true_ns * 2 < miss.late_ns {
            continue;
        }
        score.misses += 1;
        let took_ns: u64 =
            verdict.parts.iter().filter(|part| expected.is(part)).map(|part| part.took_ns).sum();
        let is_named = verdict.parts.first().is_some_and(|part| expected.is(part));
        let is_timed = is_named && took_ns.abs_diff(true_ns) * 5 <= true_ns;
        score.named += usize::from(is_named);
        score.timed += usize::from(is_timed);
        if !is_timed {
            wrong.push(format!(
                "  true {} µs, found {} µs: {}",
                true_ns / 1000,
                took_ns / 1000,
                verdict.sentence
            ));
        }
    }
    eprintln!(
        "{what}: {} misses, {} of them by it; named {}, named and timed {}",
        record.misses_total, score.misses, score.named, score.timed
    );
    wrong.iter().take(5).for_each(|line| eprintln!("{line}"));
    let _ =
        record.write(std::env::temp_dir().join(format!("onbeat-injected-{}.json", what.replace(' ', "-"))));
    score
}

impl Score {
    #[track_caller]
    pub fn is_good(self) {
        self.is_named();
        assert!(self.timed * 20 >= self.misses * 19, "{self:?}");
    }

    #[track_caller]
    pub fn is_named(self) {
        assert!(self.misses >= 5, "the cause made no misses: {self:?}");
        assert!(self.named * 20 >= self.misses * 19, "{self:?}");
    }
}
