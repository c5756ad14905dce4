//! Rates of a pipeline that the plan knows before the run.
#![forbid(unsafe_code)]

use onbeat_operators::registry;
use onbeat_runtime::{Overrides, Pipeline};
use std::path::Path;

/// A file of half a second at 8 kHz, according to its header.
fn wav(folder: &Path) {
    let spec = hound::WavSpec {
        channels: 1,
        sample_rate: 8_000,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let mut writer = hound::WavWriter::create(folder.join("tone.wav"), spec).expect("a file");
    for sample in 0..4_000i16 {
        writer.write_sample(sample).expect("a sample");
    }
    writer.finalize().expect("a file");
}

#[test]
fn a_plan_says_how_often_a_source_sends() {
    let folder = tempfile::tempdir().expect("a folder");
    wav(folder.path());
    std::fs::write(folder.path().join("iq.u8"), [127u8; 4096]).expect("a file");
    // Source, sink, description of the edge, and period in nanoseconds.
    let table: [(&str, &str, &str, Option<u64>); 16] = [
        ("kind = 'timer'\nperiod = '250us'", "count.sink", "", Some(250_000)),
        ("kind = 'counter'\nrate = '2 kHz'", "count.sink", "", Some(500_000)),
        ("kind = 'counter'\nrate = '2 kHz'\npace = 'fast'", "count.sink", "", None),
        ("kind = 'counter'", "count.sink", "", None),
        ("kind = 'counter'\nwhen = { period = '3ms' }", "count.sink", "", Some(3_000_000)),
        ("kind = 'counter'\nrate = '1 kHz'\nwhen = { period = '3ms' }", "count.sink", "", Some(1_000_000)),
        ("kind = 'null.source'\nrate = '1 MHz'\nsize = 500", "null.sink", "", Some(500_000)),
        ("kind = 'null.source'\nrate = '1 MHz'", "null.sink", "quantum = '4 KiB'", Some(1_024_000)),
        ("kind = 'wav.source'\npath = 'tone.wav'", "null.sink", "quantum = '4 KiB'", Some(128_000_000)),
        // The first sample of a chunk is at most 100 ms old, unless the edge says otherwise.
        ("kind = 'wav.source'\npath = 'tone.wav'", "null.sink", "", Some(100_000_000)),
        ("kind = 'wav.source'\npath = 'tone.wav'\npace = 'fast'", "null.sink", "", None),
        ("kind = 'tone.source'\nfrequency = 1\nsample_rate = '1 kHz'", "null.sink", "", Some(100_000_000)),
        ("kind = 'tone.source'\nfrequency = 1\nsample_rate = '5 Hz'", "null.sink", "", Some(200_000_000)),
        ("kind = 'null.source'\nrate = '1 MHz'", "null.sink", "", Some(4_096_000)),
        ("kind = 'wav.source'\npath = 'nowhere.wav'", "null.sink", "quantum = '4 KiB'", None),
        (
            "kind = 'iq.source'\npath = 'iq.u8'\nformat = 'cu8'\nsample_rate = '1 MHz'",
            "null.sink.complex",
            "quantum = '8 KiB'",
            Some(1_024_000),
        ),
    ];
    for (source, sink, edge, period_ns) in table {
        let text = format!(
            "name = 'p'\n[[operator]]\nname = 'a'\n{source}\n[[operator]]\nname = 'z'\nkind = '{sink}'\n\
             [[edge]]\nfrom = 'a.out'\nto = 'z.in'\n{edge}\n"
        );
        let pipeline = Pipeline::parse(&text, "test.toml", folder.path(), &registry(), &Overrides::default())
            .unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(pipeline.plan.operators[0].period_ns, period_ns, "{text}");
    }
}
