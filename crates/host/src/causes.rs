//! What late frames of a run were caused by: as much of its record as ranks the findings.
//!
//! A record has a table of causes in its JSON field `causes`, a list of `{"class": "irq", "name": "virtio1-req.0",
//! "lost_ms": 3.2}`; `lost_ns` in place of `lost_ms` is read too. More fields are left alone.

use serde::Serialize;
use serde_json::Value;

/// What makes a frame late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "each is what it is called")]
pub enum CauseClass {
    InputLate,
    OwnCompute,
    QueueWait,
    DownstreamFull,
    Preempted,
    RunQueueWait,
    Irq,
    Softirq,
    Nmi,
    PageFault,
    SystemCall,
    Lock,
    Stopped,
    GilWait,
    Migration,
    RtThrottling,
    DeadlineBudget,
    TimerLate,
    Hardware,
    GpuWait,
    Network,
    Unexplained,
}

/// Words that a record may use for each, without what is no letter.
const WORDS: &[(CauseClass, &[&str])] = &[
    (CauseClass::InputLate, &["inputlate", "input"]),
    (CauseClass::OwnCompute, &["owncompute", "compute", "overbudget"]),
    (CauseClass::QueueWait, &["queuewait", "queue"]),
    (CauseClass::DownstreamFull, &["downstreamfull", "downstream", "full"]),
    (CauseClass::Preempted, &["preempted", "preemptedbythread", "preemption", "thread"]),
    (CauseClass::RunQueueWait, &["runqueuewait", "runqueue"]),
    (CauseClass::Irq, &["irq", "interrupt"]),
    (CauseClass::Softirq, &["softirq"]),
    (CauseClass::Nmi, &["nmi"]),
    (CauseClass::PageFault, &["pagefault", "pagefaults"]),
    (CauseClass::SystemCall, &["systemcall", "syscall", "blocked", "blockedinsystemcall"]),
    (CauseClass::Lock, &["lock"]),
    (CauseClass::Stopped, &["stopped"]),
    (CauseClass::GilWait, &["gilwait", "gil"]),
    (CauseClass::Migration, &["migration"]),
    (CauseClass::RtThrottling, &["rtthrottling", "rtthrottle", "throttled"]),
    (CauseClass::DeadlineBudget, &["deadlinebudget", "deadlinebudgetexhausted", "budget"]),
    (CauseClass::TimerLate, &["timerlate", "idleexit"]),
    (CauseClass::Hardware, &["hardware", "stealorhardware", "steal"]),
    (CauseClass::GpuWait, &["gpuwait", "gpu"]),
    (CauseClass::Network, &["network"]),
    (CauseClass::Unexplained, &["unexplained"]),
];

impl CauseClass {
    /// All of them.
    pub fn all() -> impl Iterator<Item = CauseClass> {
        WORDS.iter().map(|(class, _)| *class)
    }

    /// In any spelling: `rt-throttling`, `RT throttling`, `rt_throttling`.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        let letters: String =
            word.chars().filter(char::is_ascii_alphabetic).collect::<String>().to_ascii_lowercase();
        WORDS.iter().find(|(_, words)| words.contains(&letters.as_str())).map(|(class, _)| *class)
    }
}

/// One row of a record's table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cause {
    /// What kind.
    pub class: CauseClass,
    /// Its name: an interrupt, a thread; empty where the kind says it all.
    pub name: String,
    /// What it has cost, in milliseconds.
    pub lost_ms: f64,
}

/// What a record says of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Causes {
    /// Its table; nothing where it has none.
    pub table: Option<Vec<Cause>>,
    /// Page faults of workers with a real-time policy, where it counts them.
    pub faults: Option<u64>,
    /// What a reader has to know.
    pub notes: Vec<String>,
}

/// Which causes a check is about: a class, and how the name begins; no begin for any name.
#[derive(Debug, Clone, Copy)]
pub struct Mends {
    /// The class.
    pub class: CauseClass,
    /// How names begin; none for all.
    pub names: &'static [&'static str],
}

impl Mends {
    fn is(&self, cause: &Cause) -> bool {
        self.class == cause.class
            && (self.names.is_empty() || self.names.iter().any(|begin| cause.name.starts_with(begin)))
    }
}

impl Causes {
    /// Reads a record of a run.
    ///
    /// # Errors
    /// What it is instead.
    pub fn from_json(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}"))?;
        match value.get("schema").and_then(Value::as_str) {
            Some("onbeat.record") => {}
            Some(other) => {
                return Err(format!("its schema is `{}`, not `onbeat.record`", crate::fact::short(other)));
            }
            None => {
                return Err("it has no field `schema`: give the record that `onbeat run` wrote".to_owned());
            }
        }
        let mut causes = Causes { faults: faults(&value), ..Causes::default() };
        let Some(rows) = value.get("causes").and_then(Value::as_array) else {
            causes.notes.push(
                "the record has no table of causes (`causes`): findings are in order of their severity, not of what they have cost"
                    .to_owned(),
            );
            return Ok(causes);
        };
        let mut table = Vec::new();
        for row in rows {
            let class = row.get("class").and_then(Value::as_str).unwrap_or("");
            let lost_ms = row.get("lost_ms").and_then(Value::as_f64);
            let lost_ms = lost_ms.or_else(|| Some(row.get("lost_ns")?.as_f64()? / 1e6));
            match (CauseClass::parse(class), lost_ms.filter(|ms| ms.is_finite() && *ms >= 0.0)) {
                (Some(class), Some(lost_ms)) => {
                    let name = row.get("name").and_then(Value::as_str).unwrap_or("");
                    table.push(Cause { class, name: crate::fact::short(name), lost_ms });
                }
                _ => causes.notes.push(format!(
                    "a row of the record's causes is not understood and left out: {}",
                    crate::fact::short(&row.to_string())
                )),
            }
        }
        causes.table = Some(table);
        Ok(causes)
    }

    /// What the causes that a check mends have cost, in milliseconds; nothing where the record has no table, or the check mends no
    /// cause.
    #[must_use]
    pub fn lost_ms(&self, mends: &[Mends]) -> Option<f64> {
        let table = self.table.as_ref().filter(|_| !mends.is_empty())?;
        let mended = table.iter().filter(|cause| mends.iter().any(|mends| mends.is(cause)));
        Some(mended.map(|cause| cause.lost_ms).sum())
    }
}

/// Of workers with a real-time policy, after their start.
fn faults(record: &Value) -> Option<u64> {
    let threads = record.get("threads")?.as_array()?;
    let real_time = threads.iter().filter(|thread| {
        thread.get("policy").and_then(Value::as_str).is_some_and(|policy| !policy.starts_with('o'))
    });
    let count = |thread: &Value| {
        let number = |name: &str| thread.get(name).and_then(Value::as_u64);
        Some(number("minor_faults")?.saturating_add(number("major_faults").unwrap_or(0)))
    };
    let counts: Vec<u64> = real_time.filter_map(count).collect();
    (!counts.is_empty()).then(|| counts.into_iter().fold(0, u64::saturating_add))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_read_in_any_spelling() {
        for (word, class) in [
            ("RT throttling", CauseClass::RtThrottling),
            ("rt_throttle", CauseClass::RtThrottling),
            ("IRQ", CauseClass::Irq),
            ("page_fault", CauseClass::PageFault),
            ("steal or hardware", CauseClass::Hardware),
        ] {
            assert_eq!(CauseClass::parse(word), Some(class), "{word}");
        }
        assert_eq!(CauseClass::parse("magic"), None);
        for class in CauseClass::all() {
            let word = serde_json::to_string(&class).unwrap();
            assert_eq!(CauseClass::parse(&word), Some(class), "{word}");
        }
    }

    #[test]
    fn what_is_no_record_says_so() {
        for (text, message) in [
            ("{", "it is no JSON"),
            ("[]", "no field `schema`"),
            ("{\"schema\": \"onbeat.noise\"}", "its schema is `onbeat.noise`, not `onbeat.record`"),
        ] {
            let error = Causes::from_json(text).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
        let without = Causes::from_json("{\"schema\": \"onbeat.record\"}").unwrap();
        assert!(without.table.is_none() && without.notes[0].contains("no table of causes"));
        assert_eq!(without.lost_ms(&[Mends { class: CauseClass::Irq, names: &[] }]), None);
    }

    #[test]
    fn time_is_summed_by_class_and_name() {
        let text = r#"{"schema": "onbeat.record", "causes": [
            {"class": "irq", "name": "eth0", "lost_ms": 2.0}, {"class": "irq", "name": "local_timer", "lost_ns": 500000},
            {"class": "preempted", "name": "kdamond.0", "lost_ms": 7.5, "more": 1}, {"class": "magic", "lost_ms": 1}]}"#;
        let causes = Causes::from_json(text).unwrap();
        let lost = |class, names| causes.lost_ms(&[Mends { class, names }]);
        assert_eq!(lost(CauseClass::Irq, &[]), Some(2.5));
        assert_eq!(lost(CauseClass::Preempted, &["kdamond"]), Some(7.5));
        assert_eq!(lost(CauseClass::Preempted, &["khugepaged"]), Some(0.0));
        assert_eq!(causes.lost_ms(&[]), None);
        assert!(causes.notes[0].contains("magic"));
    }
}
