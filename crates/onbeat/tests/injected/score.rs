//! How often the verdicts are right.

use onbeat::Record;
use onbeat::trace::CauseClass;
use onbeat::trace::cause::Part;
use onbeat::trace::record::Miss;
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
    score_by(what, record, expected, |miss| {
        let end_ns = start_ns + miss.time_ns;
        inside(truth, &(end_ns - miss.value_ns..end_ns))
    })
}

/// As [`score`] where messages wait for earlier ones that had the cause. A message is late by what the worker
/// lost since the first of them was due, less what there was to spare. Each message takes `usual_ns`. The
/// cause has its share of what is beyond that, in proportion to its share of the loss.
pub fn score_backlog(
    what: &str,
    record: &Record,
    start_ns: u64,
    (truth, usual_ns): (&[Range<u64>], u64),
    expected: Expected,
) -> Score {
    // Each message that is due while the one before is not finished belongs to the same backlog.
    let mut backlogs: Vec<(u64, u64, u64)> = Vec::new();
    for miss in &record.misses {
        let end_ns = start_ns + miss.time_ns;
        let due_ns = end_ns - miss.value_ns;
        let last = backlogs.last().filter(|(_, last_end_ns, _)| *last_end_ns > due_ns);
        let next = last.map_or((due_ns, end_ns, 1), |(begin_ns, _, count)| (*begin_ns, end_ns, count + 1));
        backlogs.push(next);
    }
    score_by(what, record, expected, |miss| {
        let end_ns = start_ns + miss.time_ns;
        let (begin_ns, _, count) = *backlogs.iter().find(|(_, end, _)| *end == end_ns).expect("its own");
        let lost_ns = (end_ns - begin_ns).saturating_sub(count * usual_ns).max(1);
        let beyond_ns = miss.value_ns.saturating_sub(usual_ns).min(lost_ns);
        let had_ns = inside(truth, &(begin_ns..end_ns));
        (u128::from(had_ns) * u128::from(beyond_ns) / u128::from(lost_ns)) as u64
    })
}

/// How much of the truth lies in a window.
pub fn inside(truth: &[Range<u64>], window: &Range<u64>) -> u64 {
    truth.iter().map(|at| at.end.min(window.end).saturating_sub(at.start.max(window.start))).sum()
}

fn score_by(what: &str, record: &Record, expected: Expected, true_ns: impl Fn(&Miss) -> u64) -> Score {
    let mut score = Score::default();
    let mut wrong = Vec::new();
    for miss in &record.misses {
        let true_ns = true_ns(miss);
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
