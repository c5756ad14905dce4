//! Edges of a GPIO line.

use super::super::away::{Attempt, DeviceAbsence};
use super::line::{GpioBias, GpioEdges, GpioLine, errno};
use crate::streams::{real_ns, time_ns, usual};
use gpiocdev::line::{EdgeDetection, EdgeEvent, EdgeKind, EventClock, Value};
use gpiocdev::request::Request;
use onbeat_runtime::{Context, Ending, Error, Operator, Output, Seconds, Step, operator};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::ops::Range;
use std::time::Duration;

// Units and reasons of losses.
const EDGES: &str = "edges";
const OVERFLOW: &str = "the kernel's buffer for them was full: use a faster consumer, or `debounce`";
const UNREAD: &str = "waited when the run was stopped";
/// Edges that the kernel keeps until they are read: as many as it can.
const KEPT: u32 = 1024;
/// Edges read at once.
const AT_ONCE: usize = 16;

#[doc = include_str!("../../about/gpio_source.md")]
#[derive(Operator)]
#[operator(
    name = "gpio.source",
    summary = "sends the edges of a GPIO line",
    about = include_str!("../../about/gpio_source.md"),
    prepare = Self::prepare,
)]
pub struct GpioSource {
    /// 1 when the line becomes active, 0 when it becomes inactive.
    out: Output<f64>,
    /// The chip, such as `gpiochip0`, or its path. A line with a name needs none.
    #[parameter(example = "gpiochip0")]
    chip: Option<String>,
    /// Number of the line on its chip, from 0.
    #[parameter(example = 17)]
    offset: Option<u32>,
    /// Name of the line; give either `line` or `offset`.
    #[parameter]
    line: Option<String>,
    /// Edges to send.
    #[parameter(default)]
    edges: GpioEdges,
    /// How long a level has to last to count, for switches that bounce. Times are then later by it.
    #[parameter(above = 0)]
    debounce: Option<Seconds>,
    /// Resistor of the line.
    #[parameter(default)]
    bias: GpioBias,
    /// Whether the low level is the active one.
    #[parameter(default = false)]
    active_low: bool,
    /// Whether the first message is the level at the start.
    #[parameter(default = true)]
    initial: bool,
    /// How long to wait for a chip that went away, with `on_error = "restart"`.
    #[parameter(default = usual())]
    patience: Seconds,
    which: GpioLine,
    debounce_ns: Option<u64>,
    absence: DeviceAbsence,
    request: Option<Request>,
    /// Edges in the kernel's form, and where those are that were not sent yet.
    words: Vec<u64>,
    left: Range<usize>,
    /// Number of the last edge, as the kernel counts them.
    seen: u32,
    /// A level that was not sent yet.
    level: Option<bool>,
}

impl GpioSource {
    fn prepare(&mut self) -> Result<(), Error> {
        self.which = GpioLine::new(self.chip.as_deref(), self.offset, self.line.as_deref())?;
        self.debounce_ns = self.debounce.map(|time| time_ns("debounce", time)).transpose()?;
        self.absence.patience_ns = time_ns("patience", self.patience)?;
        Ok(())
    }

    fn open(&self) -> Result<Request, Error> {
        let request = self.which.request(|builder| {
            builder
                .as_input()
                .with_edge_detection(EdgeDetection::from(self.edges))
                .with_event_clock(EventClock::Monotonic)
                .with_kernel_event_buffer_size(KEPT)
                .with_bias(self.bias.wanted());
            if self.active_low {
                builder.as_active_low();
            }
            if let Some(debounce_ns) = self.debounce_ns {
                builder.with_debounce_period(Duration::from_nanos(debounce_ns));
            }
        })?;
        rustix::fs::fcntl_setfl(&request, OFlags::NONBLOCK)
            .map_err(|error| Error::with_source(self.which.words(), std::io::Error::from(error)))?;
        Ok(request)
    }

    /// Takes a line that was just requested.
    fn begin(&mut self, request: Request) -> Result<(), Error> {
        self.seen = 0;
        self.words = vec![0; AT_ONCE * request.edge_event_u64_size()];
        self.left = 0..0;
        if self.initial {
            let value = request.lone_value().map_err(|error| self.which.gone(&error))?;
            self.level = Some(value == Value::Active);
        }
        self.request = Some(request);
        Ok(())
    }

    /// Returns the next edge; `None` if there is none now.
    fn next(&mut self) -> Result<Option<EdgeEvent>, Error> {
        let Some(request) = &self.request else { return Ok(None) };
        if self.left.is_empty() {
            match request.read_edge_events_into_slice(&mut self.words) {
                Ok(count) => self.left = 0..count,
                Err(error) if matches!(errno(&error), Some(Errno::AGAIN | Errno::INTR)) => return Ok(None),
                Err(error) => return Err(self.which.gone(&error)),
            }
        }
        let end = self.left.start + request.edge_event_u64_size();
        if end > self.left.end {
            return Ok(None);
        }
        let words = &self.words[self.left.start..end];
        self.left.start = end;
        request.edge_event_from_slice(words).map(Some).map_err(|error| self.which.gone(&error))
    }

    /// Counts edges that the kernel had no room for before this one.
    fn count_lost(&mut self, edge: &EdgeEvent, cx: &mut Context) {
        let lost = edge.line_seqno.wrapping_sub(self.seen).saturating_sub(1);
        self.seen = edge.line_seqno;
        cx.lose(u64::from(lost), EDGES, OVERFLOW);
    }

    /// Counts edges that had come at a time, and gives the line back.
    fn count_unread(&mut self, until_ns: u64, cx: &mut Context) {
        while let Ok(Some(edge)) = self.next() {
            if edge.timestamp_ns > until_ns {
                break;
            }
            self.count_lost(&edge, cx);
            cx.lose(1, EDGES, UNREAD);
        }
        self.request = None;
    }

    fn push(&mut self, is_active: bool, time_ns: u64, cx: &mut Context) -> Result<Step, Error> {
        cx.set_time(time_ns.saturating_sub(cx.start_ns()), Some(time_ns));
        self.out.push(cx, f64::from(u8::from(is_active)))?;
        Ok(Step::Again)
    }
}

#[operator]
impl Operator for GpioSource {
    fn check(&self) -> Result<(), Error> {
        self.which.look()
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        let request = self.open()?;
        self.begin(request)
    }

    fn restart(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.count_unread(real_ns(), cx);
        self.absence.begin();
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let mut absence = self.absence;
        let attempt = absence.attempt(self.which.words(), || self.open(), cx);
        self.absence = absence;
        match attempt? {
            Attempt::Wait(step) => return Ok(step),
            Attempt::Back(request) => self.begin(request)?,
            Attempt::Present => {}
        }
        if let Some(is_active) = self.level.take() {
            let now_ns = cx.now_ns();
            return self.push(is_active, now_ns, cx);
        }
        if let Some(edge) = self.next()? {
            self.count_lost(&edge, cx);
            let came_ns = cx.from_monotonic_ns(edge.timestamp_ns).unwrap_or_else(|| cx.now_ns());
            return self.push(edge.kind == EdgeKind::Rising, came_ns.max(cx.start_ns()), cx);
        }
        match &self.request {
            Some(request) => cx.readable(request),
            None => Ok(Step::Done),
        }
    }

    fn stop(&mut self, cx: &mut Context, _: Ending) -> Result<(), Error> {
        let stop_ns = real_ns().saturating_sub(cx.stopped_for_ns().unwrap_or(0));
        self.count_unread(stop_ns, cx);
        Ok(())
    }
}
