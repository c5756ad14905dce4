//! Every sample format, written and read back.

use super::{C32, play, write};
use crate::harness::{again, files};
use crate::slices::Dice;
use onbeat_operators::{
    FileSample, IqSink, IqSource, SampleFormat, SigmfSink, SigmfSource, WavFormat, WavSink, WavSource,
};
use onbeat_runtime::testing::Trial;
use onbeat_runtime::{Error, Operator};
use proptest::prelude::*;
use std::fs;
use std::path::Path;

/// Bytes per sample.
pub fn size(format: SampleFormat) -> usize {
    let number = match format.name().trim_start_matches(['c', 'r']) {
        "u8" | "i8" => 1,
        name if name.contains("16") => 2,
        name if name.contains("64") => 8,
        _ => 4,
    };
    number * format.parts()
}

/// Plays part of a channel into a file of the same format.
fn iq_copy<T: FileSample>(
    from: &Path,
    to: &Path,
    format: SampleFormat,
    part: (u64, u64),
    channels: (u64, u64),
    quantum: usize,
) -> Result<(), Error>
where
    IqSource<T>: Operator,
    IqSink<T>: Operator,
{
    let source = IqSource::<T>::new(from, format, 1e6)?;
    let seen = play(source.part(part.0, Some(part.1)).channels(channels.0, Some(channels.1))?, quantum);
    Trial::new(IqSink::<T>::new(to, format)?).feed("in", again::<T>(&seen, "out")).quantum(quantum).run();
    Ok(())
}

/// Formats all of whose numbers are samples of 32-bit floating point.
pub fn exact() -> Vec<SampleFormat> {
    let is_exact = |format: &SampleFormat| {
        let name = &format.name()[1..];
        !name.contains("64") && (name.starts_with('f') || !name.contains("32"))
    };
    SampleFormat::ALL.into_iter().filter(is_exact).collect()
}

/// Bytes of all values, the same for the same seed.
pub fn bytes_of(seed: u64, length: usize) -> Vec<u8> {
    let mut dice = Dice::new(seed);
    (0..length).map(|_| (dice.bits() >> 24) as u8).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any bytes are samples in any format, and are written back unchanged, even if they are not finite
    /// numbers.
    #[test]
    fn bytes_come_back(
        // More than the 64 KiB of one read.
        (length, seed) in (8usize..200_000, any::<u64>()),
        format in prop::sample::select(exact()),
        channels in 1u64..4,
        channel in 0u64..4,
        quantum in prop::sample::select(&[64usize, 1000, 16 << 10][..]),
        cut in (0.0..1.0, 0.0..1.0),
    ) {
        let bytes = bytes_of(seed, length);
        let (channel, size) = (channel % channels, size(format));
        let frame = size * channels as usize;
        let samples = bytes.len() / frame;
        prop_assume!(samples > 0);
        let offset = (cut.0 * samples as f64) as usize;
        let count = 1 + (cut.1 * (samples - offset - 1) as f64) as usize;
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::write(&from, &bytes).unwrap();
        let (part, which) = ((offset as u64, count as u64), (channels, channel));
        if format.parts() == 2 {
            iq_copy::<C32>(&from, &to, format, part, which, quantum).unwrap();
        } else {
            iq_copy::<f32>(&from, &to, format, part, which, quantum).unwrap();
        }
        let first = channel as usize * size;
        let expected: Vec<u8> = bytes
            .chunks_exact(frame)
            .skip(offset)
            .take(count)
            .flat_map(|frame| frame[first..first + size].iter().copied())
            .collect();
        prop_assert_eq!(fs::read(&to).unwrap(), expected);
        prop_assert_eq!(files(folder.path()), ["from", "to"]);
    }

    /// Samples come back from SigMF within half a step, or unchanged.
    #[test]
    fn samples_come_back(
        samples in prop::collection::vec((-1.0f32..=1.0, -1.0f32..=1.0), 1..3000),
        format in prop::sample::select(&SampleFormat::ALL[..14]),
        length in 1usize..700,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/take.sigmf-meta");
        let samples: Vec<C32> = samples.into_iter().map(|(re, im)| C32::new(re, im)).collect();
        write(samples.clone(), &[length], 2.4e6, SigmfSink::<C32>::new(&path, format).unwrap());
        prop_assert_eq!(files(path.parent().unwrap()), ["take.sigmf-data", "take.sigmf-meta"]);
        let seen = play(SigmfSource::new(&path), 4 << 10);
        prop_assert_eq!(seen.rate_hz("out"), 2.4e6);
        let played = seen.samples::<C32>("out");
        prop_assert_eq!(played.len(), samples.len());
        // 1.0 itself is reduced by a whole step in signed formats.
        let step = match format {
            SampleFormat::Cu8 => 0.5001 / 127.5,
            SampleFormat::Ci8 => 1.0 / 128.0,
            SampleFormat::Ci16Le | SampleFormat::Ci16Be | SampleFormat::Cu16Le | SampleFormat::Cu16Be => {
                1.0 / 32768.0
            }
            SampleFormat::Ci32Le | SampleFormat::Ci32Be | SampleFormat::Cu32Le | SampleFormat::Cu32Be => {
                1.0 / 2_147_483_648.0
            }
            _ => 0.0,
        };
        for (read, sample) in played.iter().zip(&samples) {
            let most = (read.re - sample.re).abs().max((read.im - sample.im).abs());
            prop_assert!(most <= step, "{read} and {sample} differ by {most}");
        }
    }
}

#[test]
fn what_is_lost_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("real");
    let samples = vec![0.5, f32::NAN, 2.0, f32::NEG_INFINITY];
    let sink = |format| IqSink::<f32>::new(&path, format).unwrap();
    let seen = write(samples.clone(), &[4], 0.0, sink(SampleFormat::Ri16Le));
    assert_eq!(
        seen.notes(),
        [
            "1 samples exceeded full scale and were clipped: reduce the gain",
            "2 numbers were not finite and were written as 0"
        ]
    );
    assert_eq!(fs::read(&path).unwrap(), [0, 64, 0, 0, 255, 127, 0, 0]);
    let seen = write(samples.clone(), &[4], 0.0, sink(SampleFormat::Rf32Le));
    assert_eq!(seen.notes(), ["2 numbers were not finite and were written unchanged"]);
    let seen = play(IqSource::<f32>::new(&path, SampleFormat::Rf32Le, 1.0).unwrap(), 1000);
    let bits = |samples: &[f32]| samples.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&seen.samples("out")), bits(&samples));
    assert_eq!(
        seen.notes(),
        [format!("2 numbers of {} were not finite and were sent unchanged", path.display())]
    );
}

#[test]
fn a_file_is_repeated_without_a_seam() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bytes");
    fs::write(&path, [0, 1, 2, 3, 4, 5, 6]).unwrap();
    let source = IqSource::<f32>::new(&path, SampleFormat::Ri8, 10.0).unwrap().part(2, Some(3)).repeat(4);
    let read: Vec<f32> = play(source, 16).samples::<f32>("out").iter().map(|x| x * 128.0).collect();
    assert_eq!(read, [2.0, 3.0, 4.0].repeat(4));
}

#[test]
fn nothing_at_all_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none");
    let iq = write(Vec::<C32>::new(), &[1], 1e6, IqSink::<C32>::new(&path, SampleFormat::Cu8).unwrap());
    let sigmf = write(Vec::<C32>::new(), &[1], 1e6, SigmfSink::<C32>::new(&path, SampleFormat::Cu8).unwrap());
    for seen in [iq, sigmf] {
        assert!(seen.notes()[0].contains("no input arrived, so "), "{:?}", seen.notes());
    }
    assert!(files(folder.path()).is_empty());
}

#[test]
fn wav_files_of_every_type_are_played() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.wav");
    let values = [0.0f32, 0.5, -0.5, -1.0, 0.25, 0.75];
    for (bits, sample_format) in [
        (8, hound::SampleFormat::Int),
        (16, hound::SampleFormat::Int),
        (24, hound::SampleFormat::Int),
        (32, hound::SampleFormat::Int),
        (32, hound::SampleFormat::Float),
    ] {
        for channels in [1u16, 3] {
            let spec = hound::WavSpec { channels, sample_rate: 22050, bits_per_sample: bits, sample_format };
            let mut wav = hound::WavWriter::create(&path, spec).unwrap();
            for value in values {
                for channel in 0..channels {
                    let value = value / f32::from(1 + channel);
                    match sample_format {
                        hound::SampleFormat::Float => wav.write_sample(value).unwrap(),
                        hound::SampleFormat::Int => {
                            let full = 2f64.powi(i32::from(bits) - 1);
                            wav.write_sample((f64::from(value) * full).floor() as i32).unwrap();
                        }
                    }
                }
            }
            wav.finalize().unwrap();
            for channel in 0..channels {
                let seen = play(WavSource::new(&path).channel(channel.into()), 64);
                assert_eq!(seen.rate_hz("out"), 22050.0);
                let played = seen.samples::<f32>("out");
                let most = if bits == 8 { 1.0 / 128.0 } else { 1.0 / 32768.0 };
                assert_eq!(played.len(), values.len());
                for (read, value) in played.iter().zip(values) {
                    let value = value / f32::from(1 + channel);
                    assert!(
                        (read - value).abs() < most,
                        "{bits} bits, channel {channel}: {read} for {value}"
                    );
                }
            }
        }
    }
}

#[test]
fn floats_survive_a_wav_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.wav");
    let samples: Vec<f32> = (0..10_000).map(|n| (n as f32 * 0.01).sin() * 3.0).collect();
    let sink = WavSink::new(&path).format(WavFormat::F32);
    write(samples.clone(), &[777], 48e3, sink);
    let seen = play(WavSource::new(&path).repeat(2), 4 << 10);
    assert_eq!(seen.rate_hz("out"), 48e3);
    assert_eq!(seen.samples::<f32>("out"), samples.repeat(2));
    assert!(seen.tags("out").is_empty());
}
