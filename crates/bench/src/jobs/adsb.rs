//! The ADS-B receiver: from a capture at 2 MS/s to the frames of aircraft.

use super::bare::KernelStage;
use super::folder::at;
use super::kind::{INPUT, JobInput, JobKind, JobRequest};
use num_complex::Complex;
use onbeat_operators::dsp::{Quality, Resampler, cu8_to_complex};
use onbeat_operators::mode_s::{Frame, RATE_HZ};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

pub(super) const KIND: JobKind = JobKind {
    about: "ADS-B receiver: magnitude, Mode S frames, decoding to lines of text",
    rate_hz: RATE_HZ,
    // The test file of dump1090 a hundred times.
    seconds: 17.84,
    quality: ("distinct DF17", "frames"),
    pipeline: PIPELINE,
    prepare,
    judge,
    bare: None,
};

const PIPELINE: &str = r#"
name = "adsb"
sync_files = false
operator = [
    { name = "iq", kind = "iq.source", path = "input", format = "cu8", sample_rate = "2 MS/s" },
    { name = "size", kind = "magnitude" },
    { name = "frames", kind = "mode_s.demod" },
    { name = "text", kind = "mode_s.decode" },
    { name = "lines", kind = "text.sink", path = "result" },
]
edge = [
    { from = "iq.out", to = "size.in" },
    { from = "size.out", to = "frames.in" },
    { from = "frames.out", to = "text.in" },
    { from = "text.out", to = "lines.in" },
]
"#;

/// Most bytes of a capture.
const MOST_BYTES: u64 = 1 << 30;

fn prepare(request: &JobRequest) -> Result<u64, String> {
    let Some(capture) = &request.adsb else {
        return Err("it needs a capture at 2 MS/s in cu8, for example `modes1.bin` of dump1090: --adsb FILE"
            .to_owned());
    };
    let length = fs::metadata(capture).map_err(at(capture))?.len();
    if !(2..=MOST_BYTES).contains(&length) {
        let shown = capture.display();
        return Err(format!("{shown}: a capture of {length} bytes: it must have 2 bytes to 1 GiB"));
    }
    let mut pass = fs::read(capture).map_err(at(capture))?;
    pass.truncate(pass.len() / 2 * 2);
    let samples = pass.len() / 2;
    let passes = (request.seconds * RATE_HZ / samples as f64).round().max(1.0) as usize;
    let path = request.folder.join(INPUT);
    let mut file = File::create(&path).map_err(at(&path))?;
    for _ in 0..passes {
        file.write_all(&pass).map_err(at(&path))?;
    }
    if request.has_peers {
        write_2400k(&request.folder.join("input_2400k"), &pass, passes)?;
    }
    Ok((passes * samples) as u64)
}

/// Writes the same signal at 2.4 MS/s, the only rate of dump1090-mutability's demodulator.
fn write_2400k(path: &Path, pass: &[u8], passes: usize) -> Result<(), String> {
    const BLOCK: usize = 4096;
    let resampler = Resampler::<Complex<f32>>::new(6, 5, Quality::default());
    let stage = resampler.and_then(|resampler| KernelStage::new(resampler, RATE_HZ, BLOCK));
    let mut stage = stage.map_err(|error| error.to_string())?;
    let mut file = BufWriter::new(File::create(path).map_err(at(path))?);
    let mut samples = vec![Complex::default(); BLOCK];
    let byte = |x: f32| (x * 127.5 + 127.5).round().clamp(0.0, 255.0) as u8;
    let mut write = |samples: &[Complex<f32>]| {
        let bytes: Vec<u8> = samples.iter().flat_map(|x| [byte(x.re), byte(x.im)]).collect();
        file.write_all(&bytes).map_err(at(path))
    };
    for block in (0..passes).flat_map(|_| pass.chunks(2 * BLOCK)) {
        let count = cu8_to_complex(bytemuck::cast_slice(block), &mut samples);
        write(stage.take(&samples[..count]))?;
    }
    loop {
        match stage.finish() {
            [] => break,
            rest => write(rest)?,
        }
    }
    file.flush().map_err(at(path))
}

/// Number of distinct DF17 frames whose parity is right.
fn judge(_: &JobInput, result: &Path) -> Result<f64, String> {
    let text = fs::read_to_string(result).map_err(at(result))?;
    let frames = text.lines().filter_map(hex).filter_map(frame);
    let found: BTreeSet<Vec<u8>> = frames
        .filter(|frame| frame.downlink_format() == 17 && frame.remainder() == 0)
        .map(|frame| frame.bytes().to_vec())
        .collect();
    Ok(found.len() as f64)
}

/// The frame in a line of JSON with the key `hex`, or in a line `*HEX;`.
fn hex(line: &str) -> Option<&str> {
    match line.split_once("\"hex\":\"") {
        Some((_, rest)) => rest.split('"').next(),
        None => line.trim().strip_prefix('*')?.strip_suffix(';'),
    }
}

fn frame(hex: &str) -> Option<Frame> {
    let pairs = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok());
    let bytes: Option<Vec<u8>> = pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect();
    Frame::new(&bytes?, 0.0, 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_frame_are_read() {
        let frames = [
            "*8DF00B01233CE085054C6016FA54;",
            r#"{"time_s":1.0,"hex":"8df00b01233ce085054c6016fa54","df":17}"#,
        ];
        for line in frames {
            let frame = hex(line).and_then(frame).expect(line);
            assert_eq!((frame.downlink_format(), frame.remainder()), (17, 0), "{line}");
        }
        for line in ["", "*;", "*8d;", "*xx;", "{}", "*8DF00B01233CE085054C6016FAé"] {
            assert!(hex(line).and_then(frame).is_none(), "{line}");
        }
    }
}
