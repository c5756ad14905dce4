//! NaN and infinite samples do no lasting harm, and operators that replace them say so.
#![forbid(unsafe_code)]

use num_complex::Complex;
use onbeat_operators::registry;
use onbeat_runtime::testing::{Feed, Seen, Trial};
use onbeat_runtime::{Kind, PortInfo};

const RATE_HZ: f64 = 256e3;
const COUNT: usize = 20_000;
const BAD: [(usize, f32); 3] = [(5000, f32::NAN), (5001, f32::INFINITY), (6000, f32::NEG_INFINITY)];

fn reals() -> Vec<f32> {
    let mut samples: Vec<f32> = (0..COUNT).map(|n| (n as f32 * 0.1).sin()).collect();
    BAD.iter().for_each(|&(at, bad)| samples[at] = bad);
    samples
}

fn complexes() -> Vec<Complex<f32>> {
    let mut samples: Vec<_> = (0..COUNT).map(|n| Complex::from_polar(1.0, n as f32 * 0.1)).collect();
    BAD.iter().for_each(|&(at, bad)| samples[at] = Complex::new(bad, bad));
    samples
}

/// Output of a kind with one stream in and one out.
fn through(kind: &Kind) -> Option<(Seen, Vec<bool>)> {
    let (inputs, outputs) = kind.ports();
    let ([PortInfo { name: input, message: from, .. }], [PortInfo { message: to, .. }]) =
        (&inputs[..], &outputs[..])
    else {
        return None;
    };
    let feed = match from.as_str() {
        "Chunk<f32>" => Feed::samples(reals()),
        "Chunk<Complex<f32>>" => Feed::samples(complexes()),
        _ => return None,
    };
    // The example of the kind names a file.
    let parameters = if kind.name() == "tap" { "" } else { kind.example() };
    let trial =
        Trial::kind(&registry(), kind.name(), parameters).feed(input, feed.rate(RATE_HZ)).quantum(64 << 10);
    let (seen, finite) = match to.as_str() {
        "Chunk<f32>" => {
            let seen = trial.run();
            let finite = seen.samples::<f32>("out").iter().map(|x| x.is_finite()).collect();
            (seen, finite)
        }
        "Chunk<Complex<f32>>" => {
            let seen = trial.run();
            let finite = seen.samples::<Complex<f32>>("out").iter().map(|x| x.is_finite()).collect();
            (seen, finite)
        }
        _ => return None,
    };
    Some((seen, finite))
}

#[test]
fn bad_samples_do_no_lasting_harm_and_are_not_hidden() {
    let (mut tried, mut replaced) = (0, Vec::new());
    for kind in registry().kinds() {
        let Some((seen, finite)) = through(kind) else { continue };
        let name = kind.name();
        assert!(finite.len() > 4, "{name}: {} samples", finite.len());
        let end = finite.len() / 2;
        assert!(finite[end..].iter().all(|&finite| finite), "{name}: bad samples stay");
        let said = seen.notes().iter().any(|note| note.contains("3 samples were not finite"));
        if finite.iter().all(|&finite| finite) {
            assert!(said, "{name} hides bad samples: {:?}", seen.notes());
            replaced.push(name);
        }
        tried += 1;
    }
    assert!(tried > 15, "{tried}");
    let expected = [
        "afsk.demod",
        "agc",
        "agc.complex",
        "am.demod",
        "dc.block",
        "dc.block.complex",
        "deemphasis",
        "equalizer",
        "fft",
        "fft.real",
        "fsk.demod",
        "iir",
        "iir.complex",
        "iir.sos",
        "iir.sos.complex",
        "iq.balance",
        "notch",
        "notch.complex",
        "psk.demod",
        "quad.demod",
        "spectrum",
        "spectrum.real",
        "squelch",
        "squelch.complex",
        "symbol.sync",
        "symbol.sync.complex",
    ];
    assert_eq!(replaced, expected);
}
