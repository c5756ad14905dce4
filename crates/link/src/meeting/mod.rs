//! Meetings: how the two ends of a link find each other, and how each knows that the other is alive.
//!
//! An end has a thread beside its operator, called `link NAME`. It opens two connections: one for messages,
//! which it hands to the operator, and one of its own, on which both ends exchange signs of life and times.
//! So a step never waits for a handshake, and an end whose worker is busy is not taken for dead.
//!
//! ```text
//!             operator                 |  thread
//!  1. offers where it stands           |
//!  2.                                  |  meets the other end (`dial`, `door`), and hands over the session
//!  3. takes it, sends or receives      |  exchanges signs of life (`control`)
//!  4.                                  |  the other end is silent or gone: shuts both connections
//!  5. reads the end of its connection, |
//!     parts from it: back to 1         |
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `dial` | calls the other end |
//! | `door` | takes calls at an address, for all ends of this process |
//! | `hello` | what the ends say of themselves, and whether they fit |
//! | `control` | signs of life, times |

mod control;
mod dial;
mod door;
mod hello;

use crate::clocks::Offset;
use crate::frame::{Head, LinkHello, LinkRole, Place, write_head};
use crate::settings::{LinkPeer, LinkSettings};
use crate::socket::LinkSocket;
use crate::stream::LinkStream;
use onbeat_os::thread;
use onbeat_queue::sync::atomic::{AtomicU64, Ordering};
use onbeat_runtime::{Context, Error};
use onbeat_trace::{Histogram, Summary};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A connection with the other end, and what it said of itself.
#[derive(Debug)]
pub struct LinkSession {
    /// Carries messages. It does not block.
    pub stream: LinkStream,
    /// The other end.
    pub other: LinkHello,
    /// Its address.
    pub address: String,
}

/// What an end says of itself, apart from where it stands.
#[derive(Debug, Clone)]
pub struct LinkIdentity {
    /// Which end it is.
    pub role: LinkRole,
    /// Type of its messages.
    pub message: &'static str,
    /// Number of this run of the operator.
    pub instance: u64,
}

/// What the operator and its thread share.
#[derive(Debug)]
pub struct Meeting {
    settings: LinkSettings,
    identity: LinkIdentity,
    state: Mutex<MeetingState>,
    changed: Condvar,
    /// Counts changes of the session and of the clock, so that a step need not lock to find none.
    version: AtomicU64,
    bell: UnixStream,
}

#[derive(Debug, Default)]
struct MeetingState {
    /// Where the operator stands, while it has no session.
    offer: Option<Place>,
    /// Met, and its clock is not known yet.
    met: Option<LinkSession>,
    /// For the operator to take.
    session: Option<LinkSession>,
    /// The connections of the present session, to be shut.
    streams: Vec<LinkSocket>,
    /// Why there is no session: of the last try, or of the last cut.
    why: Option<String>,
    /// Why there will never be one.
    refused: Option<String>,
    clock: Option<Offset>,
    /// How often the other clock was set.
    clock_steps: u64,
    round_trips: Option<Box<Histogram>>,
    is_over: bool,
}

/// The operator's side of a [`Meeting`].
#[derive(Debug)]
pub struct MeetingSeat {
    meeting: Arc<Meeting>,
    /// Readable when something has changed.
    pub bell: UnixStream,
    seen: u64,
    /// Its drop frees the name of the link at once, for the next run in this process.
    plate: Option<door::DoorPlate>,
}

impl MeetingSeat {
    /// Starts the thread of an end.
    ///
    /// # Errors
    /// If the address is wrong or in use, or the kernel refuses.
    pub fn new(
        settings: LinkSettings,
        identity: LinkIdentity,
        place: Place,
        cx: &Context,
    ) -> Result<Self, Error> {
        let address = settings.resolve()?;
        let cannot = |error| Error::with_source(format!("cannot begin link `{}`", settings.name), error);
        let (bell, ring) = UnixStream::pair().map_err(cannot)?;
        bell.set_nonblocking(true).and_then(|()| ring.set_nonblocking(true)).map_err(cannot)?;
        let mut name = format!("link {}", settings.name);
        while name.len() > thread::NAME_MAX_BYTES {
            name.pop();
        }
        let (plate, arrivals) = match &settings.peer {
            LinkPeer::Listen(address) => {
                let (plate, arrivals) = door::register(address, &settings, cx)?;
                (Some(plate), Some(arrivals))
            }
            LinkPeer::Connect(_) => (None, None),
        };
        let meeting = Arc::new(Meeting {
            settings,
            identity,
            state: Mutex::new(MeetingState { offer: Some(place), ..MeetingState::default() }),
            changed: Condvar::new(),
            version: AtomicU64::new(0),
            bell: ring,
        });
        let theirs = Arc::clone(&meeting);
        let body = move || match arrivals {
            Some(mut arrivals) => theirs.run(|place| arrivals.meet(&theirs, place)),
            None => theirs.run(|place| dial::meet(&theirs, place, &address)),
        };
        let cannot = |error| Error::with_source("cannot start the thread of a link", error);
        cx.spawn_beside(&name, body).map_err(cannot)?;
        Ok(MeetingSeat { meeting, bell, seen: 0, plate })
    }

    /// Takes the session that has begun, if there is one.
    ///
    /// # Errors
    /// If the other end can never be met: it is of another version, or has other messages.
    pub fn session(&mut self) -> Result<Option<LinkSession>, Error> {
        while let Ok(1..) = (&self.bell).read(&mut [0; 64]) {}
        let mut state = self.meeting.state();
        if let Some(why) = &state.refused {
            return Err(Error::new(why.clone()));
        }
        if state.session.is_some() {
            state.offer = None;
        }
        Ok(state.session.take())
    }

    /// Parts from a session that was cut: another one begins where the operator stands. Returns why it was
    /// cut, if the thread knows.
    pub fn part(&mut self, place: Place) -> Option<String> {
        let mut state = self.meeting.state();
        state.shut();
        (state.met, state.session) = (None, None);
        state.offer = Some(place);
        self.meeting.changed.notify_all();
        state.why.clone()
    }

    /// Why there is no session.
    pub fn why(&self) -> String {
        let known = self.meeting.state().why.clone();
        let astray = || self.plate.as_ref().and_then(door::DoorPlate::astray);
        known.or_else(astray).unwrap_or_else(|| "nobody has called".to_string())
    }

    /// Returns the other clock, if there is a new estimate.
    pub fn new_clock(&mut self) -> Option<Offset> {
        // Relaxed: the lock makes the estimate visible.
        let version = self.meeting.version.load(Ordering::Relaxed);
        if version == self.seen {
            return None;
        }
        self.seen = version;
        self.meeting.state().clock
    }

    /// What became of callers that did not fit, for one link at each address.
    pub fn refusals(&self) -> Option<String> {
        self.plate.as_ref().and_then(door::DoorPlate::refusals)
    }

    /// Times there and back so far, and how often the other clock was set.
    pub fn round_trips(&self) -> (Option<Summary>, u64) {
        let state = self.meeting.state();
        (state.round_trips.as_ref().map(|all| all.summary()), state.clock_steps)
    }
}

impl Drop for MeetingSeat {
    fn drop(&mut self) {
        let mut state = self.meeting.state();
        state.is_over = true;
        // The connection for messages ends with what was written to it; the other one tells the thread.
        if state.session.is_some() {
            state.shut();
        } else if let Some(control) = state.streams.first() {
            // It may be closed already.
            let _closed = control.shutdown(Shutdown::Both);
        }
        self.meeting.changed.notify_all();
    }
}

impl MeetingState {
    fn shut(&mut self) {
        for stream in self.streams.drain(..) {
            // They may be closed already.
            let _closed = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Why there is no session.
#[derive(Debug)]
pub(crate) enum NoSession {
    /// Another try may succeed.
    Yet(String),
    /// None will.
    Ever(String),
}

impl From<io::Error> for NoSession {
    fn from(error: io::Error) -> Self {
        NoSession::Yet(error.to_string())
    }
}

/// The two connections of a session, before it begins.
pub(crate) struct Met {
    data: LinkStream,
    control: LinkStream,
    other: LinkHello,
}

/// Time for the operator to read the rest after the other end has closed its connections.
const GRACE: Duration = Duration::from_millis(500);
/// Pause between two tries.
const PAUSE: Duration = Duration::from_millis(20);

impl Meeting {
    fn state(&self) -> MutexGuard<'_, MeetingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ring(&self) {
        // Release is not needed: the reader locks the state.
        self.version.fetch_add(1, Ordering::Relaxed);
        // A full pipe rings as well.
        let _full = (&self.bell).write(&[1]);
    }

    fn is_over(&self) -> bool {
        self.state().is_over
    }

    /// Waits until the operator offers a place. `None` when it is over.
    fn offered(&self) -> Option<Place> {
        let mut state = self.state();
        loop {
            if state.is_over {
                return None;
            }
            if let Some(place) = state.offer {
                return Some(place);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The thread: meets the other end again and again.
    fn run(&self, mut meet: impl FnMut(Place) -> Result<Met, NoSession>) {
        while let Some(place) = self.offered() {
            match meet(place) {
                Ok(met) => {
                    if let Err(error) = self.live(met) {
                        self.state().why = Some(error.to_string());
                    }
                }
                Err(NoSession::Yet(why)) => {
                    self.state().why = Some(why);
                    std::thread::sleep(PAUSE);
                }
                Err(NoSession::Ever(why)) => {
                    self.state().refused = Some(why);
                    self.ring();
                    return;
                }
            }
        }
    }

    /// Hands over a session, and stays with it until it is cut.
    fn live(&self, met: Met) -> io::Result<()> {
        let Met { data, control, other } = met;
        data.socket().set_nonblocking(true)?;
        let streams = vec![control.socket().try_clone()?, data.socket().try_clone()?];
        let address = data.socket().peer()?;
        {
            let mut state = self.state();
            if state.is_over {
                return Ok(());
            }
            state.streams = streams;
            state.met = Some(LinkSession { stream: data, other, address });
            state.why = None;
        }
        let (why, is_closed) = control::exchange(self, control);
        let mut state = self.state();
        if is_closed {
            // What the other end said before it left is still to be read.
            let stays = |state: &mut MeetingState| state.offer.is_none() && !state.is_over;
            let waited = self.changed.wait_timeout_while(state, GRACE, stays);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if !state.is_over {
            state.why.get_or_insert(why);
            state.shut();
            // If the operator never had it, the next one begins at the same place.
            (state.met, state.session) = (None, None);
        }
        drop(state);
        self.ring();
        Ok(())
    }
}

/// A number that no other end has.
pub fn random() -> u64 {
    // Each state begins with other keys of the system's random numbers.
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u64(onbeat_os::clock::realtime_unix_ns());
    hasher.finish()
}

/// Sends a frame without a body on a connection that blocks.
fn send(stream: &mut LinkStream, head: &Head) -> io::Result<()> {
    let mut bytes = Vec::new();
    write_head(&mut bytes, head, 0)?;
    stream.write_all(&bytes)?;
    stream.flush()
}
