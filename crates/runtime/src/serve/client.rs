//! One connection. Nothing of it waits: not for half a line, not for room to answer, not for a worker.

use super::answer;
use super::request::{LINE_BYTES, Request};
use crate::FetchedData;
use crate::base::wording::{near, quoted};
use crate::engine::order::Order;
use crate::run::{OrderError, PendingOrder, RunHandle, made};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How long a client may be silent, keep a line to itself, or leave an answer unread.
const SILENCE: Duration = Duration::from_secs(5);

/// Most bytes that are read at once.
const READ_BYTES: usize = 4 << 10;

/// A connection. Requests are carried out one after the other, in the order in which they came.
#[derive(Debug)]
pub(super) struct Client {
    stream: UnixStream,
    /// Read, and not yet asked.
    input: Vec<u8>,
    /// Answered, and not yet written.
    output: Vec<u8>,
    /// What it has asked for and the workers have not done yet.
    asking: Option<PendingOrder>,
    /// When something was last heard of it.
    heard: Instant,
    /// No more comes.
    ended: bool,
    /// Nothing of it is looked at any more.
    closing: bool,
}

/// What becomes of a request.
enum Reply {
    Answered(Vec<u8>),
    Asked(PendingOrder),
}

impl Client {
    /// On a stream that does not wait.
    pub fn new(stream: UnixStream) -> Self {
        Client {
            stream,
            input: Vec::new(),
            output: Vec::new(),
            asking: None,
            heard: Instant::now(),
            ended: false,
            closing: false,
        }
    }

    /// What it waits for: that it can be read, or written (`true`). Nothing while workers are asked.
    pub fn waits(&self) -> Option<(BorrowedFd<'_>, bool)> {
        match (&self.asking, self.output.is_empty()) {
            (Some(_), _) => None,
            (None, is_read) => Some((self.stream.as_fd(), !is_read)),
        }
    }

    pub fn is_asking(&self) -> bool {
        self.asking.is_some()
    }

    pub fn heard(&self) -> Instant {
        self.heard
    }

    /// When it has been silent for too long. It is not to blame for the time that workers take.
    pub fn deadline(&self) -> Option<Instant> {
        self.asking.is_none().then(|| self.heard + SILENCE)
    }

    pub fn is_gone(&self) -> bool {
        let is_quiet = self.asking.is_none() && self.output.is_empty();
        is_quiet && (self.closing || self.ended && self.input.is_empty())
    }

    /// Whether it has more to say that was read already.
    pub fn is_due(&self) -> bool {
        self.asking.is_none() && self.output.is_empty() && self.input.contains(&b'\n')
    }

    /// Goes on as far as that is possible now, with one request at most: others have a turn, too.
    pub fn turn(&mut self, handle: &RunHandle) {
        let mut has_asked = false;
        loop {
            if let Some(asking) = &mut self.asking {
                let Some(result) = asking.poll(Duration::ZERO) else { return };
                let fetched = asking.take_fetched();
                self.asking = None;
                self.answer(&match fetched {
                    Some(fetched) if result.is_ok() => handed_out(fetched),
                    _ => answered(result),
                });
            }
            self.write();
            if self.closing || !self.output.is_empty() || has_asked {
                break;
            }
            self.read();
            has_asked = true;
            match self.line() {
                Some(line) => self.ask(&line, handle),
                None if self.input.len() > LINE_BYTES => {
                    self.refuse(&format!("no request: a line of more than {LINE_BYTES} bytes"));
                }
                None => break,
            }
        }
        if !self.is_gone() && self.deadline().is_some_and(|deadline| Instant::now() >= deadline) {
            let seconds = SILENCE.as_secs();
            let what = if self.input.is_empty() { "nothing was" } else { "no end of the line was" };
            self.refuse(&format!("closed: {what} heard for {seconds} s"));
            // It had its time.
            self.output.clear();
        }
    }

    /// A last word, written as far as that goes at once.
    pub fn refuse(&mut self, why: &str) {
        self.answer(&answer::wrong(why));
        self.closing = true;
        self.write();
    }

    fn answer(&mut self, line: &[u8]) {
        self.output.extend_from_slice(line);
        self.heard = Instant::now();
    }

    fn ask(&mut self, line: &[u8], handle: &RunHandle) {
        self.heard = Instant::now();
        match Request::read(line) {
            Err(error) => self.refuse(&error),
            Ok(request) => match carry_out(request, handle) {
                Reply::Answered(line) => self.answer(&line),
                Reply::Asked(asking) => self.asking = Some(asking),
            },
        }
    }

    /// The next one, with its end, or what is left when no more comes.
    fn line(&mut self) -> Option<Vec<u8>> {
        let end = self.input.iter().position(|&byte| byte == b'\n').map(|end| end + 1);
        let end = end.or((self.ended && !self.input.is_empty()).then_some(self.input.len()))?;
        (end <= LINE_BYTES).then(|| self.input.drain(..end).collect())
    }

    /// Until there is a line, or more than may be one.
    fn read(&mut self) {
        let mut buffer = [0; READ_BYTES];
        while !self.ended && self.input.len() <= LINE_BYTES && !self.input.contains(&b'\n') {
            match self.stream.read(&mut buffer) {
                Ok(0) => self.ended = true,
                Ok(bytes) => self.input.extend_from_slice(&buffer[..bytes]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.break_off(),
            }
        }
    }

    fn write(&mut self) {
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(bytes) if bytes > 0 => _ = self.output.drain(..bytes),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                _ => self.break_off(),
            }
        }
    }

    /// Nobody is there any more.
    fn break_off(&mut self) {
        self.closing = true;
        self.ended = true;
        self.output.clear();
    }
}

fn answered(result: Result<(), OrderError>) -> Vec<u8> {
    match result {
        Ok(()) => answer::done(),
        Err(error) => answer::wrong(&error.to_string()),
    }
}

/// Computes what an operator has handed out.
fn handed_out(fetched: FetchedData) -> Vec<u8> {
    match made(Some(fetched)) {
        Ok((media_type, bytes)) => answer::data(media_type, &bytes),
        Err(error) => answer::wrong(&error.to_string()),
    }
}

fn carry_out(request: Request, handle: &RunHandle) -> Reply {
    let asked = match request {
        Request::Hello {} => return Reply::Answered(answer::hello(handle.name())),
        Request::Status {} => return Reply::Answered(answer::status(&handle.status())),
        Request::Pause { operator: None } => Ok(handle.ask_all(true)),
        Request::Resume { operator: None } => Ok(handle.ask_all(false)),
        Request::Pause { operator: Some(name) } => handle.ask(&name, Order::Pause),
        Request::Resume { operator: Some(name) } => handle.ask(&name, Order::Resume),
        Request::Stop { operator: Some(name) } => handle.ask(&name, Order::Finish),
        Request::Set { operator, parameter: name, value, sample } => {
            let order = |operator| Order::Set { operator, name: name.clone(), value: value.clone(), sample };
            handle.ask(&operator, order)
        }
        Request::Fetch { operator } => handle.ask_for(&operator),
        Request::Stop { operator: None } => return at_once(handle, || handle.stop()),
        Request::Gate { name, open } => {
            let Some(gate) = handle.gate(&name) else {
                return unknown("gate", &name, handle.gates().map(|(name, _)| name));
            };
            return at_once(handle, || if open { gate.open() } else { gate.close() });
        }
        Request::Ring { name } => {
            let Some(event) = handle.event(&name) else {
                return unknown("event", &name, handle.events().map(|(name, _)| name));
            };
            return at_once(handle, || event.ring());
        }
    };
    match asked {
        Ok(asking) => Reply::Asked(asking),
        Err(error) => Reply::Answered(answer::wrong(&error.to_string())),
    }
}

/// What no worker has to be asked for.
fn at_once(handle: &RunHandle, order: impl FnOnce()) -> Reply {
    if handle.is_over() {
        return Reply::Answered(answered(Err(OrderError::Over)));
    }
    order();
    Reply::Answered(answer::done())
}

fn unknown<'n>(what: &str, name: &str, known: impl Iterator<Item = &'n str>) -> Reply {
    let hint = near(name, known);
    Reply::Answered(answer::wrong(&format!("there is no {what} {}{hint}", quoted(name))))
}
