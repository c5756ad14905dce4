//! The radio runtimes' benchmark: results that hold on any machine, and refused settings.

use crate::stops::StopsAfter;
use crate::watchdog::watched;
use onbeat_bench::saxpy::{self, Mode, SaxpyForm, SaxpySettings, Whose};
use onbeat_bench::{BenchError, Unwatched};
use onbeat_os::CoreSet;

fn tiny() -> SaxpySettings {
    SaxpySettings { cores: vec![1], kernels: vec![2], seconds: 0.005, rounds: 2, ..SaxpySettings::default() }
}

/// Whether two cores are available.
#[allow(clippy::disallowed_macros, reason = "a test says what it skips")]
fn has_two_cores() -> bool {
    let has = CoreSet::allowed().is_ok_and(|cores| cores.iter().count() >= 2);
    if !has {
        eprintln!("skipped: two cores: this process may use one");
    }
    has
}

#[test]
fn every_case_has_its_figures_and_its_limit() {
    let cores = if has_two_cores() { vec![1, 2] } else { vec![1] };
    let settings = SaxpySettings {
        cores: cores.clone(),
        quanta: vec![4096, 6000],
        modes: vec![Mode::Greedy, Mode::Pinned, Mode::Event],
        operators: vec![Whose::BuiltIn, Whose::Own],
        ..tiny()
    };
    let found = watched(move || saxpy::run(&settings, &mut Unwatched)).unwrap();
    assert!(!found.rows.is_empty());
    for row in &found.rows {
        // Greedy on one core is compared with itself.
        let is_greedy = row.case.mode == Mode::Greedy;
        assert_ne!(found.result.figures.contains_key(&format!("{}.of_one_core", row.name)), is_greedy);
        for what in ["rate", "share", "of_bare", "of_one_core"].iter().take(if is_greedy { 3 } else { 4 }) {
            let name = format!("{}.{what}", row.name);
            let figure = found.result.figures.get(&name).unwrap_or_else(|| panic!("{name}"));
            assert!(figure.runs == 2 && figure.min > 0.0 && figure.min <= figure.value, "{name}");
        }
        assert!(found.result.value(&row.limit) > Some(0.0), "{}", row.limit);
    }
    let names: Vec<&str> = found.rows.iter().map(|row| &*row.name).collect();
    for wanted in ["saxpy.greedy.n1.m2.q4k.in_place", "saxpy.event.n1.m2.q6000.out_of_place.own"] {
        assert!(names.contains(&wanted), "{wanted}: {names:?}");
    }
    let split = "saxpy.pinned.n2.m2.q4k.b3.in_place";
    assert_eq!(names.contains(&split), cores.len() > 1, "{names:?}");
    let svg = found.to_svg();
    assert!(svg.contains("fair: N/M") && svg.contains("1 core, 4 KiB, in place"), "{svg}");
}

#[test]
fn replicated_is_measured_or_its_absence_is_said() {
    let settings = SaxpySettings {
        modes: vec![Mode::Greedy, Mode::Replicated],
        forms: vec![SaxpyForm::InPlace],
        ..tiny()
    };
    let found = watched(move || saxpy::run(&settings, &mut Unwatched)).unwrap();
    let is_there = found.rows.iter().any(|row| row.case.mode == Mode::Replicated);
    let is_said = found.result.notes.iter().any(|note| note.starts_with("replicated: not available: "));
    assert!(is_there != is_said, "{:?}", found.result.notes);
}

#[test]
fn what_was_disturbed_is_told_and_made_again_only_if_asked() {
    for again in [0, 2] {
        let settings = SaxpySettings { again, rounds: 3, modes: vec![Mode::Greedy], ..tiny() };
        let found = watched(move || saxpy::run(&settings, &mut Unwatched)).unwrap().result;
        let (made, left) = (found.value("machine.again").unwrap(), found.value("machine.disturbed").unwrap());
        // Both forms in three rounds.
        assert!(made <= 6.0 * again as f64 && left <= 6.0, "{again}: {made} {left}");
        assert_eq!(
            found.notes.iter().any(|note| note.contains("--again N")),
            left > 0.0,
            "{:?}",
            found.notes
        );
        let figures = found.figures.iter().filter(|(name, _)| name.starts_with("saxpy."));
        assert!(figures.clone().count() > 0 && figures.clone().all(|(_, figure)| figure.runs == 3));
    }
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    for (settings, text) in [
        (SaxpySettings { cores: vec![], ..tiny() }, "cores: give at least one number"),
        (SaxpySettings { kernels: vec![0], ..tiny() }, "kernels: give at least one number"),
        (SaxpySettings { kernels: vec![2, 2], ..tiny() }, "kernels: a number occurs twice"),
        (SaxpySettings { kernels: vec![1001], ..tiny() }, "at most 1000"),
        (SaxpySettings { quanta: vec![4098], ..tiny() }, "4098 bytes: it must be a multiple of 4"),
        (SaxpySettings { quanta: vec![1 << 31], ..tiny() }, "at most 1 GiB"),
        (SaxpySettings { rounds: 0, ..tiny() }, "must not be empty or 0"),
        (SaxpySettings { seconds: f64::NAN, ..tiny() }, "must be from 0.001 to 60"),
        (SaxpySettings { cores: vec![900], ..tiny() }, "900 are needed, but there are"),
        (SaxpySettings { on: vec![8000], ..tiny() }, "core 8000 is not available to this process"),
        (SaxpySettings { on: vec![0, 0], ..tiny() }, "on: a number occurs twice"),
        (SaxpySettings { modes: vec![Mode::Pinned], ..tiny() }, "pinned needs two or more cores"),
        (SaxpySettings { peers: Some("no-folder".into()), ..tiny() }, "no-folder/saxpy.sh does not exist"),
    ] {
        let error = saxpy::run(&settings, &mut Unwatched).unwrap_err().to_string();
        assert!(error.contains(text), "{text}: {error}");
    }
}

#[test]
fn a_stop_before_anything_says_so() {
    assert!(matches!(saxpy::run(&tiny(), &mut StopsAfter::looks(0)), Err(BenchError::Stopped)));
}
