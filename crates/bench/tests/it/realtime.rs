//! The bench of frame jitter through its public interface. The figures depend on the machine; their form does
//! not.

use crate::stops::StopsAfter;
use crate::watchdog::watched;
use onbeat_bench::realtime::{self, RealtimePolicy, RealtimeSettings};
use onbeat_bench::{BenchError, Unwatched};

/// On an available core, with a tenth of a second per pass.
fn tiny() -> RealtimeSettings {
    let core = onbeat_os::CoreSet::allowed().unwrap().iter().next().unwrap();
    RealtimeSettings {
        target_fps: 200.0,
        duration_ns: 100_000_000,
        policies: vec![RealtimePolicy::Fifo],
        bg_load_intensity: 10,
        bm_load_intensity: 10,
        pin_cpu: core,
        rounds: 2,
        ..RealtimeSettings::default()
    }
}

#[test]
fn every_pass_has_its_figures_and_its_floor() {
    let found = watched(|| realtime::run(&tiny(), &mut Unwatched)).unwrap();
    let has_right = found.passes.iter().any(|pass| pass == "fifo");
    let notes = found.result.notes.join("\n");
    assert!(has_right || notes.contains("fifo: not available"), "{notes}");
    for pass in &found.passes {
        for figure in
            ["period.p50", "period.std", "deviation.p99", "execution.mean", "over_100us", "fps", "missed"]
        {
            let name = format!("{pass}.{figure}");
            let figure = found.result.figures.get(&name).unwrap_or_else(|| panic!("{name}: {notes}"));
            assert!(figure.min <= figure.value && figure.value <= figure.max, "{name}");
        }
        assert_eq!(found.result.raw[pass].as_array().map(Vec::len), Some(2), "one entry per round");
    }
    for pass in ["baseline", "no_load"] {
        assert!(found.passes.contains(&pass.to_owned()) && found.passes.contains(&format!("floor_{pass}")));
        assert!(found.result.value(&format!("ratio.floor.{pass}.p99")).is_some());
    }
    // Late frames have a cause, and are in the list of their pass.
    for (pass, round, outlier) in &found.outliers {
        assert!(found.passes.contains(pass) && *round < 2 && !outlier.cause.is_empty(), "{outlier:?}");
        assert!(outlier.excess_ns > realtime::OUTLIER_NS);
    }
    let svg = found.to_svg();
    let drawn = roxmltree::Document::parse(&svg).unwrap();
    let text: String = drawn.descendants().filter_map(|node| node.text()).collect();
    assert!(text.contains("full range") && text.contains("near the target") && text.contains("over time"));
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    type Change = fn(&mut RealtimeSettings);
    let table: [(Change, &str); 6] = [
        (|it| it.target_fps = 0.0, "target-fps is 0: it must be from 0.1 to 10000"),
        (|it| it.target_fps = f64::NAN, "target-fps is NaN"),
        (|it| it.duration_ns = 1_000, "fewer than 5 frames"),
        (|it| it.rounds = 0, "must be 1 or more"),
        (|it| it.worker_threads = 0, "must be 1 or more"),
        (|it| it.pin_cpu = 5_000, "core 5000 is not available to this process"),
    ];
    for (change, part) in table {
        let mut settings = tiny();
        change(&mut settings);
        let error = realtime::run(&settings, &mut Unwatched).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_stop_before_anything_says_so() {
    let error = watched(|| realtime::run(&tiny(), &mut StopsAfter::looks(0))).unwrap_err();
    assert!(matches!(error, BenchError::Stopped), "{error}");
}

#[test]
fn policies_have_their_published_names() {
    for (name, kind) in [
        ("SCHED_FIFO", RealtimePolicy::Fifo),
        ("rr", RealtimePolicy::Rr),
        ("Sched_Deadline", RealtimePolicy::Deadline),
    ] {
        assert_eq!(RealtimePolicy::from_name(name), Some(kind));
    }
    assert_eq!(RealtimePolicy::from_name("SCHED_OTHER"), None);
}
