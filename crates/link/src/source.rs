//! The consumer's end: sends on what comes from the producer's end.

mod steps;

use crate::books::{MessageArrival, TakenBooks};
use crate::carry::{Arriving, Carried, VALUE_LIMIT};
use crate::frame::{Head, LinkRole, MessageHead, Outcome, write_head};
use crate::lending::Borrower;
use crate::line::{LinkConnection, LinkLine, LinkTrouble, OpenStream, contradicts, hear, not_restartable};
use crate::meeting::{LinkIdentity, random};
use crate::settings::LinkSettings;
use crate::socket::LinkSocket;
use onbeat_os::clock::monotonic_ns;
use onbeat_runtime::{Context, Ending, Error, Operator, Output, Ports, Step};
use onbeat_trace::record::LinkRecord;
use onbeat_trace::{Histogram, LinkArrival};
use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;

/// How long the producer may not be told that messages were taken, while it has credit.
const TELL_NS: u64 = 2_000_000;
/// How often to look whether lent chunks have come back, while nothing else happens.
const BACK_NS: u64 = 1_000_000;

/// Receives messages from the `link.sink` of the same name in another process, on this machine or another
/// one.
///
/// At most `window` messages are in flight: sent, and not yet taken by this operator. It takes one when its
/// output has room.
///
/// The latency of a path from here counts from the message's due time at its source in the other run, so it
/// spans both runs. It is uncertain by the `uncertainty_ns` of the link's record: the two clocks are compared
/// all the time. Under the manual clock, no times are due.
pub struct LinkSource<M: Carried> {
    /// The messages.
    pub out: Output<M>,
    line: LinkLine,
    books: TakenBooks,
    borrower: Borrower,
    /// Most bytes of a chunk here, once that was asked.
    room: Option<usize>,
    arriving: Option<Incoming<M>>,
    /// What the last message has left, to be used again.
    left: Option<M::Arriving>,
    /// A message whose chunk is not there yet: the store is empty.
    waiting: Option<(MessageHead, usize)>,
    /// Frames on their way to the producer.
    answer: Vec<u8>,
    /// Whether some of them are not in the socket yet.
    has_unsent: bool,
    /// Most messages in flight, as both ends allow.
    window: u32,
    tell_at_ns: Option<u64>,
    leave_by_ns: Option<u64>,
    /// Whether the stream has ended, or this end has told that it needs no more.
    is_ended: bool,
    bytes: u64,
    transit: Histogram,
    least_ns: u64,
    /// The link and the other run.
    names: [Arc<str>; 2],
}

/// A message whose bytes are coming.
struct Incoming<M: Carried> {
    head: MessageHead,
    place: M::Arriving,
    filled: usize,
    length: usize,
}

impl<M: Carried> LinkSource<M> {
    /// Makes the consumer's end of a link.
    pub fn new(settings: LinkSettings) -> Self {
        let identity = LinkIdentity { role: LinkRole::Consumer, message: M::NAME, instance: random() };
        LinkSource {
            out: Output::default(),
            line: LinkLine::new(settings, identity),
            books: TakenBooks::default(),
            borrower: Borrower::default(),
            room: None,
            arriving: None,
            left: None,
            waiting: None,
            answer: Vec::new(),
            has_unsent: false,
            window: 1,
            tell_at_ns: None,
            leave_by_ns: None,
            is_ended: false,
            bytes: 0,
            transit: Histogram::new(),
            least_ns: u64::MAX,
            names: ["".into(), "".into()],
        }
    }

    /// Receives until one message is whole.
    fn receive(&mut self, cx: &mut Context) -> Result<Step, LinkTrouble> {
        loop {
            self.tell(false)?;
            if self.is_ended {
                return self.leave(cx);
            }
            if self.arriving.is_some() {
                if !self.fill()? {
                    return self.idle(cx);
                }
                return Ok(self.pass_on(cx)?);
            }
            if let Some((mut head, length)) = self.waiting.take() {
                if let Some((place, bytes)) = head.lent {
                    match self.borrow(head, place, bytes as usize, cx)? {
                        Some(step) => return Ok(step),
                        None => continue,
                    }
                }
                match M::arrive(&mut head, length, self.left.take(), &self.out, cx)? {
                    Some(place) => self.arriving = Some(Incoming { head, place, filled: 0, length }),
                    None => {
                        self.waiting = Some((head, length));
                        return Ok(Step::Wait);
                    }
                }
                continue;
            }
            let Some(open) = &mut self.line.open else { return Ok(Step::Again) };
            match open.reader.head(limit::<M>()).map_err(std::io::Error::from)? {
                Some((Head::Message(head), length)) => self.waiting = Some((head, length)),
                Some((Head::Store { store, chunks, chunk_bytes }, _)) => {
                    let file = open.stream.lending().and_then(LinkSocket::take_file);
                    self.borrower.map(store, chunks, chunk_bytes, file)?;
                }
                Some((Head::Lent(places), _)) => self.borrower.compare(&places),
                Some((Head::End(count), _)) => {
                    self.books.end(count);
                    self.is_ended = true;
                    write_head(&mut self.answer, &Head::Taken(count, true), 0)
                        .map_err(std::io::Error::from)?;
                }
                Some((Head::Closed(Outcome::Failed), _)) => return Err(self.line.failed().into()),
                Some((Head::Closed(_), _)) => {
                    cx.note("the producer's run was stopped before its stream had ended");
                    self.line.close();
                    return Ok(Step::Done);
                }
                Some(_) => return Err(contradicts("only a consumer says that").into()),
                None if hear(open)? => {}
                None => return self.idle(cx),
            }
        }
    }

    /// Reads bytes of the message. Returns whether it is whole.
    fn fill(&mut self) -> Result<bool, LinkTrouble> {
        let (Some(incoming), Some(OpenStream { stream, reader })) = (&mut self.arriving, &mut self.line.open)
        else {
            return Ok(false);
        };
        let bytes = incoming.place.bytes();
        incoming.filled += reader.take(&mut bytes[incoming.filled..]);
        while incoming.filled < incoming.length {
            match stream.read(&mut bytes[incoming.filled..]) {
                Ok(0) => {
                    let text = "the other end closed the connection in the middle of a message";
                    return Err(std::io::Error::new(ErrorKind::UnexpectedEof, text).into());
                }
                Ok(count) => incoming.filled += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }

    /// Sends on the message that is whole.
    fn pass_on(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let Some(Incoming { head, place, length, .. }) = self.arriving.take() else { return Ok(Step::Again) };
        let (message, left) = M::finish(place)?;
        self.left = left;
        if self.books.arrive(head.sequence) == MessageArrival::Repeated {
            return Ok(Step::Again);
        }
        self.deliver(head, message, length, cx)
    }

    /// Sends on a message that has not come before.
    fn deliver(
        &mut self,
        head: MessageHead,
        message: M,
        length: usize,
        cx: &mut Context,
    ) -> Result<Step, Error> {
        self.line.look_at_clock();
        self.bytes += length as u64;
        let now_ns = cx.now_ns();
        let mut due_ns = None;
        if let Some(clock) = &self.line.clock {
            let own_ns = head.due_ns.and_then(|due_ns| cx.from_monotonic_ns(clock.to_own_ns(due_ns)));
            due_ns = own_ns.map(|due_ns| due_ns.clamp(cx.start_ns(), now_ns));
            let (sent_ns, came_ns) = (clock.to_own_ns(head.sent_ns), monotonic_ns());
            self.transit.record(came_ns.saturating_sub(sent_ns));
            self.least_ns = self.least_ns.min(came_ns.saturating_sub(sent_ns));
            let (least_ns, [link, node]) = (self.least_ns, &self.names);
            cx.came_over_link(|tid| LinkArrival {
                tid,
                sent_ns,
                came_ns,
                least_ns,
                origin: head.origin,
                link: Arc::clone(link),
                node: Arc::clone(node),
            });
        }
        cx.set_time(head.time_ns, due_ns);
        for (name, value) in head.keys {
            cx.set_key(&name, value);
        }
        self.out.push(cx, message)?;
        Ok(Step::Again)
    }

    /// Tells the producer how much was taken, if it is time to.
    fn tell(&mut self, is_idle: bool) -> Result<(), LinkTrouble> {
        // A producer that has ended keeps what is lent until the end of its run.
        let may = self.borrower.has_any() && !self.is_ended;
        let back = if may { self.borrower.give_back() } else { None };
        // A chunk that came back was taken before.
        if let Some(next) = self.books.tell_next(is_idle || back.is_some(), self.window) {
            self.tell_at_ns = None;
            write_head(&mut self.answer, &Head::Taken(next, false), 0).map_err(std::io::Error::from)?;
        }
        if let Some(back) = back {
            write_head(&mut self.answer, &back, 0).map_err(std::io::Error::from)?;
        }
        let Some(open) = &mut self.line.open else { return Ok(()) };
        while !self.answer.is_empty() {
            match open.stream.write(&self.answer) {
                Ok(count) => drop(self.answer.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        match open.stream.flush() {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error.into()),
            flushed => {
                self.has_unsent = flushed.is_err() || !self.answer.is_empty();
                Ok(())
            }
        }
    }

    /// Puts the last words into `answer`: how much was taken, and why no more will be.
    fn say(&mut self, outcome: Option<Outcome>) {
        let taken = Head::Taken(self.books.place().next, false);
        for head in std::iter::once(taken).chain(outcome.map(Head::Closed)) {
            write_head(&mut self.answer, &head, 0).expect("a head without text is short");
        }
    }

    /// Nothing has come.
    fn idle(&mut self, cx: &mut Context) -> Result<Step, LinkTrouble> {
        let now_ns = monotonic_ns();
        let at_ns = *self.tell_at_ns.get_or_insert(now_ns + TELL_NS);
        if now_ns >= at_ns {
            self.tell(true)?;
        }
        let Some(open) = &self.line.open else { return Ok(Step::Again) };
        if self.has_unsent {
            return Ok(cx.writable(&open.stream)?);
        }
        if self.books.is_all_told() {
            self.tell_at_ns = None;
            if self.borrower.has_any() {
                // Nobody says when the last operator is done with a chunk.
                let until_ns = cx.in_real_ns(BACK_NS);
                return Ok(cx.readable_until(&open.stream, until_ns)?);
            }
            return Ok(cx.readable(&open.stream)?);
        }
        let until_ns = cx.in_real_ns(at_ns.saturating_sub(now_ns).max(100_000));
        Ok(cx.readable_until(&open.stream, until_ns)?)
    }
}

/// Most bytes of a body; that of a chunk is compared with the chunk.
fn limit<M: Carried>() -> usize {
    if M::SAMPLE_BYTES.is_some() { u32::MAX as usize } else { VALUE_LIMIT }
}

impl<M: Carried> Operator for LinkSource<M> {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.line.start(self.books.place(), cx)
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if cx.is_stopping() && !self.is_ended {
            self.is_ended = true;
            self.say(Some(Outcome::Stopped));
        }
        match self.line.connect(cx)? {
            LinkConnection::Open => {}
            LinkConnection::New(other) => {
                (self.arriving, self.waiting) = (None, None);
                self.answer.clear();
                self.has_unsent = false;
                self.window = other.place.window;
                self.names = [self.line.settings.name.as_str().into(), other.node.as_str().into()];
                self.least_ns = u64::MAX;
                let replaced = self.books.replaced();
                self.books.resume(other.instance, other.place);
                if self.books.replaced() > replaced {
                    self.borrower.forget();
                    cx.note(format!(
                        "{} is another run of the producer: its messages count from 0",
                        other.node
                    ));
                }
            }
            LinkConnection::Wait(_) if cx.is_stopping() => {
                self.line.close();
                return Ok(Step::Done);
            }
            LinkConnection::Wait(step) => return Ok(step),
            LinkConnection::GivenUp => return Ok(Step::Done),
        }
        match self.receive(cx) {
            Ok(step) => Ok(step),
            Err(LinkTrouble::Failed(error)) => Err(error),
            Err(LinkTrouble::Cut(error)) => {
                self.line.cut(&error, self.books.place())?;
                self.is_ended = false;
                Ok(Step::Again)
            }
        }
    }

    fn restartable(&self) -> Result<(), Error> {
        not_restartable()
    }

    fn finished(&mut self) {
        // If it was not this end's own word, nobody reads its output any more.
        if !std::mem::replace(&mut self.is_ended, true) {
            self.say(Some(Outcome::Done));
            // The producer finds out at the end of the run then.
            let _unheard = self.tell(false);
        }
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        if !self.is_ended {
            self.say(None);
            self.line.say_farewell(ending, &[&self.answer]);
        }
        let record = LinkRecord {
            not_copied: self.borrower.count,
            messages: self.books.taken(),
            bytes: self.bytes,
            repeated: self.books.repeated(),
            dropped: self.books.missing(),
            transit: (self.transit.count() > 0).then(|| self.transit.summary()),
            ..LinkRecord::default()
        };
        self.line.report(cx, record);
        self.borrower.forget();
        Ok(())
    }
}
