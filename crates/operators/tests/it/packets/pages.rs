//! Pages: messages at all rates, with wrong bits, in noise.

use super::signals::{PLAIN, Signal, pause, transmission};
use super::{lines, received, trial};
use crate::slices::Dice;
use onbeat_operators::registry;
use onbeat_runtime::testing::{Feed, Trial, cuts};
use serde_json::{Value, json};

const PAGES: [(u32, u32, &str); 4] = [
    (1_234_567, 0, "0123 456-[789]U"),
    (8, 3, "Hello, this is a message that goes on in the next batch: 0123456789 {}~"),
    (2_097_151, 1, ""),
    (77, 2, "x"),
];

/// The fields that do not depend on the signal.
fn expected(baud: u32) -> Vec<Value> {
    PAGES
        .map(|(address, function, text)| {
            let mut line =
                json!({"baud": baud, "address": address, "function": function, "corrected_bits": 0});
            if !text.is_empty() {
                line[if function == 0 { "numeric" } else { "text" }] = text.into();
            }
            line
        })
        .into()
}

fn without_times(lines: Vec<Value>) -> Vec<Value> {
    let without = |mut line: Value| {
        assert!(line.as_object_mut().unwrap().remove("time_s").is_some());
        line
    };
    lines.into_iter().map(without).collect()
}

/// The pages twice, at this rate.
fn audio(signal: Signal) -> Vec<f32> {
    let once = signal.two_levels(&transmission(&PAGES, &[]));
    signal.received(&pause(&[once.clone(), once]), &mut Dice::new(2))
}

#[test]
fn pages_come_at_any_rate_level_and_polarity() {
    for baud in [512u32, 1200, 2400] {
        let both = [expected(baud), expected(baud)].concat();
        let plain = Signal { baud: baud.into(), ..PLAIN };
        for rate_hz in [9600.0, 11_025.0, 22_050.0, 48_000.0, 192_000.0] {
            let found = received("pocsag.decode", audio(Signal { rate_hz, ..plain }), rate_hz);
            assert_eq!(without_times(found), both, "{rate_hz} Hz");
        }
        for signal in [
            Signal { amplitude: 1e-3, ..plain },
            Signal { amplitude: 100.0, ..plain },
            Signal { constant: 0.4, ..plain },
            Signal { constant: -2.0, ..plain },
            Signal { baud: f64::from(baud) * 1.0002, ..plain },
            Signal { baud: f64::from(baud) * 0.9998, ..plain },
        ] {
            let found = received("pocsag.decode", audio(signal), signal.rate_hz);
            assert_eq!(without_times(found), both, "{} {}", signal.constant, signal.amplitude);
        }
        let turned: Vec<f32> = audio(plain).iter().map(|x| -x).collect();
        let found = without_times(received("pocsag.decode", turned, plain.rate_hz));
        assert_eq!(found.len(), both.len());
        assert!(found.iter().all(|line| line["inverted"] == true));
        let noisy = audio(Signal { noise: 0.5, ..plain });
        let texts = |lines: &[Value]| lines.iter().map(|line| line["text"].clone()).collect::<Vec<_>>();
        assert_eq!(texts(&received("pocsag.decode", noisy, plain.rate_hz)), texts(&both));
    }
}

#[test]
fn two_wrong_bits_are_corrected_and_three_are_lost() {
    // The address is word 14, because of its last three bits; the message has 3 words of 5 digits.
    let line = |wrong: &[(usize, u32)]| {
        let bits = transmission(&[(1_234_567, 0, "123456789012345")], wrong);
        let found = received("pocsag.decode", pause(&[PLAIN.two_levels(&bits)]), PLAIN.rate_hz);
        without_times(found)
    };
    let right = json!({"baud": 1200, "address": 1_234_567, "function": 0, "numeric": "123456789012345", "corrected_bits": 0});
    assert_eq!(line(&[]), std::slice::from_ref(&right));
    for bit in 0..32 {
        let found = line(&[(14, 1 << bit | 1 << ((bit + 7) % 32)), (15, 1 << bit)]);
        assert_eq!((&found[0]["corrected_bits"], &found[0]["numeric"]), (&json!(3), &right["numeric"]));
        let found = line(&[(14, 1 << bit)]);
        assert_eq!(found[0]["corrected_bits"], 1);
        assert_eq!(found[0]["numeric"], right["numeric"]);
    }
    let found = line(&[(16, 0b111 << 20)]);
    assert_eq!(found[0]["numeric"], "12345\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}12345");
    assert_eq!(found[0]["lost_words"], 1);
    assert_eq!(line(&[(14, 0b111 << 20)]), Vec::<Value>::new());
}

/// The lines of a transmission with these bits flipped, of which only the first symbols come. The words are
/// those of one message in two batches: 14 to 17, then idle words.
fn damaged(wrong: &[(usize, u32)], symbols: usize) -> Vec<Value> {
    let mut bits = transmission(&[(1_234_567, 0, "123456789012345")], wrong);
    bits.truncate(symbols);
    without_times(received("pocsag.decode", pause(&[PLAIN.two_levels(&bits)]), PLAIN.rate_hz))
}

#[test]
fn what_is_missing_at_the_end_is_told() {
    let mut page = json!({"baud": 1200, "address": 1_234_567, "function": 0, "corrected_bits": 0});
    let mut is = |text: &str, field: &str, value: Value, found: Vec<Value>| {
        page["numeric"] = text.into();
        page[field] = value;
        assert_eq!(found, std::slice::from_ref(&page));
        page.as_object_mut().unwrap().remove(field);
    };
    let lost = |count: usize| "\u{fffd}".repeat(5 * count);
    is(&format!("1234567890{}", lost(1)), "lost_words", 1.into(), damaged(&[(17, 0b111 << 20)], usize::MAX));
    let all = [15, 16, 17].map(|word| (word, 0b111 << 20));
    is(&lost(3), "lost_words", 3.into(), damaged(&all, usize::MAX));
    // No batch follows, although no word has ended the message.
    let one_batch = 576 + 17 * 32;
    is("12345", "cut", true.into(), damaged(&[], one_batch));
    is("12345", "cut", true.into(), damaged(&[], one_batch + 20));
}

#[test]
fn an_idle_word_ends_a_message_though_bits_are_wrong() {
    let right = damaged(&[], usize::MAX);
    for bits in
        [0b11 << 3, 0b111 << 20, 0b1011 << 28, 0b1111 << 9, 0b1_0011_0001 << 7, 0x8421_0000, 0b1_1111 << 4]
    {
        assert_eq!(damaged(&[(18, bits)], usize::MAX), right, "{bits:b}");
    }
    // Six others make another word of them, which is not taken for it: the address of a page.
    let six = [0, 1, 2, 5, 20, 23].iter().fold(0, |bits, bit| bits | 1 << bit);
    let word = 0x7a89_c197 ^ six;
    let found = damaged(&[(18, six)], usize::MAX);
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[0], right[0]);
    assert_eq!(found[1]["address"], (word >> 13) << 3 | 1);
}

#[test]
fn no_whole_page_is_wrong_in_noise() {
    let mut dice = Dice::new(8);
    let mut page = |number: u32| {
        let text: String =
            (0..5 + dice.bits() % 40).map(|_| char::from(0x21 + (dice.bits() % 94) as u8)).collect();
        (number * 20_011 % (1 << 21), 3, text)
    };
    let pages: Vec<(u32, u32, String)> = (1..=60).map(&mut page).collect();
    for (noise, least) in [(1.0, 60), (1.7, 50), (2.1, 10), (2.7, 0)] {
        let signal = Signal { noise, ..PLAIN };
        let one = |(address, function, text): &(u32, u32, String)| {
            signal.two_levels(&transmission(&[(*address, *function, text)], &[]))
        };
        let audio: Vec<_> = pages.iter().map(one).collect();
        let found =
            received("pocsag.decode", signal.received(&pause(&audio), &mut Dice::new(3)), signal.rate_hz);
        let is_whole = |line: &&Value| line.get("lost_words").is_none() && line.get("cut").is_none();
        let whole: Vec<&Value> = found.iter().filter(is_whole).collect();
        for line in &whole {
            let is_sent = pages.iter().any(|(address, function, text)| {
                line["address"] == *address && line["function"] == *function && line["text"] == **text
            });
            assert!(is_sent, "noise {noise}: {line}");
        }
        assert!(whole.len() >= least, "noise {noise}: {} whole pages", whole.len());
    }
}

#[test]
fn cuts_do_not_matter_to_pages() {
    let bits = transmission(&PAGES[..1], &[]);
    let signal = Signal { baud: 2400.0, noise: 0.2, ..PLAIN };
    let audio = signal.received(&pause(&[signal.two_levels(&bits)]), &mut Dice::new(2));
    let seen = cuts(|| trial("pocsag.decode", audio.clone(), signal.rate_hz).keep::<String>("out"));
    assert_eq!(lines(&seen).len(), 1);
}

#[test]
fn coding_can_be_chosen() {
    let audio = pause(&[PLAIN.two_levels(&transmission(&[(16, 1, "text")], &[]))]);
    let with = |parameters: &str| {
        let trial = Trial::kind(&registry(), "pocsag.decode", parameters);
        lines(&trial.feed("in", Feed::samples(audio.clone()).rate(PLAIN.rate_hz)).run())
    };
    let both = &with("coding = 'both'\nrates = [1200]")[0];
    assert!(both["text"] == "text" && both["numeric"].is_string(), "{both}");
    assert!(with("coding = 'numeric'")[0].get("text").is_none());
    assert_eq!(with("rates = [512, 2400]"), Vec::<Value>::new());
}

#[test]
fn bad_samples_are_counted_and_pass() {
    let mut samples = audio(PLAIN);
    for (at, bad) in [(0, f32::NAN), (1, f32::INFINITY), (2, 1e30)] {
        samples[at] = bad;
    }
    let seen = trial("pocsag.decode", samples, PLAIN.rate_hz).run();
    assert_eq!(without_times(lines(&seen))[4..], expected(1200));
    assert!(seen.notes().iter().any(|note| note.contains("2 samples were not finite")), "{:?}", seen.notes());
}
