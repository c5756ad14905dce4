//! The bench of explaining gives its figures; how large they are is no test's business.

use onbeat_bench::explain::{Settings, run};
use onbeat_bench::{BenchError, Unwatched};

#[test]
fn each_chain_is_run_with_and_without() {
    let settings = Settings { kernels: vec![2], pairs: 2, seconds: 0.02, ..Settings::default() };
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
        Settings { pairs: 0, ..Settings::default() },
        Settings { kernels: vec![0], ..Settings::default() },
        Settings { seconds: 0.0, ..Settings::default() },
        Settings { seconds: f64::NAN, ..Settings::default() },
    ] {
        assert!(matches!(run(&settings, &mut Unwatched), Err(BenchError::Settings(_))), "{settings:?}");
    }
}
