//! The bench of the work queue: results that hold on any machine, and refused settings.

use crate::stops::StopsAfter;
use crate::watchdog::watched;
use onbeat_bench::queue::{self, Design, QueueSettings};
use onbeat_bench::{BenchError, Unwatched};

fn tiny() -> QueueSettings {
    QueueSettings {
        single: 500,
        multi: 900,
        producers: 3,
        repeats: 2,
        lost_rounds: 0,
        latencies: 0,
        bursts: 0,
        ..QueueSettings::default()
    }
}

#[test]
fn every_design_has_its_figures() {
    let found =
        watched(|| queue::run(&QueueSettings { bursts: 3, latencies: 3, ..tiny() }, &mut Unwatched)).unwrap();
    for design in Design::ALL {
        for case in ["single", "multi", "cpu.single", "cpu.multi", "wakeups.single", "wakeups.multi"] {
            let name = format!("{case}.{}", design.name());
            let figure = found.result.figures.get(&name).unwrap_or_else(|| panic!("{name}"));
            assert!(figure.runs == 2 && figure.min <= figure.value && figure.value <= figure.max, "{name}");
        }
    }
    for name in ["model_before", "model_after", "onbeat", "onbeat_many", "onbeat_spin_20us"] {
        for place in ["apart", "free"] {
            let name = format!("wakeups.burst.{place}.{name}");
            assert!(found.result.value(&name).is_some(), "{name}");
        }
    }
    assert!(found.result.value("latency.plain.dma_any.onbeat_park.p50").is_some());
}

/// In the rounds in which the model of the batching design loses events, the work queue loses none. The
/// model's losses depend on the machine: a million rounds lose a few dozen on two cores. The work queue's
/// result must not.
#[test]
#[allow(clippy::disallowed_macros, reason = "a test says what it skips")]
fn no_event_is_lost() {
    let rounds = 1_000_000;
    let found = watched(move || queue::run(&QueueSettings { lost_rounds: rounds, ..tiny() }, &mut Unwatched))
        .unwrap();
    for name in ["model_before", "onbeat", "onbeat_spin", "onbeat_fifo"] {
        assert!(found.result.value(&format!("lost.{name}.rounds")) >= Some(rounds as f64), "{name}");
        assert_eq!(found.result.value(&format!("lost.{name}.events")), Some(0.0), "{name}");
    }
    match found.result.value("lost.model_after.events") {
        Some(lost) if lost > 0.0 => {}
        lost => {
            eprintln!("skipped: that the model of the batching design loses events: it lost {lost:?} here");
        }
    }
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    for (settings, text) in [
        (QueueSettings { producers: 0, ..tiny() }, "must be 1 or more"),
        (QueueSettings { multi: 2, ..tiny() }, "2 items for 3 producers"),
    ] {
        let error = queue::run(&settings, &mut Unwatched).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
}

#[test]
fn a_stop_before_anything_says_so() {
    assert!(matches!(queue::run(&tiny(), &mut StopsAfter::looks(0)), Err(BenchError::Stopped)));
}
