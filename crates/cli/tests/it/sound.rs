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
         pcm.to {{ type file slave.pcm {{ type null }} file \"{}\" format \"raw\" }}\n\
         pcm.converted {{ type rate slave {{ pcm {{ type null }} rate 44100 }} }}\n\
         pcm.absent {{ type absent }}\n\
         pcm.two {{ type multi slaves.a {{ pcm {{ type null }} channels 2 }} \
         bindings.0 {{ slave a channel 0 }} bindings.1 {{ slave a channel 1 }} }}\n",
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

    /// Checks that a file has these bytes once, and nothing but a period of silence behind them.
    fn is_played_once(place: &Place, sent: &[u8], period_bytes: usize, about: &str) {
        let heard = fs::read(place.path("out.raw")).expect("what was played");
        assert_eq!(heard.len(), sent.len() + period_bytes, "{about}");
        assert!(heard.starts_with(sent), "{about}");
        assert!(heard[sent.len()..].iter().all(|byte| *byte == 0), "{about}");
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
            assert_eq!(answer.status, Some(0), "{answer:?}");
            is_played_once(&place, &sent[..4800 * bytes], 240 * bytes, &format!("{format}: {answer:?}"));
        }
    }

    /// A file has no clock to be in step with: no delay is put right, and nothing is resampled.
    #[test]
    fn a_file_has_each_sample_once_whatever_is_asked_for() {
        for more in ["adapt = true", "delay = \"15 ms\"", "delay = \"0 s\", adapt = true"] {
            let place = Place::new();
            let sent = noise(96_000);
            fs::write(place.path("in.raw"), &sent).expect("a file");
            let (source, sink) =
                ("device = \"from\", format = \"S16_LE\"", "device = \"to\", format = \"S16_LE\"");
            let answer = run(&place, source, &format!("{sink}, {more}"), &["--set", "output=results"]);
            assert_eq!(answer.status, Some(0), "{answer:?}");
            is_played_once(&place, &sent[..9600], 480, &format!("{more}: {answer:?}"));
            let record = fs::read_to_string(place.path("results/sound.record.json")).expect("a record");
            assert!(record.contains("to has no clock: samples are played as they come"), "{record}");
            for figure in ["was put right", "resampl"] {
                assert!(!record.contains(figure), "{more}: {figure} in {record}");
            }
        }
    }

    /// What such a device has is only known once it was moved through the conversion.
    #[test]
    fn a_device_behind_a_conversion_of_rates_gives_samples() {
        let place = Place::new();
        fs::write(place.path("in.raw"), noise(1000)).expect("a file");
        let source = "device = \"converted\", format = \"S16_LE\"";
        let answer = run(&place, source, "device = \"to\", format = \"S16_LE\"", &["--duration", "20s"]);
        assert_eq!(answer.status, Some(0), "{answer:?}");
        let heard = fs::read(place.path("out.raw")).expect("what was played");
        assert_eq!(heard.len(), (4800 + 240) * 2, "{answer:?}");
    }

    #[test]
    fn what_a_device_does_not_have_is_said() {
        let place = Place::new();
        fs::write(place.path("in.raw"), noise(100_000)).expect("a file");
        for (source, sink, expected) in [
            ("device = \"nobody\"", "device = \"to\"", "cannot open nobody: there is no such device"),
            ("device = \"nobody\"", "device = \"to\"", "; ALSA says: "),
            ("device = \"absent\"", "device = \"to\"", "libasound_module_pcm_absent.so"),
            (
                "device = \"two\"",
                "device = \"to\"",
                "set `channels` to one of these, or use `plug:two`, which converts",
            ),
            ("device = \"\"", "device = \"to\"", "`device` is \"\", empty: it must be"),
            (
                "device = \"a\\nb\"",
                "device = \"to\"",
                "`device` is \"a\\nb\", with the control character `\\n`: it must be",
            ),
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
