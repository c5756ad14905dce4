//! Receives frames from other programs.

use super::avr::AvrReader;
use super::beast::BeastReader;
use super::ticks;
use super::unit::{FeedFrame, FeedUnit, Skipped};
use crate::mode_s::Frame;
use crate::streams::{Opening, TcpConnection, TcpPeer, check_address, time_ns};
use onbeat_os::socket;
use onbeat_runtime::{Context, Ending, Error, FileUse, Operator, Output, Seconds, Step, operator};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::net::TcpListener;
use std::path::PathBuf;

/// Bytes of a read.
const BLOCK: usize = 16 << 10;
/// Bytes at the begin of a feed among which there must be a message.
const FIRST: u64 = 64 << 10;
/// Bytes at the begin that an error shows.
const SHOWN: usize = 24;

/// Format in which Mode S frames are received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FrameInputFormat {
    /// A line of text for each frame, with or without its time: `*8D4D2023...;`, `@0000000012AB8D4D2023...;`.
    Avr,
    /// The binary format of Beast receivers.
    #[default]
    Beast,
}

/// Receives Mode S frames from another program, or reads them from a file.
#[doc = include_str!("../../about/mode_s_source.md")]
#[derive(Operator)]
#[operator(
    name = "mode_s.source",
    summary = "receives Mode S frames over TCP, or reads them from a file",
    about = include_str!("../../about/mode_s_source.md"),
    prepare = Self::prepare,
)]
pub struct FrameSource {
    /// The frames.
    out: Output<Frame>,
    /// Address and port of a program that sends frames; give one of `connect`, `listen` and `path`.
    #[parameter(example = "127.0.0.1:30005")]
    connect: Option<String>,
    /// Address and port on which one program can connect and send frames.
    #[parameter]
    listen: Option<String>,
    /// A file of frames, which is read as fast as the pipeline takes them.
    #[parameter(input)]
    path: Option<PathBuf>,
    /// `avr`: lines of hexadecimal digits, with or without times. `beast`: binary, with times and levels.
    #[parameter(default)]
    format: FrameInputFormat,
    /// Whether the end of the connection is the end of the stream. If not, it is an error, so that
    /// `on_error = "restart"` connects again.
    #[parameter(default = true)]
    may_close: bool,
    /// How long to wait for a connection, and later for an answer of the peer's kernel (at least 4 s).
    #[parameter(default = "10 s")]
    patience: Seconds,
    line: Option<TcpConnection>,
    file: Option<(File, FileUse)>,
    avr: AvrReader,
    beast: BeastReader,
    bytes: Vec<u8>,
    /// Index of the next byte to take.
    at: usize,
    taken: u64,
    /// First bytes of the feed.
    first: Vec<u8>,
    /// Whether there was a message.
    has_message: bool,
    /// Time of the last frame that had one, in seconds.
    last_s: Option<f64>,
    frames: u64,
    skipped: Skipped,
}

impl FrameSource {
    /// Checks the parameters, and makes the connection.
    fn prepare(&mut self) -> Result<(), Error> {
        let patience_ns = time_ns("patience", self.patience)?;
        let peer = match (&self.connect, &self.listen, &self.path) {
            (None, None, Some(_)) => return Ok(()),
            (Some(address), None, None) => {
                check_address("connect", address)?;
                TcpPeer::Connect(address.clone())
            }
            (None, Some(address), None) => {
                check_address("listen", address)?;
                TcpPeer::Listen(address.clone())
            }
            _ => {
                return Err(Error::new(
                    "needs one of `connect` (an address to call), `listen` (an address to be called at) and \
                     `path` (a file)",
                ));
            }
        };
        let mut line = TcpConnection::new(peer);
        (line.patience_ns, line.is_watched) = (patience_ns, true);
        self.line = Some(line);
        Ok(())
    }

    /// Uses a listening socket that is already open, instead of opening one at the start.
    pub fn listener(mut self, listener: TcpListener) -> Self {
        if let Some(line) = &mut self.line {
            line.listener = Some(listener);
        }
        self
    }

    /// Where the frames come from, for messages.
    fn whence(&self) -> String {
        match (&self.line, &self.path) {
            (Some(line), _) => line.address().to_string(),
            (None, Some(path)) => path.display().to_string(),
            (None, None) => String::new(),
        }
    }

    /// Takes the next byte.
    fn take(&mut self, byte: u8) -> Option<FeedFrame> {
        self.taken += 1;
        if self.first.len() < SHOWN {
            self.first.push(byte);
        }
        let unit = match self.format {
            FrameInputFormat::Avr => self.avr.take(byte, &mut self.skipped),
            FrameInputFormat::Beast => self.beast.take(byte, &mut self.skipped),
        };
        match unit? {
            FeedUnit::Frame(frame) => return Some(frame),
            FeedUnit::Other => {
                self.skipped.other += 1;
                self.has_message = true;
            }
            FeedUnit::Odd => self.skipped.odd += 1,
        }
        None
    }

    /// Sends a frame with its time: that of its counter, otherwise that of the last frame with one,
    /// otherwise that of its arrival.
    fn send(&mut self, found: &FeedFrame, cx: &mut Context) -> Result<(), Error> {
        let time_s = ticks::time_s(found.ticks);
        self.last_s = time_s.or(self.last_s);
        let is_live = self.line.is_some();
        let arrived_s = || match is_live {
            true => cx.now_ns().saturating_sub(cx.start_ns()) as f64 * 1e-9,
            false => 0.0,
        };
        let time_s = self.last_s.unwrap_or_else(arrived_s);
        let Some(frame) = found.checked(time_s, &mut self.skipped) else { return Ok(()) };
        self.has_message = true;
        self.frames += 1;
        let due_ns = is_live.then(|| cx.now_ns());
        cx.set_time((time_s * 1e9) as u64, due_ns);
        self.out.push(cx, frame)
    }

    /// Sends the frames in `bytes`, as long as there is room.
    fn parse(&mut self, cx: &mut Context) -> Result<(), Error> {
        while self.at < self.bytes.len() && self.out.room(cx) > 0 {
            let byte = self.bytes[self.at];
            self.at += 1;
            if let Some(frame) = self.take(byte) {
                self.send(&frame, cx)?;
            }
        }
        if self.has_message || self.taken < FIRST {
            return Ok(());
        }
        Err(Error::new(format!(
            "{}: none of the first {FIRST} bytes is part of a message; {}",
            self.whence(),
            self.hint()
        )))
    }

    /// What may be wrong with a feed without messages.
    fn hint(&self) -> String {
        let begin = self.first.escape_ascii();
        let looks_like = match &self.first[..] {
            [b'M', b'S', b'G', b',', ..] => {
                "these are SBS lines, which have decoded fields instead of frames"
            }
            [b'*' | b'@' | b'<', ..] if self.format == FrameInputFormat::Beast => "is its format `avr`?",
            [0x1a, ..] if self.format == FrameInputFormat::Avr => "is its format `beast`?",
            _ => "is this the right port, and `format`? (dump1090: 30002 avr, 30005 beast)",
        };
        format!("it begins with `{begin}`: {looks_like}")
    }

    /// Reads more. Returns the step's result if nothing came.
    fn read(&mut self, cx: &mut Context) -> Result<Option<Step>, Error> {
        self.at = 0;
        self.bytes.resize(BLOCK, 0);
        let stream = self.line.as_mut().and_then(|line| line.stream.as_mut());
        let read = match (stream, &mut self.file) {
            (Some(stream), _) => stream.read(&mut self.bytes),
            (None, Some((file, _))) => file.read(&mut self.bytes),
            (None, None) => Ok(0),
        };
        self.bytes.truncate(*read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => self.end().map(Some),
            Ok(_) => Ok(None),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(Some(Step::Again)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                match self.line.as_ref().and_then(|line| line.stream.as_ref()) {
                    Some(stream) => cx.readable(stream).map(Some),
                    None => Ok(Some(Step::Done)),
                }
            }
            Err(error) => Err(match &self.line {
                Some(line) => line.broken(error),
                None => Error::with_source(format!("cannot read {}", self.whence()), error),
            }),
        }
    }

    /// Handles the end of the feed.
    fn end(&mut self) -> Result<Step, Error> {
        self.file = None;
        let Some(line) = &mut self.line else { return Ok(Step::Done) };
        line.hang_up();
        if self.may_close {
            return Ok(Step::Done);
        }
        let (address, frames) = (line.address(), self.frames);
        Err(Error::new(format!(
            "{address} closed the connection after {frames} frames, which `may_close = false` forbids"
        )))
    }

    /// Forgets a message that has begun, and counts it.
    fn cut(&mut self) {
        self.skipped.cut += u64::from(self.avr.is_inside() || self.beast.is_inside());
        (self.avr, self.beast) = (AvrReader::default(), BeastReader::default());
    }
}

#[operator]
impl Operator for FrameSource {
    fn check(&self) -> Result<(), Error> {
        self.path.as_ref().map_or(Ok(()), |path| crate::format::open(path).map(drop))
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        self.cut();
        self.bytes.clear();
        self.at = 0;
        if let Some(path) = &self.path {
            let (file, _, used) = crate::format::open(path)?;
            self.file = Some((file, used));
        }
        self.line.as_mut().map_or(Ok(()), TcpConnection::start)
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(line) = &mut self.line {
            match line.open(cx)? {
                Opening::Wait(step) => return Ok(step),
                Opening::GivenUp => return Ok(Step::Done),
                Opening::Over => {}
            }
        }
        if self.at == self.bytes.len()
            && let Some(step) = self.read(cx)?
        {
            return Ok(step);
        }
        self.parse(cx)?;
        Ok(Step::Again)
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        let unread = self.line.as_ref().and_then(|line| socket::unread(line.stream.as_ref()?).ok());
        cx.lose(unread.unwrap_or(0), "bytes", "waited in the socket when the run ended");
        self.cut();
        if let Some(line) = &mut self.line {
            line.hang_up();
        }
        if ending == Ending::Failed {
            return Ok(());
        }
        if let Some(skipped) = self.skipped.list() {
            cx.note(format!("{} frames; skipped: {skipped}", self.frames));
        }
        if !self.has_message && self.taken > 0 {
            cx.note(format!(
                "{}: there was no frame in {} bytes; {}",
                self.whence(),
                self.taken,
                self.hint()
            ));
        }
        Ok(())
    }
}
