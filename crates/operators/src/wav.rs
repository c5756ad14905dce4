//! Writes WAV files.

use crate::check;
use crate::flush_timer::FlushTimer;
use crate::format::once;
use crate::lanes::{channel_inputs, one_or_all, show_inputs};
use crate::note;
use crate::part::{PartFile, not_restartable};
use hound::{SampleFormat, WavSpec, WavWriter};
use onbeat_runtime::{Aligned, Chunk, Context, Ending, Error, Folders, Input, Kind, Operator, Ports, Step};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// Bytes per write to the file.
const BUFFER: usize = 64 << 10;
/// Samples passed to the writer at once.
const BLOCK: usize = 1024;
/// Most bytes of samples: a WAV file stores its own length, including the header, in 32 bits.
const MOST_BYTES: u64 = u32::MAX as u64 - 128;
/// A WAV file stores its bytes per second in 32 bits.
const MOST_BYTES_PER_SECOND: u64 = u32::MAX as u64;

/// Sample format of a WAV file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WavFormat {
    /// 16-bit integers, 32768 times the sample, so that what `wav.source` reads is written as it was.
    /// 1.0, one step beyond the largest number, becomes 32767; samples beyond ±1 are clipped and counted.
    #[default]
    I16,
    /// 32-bit floating point, unchanged.
    F32,
}

/// Writes a WAV file of one or more channels.
///
/// The file is called "NAME.part" until it is complete. If the run fails, that file is left with the data so
/// far; if the process is killed, with the data up to the last second. All channels must have the same
/// sample rate; the file ends with the shortest. A sample that is not finite becomes 0. If no chunk arrives,
/// there is no sample rate, and no file is created.
pub struct WavSink {
    /// Samples of the only channel.
    pub input: Input<Chunk<f32>>,
    /// With several channels, one input each: `in0`, `in1`, ... instead of `in`.
    pub inputs: Vec<Input<Chunk<f32>>>,
    streams: Aligned<f32>,
    path: PathBuf,
    format: WavFormat,
    most_bytes: u64,
    part: Option<PartFile>,
    wave: Option<OpenWav>,
    flush: FlushTimer,
}

impl WavSink {
    /// Writes 16-bit samples to a file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        WavSink {
            input: Input::default(),
            inputs: Vec::new(),
            streams: Aligned::new(1),
            path: path.into(),
            format: WavFormat::I16,
            most_bytes: MOST_BYTES,
            part: None,
            wave: None,
            flush: FlushTimer::default(),
        }
    }

    /// Sets the sample format.
    pub fn format(mut self, format: WavFormat) -> Self {
        self.format = format;
        self
    }

    /// Sets the number of channels to write.
    ///
    /// # Errors
    /// When it is not from 1 to 64.
    pub fn channels(mut self, channels: u64) -> Result<Self, Error> {
        self.inputs = channel_inputs(channels)?;
        self.streams = Aligned::new(channels as usize);
        Ok(self)
    }

    /// Writes the header; the first chunk has arrived and brought the sample rate.
    fn begin(&self, cx: &mut Context, rate_hz: f64) -> Result<Option<OpenWav>, Error> {
        if rate_hz == 0.0 {
            return Err(Error::new(format!(
                "cannot write {}: a WAV file needs a sample rate, and its input has none: give `sample_rate` \
                 or `rate` at the source",
                self.path.display()
            )));
        }
        let channels = self.inputs.len().max(1) as u64;
        let most_hz = MOST_BYTES_PER_SECOND / (channels * self.format.bytes());
        let fix = "WAV files store no other rates; resample first";
        check::within("sample rate", rate_hz, 1.0, most_hz as f64, fix)?;
        let whole = rate_hz.round();
        if whole != rate_hz {
            cx.note(format!(
                "WAV files store whole hertz: the sample rate {rate_hz} Hz was rounded to \
                             {whole} Hz"
            ));
        }
        let (bits_per_sample, sample_format) = match self.format {
            WavFormat::I16 => (16, SampleFormat::Int),
            WavFormat::F32 => (32, SampleFormat::Float),
        };
        let spec =
            WavSpec { channels: channels as u16, sample_rate: whole as u32, bits_per_sample, sample_format };
        let Some(part) = &self.part else { return Ok(None) };
        let file = BufWriter::with_capacity(BUFFER, part.handle()?);
        let mut writer = WavWriter::new(file, spec).map_err(|error| cannot_write(&self.path, error))?;
        if self.format == WavFormat::I16 {
            // Allocate the buffer now, not while samples arrive.
            let _ = writer.get_i16_writer(BLOCK as u32);
        }
        let most = self.most_bytes / self.format.bytes() / channels * channels;
        Ok(Some(OpenWav {
            writer,
            format: self.format,
            rate_hz,
            left: most,
            most,
            clipped: 0,
            not_finite: 0,
            is_buffered: false,
        }))
    }

    fn is_buffered(&self) -> bool {
        self.wave.as_ref().is_some_and(|wave| wave.is_buffered)
    }

    /// Notes the samples that were not written as they came.
    fn sum_up(&self, cx: &mut Context) {
        let Some(wave) = &self.wave else {
            note::nothing_came(cx, &self.path);
            return;
        };
        if wave.clipped > 0 {
            cx.note(format!("{} samples were beyond ±1 and were clipped: reduce the gain", wave.clipped));
        }
        if wave.not_finite > 0 {
            cx.note(format!("{} samples were not finite and were written as 0", wave.not_finite));
        }
    }
}

impl WavFormat {
    /// Bytes per sample.
    fn bytes(self) -> u64 {
        match self {
            WavFormat::I16 => 2,
            WavFormat::F32 => 4,
        }
    }
}

/// A file that has its header.
struct OpenWav {
    writer: WavWriter<BufWriter<File>>,
    format: WavFormat,
    rate_hz: f64,
    /// Remaining and initial room for samples, all channels together.
    left: u64,
    most: u64,
    clipped: u64,
    not_finite: u64,
    /// Whether samples were written that the file does not have yet.
    is_buffered: bool,
}

impl OpenWav {
    fn write(&mut self, samples: &[f32], path: &Path) -> Result<(), Error> {
        self.left = self.left.checked_sub(samples.len() as u64).ok_or_else(|| {
            Error::new(format!(
                "cannot write {}: WAV files are limited to 4 GiB ({} samples here); stop the run earlier, or \
                 write several files",
                path.display(),
                self.most
            ))
        })?;
        self.is_buffered = true;
        for block in samples.chunks(BLOCK) {
            let written = match self.format {
                WavFormat::I16 => {
                    let mut out = self.writer.get_i16_writer(block.len() as u32);
                    for &x in block {
                        let y = x * 32768.0;
                        self.not_finite += u64::from(!x.is_finite());
                        // 1.0 is one step above the largest number: too little to count as clipped.
                        self.clipped += u64::from(x.is_finite() && y.abs() >= 32768.5);
                        // Rounds to nearest; the conversion saturates.
                        out.write_sample(if x.is_finite() { (y + 0.5f32.copysign(y)) as i16 } else { 0 });
                    }
                    out.flush()
                }
                WavFormat::F32 => block.iter().try_for_each(|&x| {
                    self.not_finite += u64::from(!x.is_finite());
                    self.writer.write_sample(if x.is_finite() { x } else { 0.0 })
                }),
            };
            written.map_err(|error| cannot_write(path, error))?;
        }
        Ok(())
    }
}

impl Operator for WavSink {
    fn ports(&mut self, p: &mut Ports) {
        show_inputs(p, &mut self.input, &mut self.inputs);
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        self.part = Some(PartFile::create(&self.path)?);
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(wave) = self.wave.as_mut().filter(|_| self.flush.is_due()) {
            // The header gets the length so far.
            wave.writer.flush().map_err(|error| cannot_write(&self.path, error))?;
            wave.is_buffered = false;
        }
        let inputs = one_or_all(&mut self.input, &mut self.inputs);
        let Some(count) = self.streams.take(inputs, cx)? else {
            let wait = self.streams.wait(inputs, cx);
            return Ok(self.flush.wait(self.is_buffered(), wait, cx));
        };
        let rate_hz = self.streams.rate_hz();
        if self.wave.is_none() {
            self.wave = self.begin(cx, rate_hz)?;
        }
        if let Some(wave) = &mut self.wave {
            if rate_hz != wave.rate_hz {
                return Err(Error::new(format!(
                    "cannot write {}: the sample rate changed from {} Hz to {rate_hz} Hz, and a WAV file has \
                     only one: resample before merging streams",
                    self.path.display(),
                    wave.rate_hz
                )));
            }
            self.streams.frames(count, |samples| wave.write(samples, &self.path))?;
        }
        self.streams.consume(count);
        Ok(self.flush.wait(self.is_buffered(), self.streams.rest(), cx))
    }

    fn restartable(&self) -> Result<(), Error> {
        not_restartable()
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        if ending != Ending::Failed {
            self.sum_up(cx);
        }
        let (part, wave) = (self.part.take(), self.wave.take());
        let (Some(part), Some(wave)) = (part, wave) else { return Ok(()) };
        if ending == Ending::Failed {
            // The header then has the length so far.
            let _lost = wave.writer.finalize();
            part.keep(cx);
            return Ok(());
        }
        wave.writer.finalize().map_err(|error| cannot_write(part.target(), error))?;
        part.finish(cx.sync_files())
    }
}

fn cannot_write(path: &Path, error: hound::Error) -> Error {
    let text = format!("cannot write {}", path.display());
    match error {
        // The writer's own text only says that it was an I/O error; its source says which.
        hound::Error::IoError(error) => Error::with_source(text, error),
        error => Error::with_source(text, error),
    }
}

/// A WAV file to write.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WavSinkParameters {
    /// The file to write; missing folders are created.
    path: PathBuf,
    /// Sample format. `i16`: 16-bit integers. `f32`: floating point.
    #[serde(default)]
    format: WavFormat,
    /// Interleaved channels. If there are several, each has its own input: `in0`, `in1`, ...
    #[serde(default = "once")]
    channels: u64,
}

pub(crate) fn kind() -> Kind {
    Kind::new(
        "wav.sink",
        "writes a WAV file",
        "path = \"audio.wav\"",
        |p: &WavSinkParameters, folders: &Folders| {
            WavSink::new(folders.output(&p.path)).format(p.format).channels(p.channels)
        },
    )
    .about(include_str!("about/samples.md"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use onbeat_runtime::{Graph, Options, Output};

    struct Zeros {
        out: Output<Chunk<f32>>,
    }
    impl Operator for Zeros {
        fn ports(&mut self, p: &mut Ports) {
            p.output("out", &mut self.out);
        }
        fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
            let Some(mut chunk) = self.out.chunk(cx) else { return Ok(Step::Wait) };
            chunk.info_mut().rate_hz = 48e3;
            self.out.push(cx, chunk)?;
            Ok(Step::Again)
        }
    }

    #[test]
    fn the_longest_file_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let mut graph = Graph::new("long");
        let zeros = graph.add("zeros", Zeros { out: Output::default() });
        let sink = WavSink { most_bytes: 100_000, ..WavSink::new(folder.path().join("long.wav")) };
        let wav = graph.add("wav", sink);
        graph.connect(zeros, |z| &z.out, wav, |w| &w.input);
        let error = graph.run(&Options::default()).unwrap_err().to_string();
        assert!(error.contains("limited to 4 GiB (50000 samples here)"), "{error}");
        // What it took before is there, with the length in the header.
        let kept = hound::WavReader::open(folder.path().join("long.wav.part")).unwrap();
        assert!((40_000..=50_000).contains(&kept.duration()), "{}", kept.duration());
    }
}
