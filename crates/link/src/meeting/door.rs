//! Takes calls at an address, for all ends of this process that listen there.
//!
//! A caller has [`HELLO`] to say which link it wants, and at most [`PENDING`] may be about to. Beyond that
//! the oldest is cut off, so that callers who say nothing keep nobody out.

use super::{Meeting, Met, NoSession, send};
use crate::frame::{FrameReader, Head, LinkHello, LinkRefusal, Place};
use crate::settings::LinkSettings;
use crate::socket::LinkListener;
use crate::stream::{self, LinkStream};
use crate::tls::NodeIdentity;
use onbeat_os::poll;
use onbeat_runtime::{Context, Error};
use std::collections::{BTreeMap, VecDeque};
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Time for a caller to say which link it wants.
const HELLO: Duration = Duration::from_secs(2);
/// Most callers that have not said it.
const PENDING: usize = 64;
/// How often the door looks whether anybody still listens.
const LOOK: Duration = Duration::from_millis(200);

/// A caller that has said hello.
#[derive(Debug)]
struct DoorCaller {
    stream: LinkStream,
    hello: LinkHello,
}

/// An address that ends of this process listen at.
#[derive(Debug)]
struct LinkDoor {
    address: String,
    listener: LinkListener,
    /// Proves who this process is; callers must prove it too.
    identity: Option<Arc<NodeIdentity>>,
    refusals: Arc<Refusals>,
    /// By the name of the link.
    ends: Mutex<BTreeMap<String, Sender<DoorCaller>>>,
    /// The last caller that asked for a link which is not here.
    astray: Mutex<Option<String>>,
    /// Set when its socket has no file any more.
    is_shut: OnceLock<()>,
}

/// Callers that were sent away.
#[derive(Debug, Default)]
struct Refusals(Mutex<(u64, String)>);

impl Refusals {
    fn add(&self, why: String) {
        let mut refused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *refused = (refused.0 + 1, why);
    }

    /// Says it once.
    fn take(&self, address: &str) -> Option<String> {
        let (count, last) = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        match count {
            0 => None,
            1 => Some(format!("a caller at {address} was refused: {last}")),
            _ => Some(format!("{count} callers at {address} were refused; the last one: {last}")),
        }
    }
}

/// The open doors of this process: a listening socket belongs to the process too.
static DOORS: Mutex<Vec<Weak<LinkDoor>>> = Mutex::new(Vec::new());

/// Lets the callers of one link in, until it is dropped.
#[derive(Debug)]
pub(super) struct DoorPlate {
    door: Arc<LinkDoor>,
    link: String,
}

/// The callers of one link.
pub(super) struct Arrivals {
    callers: Receiver<DoorCaller>,
    refusals: Arc<Refusals>,
    /// One that came while an earlier session was still open.
    early: Option<DoorCaller>,
}

/// Lets callers of a link in at an address.
pub(super) fn register(
    address: &str,
    settings: &LinkSettings,
    cx: &Context,
) -> Result<(DoorPlate, Arrivals), Error> {
    let link = settings.name.as_str();
    let door = open(address, settings.security.identity(), cx)?;
    let (sender, callers) = channel();
    if door.ends().contains_key(link) {
        return Err(Error::new(format!(
            "link `{link}` at {address} is in use: another run of this process has it; if both are of one pipeline, \
             rename one of them at both ends"
        )));
    }
    door.ends().insert(link.to_string(), sender);
    let plate = DoorPlate { door: Arc::clone(&door), link: link.to_string() };
    let refusals = Arc::clone(&door.refusals);
    Ok((plate, Arrivals { callers, refusals, early: None }))
}

impl DoorPlate {
    /// What became of callers that did not fit: for one of the links at this address.
    pub(super) fn refusals(&self) -> Option<String> {
        self.door.refusals.take(&self.door.address)
    }

    /// The last caller for a link that is not here.
    pub(super) fn astray(&self) -> Option<String> {
        self.door.astray.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for DoorPlate {
    fn drop(&mut self) {
        let mut ends = self.door.ends();
        ends.remove(&self.link);
        // The thread of the door finds out later, perhaps not before the process ends.
        if ends.is_empty() && self.door.listener.remove() {
            let _first = self.door.is_shut.set(());
        }
    }
}

fn open(address: &str, identity: Option<&Arc<NodeIdentity>>, cx: &Context) -> Result<Arc<LinkDoor>, Error> {
    let mut doors = DOORS.lock().unwrap_or_else(PoisonError::into_inner);
    doors.retain(|door| door.strong_count() > 0);
    let found = doors
        .iter()
        .filter_map(Weak::upgrade)
        .find(|door| door.address == address && door.is_shut.get().is_none());
    if let Some(door) = found {
        let folder = |identity: &Arc<NodeIdentity>| identity.folder().to_path_buf();
        if door.identity.as_ref().map(folder) != identity.map(folder) {
            return Err(Error::new(format!(
                "two links at {address} have different `identity`: give them the same one, or another port"
            )));
        }
        return Ok(door);
    }
    let cannot = |error| Error::with_source(format!("cannot listen on {address}"), error);
    let listener = LinkListener::bind(address).map_err(cannot)?;
    let door = Arc::new(LinkDoor {
        address: address.to_string(),
        listener,
        identity: identity.cloned(),
        refusals: Arc::default(),
        ends: Mutex::default(),
        astray: Mutex::default(),
        is_shut: OnceLock::new(),
    });
    let theirs = Arc::downgrade(&door);
    cx.spawn_beside("link door", move || attend(&theirs)).map_err(cannot)?;
    doors.push(Arc::downgrade(&door));
    Ok(door)
}

/// A caller that has not said hello.
struct PendingCaller {
    stream: LinkStream,
    reader: FrameReader,
    since: Instant,
}

/// The thread of a door.
fn attend(door: &Weak<LinkDoor>) {
    let mut pending: VecDeque<PendingCaller> = VecDeque::new();
    while let Some(open) = door.upgrade() {
        let mut files = vec![(open.listener.as_fd(), false)];
        files.extend(pending.iter().map(|caller| (caller.stream.as_fd(), false)));
        // The only documented errors are wrong arguments and lack of memory, which may pass.
        if poll::wait_any(&files, Some(LOOK)).is_err() {
            std::thread::sleep(LOOK);
        }
        pending = pending.into_iter().filter_map(|caller| open.hear(caller)).collect();
        loop {
            let socket = match open.listener.accept() {
                Ok(socket) => socket,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                    open.refusals.add(error.to_string());
                    continue;
                }
                Err(_) => {
                    // The process has no descriptor left: the caller waits until one is free.
                    std::thread::sleep(LOOK);
                    break;
                }
            };
            let identity = open.identity.as_ref().map(AsRef::as_ref);
            match stream::answer(socket, identity) {
                Ok(stream) => {
                    if pending.len() == PENDING {
                        pending.pop_front();
                        open.refusals.add(format!("more than {PENDING} callers said nothing"));
                    }
                    let reader = FrameReader::new(0);
                    pending.push_back(PendingCaller { stream, reader, since: Instant::now() });
                }
                Err(error) => open.refusals.add(error.to_string()),
            }
        }
    }
}

impl LinkDoor {
    fn ends(&self) -> MutexGuard<'_, BTreeMap<String, Sender<DoorCaller>>> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what a caller says. Returns the caller if it has to say more.
    fn hear(&self, mut caller: PendingCaller) -> Option<PendingCaller> {
        // Byte by byte, so that nothing after the hello is taken.
        let why = loop {
            match caller.reader.fill(&mut std::io::Read::take(&mut caller.stream, 1)) {
                Ok(1..) => {}
                Ok(0) => break "it closed the connection without a word".to_string(),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if caller.since.elapsed() < HELLO {
                        return Some(caller);
                    }
                    break format!("it said nothing for {} s", HELLO.as_secs());
                }
                Err(error) => break error.to_string(),
            }
            match caller.reader.head(0) {
                Ok(None) => {}
                Ok(Some((Head::Hello(hello), _))) => {
                    self.let_in(caller.stream, hello);
                    return None;
                }
                Ok(Some(_)) => break "it does not begin with a hello".to_string(),
                Err(error) => break error.to_string(),
            }
        };
        self.refusals.add(why);
        None
    }

    fn let_in(&self, mut stream: LinkStream, hello: LinkHello) {
        let ends = self.ends();
        let there = stream.socket().set_nonblocking(false).is_ok();
        match ends.get(&hello.link) {
            Some(end) if there => {
                // The end may be over.
                let _over = end.send(DoorCaller { stream, hello });
            }
            _ => {
                let names: Vec<String> = ends.keys().map(|name| format!("`{name}`")).collect();
                let why = format!(
                    "there is no link `{}` at {} now: there are {}",
                    hello.link,
                    self.address,
                    names.join(", ")
                );
                let astray = format!("{} called for link `{}`, which is not here", hello.node, hello.link);
                *self.astray.lock().unwrap_or_else(PoisonError::into_inner) = Some(astray);
                refuse(&mut stream, LinkRefusal { why, may_retry: true });
            }
        }
    }
}

fn refuse(stream: &mut LinkStream, refusal: LinkRefusal) {
    // The caller may be gone.
    let _gone = send(stream, &Head::Refused(refusal));
}

impl Arrivals {
    /// Waits for both connections of a caller that fits.
    pub(super) fn meet(&mut self, meeting: &Meeting, place: Place) -> Result<Met, NoSession> {
        let mut caller = self.next(meeting)?;
        if let Err(refusal) = meeting.check(&caller.hello) {
            let why = refusal.why.clone();
            self.refusals.add(why.clone());
            refuse(&mut caller.stream, refusal);
            return Err(NoSession::Yet(why));
        }
        let DoorCaller { stream: mut data, hello } = caller;
        if !hello.is_data {
            return Err(NoSession::Yet("a caller left before the session began".to_string()));
        }
        send(&mut data, &Head::Hello(meeting.hello(true, hello.session, place)))?;
        let mut caller = self.next(meeting)?;
        if caller.hello.session != hello.session || caller.hello.is_data {
            self.early = Some(caller);
            return Err(NoSession::Yet(format!("{} called and did not stay", hello.node)));
        }
        send(&mut caller.stream, &Head::Hello(meeting.hello(false, hello.session, place)))?;
        Ok(Met { data, control: caller.stream, other: hello })
    }

    fn next(&mut self, meeting: &Meeting) -> Result<DoorCaller, NoSession> {
        if let Some(caller) = self.early.take() {
            return Ok(caller);
        }
        loop {
            match self.callers.recv_timeout(LOOK) {
                Ok(mut caller) => match caller.stream.proved(meeting.settings.security.peer()) {
                    Ok(_) => return Ok(caller),
                    Err(error) => {
                        let why = format!("link `{}`: {error} (`peer`)", meeting.settings.name);
                        self.refusals.add(why.clone());
                        refuse(&mut caller.stream, LinkRefusal { why: why.clone(), may_retry: false });
                        return Err(NoSession::Yet(why));
                    }
                },
                Err(RecvTimeoutError::Timeout) if meeting.is_over() => {
                    return Err(NoSession::Yet("the run has ended".to_string()));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(NoSession::Ever("the door is closed".to_string()));
                }
            }
        }
    }
}
