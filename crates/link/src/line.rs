//! What both operators of a link have in common: their session, and what to do without one.

use crate::clocks::Offset;
use crate::frame::{FrameReader, Head, LinkHello, LinkRole, Outcome, Place, write_head};
use crate::meeting::{LinkIdentity, LinkSession, MeetingSeat};
use crate::settings::{LinkPeer, LinkSecurity, LinkSettings, OnCut};
use crate::stream::LinkStream;
use onbeat_os::clock::monotonic_ns;
use onbeat_runtime::{Context, Ending, Error, Step};
use onbeat_trace::Summary;
use onbeat_trace::record::LinkRecord;
use std::io::{self, ErrorKind, Read, Write};
use std::time::Duration;

/// How long a run that ends early waits until the other end knows.
const FAREWELL: Duration = Duration::from_millis(500);

/// A connection that carries messages.
pub(crate) struct OpenStream {
    pub stream: LinkStream,
    pub reader: FrameReader,
}

/// What [`LinkLine::connect`] finds.
pub(crate) enum LinkConnection {
    /// The connection is open.
    Open,
    /// It has just been opened; what the other end says of itself, with the window of the link.
    New(LinkHello),
    /// There is none: result of the step, unless the operator has more to do.
    Wait(Step),
    /// The run was stopped, and there will be none.
    GivenUp,
}

/// Why a step cannot go on with its session.
pub(crate) enum LinkTrouble {
    /// The connection broke.
    Cut(io::Error),
    /// The run fails.
    Failed(Error),
}

impl From<io::Error> for LinkTrouble {
    fn from(error: io::Error) -> Self {
        LinkTrouble::Cut(error)
    }
}

impl From<Error> for LinkTrouble {
    fn from(error: Error) -> Self {
        LinkTrouble::Failed(error)
    }
}

/// See the [module](self).
pub(crate) struct LinkLine {
    pub settings: LinkSettings,
    pub identity: LinkIdentity,
    seat: Option<MeetingSeat>,
    pub open: Option<OpenStream>,
    pub clock: Option<Offset>,
    /// Since when there is no connection.
    since_ns: u64,
    /// The other end, if it was ever there.
    peer: Option<String>,
    cuts: u64,
    cut_ns: u64,
    round_trip: Option<Summary>,
    clock_steps: u64,
    refusals: Option<String>,
}

impl LinkLine {
    pub fn new(settings: LinkSettings, identity: LinkIdentity) -> Self {
        LinkLine {
            settings,
            identity,
            seat: None,
            open: None,
            clock: None,
            since_ns: 0,
            peer: None,
            cuts: 0,
            cut_ns: 0,
            round_trip: None,
            clock_steps: 0,
            refusals: None,
        }
    }

    /// Begins to look for the other end.
    pub fn start(&mut self, place: Place, cx: &Context) -> Result<(), Error> {
        self.seat = None;
        self.seat = Some(MeetingSeat::new(self.settings.clone(), self.identity.clone(), place, cx)?);
        self.since_ns = monotonic_ns();
        Ok(())
    }

    /// Looks for a session if there is none.
    pub fn connect(&mut self, cx: &mut Context) -> Result<LinkConnection, Error> {
        if self.open.is_some() {
            return Ok(LinkConnection::Open);
        }
        let limit = self.limit();
        let Some(seat) = &mut self.seat else { return Ok(LinkConnection::GivenUp) };
        if let Some(LinkSession { stream, mut other, address }) = seat.session()? {
            other.place.window = other.place.window.clamp(1, self.settings.window);
            if self.peer.is_some() {
                self.cut_ns += monotonic_ns().saturating_sub(self.since_ns);
            }
            self.peer = Some(format!("{} at {address}", other.node));
            self.open = Some(OpenStream { stream, reader: FrameReader::new(64 << 10) });
            return Ok(LinkConnection::New(other));
        }
        if cx.stopped_for_ns().is_some_and(|stopped_ns| stopped_ns >= self.settings.patience_ns) {
            return Ok(LinkConnection::GivenUp);
        }
        let waited_ns = monotonic_ns().saturating_sub(self.since_ns);
        if let Some((limit_ns, name)) = limit
            && waited_ns >= limit_ns
        {
            return Err(self.alone(limit_ns, name));
        }
        let left_ns = limit.map_or(self.settings.hold_ns, |(limit_ns, _)| limit_ns - waited_ns);
        let until_ns = cx.in_real_ns(left_ns);
        Ok(LinkConnection::Wait(cx.readable_until(&seat.bell, until_ns)?))
    }

    /// How long to be without a connection, and the name of that setting.
    fn limit(&self) -> Option<(u64, &'static str)> {
        match self.settings.on_cut {
            _ if self.peer.is_none() => Some((self.settings.patience_ns, "patience")),
            OnCut::End | OnCut::Hold => Some((self.settings.hold_ns, "hold")),
            OnCut::Degrade => None,
        }
    }

    /// Whether there has been no connection for this time.
    pub fn is_cut_for(&self, time_ns: u64) -> bool {
        self.open.is_none() && monotonic_ns().saturating_sub(self.since_ns) >= time_ns
    }

    fn alone(&self, limit_ns: u64, name: &str) -> Error {
        let (link, address) = (&self.settings.name, self.settings.peer.address());
        let why = self.seat.as_ref().map(MeetingSeat::why).unwrap_or_default();
        let limit = format!("within {} ms (`{name}`): {why}", limit_ns / 1_000_000);
        let other = match self.identity.role {
            LinkRole::Producer => "link.source",
            LinkRole::Consumer => "link.sink",
        };
        Error::new(match (&self.peer, &self.settings.peer) {
            (Some(peer), _) => format!("link `{link}`: {peer} did not come back {limit}"),
            (None, LinkPeer::Connect(_)) => {
                format!("link `{link}`: cannot reach the `{other}` at {address} {limit}")
            }
            (None, LinkPeer::Listen(_)) => format!("link `{link}`: no `{other}` called {address} {limit}"),
        })
    }

    /// Parts from a session that was cut.
    pub fn cut(&mut self, error: &io::Error, place: Place) -> Result<(), Error> {
        self.open = None;
        self.clock = None;
        self.cuts += 1;
        self.since_ns = monotonic_ns();
        let why = self.seat.as_mut().and_then(|seat| seat.part(place)).unwrap_or_else(|| error.to_string());
        if self.settings.on_cut == OnCut::End {
            let (link, peer) = (&self.settings.name, self.peer.as_deref().unwrap_or_default());
            return Err(Error::new(format!("link `{link}`: the connection with {peer} was cut: {why}")));
        }
        Ok(())
    }

    /// The other end has failed.
    pub fn failed(&self) -> Error {
        let peer = self.peer.as_deref().unwrap_or_default();
        Error::new(format!(
            "link `{}`: the run of {peer} failed: its own record says why",
            self.settings.name
        ))
    }

    /// Reads the other clock, if there is a new estimate.
    pub fn look_at_clock(&mut self) {
        if let Some(clock) = self.seat.as_mut().and_then(MeetingSeat::new_clock) {
            self.clock = Some(clock);
        }
    }

    /// Tells the other end that this one ends before the stream. `rest` is a frame that was written in part.
    pub fn say_farewell(&mut self, ending: Ending, rest: &[&[u8]]) {
        let Some(OpenStream { stream, .. }) = &mut self.open else { return };
        let outcome = match ending {
            Ending::Failed => Outcome::Failed,
            Ending::Ended => Outcome::Done,
            Ending::Stopped => Outcome::Stopped,
        };
        let mut bytes = Vec::new();
        let mut say = || -> io::Result<()> {
            write_head(&mut bytes, &Head::Closed(outcome), 0)?;
            stream.socket().set_nonblocking(false)?;
            stream.socket().set_write_timeout(Some(FAREWELL))?;
            stream.socket().set_read_timeout(Some(FAREWELL))?;
            for part in rest {
                stream.write_all(part)?;
            }
            stream.write_all(&bytes)?;
            stream.flush()?;
            stream.end()?;
            // What the other end has still sent: a close with unread data would reset the connection, and the
            // farewell could be lost.
            let begin_ns = monotonic_ns();
            while stream.read(&mut [0; 4096])? > 0 {
                if monotonic_ns().saturating_sub(begin_ns) > FAREWELL.as_nanos() as u64 {
                    break;
                }
            }
            Ok(())
        };
        // The other end hears nothing more then, and finds out.
        let _unheard = say();
        self.close();
    }

    /// Closes the connection, and ends the search for the other end. An operator that is done does so at
    /// once: the other end may wait for it, and the run may go on for long.
    pub fn close(&mut self) {
        self.look_at_clock();
        let Some(seat) = self.seat.take() else { return };
        (self.round_trip, self.clock_steps) = seat.round_trips();
        self.refusals = seat.refusals();
        if self.peer.is_some() && self.open.is_none() {
            self.cut_ns += monotonic_ns().saturating_sub(self.since_ns);
        }
        self.open = None;
    }

    /// Reports the record of this end.
    pub fn report(&mut self, cx: &mut Context, mut record: LinkRecord) {
        self.close();
        record.name.clone_from(&self.settings.name);
        record.operator = cx.name().to_string();
        record.peer.clone_from(&self.peer);
        (record.cuts, record.cut_ns) = (self.cuts, self.cut_ns);
        (record.round_trip, record.clock_steps) = (self.round_trip, self.clock_steps);
        if let Some(clock) = self.clock {
            record.clock_ahead_ns = Some(clock.ahead_ns);
            record.uncertainty_ns = Some(clock.uncertainty_ns);
            record.clock_drift_ppm = Some(clock.drift * 1e6);
        }
        let ends_soon = match &self.settings.security {
            LinkSecurity::Proved { identity, .. } => identity.notes(),
            _ => Vec::new(),
        };
        for note in self.refusals.take().into_iter().chain(ends_soon) {
            cx.note(note);
        }
        cx.report_link(record);
    }
}

/// Reads what has come on a connection that does not block. Returns whether anything has.
pub(crate) fn hear(open: &mut OpenStream) -> io::Result<bool> {
    match open.reader.fill(&mut open.stream) {
        Ok(0) => Err(io::Error::new(ErrorKind::UnexpectedEof, "the other end closed the connection")),
        Ok(_) => Ok(true),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The reason why neither end can be restarted.
pub(crate) fn not_restartable() -> Result<(), Error> {
    Err(Error::new("a link cannot be restarted: the other end takes a failure here for the end of this run"))
}

/// What came cannot be.
pub(crate) fn contradicts(what: impl std::fmt::Display) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("the other end contradicts itself: {what}"))
}
