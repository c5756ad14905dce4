//! Frames from a camera.

use super::choice::{CameraRequest, check_buffers};
use super::device::{CameraModes, CameraSetup, OpenCamera, request};
use super::gaps::{FRAMES, FrameGaps, FrameMark};
use super::pixels::{CameraPixels, FrameDamage, PixelReader, colours};
use crate::buses::away::{Attempt, DeviceAbsence};
use crate::image::{ColourMatrix, ColourRange};
use crate::npy::shape_text;
use crate::streams::{real_ns, time_ns, usual};
use crate::y4m::VideoFormat;
use onbeat_os::video::TakenFrame;
use onbeat_runtime::{
    Chunk, Context, Ending, Error, Hertz, Operator, Output, Pace, Rate, Seconds, Step, operator,
};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::io::ErrorKind;

// Reasons of losses.
const DAMAGED: &str = "the driver marked them as damaged";
const SHORT: &str = "they were incomplete";
const BAD_JPEG: &str = "their JPEG data were damaged";
const UNREAD: &str = "waited in the driver when the run was stopped";
/// Difference of two clocks.
const AHEAD_NS: u64 = 20_000;
/// Time of a frame where the driver does not tell the rate.
const USUAL_HZ: f64 = 30.0;

#[doc = include_str!("../about/v4l2.md")]
#[derive(Operator)]
#[operator(
    name = "v4l2.source",
    summary = "receives frames from a camera",
    about = include_str!("../about/v4l2.md"),
    prepare = Self::prepare,
)]
pub struct V4l2Source {
    /// The frames.
    out: Output<Chunk<u8>>,
    /// The device: a path such as `/dev/video0`, or the name of the camera as `v4l2-ctl --list-devices` shows
    /// it.
    #[parameter(default = "/dev/video0".to_string(), example = "/dev/video0")]
    device: String,
    /// Columns and rows to request, such as `1280x720`. Without it, the device keeps its size.
    #[parameter(example = "1280x720")]
    size: Option<String>,
    /// Frames per second to request. Without it, the device keeps its rate.
    #[parameter(example = "30 Hz")]
    rate: Option<Hertz>,
    /// What comes out. `rgb`: frames of rows × columns × 3. `grey`: rows × columns.
    #[parameter(default)]
    format: VideoFormat,
    /// Pixels to request from the device. Without it, those that take the least work among the ones that the
    /// device offers at this size and rate.
    #[parameter]
    pixels: Option<CameraPixels>,
    /// Buffers to request from the driver, 2 to 32: frames that it can store while the worker is late.
    #[parameter(default = 4)]
    buffers: u32,
    /// Input of a capture card: its number or name. Without it, the device keeps its input.
    #[parameter]
    input: Option<String>,
    /// How RGB is computed from YCbCr. Without it, as the driver says.
    #[parameter]
    matrix: Option<ColourMatrix>,
    /// Range of YCbCr. Without it, as the driver says.
    #[parameter]
    range: Option<ColourRange>,
    /// Settings of the device, such as `{ Brightness = 128, Gain = 10 }`; `v4l2-ctl -L` shows them. They
    /// are put back when the run ends.
    #[parameter(default)]
    controls: BTreeMap<String, i32>,
    /// How long to wait for a camera that went away, with `on_error = "restart"`.
    #[parameter(default = usual())]
    patience: Seconds,
    setup: Option<CameraSetup>,
    /// What the device would give, as the plan has seen it.
    planned: OnceCell<Option<CameraModes>>,
    absence: DeviceAbsence,
    camera: Option<CameraCapture>,
    gaps: FrameGaps,
    is_timed: bool,
    is_jpeg_noted: bool,
    /// Frames whose times were ahead.
    ahead: u64,
    period_ns: f64,
}

/// A camera that captures, and what its frames become.
struct CameraCapture {
    open: OpenCamera,
    reader: PixelReader,
    shape: [u32; 3],
    samples: u64,
    rate_hz: f64,
}

impl V4l2Source {
    fn prepare(&mut self) -> Result<(), Error> {
        check_buffers(self.buffers)?;
        self.absence.patience_ns = time_ns("patience", self.patience)?;
        let rate_hz = self.rate.map(|Hertz(rate_hz)| rate_hz);
        let asked = CameraRequest { format: self.format, pixels: self.pixels, size: None, rate_hz };
        let setup = CameraSetup {
            device: self.device.clone(),
            input: self.input.clone(),
            request: request(asked, self.size.as_deref())?,
            buffers: self.buffers,
            controls: self.controls.clone(),
        };
        setup.check()?;
        self.setup = Some(setup);
        Ok(())
    }

    fn setup(&self) -> Result<&CameraSetup, Error> {
        self.setup.as_ref().ok_or_else(|| Error::new("the operator was not prepared"))
    }

    /// What the device would give. It is opened for that once: the plan asks several times.
    fn planned(&self) -> Option<&CameraModes> {
        self.planned.get_or_init(|| self.setup().ok()?.look().ok()).as_ref()
    }

    fn shape_of(&self, (columns, rows): (u32, u32)) -> [u32; 3] {
        [rows, columns, if self.format == VideoFormat::Grey { 0 } else { 3 }]
    }

    /// Opens the camera.
    fn open(&self) -> Result<CameraCapture, Error> {
        let open = self.setup()?.open()?;
        let modes = open.modes;
        let colours = colours(&modes.layout, self.matrix, self.range);
        let reader = PixelReader::new(&modes.layout, modes.pixels, self.format, colours)?;
        let shape = self.shape_of(modes.layout.size);
        let samples = shape.iter().map(|&length| u64::from(length.max(1))).product();
        let rate_hz = modes.rate_hz.unwrap_or(0.0) * samples as f64;
        Ok(CameraCapture { open, reader, shape, samples, rate_hz })
    }

    fn begin(&mut self, capture: CameraCapture) {
        self.period_ns = 1e9 / capture.open.modes.rate_hz.unwrap_or(USUAL_HZ);
        self.gaps.open(capture.open.stream.buffers());
        self.camera = Some(capture);
    }

    /// Counts frames that were there at a time, and closes the camera.
    fn count_unread(&mut self, until_ns: u64, cx: &mut Context) {
        let Some(capture) = self.camera.take() else { return };
        while let Ok(frame) = capture.open.stream.take() {
            if frame.monotonic_ns().is_none_or(|ns| ns > until_ns) {
                break;
            }
            let (mark, _) = mark(&frame, cx);
            self.gaps.take(mark, self.period_ns, cx);
            cx.lose(1, FRAMES, UNREAD);
        }
    }

    /// Notes how frames are timed, once.
    fn note_times(&mut self, frame: (bool, bool), cx: &mut Context) {
        if std::mem::replace(&mut self.is_timed, true) {
            return;
        }
        match frame {
            (false, _) => cx.note(
                "the driver has no times on the monotonic clock: frames have the time at which they \
                                   were taken",
            ),
            (true, true) => cx.note("the driver's times are those of the start of the exposure"),
            (true, false) => {}
        }
    }

    /// Counts a frame that cannot be read.
    fn count_damage(&mut self, damage: FrameDamage, number: u64, cx: &mut Context) {
        match damage {
            FrameDamage::Short => cx.lose(1, FRAMES, SHORT),
            FrameDamage::Jpeg(text) => {
                cx.lose(1, FRAMES, BAD_JPEG);
                if !std::mem::replace(&mut self.is_jpeg_noted, true) {
                    cx.note(format!("frame {number} is damaged: {text}"));
                }
            }
        }
    }
}

/// Number and times of a frame, and whether the driver's time is ahead.
fn mark(frame: &TakenFrame<'_>, cx: &Context) -> (FrameMark, bool) {
    let taken_ns = cx.now_ns();
    let captured = frame.monotonic_ns().and_then(|ns| cx.from_monotonic_ns(ns));
    // The run's clock and the kernel's differ by a few microseconds.
    let is_ahead = captured.is_some_and(|ns| ns > taken_ns + AHEAD_NS);
    let captured_ns = captured.unwrap_or(taken_ns).clamp(cx.start_ns().min(taken_ns), taken_ns);
    (FrameMark { sequence: frame.sequence(), captured_ns, taken_ns }, is_ahead)
}

#[operator]
impl Operator for V4l2Source {
    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        let capture = self.open()?;
        for setting in self.setup()?.obtained(&capture.open) {
            cx.obtained(setting)?;
        }
        if capture.open.modes.layout.is_interlaced {
            cx.note("its frames are interlaced, and are sent as they are");
        }
        self.begin(capture);
        Ok(())
    }

    fn restart(&mut self, _: &mut Context) -> Result<(), Error> {
        self.camera = None;
        self.gaps.close();
        self.absence.begin();
        Ok(())
    }

    fn check(&self) -> Result<(), Error> {
        self.setup()?.look().map(drop)
    }

    fn frame_behind(&self, _: Option<[u32; 3]>) -> Result<Option<[u32; 3]>, Error> {
        let setup = self.setup()?;
        let found = self.planned().map(|modes| modes.layout.size);
        Ok(found.or(setup.request.size).map(|size| self.shape_of(size)))
    }

    fn rate(&self, _: Option<Pace>) -> Option<Rate> {
        let setup = self.setup().ok()?;
        let modes = self.planned()?;
        let shape = self.shape_of(modes.layout.size);
        let samples: u64 = shape.iter().map(|&length| u64::from(length.max(1))).product();
        let rate_hz = setup.request.rate_hz.or(modes.rate_hz)? * samples as f64;
        Some(Rate::Samples { rate_hz, chunk: Some(samples), bytes: 1 })
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let mut absence = self.absence;
        let attempt = absence.attempt(&self.device, || self.open(), cx);
        self.absence = absence;
        match attempt? {
            Attempt::Wait(step) => return Ok(step),
            Attempt::Back(capture) => self.begin(capture),
            Attempt::Present => {}
        }
        let Some(mut chunk) = self.out.chunk(cx) else { return Ok(Step::Wait) };
        let (Some(setup), Some(capture)) = (&self.setup, &mut self.camera) else { return Ok(Step::Done) };
        let CameraCapture { open, reader, shape, samples, rate_hz } = capture;
        if *samples > chunk.capacity() as u64 {
            return Err(Error::new(format!(
                "a frame of {} has {samples} bytes: the edges of `out` have room for {}; give each `quantum = \
                 {samples}` or more, or give `size` here",
                shape_text(shape),
                chunk.capacity()
            )));
        }
        let frame = match open.stream.take() {
            Ok(frame) => frame,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return cx.readable(&open.stream),
            Err(error) => return Err(setup.gone(&error)),
        };
        let (mark, is_ahead) = mark(&frame, cx);
        self.ahead += u64::from(is_ahead);
        let timed = (frame.monotonic_ns().is_some(), frame.is_timed_at_start());
        let number = self.gaps.take(mark, self.period_ns, cx);
        if frame.is_damaged() {
            cx.lose(1, FRAMES, DAMAGED);
            return Ok(Step::Again);
        }
        chunk.truncate(*samples as usize);
        let info = chunk.info_mut();
        (info.start, info.rate_hz, info.shape) = (number * *samples, *rate_hz, *shape);
        let pixels = chunk.edit_unique().expect("a new chunk is not shared");
        let read = reader.read(&frame, pixels);
        drop(frame);
        self.note_times(timed, cx);
        if let Err(damage) = read {
            self.count_damage(damage, number, cx);
            return Ok(Step::Again);
        }
        cx.set_time(mark.captured_ns.saturating_sub(cx.start_ns()), Some(mark.captured_ns));
        self.out.push(cx, chunk)?;
        Ok(Step::Again)
    }

    fn stop(&mut self, cx: &mut Context, _: Ending) -> Result<(), Error> {
        let stopped_ns = cx.stopped_for_ns().unwrap_or(0);
        self.count_unread(real_ns().saturating_sub(stopped_ns), cx);
        let now_ns = cx.now_ns().saturating_sub(stopped_ns);
        self.gaps.end_away(now_ns, self.period_ns, cx);
        self.gaps.sum_up(cx);
        if self.ahead > 0 {
            cx.note(format!(
                "the driver gave {} frames times ahead of the present: they have the time at which they were taken",
                self.ahead
            ));
        }
        Ok(())
    }
}
