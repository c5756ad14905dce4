//! The explain bench produces its figures; their values are not tested.

use onbeat_bench::explain::{ExplainSettings, run};
use onbeat_bench::{BenchError, Unwatched};

#[test]
fn each_chain_is_run_with_and_without() {
    let settings =
        ExplainSettings { kernels: vec![2], pairs: 2, seconds: 0.02, ..ExplainSettings::default() };
    let result = run(&settings, &mut Unwatched).expect("figures");
    for chain in ["saxpy.m2", "long"] {
        for figure in ["off", "on", "cost"] {
            let name = format!("{chain}.{figure}");
            assert_eq!(result.figures.get(&name).map(|figure| figure.runs), Some(2), "{name}");
        }
        assert!(result.value(&format!("{chain}.on")).is_some_and(|rate| rate > 0.0), "{chain}");
    }
    assert!(result.value("stamp").is_some());
    assert!(result.notes.iter().any(|note| note.starts_with("saxpy.m2: ")), "{:?}", result.notes);
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    for settings in [
        ExplainSettings { pairs: 0, ..ExplainSettings::default() },
        ExplainSettings { kernels: vec![0], ..ExplainSettings::default() },
        ExplainSettings { seconds: 0.0, ..ExplainSettings::default() },
        ExplainSettings { seconds: f64::NAN, ..ExplainSettings::default() },
    ] {
        assert!(matches!(run(&settings, &mut Unwatched), Err(BenchError::Settings(_))), "{settings:?}");
    }
}
