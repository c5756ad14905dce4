//! The producer's end: sends what comes to the consumer's end.

mod puts;

use crate::books::{Contradiction, SentBooks};
use crate::carry::Carried;
use crate::frame::{Constant, Head, LentPlace, LinkRole, Outcome, write_head};
use crate::lending::{Lender, put};
use crate::line::{LinkConnection, LinkLine, LinkTrouble, contradicts, hear, not_restartable};
use crate::meeting::{LinkIdentity, random};
use crate::outgoing::OutgoingFrames;
use crate::settings::{LinkSettings, OnCut};
use crate::socket::unix_path;
use onbeat_os::clock::monotonic_ns;
use onbeat_runtime::{Context, Ending, Error, Input, Operator, Ports, Step};
use onbeat_trace::record::LinkRecord;
use puts::LendStep;
use std::io::{ErrorKind, IoSlice, Write};
use std::os::fd::AsFd;

/// Bytes of small messages in one write.
const AT_ONCE: usize = 32 << 10;

/// Sends messages to the `link.source` of the same name in another process, on this machine or another one.
///
/// Nothing is lost: the consumer says how many messages may be in flight (its `window`), and while it takes
/// none, this operator takes none either, so its input edge fills and does what its `when_full` says. Each
/// message is kept until the consumer has taken it, and sent again after a cut.
///
/// Samples, shapes, rates, tags, user keys, source times and due times arrive as they are. When the input has
/// ended and the consumer has taken all, the operator is done. If the run fails, the consumer's run fails
/// too.
pub struct LinkSink<M: Carried> {
    /// The messages.
    pub input: Input<M>,
    line: LinkLine,
    books: SentBooks<KeptMessage<M>>,
    outgoing: OutgoingFrames,
    lender: Lender<M>,
    /// The bytes of a message that is not a chunk.
    value: Vec<u8>,
    has_said_end: bool,
    is_end_taken: bool,
    /// Whether the consumer needs no more.
    is_given_up: bool,
    bytes: u64,
    held_ns: u64,
    held_since_ns: Option<u64>,
}

/// Copy of a message, until the consumer has taken it.
#[derive(Debug)]
struct KeptMessage<M> {
    message: M,
    /// Where the consumer finds its samples, if they were not sent.
    lent: Option<LentPlace>,
    origin: u64,
    time_ns: u64,
    due_ns: Option<u64>,
    keys: Vec<(String, Constant)>,
}

impl<M: Carried> KeptMessage<M> {
    /// The consumer has taken it: what is lent stays until it is back.
    fn hand_over(self, lender: &mut Lender<M>) {
        if let Some(place) = self.lent {
            lender.taken(place, self.message);
        }
    }
}

impl<M: Carried> LinkSink<M> {
    /// Makes the producer's end of a link.
    pub fn new(settings: LinkSettings) -> Self {
        let identity = LinkIdentity { role: LinkRole::Producer, message: M::NAME, instance: random() };
        LinkSink {
            lender: Lender::new(settings.window as usize),
            input: Input::default(),
            line: LinkLine::new(settings, identity),
            books: SentBooks::default(),
            outgoing: OutgoingFrames::default(),
            value: Vec::new(),
            has_said_end: false,
            is_end_taken: false,
            is_given_up: false,
            bytes: 0,
            held_ns: 0,
            held_since_ns: None,
        }
    }

    /// Sends and hears as much as is possible now.
    fn exchange(&mut self, cx: &mut Context) -> Result<Step, LinkTrouble> {
        if let Some(step) = self.hear_all(cx)? {
            return Ok(step);
        }
        for _ in 0..16 {
            if self.outgoing.is_empty() {
                self.fill(cx)?;
            }
            if self.outgoing.is_empty() {
                return self.idle(cx);
            }
            if !self.write()? {
                let Some(open) = &self.line.open else { return Ok(Step::Again) };
                return Ok(cx.writable(&open.stream)?);
            }
        }
        Ok(Step::Again)
    }

    /// Reads what the consumer says. Returns the step if it was the last one.
    fn hear_all(&mut self, cx: &mut Context) -> Result<Option<Step>, LinkTrouble> {
        let Some(open) = &mut self.line.open else { return Ok(Some(Step::Again)) };
        loop {
            while let Some((head, _)) = open.reader.head(0).map_err(std::io::Error::from)? {
                match head {
                    Head::Taken(next, is_end) => {
                        let wrong = |wrong: Contradiction| {
                            contradicts(format!("it took {} messages of {}", wrong.said, wrong.limit))
                        };
                        let lender = &mut self.lender;
                        self.books.taken(next, |kept| kept.hand_over(lender)).map_err(wrong)?;
                        self.is_end_taken |= is_end && self.has_said_end;
                    }
                    Head::Back(places) => self.lender.back(&places),
                    Head::Closed(Outcome::Failed) => return Err(self.line.failed().into()),
                    Head::Closed(outcome) => {
                        if outcome == Outcome::Stopped {
                            let rest = self.books.in_flight();
                            cx.lose(rest, "messages", "the consumer's run was stopped before it took them");
                        }
                        self.is_given_up = true;
                        self.books.abandon();
                        self.line.close();
                        return Ok(Some(Step::Done));
                    }
                    _ => return Err(contradicts("only a producer says that").into()),
                }
            }
            if self.is_end_taken {
                self.line.close();
                return Ok(Some(Step::Done));
            }
            if !hear(open)? {
                return Ok(None);
            }
        }
    }

    /// Puts the next messages into `outgoing`.
    fn fill(&mut self, cx: &mut Context) -> Result<(), Error> {
        while self.outgoing.has_room(AT_ONCE) {
            if self.books.is_all_sent() {
                if !self.books.has_credit() {
                    break;
                }
                let Some(message) = self.input.pop(cx) else { break };
                let stamp = cx.stamp();
                let keys = cx.keys().into_iter().flatten();
                self.books.enter(KeptMessage {
                    message,
                    lent: None,
                    origin: stamp.sequence(),
                    time_ns: stamp.time_ns,
                    due_ns: stamp.due_ns().and_then(|due_ns| cx.to_monotonic_ns(due_ns)),
                    keys: keys.map(|(name, value)| (name.to_string(), value.into())).collect(),
                });
            }
            match self.lend()? {
                LendStep::Lent => {}
                LendStep::WriteFirst => break,
                LendStep::Send => self.put()?,
            }
        }
        if self.outgoing.is_empty()
            && self.books.is_all_sent()
            && !self.has_said_end
            && self.input.is_ended(cx)
        {
            self.has_said_end = true;
            let end = Head::End(self.books.next());
            write_head(&mut self.outgoing.bytes, &end, 0).map_err(|error| Error::new(error.to_string()))?;
        }
        Ok(())
    }

    /// Writes `outgoing`. Returns whether all is written.
    fn write(&mut self) -> Result<bool, LinkTrouble> {
        let Some(open) = &mut self.line.open else { return Ok(true) };
        if let (Some(file), Some(socket)) = (&self.outgoing.file, open.stream.lending()) {
            match socket.write_with_file(&self.outgoing.bytes, file.as_fd()) {
                Ok(count) => (self.outgoing.done, self.outgoing.file) = (count, None),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        loop {
            let samples = self.books.to_send().map_or(&[][..], |(_, kept)| kept.message.samples());
            let [bytes, samples] = self.outgoing.rest(samples);
            if bytes.is_empty() && samples.is_empty() {
                break;
            }
            match open.stream.write_vectored(&[IoSlice::new(bytes), IoSlice::new(samples)]) {
                Ok(count) => self.outgoing.done += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        match open.stream.flush() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            flushed => flushed?,
        }
        if self.outgoing.has_samples {
            self.books.has_sent();
        }
        self.outgoing.clear();
        Ok(true)
    }

    /// There is nothing to send: no message, or no credit.
    fn idle(&mut self, cx: &mut Context) -> Result<Step, LinkTrouble> {
        let is_held = !self.books.has_credit() && !self.input.is_empty(cx);
        match (is_held, self.held_since_ns) {
            (true, None) => self.held_since_ns = Some(monotonic_ns()),
            (false, Some(_)) => self.release(),
            _ => {}
        }
        let Some(open) = &self.line.open else { return Ok(Step::Again) };
        let Some(stopped_ns) = cx.stopped_for_ns() else { return Ok(cx.readable(&open.stream)?) };
        match self.line.settings.patience_ns.checked_sub(stopped_ns) {
            None | Some(0) => Ok(Step::Done),
            Some(left_ns) => {
                let until_ns = cx.in_real_ns(left_ns);
                Ok(cx.readable_until(&open.stream, until_ns)?)
            }
        }
    }

    fn release(&mut self) {
        if let Some(since_ns) = self.held_since_ns.take() {
            self.held_ns += monotonic_ns().saturating_sub(since_ns);
        }
    }

    /// There is no connection.
    fn without(&mut self, step: Step, cx: &mut Context) -> Step {
        self.release();
        if self.line.settings.on_cut == OnCut::Degrade {
            while self.input.pop(cx).is_some() {
                self.books.give_up_next();
            }
            // Nothing more will come: the run need not wait for ever.
            if self.input.is_ended(cx) && self.line.is_cut_for(self.line.settings.hold_ns) {
                return Step::Done;
            }
        }
        step
    }
}

impl<M: Carried> Operator for LinkSink<M> {
    fn ports(&mut self, p: &mut Ports) {
        // One more than the window: the message that is about to be sent.
        let window = self.line.settings.window as usize;
        match unix_path(self.line.settings.peer.address()) {
            Some(_) => p.input("in", &mut self.input).holds(window + 1 + self.lender.most).shared(),
            None => p.input("in", &mut self.input).holds(window + 1),
        };
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.line.start(self.books.place(), cx)
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        match self.line.connect(cx)? {
            LinkConnection::Open => {}
            LinkConnection::New(other) => {
                self.outgoing.clear();
                self.has_said_end = false;
                let (lender, instance) = (&mut self.lender, self.line.identity.instance);
                let resumed = self.books.resume(instance, other.place, |kept| kept.hand_over(lender));
                self.books.each_kept(|kept| kept.lent = None);
                for head in self.lender.resume() {
                    put(&mut self.outgoing.bytes, &head)?;
                }
                resumed.map_err(|wrong| {
                    Error::new(format!(
                        "link `{}`: {} says that it took {} messages of {}",
                        self.line.settings.name, other.node, wrong.said, wrong.limit
                    ))
                })?;
            }
            LinkConnection::Wait(step) => return Ok(self.without(step, cx)),
            LinkConnection::GivenUp => return Ok(Step::Done),
        }
        match self.exchange(cx) {
            Ok(step) => Ok(step),
            Err(LinkTrouble::Failed(error)) => Err(error),
            Err(LinkTrouble::Cut(error)) => {
                self.line.cut(&error, self.books.place())?;
                Ok(Step::Again)
            }
        }
    }

    fn restartable(&self) -> Result<(), Error> {
        not_restartable()
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        self.release();
        let in_flight = self.books.in_flight();
        if !self.is_end_taken && !self.is_given_up {
            let samples = self.books.to_send().map_or(&[][..], |(_, kept)| kept.message.samples());
            let rest = self.outgoing.rest(samples);
            self.line.say_farewell(ending, &rest);
            cx.lose(in_flight, "messages", "the consumer is not known to have taken them");
        }
        let record = LinkRecord {
            messages: self.books.has_taken() + in_flight,
            bytes: self.bytes,
            repeated: self.books.repeated(),
            dropped: self.books.dropped(),
            in_flight,
            held_ns: self.held_ns,
            not_copied: self.lender.count,
            ..LinkRecord::default()
        };
        self.line.report(cx, record);
        Ok(())
    }
}
