//! A worker under `SCHED_DEADLINE` that takes more than its run time.

use super::harness::Place;
use super::{alone, may, record};
use std::fs;

/// Each message takes 8 ms, and the worker has 2 ms in every 20 ms. The work makes no system calls. The
/// kernel checks and reports the run time at ticks; a thread that is stopped between two ticks is not
/// reported.
const TOO_MUCH: &str = r#"
name = "too_much"
scheduler = "custom"
duration = "500 ms"
output = "out"
[[pool]]
name = "radio"
policy = "d:2ms:20ms"
operators = ["numbers", "work", "end"]
[[operator]]
name = "numbers"
kind = "counter"
rate = "20 Hz"
pace = "real"
[[operator]]
name = "work"
kind = "load.count"
busy = "8 ms"
[[operator]]
name = "end"
kind = "count.sink"
[[edge]]
from = "numbers"
to = "work"
[[edge]]
from = "work"
to = "end"
"#;

#[test]
fn overruns_are_counted() {
    let _alone = alone();
    if !may(&["d:2ms:20ms"]) {
        return;
    }
    let place = Place::new();
    fs::write(place.path("too_much.toml"), TOO_MUCH).expect("a file");
    let answer = place.onbeat(&["run", "too_much.toml", "--strict"]);
    assert_eq!(answer.status, Some(0), "{answer:?}");
    let overruns = record(&place, "too_much")["deadline_overruns"].as_u64().expect("a count");
    assert!(overruns > 0, "{answer:?}");
    let line = format!(
        "{overruns} overrun{} of SCHED_DEADLINE: a worker used up the run time of a period",
        if overruns == 1 { "" } else { "s" }
    );
    assert!(answer.stdout.contains(&line), "{line}: {answer:?}");
    // With time enough there is none, and no worker of another kind has any.
    for (policy, count) in [("d:15ms:20ms", Some(0)), ("o:0", None)] {
        let setting = format!("pool.radio.policy={policy}");
        let answer = place.onbeat(&["run", "too_much.toml", "--strict", "--set", &setting]);
        assert_eq!(answer.status, Some(0), "{answer:?}");
        assert_eq!(record(&place, "too_much")["deadline_overruns"].as_u64(), count, "{policy}");
        assert!(!answer.stdout.contains("of SCHED_DEADLINE"), "{answer:?}");
    }
}
