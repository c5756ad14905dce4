//! No operator's output depends on chunk borders.
#![forbid(unsafe_code)]

use crate::slices::Dice;
use num_complex::Complex;
use onbeat_operators::registry;
use onbeat_runtime::testing::{Feed, Trial, cuts};

/// Samples of the port's type, with tags on some.
fn feed(message: &str) -> Option<Feed> {
    let mut dice = Dice::new(11);
    let mut value = || dice.value() * 0.5;
    let samples = match message {
        "Chunk<f32>" => Feed::samples((0..5000).map(|_| value()).collect::<Vec<f32>>()),
        "Chunk<Complex<f32>>" => {
            Feed::samples((0..5000).map(|_| Complex::new(value(), value())).collect::<Vec<_>>())
        }
        _ => return None,
    };
    Some(
        [0, 1, 700, 4095, 4999]
            .into_iter()
            .fold(samples.rate(256e3), |feed, at| feed.tag(at, "mark", at as i64)),
    )
}

/// Tests every kind with samples in and out, with the parameters of its example.
#[test]
fn cuts_do_not_matter_to_any_kind() {
    let registry = registry();
    let mut tried = Vec::new();
    for kind in registry.kinds() {
        let (inputs, outputs) = kind.ports();
        let has_samples = outputs.iter().any(|port| port.message.starts_with("Chunk<"));
        if inputs.is_empty() || !has_samples || inputs.iter().any(|port| feed(&port.message).is_none()) {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        // A result of a transform must fit the smallest quantum.
        let example = kind.example().replace("size = 1024", "size = 8");
        let make = || {
            let parameters = example.replace("path = \"", &format!("path = \"{}/", folder.path().display()));
            let trial = Trial::kind(&registry, kind.name(), &parameters);
            inputs.iter().fold(trial, |trial, port| trial.feed(&port.name, feed(&port.message).unwrap()))
        };
        let seen = cuts(make);
        let sent: usize = outputs.iter().map(|port| seen.lengths(&port.name).iter().sum::<usize>()).sum();
        assert!(sent > 0 || kind.name().starts_with("squelch"), "{} sent nothing", kind.name());
        tried.push(kind.name());
    }
    for name in ["add", "agc", "fft", "fir.decimate", "resample.complex", "spectrum.real", "tap", "throttle"]
    {
        assert!(tried.contains(&name), "{name} is not among {tried:?}");
    }
}
