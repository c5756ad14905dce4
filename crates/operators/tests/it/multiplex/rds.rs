//! RDS: groups at all rates, in noise, with wrong symbols; their fields.

use super::signals::{Multiplex, PLAIN, Words, bits, makes_another_block, random_groups, symbols};
use crate::packets::signals::normal;
use crate::slices::Dice;
use onbeat_operators::registry;
use onbeat_runtime::testing::{Feed, Seen, Trial, cuts};
use serde_json::{Value, json};

fn trial(parameters: &str, samples: Vec<f32>, rate_hz: f64) -> Trial {
    Trial::kind(&registry(), "rds.decode", parameters).feed("in", Feed::samples(samples).rate(rate_hz))
}

fn lines(seen: &Seen) -> Vec<Value> {
    seen.messages::<String>("out").iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn hex(group: &Words) -> String {
    group.map(|word| format!("{word:04X}")).join(" ")
}

/// The blocks of each group that is received.
fn received(signal: Multiplex, groups: &[Words]) -> Vec<String> {
    let samples = signal.received(&signal.rds(&symbols(&bits(groups))));
    trial("format = 'hex'", samples, signal.rate_hz).run().messages("out")
}

#[test]
fn groups_come_at_any_rate_level_and_clock() {
    let groups = random_groups(12);
    let sent: Vec<String> = groups.iter().map(hex).collect();
    for signal in [
        PLAIN,
        Multiplex { rate_hz: 120e3, ..PLAIN },
        Multiplex { rate_hz: 192e3, ..PLAIN },
        Multiplex { rate_hz: 250e3, ..PLAIN },
        Multiplex { rate_hz: 1.2e6, ..PLAIN },
        Multiplex { amplitude: 1e-4, ..PLAIN },
        Multiplex { amplitude: -1000.0, ..PLAIN },
        Multiplex { pilot: 0.0, ..PLAIN },
        Multiplex { clock: 1e-4, ..PLAIN },
        Multiplex { clock: -1e-4, ..PLAIN },
        // 10 dB of a bit's energy over the noise density.
        Multiplex { noise: 0.03 * 0.707 * (171e3 / 1187.5 / 2.0 / 10.0f64).sqrt(), ..PLAIN },
    ] {
        let found = received(signal, &groups);
        // The first one may come while the loops lock.
        let first = usize::from(found.len() < sent.len());
        assert_eq!(found, sent[first..], "{} Hz, {}, {}", signal.rate_hz, signal.amplitude, signal.clock);
    }
}

#[test]
fn noise_has_no_groups() {
    let mut dice = Dice::new(8);
    let noise: Vec<f32> = (0..40 * 125_000).map(|_| normal(&mut dice)).collect();
    let seen = trial("", noise, 125e3).run();
    assert_eq!(lines(&seen), Vec::<Value>::new());
    assert!(seen.notes()[0].starts_with("no RDS group in 5000000 samples"), "{:?}", seen.notes());
    assert!(lines(&trial("", vec![0.0; 250_000], 250e3).run()).is_empty());
}

/// The groups of a station.
fn station() -> Vec<Words> {
    let two = |text: &[u8], at: usize| u16::from_be_bytes([text[2 * at], text[2 * at + 1]]);
    let name = b"ON\x99BEAT ";
    let text = b"Hello, \x91lter f\x99r 5 \xaa!\r  ";
    let mut groups = Vec::new();
    for round in 0..3 {
        for at in 0..4u16 {
            // Traffic programme and announcement, type 10, music; AF: two on FM, 87.6 and 107.9, and one on
            // AM.
            let frequencies = [0xe301, 0xfa10, 0xcccd, 0xcdcd][usize::from(at)];
            groups.push([0xd392, 0x0558 | at, frequencies, two(name, at.into())]);
        }
        for at in 0..6u16 {
            let at = usize::from(at);
            groups.push([0xd392, 0x2540 | at as u16, two(text, 2 * at), two(text, 2 * at + 1)]);
        }
        // 28 November 2026, 23:45 UTC, two and a half hours ahead: MJD 61372.
        if round == 1 {
            let (day, hour, minute) = (61_372u32, 23u32, 45u16);
            let third = (day << 1 | hour >> 4) as u16;
            groups.push([
                0xd392,
                0x4540 | (day >> 15) as u16,
                third,
                (hour as u16 & 15) << 12 | minute << 6 | 5,
            ]);
            groups.push([0xd392, 0xa540, 0x4a41, 0x5a5a]);
            groups.push([0xd392, 0xa541, 0x2020, 0x2020]);
            groups.push([0xd392, 0xfd50, 0xd392, 0xffff]);
        }
    }
    groups
}

#[test]
fn fields_of_groups() {
    let groups = station();
    let samples = PLAIN.received(&PLAIN.rds(&symbols(&bits(&groups))));
    let seen = trial("", samples, PLAIN.rate_hz).run();
    let found = lines(&seen);
    assert_eq!(found.len(), groups.len());
    for (number, (line, group)) in found.iter().zip(&groups).enumerate() {
        let time_s = line["time_s"].as_f64().unwrap();
        let expected_s = (120.0 + 104.0 * number as f64) / 1187.5;
        assert!((time_s - expected_s).abs() < 5e-5, "{time_s} for {expected_s}");
        assert_eq!(line["blocks"], hex(group));
        assert_eq!((&line["pi"], &line["tp"], &line["pty"]), (&json!("d392"), &json!(true), &json!(10)));
        assert_eq!(line["programme_type"], "pop music");
    }
    let all = |field: &str| found.iter().filter_map(|line| line.get(field).cloned()).collect::<Vec<_>>();
    assert_eq!(all("ps"), vec![json!("ONüBEAT"); 3]);
    assert_eq!(all("rt"), vec![json!("Hello, älter für 5 £!"); 3]);
    assert_eq!(all("ct"), ["2026-11-29T02:15:00+02:30"]);
    assert_eq!(all("ptyn"), ["JAZZ"]);
    assert_eq!(all("af_mhz"), vec![json!([87.6, 107.9]); 3]);
    assert_eq!(found[0]["group"], "0A");
    assert_eq!((&found[0]["ta"], &found[0]["music"]), (&json!(true), &json!(true)));
    assert_eq!(found.iter().find(|line| line["group"] == "15B").unwrap()["ta"], true);
    assert!(found.iter().all(|line| line["wrong_blocks"] == 0.0 && line.get("corrected_bits").is_none()));
    assert!(seen.notes()[0].contains("0 groups were lost; synchronised 1 times"), "{:?}", seen.notes());
}

#[test]
fn a_text_without_an_end_comes_when_it_begins_again() {
    let parts = [[0x5368, 0x6f72], [0x7420, 0x7465], [0x7874, 0x2062]];
    let round = |_| parts.iter().zip(0..).map(|([third, fourth], at)| [0xd392, 0x2000 | at, *third, *fourth]);
    let mut groups: Vec<Words> = (0..4).flat_map(round).collect();
    // Another text, of version B, by its flag.
    groups.extend([[0xd392, 0x2810, 0xd392, 0x4e65], [0xd392, 0x2811, 0xd392, 0x770d]]);
    let samples = PLAIN.received(&PLAIN.rds(&symbols(&bits(&groups))));
    let found = lines(&trial("", samples, PLAIN.rate_hz).run());
    let texts: Vec<_> = found.iter().filter_map(|line| line["rt"].as_str()).collect();
    assert_eq!(texts, ["Short text b", "Short text b", "New"]);
}

#[test]
fn a_weak_symbol_is_corrected_and_a_strong_one_is_not() {
    let groups = random_groups(14);
    let with = |parameters: &str, at: usize, value: f64| {
        let mut symbols = symbols(&bits(&groups));
        // Within the second block of the group numbered 8.
        let place = 120 + 104 * 8 + 26 + at;
        symbols[place] *= value;
        let samples = PLAIN.received(&PLAIN.rds(&symbols));
        lines(&trial(parameters, samples, PLAIN.rate_hz).run())[8].clone()
    };
    let sent = hex(&groups[8]);
    let lost = |blocks: &Value| blocks.as_str().unwrap().matches("----").count();
    for at in [1, 7, 13, 24] {
        let line = with("", at, -0.3);
        assert_eq!((&line["blocks"], &line["corrected_bits"]), (&json!(sent), &json!(2)), "{at}");
        assert_eq!(lost(&with("correct = false", at, -0.3)["blocks"]), 1, "{at}");
        assert_eq!(lost(&with("", at, -1.0)["blocks"]), 1, "{at}");
    }
    // The last symbol of a block makes two blocks wrong, by a bit each.
    let line = with("", 25, -0.3);
    assert_eq!((&line["blocks"], &line["corrected_bits"]), (&json!(sent), &json!(2)));
}

/// A block with three wrong symbols may have a right check word. That they are weak tells it.
#[test]
fn a_block_that_is_right_by_chance_is_lost() {
    let groups = random_groups(14);
    let sets = (0..25).flat_map(|a| (a + 1..25).flat_map(move |b| (b + 1..25).map(move |c| [a, b, c])));
    let sets: Vec<_> = sets.filter(|set| makes_another_block(set)).collect();
    assert!(!sets.is_empty());
    for set in sets {
        let mut symbols = symbols(&bits(&groups));
        set.iter().for_each(|at| symbols[120 + 104 * 8 + 26 + at] *= -0.1);
        let samples = PLAIN.received(&PLAIN.rds(&symbols));
        let found: Vec<String> = trial("format = 'hex'", samples, PLAIN.rate_hz).run().messages("out");
        let mut sent = hex(&groups[8]);
        sent.replace_range(5..9, "----");
        assert_eq!(found[8], sent, "{set:?}");
    }
}

#[test]
fn a_station_that_changes_is_another_station() {
    let mut groups = station();
    let other: Vec<Words> = station().iter().map(|group| [0x1234, group[1], group[2], group[3]]).collect();
    groups.truncate(3);
    groups.extend(&other[3..14]);
    let samples = PLAIN.received(&PLAIN.rds(&symbols(&bits(&groups))));
    let found = lines(&trial("", samples, PLAIN.rate_hz).run());
    // The parts of both names are not put together.
    assert_eq!(found.iter().filter(|line| line.get("ps").is_some()).count(), 1);
    assert!(found[3].get("ps").is_none());
}

#[test]
fn a_gap_ends_and_begins_the_groups() {
    let part = |groups: &[Words]| symbols(&bits(groups));
    let groups = random_groups(16);
    let gap = vec![0.0; 3000];
    let all = [part(&groups[..8]), gap, part(&groups[8..])].concat();
    let signal = Multiplex { noise: 0.002, ..PLAIN };
    let seen = trial("format = 'hex'", signal.received(&signal.rds(&all)), signal.rate_hz).run();
    let found = seen.messages::<String>("out");
    let sent: Vec<String> = groups.iter().map(hex).collect();
    let right = sent.iter().filter(|group| found.contains(group)).count();
    assert!(
        right >= 14 && found.iter().all(|group| sent.contains(group) || group.contains("----")),
        "{found:?}"
    );
    assert!(seen.notes()[0].contains("synchronised 2 times"), "{:?}", seen.notes());
}

#[test]
fn cuts_do_not_matter() {
    let signal = Multiplex { rate_hz: 125e3, noise: 0.02, ..PLAIN };
    let samples = signal.received(&signal.rds(&symbols(&bits(&random_groups(4)))));
    let seen = cuts(|| trial("", samples.clone(), signal.rate_hz).keep::<String>("out"));
    assert!(lines(&seen).len() >= 3);
}

#[test]
fn bad_samples_are_counted_and_rates_are_checked() {
    let groups = random_groups(8);
    let mut samples = PLAIN.received(&PLAIN.rds(&symbols(&bits(&groups))));
    for (at, bad) in [(0, f32::NAN), (60_000, f32::INFINITY), (60_001, 1e30)] {
        samples[at] = bad;
    }
    let seen = trial("format = 'hex'", samples, PLAIN.rate_hz).run();
    assert!(
        seen.notes()[0].starts_with("2 samples were not finite and counted as 0; "),
        "{:?}",
        seen.notes()
    );
    assert!(seen.messages::<String>("out").contains(&hex(&groups[7])));
    for rate_hz in [48e3, 4e6] {
        let said = trial("", vec![0.0; 100], rate_hz).failure();
        assert!(
            said.contains(&format!("{rate_hz} Hz")) && said.contains("from 120000 to 3000000 Hz"),
            "{said}"
        );
    }
}
