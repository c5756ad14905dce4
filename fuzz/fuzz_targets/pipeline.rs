//! The reader of pipeline files: any bytes give a plan, or an error that can be shown.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onbeat::{Overrides, Pipeline, Registry};
use std::sync::LazyLock;

static REGISTRY: LazyLock<Registry> = LazyLock::new(onbeat::operators::registry);

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    // The first line can be a setting, as in `--set`.
    let mut overrides = Overrides::default();
    let text = match text.split_once('\n') {
        Some((setting, rest)) if setting.starts_with("#set ") => {
            overrides.set(&setting[5..]);
            rest
        }
        _ => text,
    };
    match Pipeline::parse(text, "fuzz.toml", "", &REGISTRY, &overrides) {
        Ok(pipeline) => drop(pipeline.plan),
        Err(error) => {
            let shown = error.to_string();
            assert!(!shown.is_empty());
            if let Some(span) = error.span() {
                assert!(error.text().get(span).is_some(), "{shown}");
            }
        }
    }
});
