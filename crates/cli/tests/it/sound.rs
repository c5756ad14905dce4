//! Sound cards that ALSA's library makes of files, and a build without sound.

use super::harness::{Answer, Place};
use std::fs;

/// From a card to a card; `more` are parameters of both.
fn pipeline(source: &str, sink: &str) -> String {
    format!(
        "name = \"sound\"\noperator = [\n\
         {{ name = \"in\", kind = \"audio.source\", {source} }},\n\
         {{ name = \"some\", kind = \"head\", count = 4800 }},\n\
         {{ name = \"out\", kind = \"audio.sink\", {sink} }},\n]\n\
         edge = [{{ from = \"in\", to = \"some\" }}, {{ from = \"some\", to = \"out\" }}]\n"
    )
}

/// Runs it with cards `from` and `to` that read and write files.
fn run(place: &Place, source: &str, sink: &str, more: &[&str]) -> Answer {
    let file = |name: &str| place.path(name).display().to_string();
    let cards = format!(
        "pcm.from {{ type file slave.pcm {{ type null }} file \"/dev/null\" infile \"{}\" format \"raw\" }}\n\
         pcm.to {{ type file slave.pcm {{ type null }} file \"{}\" format \"raw\" }}\n",
        file("in.raw"),
        file("out.raw")
    );
    fs::write(place.path("cards"), cards).expect("a file");
    fs::write(place.path("sound.toml"), pipeline(source, sink)).expect("a file");
    let cards = file("cards");
    let arguments = [&["run", "sound.toml", "--quiet"], more].concat();
    place.onbeat_with(&arguments, &[("ALSA_CONFIG_PATH", &cards)])
}

#[cfg(not(feature = "alsa"))]
#[test]
fn a_build_without_sound_says_so() {
    let place = Place::new();
    let answer = run(&place, "device = \"from\"", "device = \"to\"", &[]);
    assert_eq!(answer.status, Some(1), "{answer:?}");
    assert!(answer.stderr.contains("this onbeat was built without sound: install"), "{}", answer.stderr);
    let answer = place.onbeat(&["check", "sound.toml"]);
    assert_eq!(answer.status, Some(1), "{answer:?}");
    assert!(
        answer.stderr.contains("`cargo install --locked --path crates/cli --features alsa`"),
        "{answer:?}"
    );
    assert_eq!(place.onbeat(&["operators", "audio.source"]).status, Some(0));
}

#[cfg(feature = "alsa")]
mod with_sound {
    use super::*;

    /// Bytes without a pattern.
    fn noise(count: usize) -> Vec<u8> {
        let mut state = 1u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        (0..count).map(|_| next()).collect()
    }

    /// Those that are not silence: cards without a clock have any number of silent ones before and between.
    fn sounds(bytes: &[u8], size: usize) -> Vec<u8> {
        bytes
            .chunks_exact(size)
            .filter(|sample| sample.iter().any(|byte| *byte != 0))
            .flatten()
            .copied()
            .collect()
    }

    /// Integers of 16 bits, and of 24 bits in 3 bytes, pass through as they are.
    #[test]
    fn samples_pass_through_unchanged() {
        for (format, bytes) in [("S16_LE", 2), ("S24_3LE", 3)] {
            let place = Place::new();
            let sent = noise(48_000 * bytes);
            fs::write(place.path("in.raw"), &sent).expect("a file");
            let card = |name: &str| format!("device = \"{name}\", format = \"{format}\"");
            let answer = run(&place, &card("from"), &card("to"), &[]);
            assert!(matches!(answer.status, Some(0 | 3)), "{answer:?}");
            let heard = fs::read(place.path("out.raw")).expect("what was played");
            let (heard, sent) = (sounds(&heard, bytes), sounds(&sent[..4800 * bytes], bytes));
            assert!(heard == sent, "{format}: {} bytes of {}, {answer:?}", heard.len(), sent.len());
        }
    }

    #[test]
    fn what_a_device_does_not_have_is_said() {
        let place = Place::new();
        fs::write(place.path("in.raw"), noise(100_000)).expect("a file");
        for (source, sink, expected) in [
            ("device = \"nobody\"", "device = \"to\"", "cannot open nobody: there is no such device"),
            (
                "device = \"from\"",
                "device = \"to\", sample_rate = 44100",
                "its samples have 48000 Hz and the sound card plays",
            ),
        ] {
            let answer = run(&place, source, sink, &[]);
            assert_eq!(answer.status, Some(1), "{answer:?}");
            assert!(answer.stderr.contains(expected), "{}", answer.stderr);
            // Nothing of ALSA's own is printed.
            assert!(!answer.stderr.contains("ALSA lib"), "{}", answer.stderr);
        }
    }
}
