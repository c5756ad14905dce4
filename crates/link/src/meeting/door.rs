//! Takes calls at an address, for all ends of this process that listen there.
//!
//! A caller has [`HELLO`] to say which link it wants, and at most [`PENDING`] may be about to. Beyond that
//! the oldest is cut off, so that callers who say nothing keep nobody out.

use super::{Meeting, Met, NoSession, send};
use crate::frame::{FrameReader, Head, LinkHello, LinkRefusal, Place};
use onbeat_os::{poll, thread};
use onbeat_runtime::Error;
use std::collections::{BTreeMap, VecDeque};
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
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
    stream: TcpStream,
    hello: LinkHello,
}

/// An address that ends of this process listen at.
#[derive(Debug)]
struct LinkDoor {
    address: String,
    /// By the name of the link.
    ends: Mutex<BTreeMap<String, Sender<DoorCaller>>>,
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
    /// One that came while an earlier session was still open.
    early: Option<DoorCaller>,
}

/// Lets callers of a link in at an address.
pub(super) fn register(address: &str, link: &str) -> Result<(DoorPlate, Arrivals), Error> {
    let door = open(address)?;
    let (sender, callers) = channel();
    if door.ends().contains_key(link) {
        return Err(Error::new(format!(
            "two links at {address} are called `{link}`: rename one at both ends"
        )));
    }
    door.ends().insert(link.to_string(), sender);
    let plate = DoorPlate { door: Arc::clone(&door), link: link.to_string() };
    Ok((plate, Arrivals { callers, early: None }))
}

impl Drop for DoorPlate {
    fn drop(&mut self) {
        self.door.ends().remove(&self.link);
    }
}

fn open(address: &str) -> Result<Arc<LinkDoor>, Error> {
    let mut doors = DOORS.lock().unwrap_or_else(PoisonError::into_inner);
    doors.retain(|door| door.strong_count() > 0);
    let found = doors.iter().filter_map(Weak::upgrade).find(|door| door.address == address);
    if let Some(door) = found {
        return Ok(door);
    }
    let cannot = |error| Error::with_source(format!("cannot listen on {address}"), error);
    let listener = TcpListener::bind(address).map_err(cannot)?;
    listener.set_nonblocking(true).map_err(cannot)?;
    let door = Arc::new(LinkDoor { address: address.to_string(), ends: Mutex::default() });
    let theirs = Arc::downgrade(&door);
    thread::spawn("link door", move || attend(&listener, &theirs)).map_err(cannot)?;
    doors.push(Arc::downgrade(&door));
    Ok(door)
}

/// A caller that has not said hello.
struct PendingCaller {
    stream: TcpStream,
    reader: FrameReader,
    since: Instant,
}

/// The thread of a door.
fn attend(listener: &TcpListener, door: &Weak<LinkDoor>) {
    let mut pending: VecDeque<PendingCaller> = VecDeque::new();
    while let Some(open) = door.upgrade() {
        let mut files = vec![(listener.as_fd(), false)];
        files.extend(pending.iter().map(|caller| (caller.stream.as_fd(), false)));
        // The only documented errors are wrong arguments and lack of memory, which may pass.
        if poll::wait_any(&files, Some(LOOK)).is_err() {
            std::thread::sleep(LOOK);
        }
        pending.retain_mut(|caller| open.hear(caller));
        loop {
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => {
                    // The process has no descriptor left: the caller waits until one is free.
                    std::thread::sleep(LOOK);
                    break;
                }
            };
            let is_ready = stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true)).is_ok();
            if is_ready {
                if pending.len() == PENDING {
                    pending.pop_front();
                }
                pending.push_back(PendingCaller {
                    stream,
                    reader: FrameReader::new(0),
                    since: Instant::now(),
                });
            }
        }
    }
}

impl LinkDoor {
    fn ends(&self) -> MutexGuard<'_, BTreeMap<String, Sender<DoorCaller>>> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what a caller says. Returns whether it has to say more.
    fn hear(&self, caller: &mut PendingCaller) -> bool {
        // Byte by byte, so that nothing after the hello is taken.
        loop {
            match caller.reader.fill(&mut std::io::Read::take(&mut &caller.stream, 1)) {
                Ok(1..) => {}
                Ok(0) => return false,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return caller.since.elapsed() < HELLO,
                Err(_) => return false,
            }
            match caller.reader.head(0) {
                Ok(None) => {}
                Ok(Some((Head::Hello(hello), _))) => {
                    if let Ok(stream) = caller.stream.try_clone() {
                        self.let_in(stream, hello);
                    }
                    return false;
                }
                Ok(Some(_)) | Err(_) => return false,
            }
        }
    }

    fn let_in(&self, mut stream: TcpStream, hello: LinkHello) {
        let ends = self.ends();
        let there = stream.set_nonblocking(false).is_ok();
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
                refuse(&mut stream, LinkRefusal { why, may_retry: true });
            }
        }
    }
}

fn refuse(stream: &mut TcpStream, refusal: LinkRefusal) {
    // The caller may be gone.
    let _gone = send(stream, &Head::Refused(refusal));
}

impl Arrivals {
    /// Waits for both connections of a caller that fits.
    pub(super) fn meet(&mut self, meeting: &Meeting, place: Place) -> Result<Met, NoSession> {
        let mut caller = self.next(meeting)?;
        if let Err(refusal) = meeting.check(&caller.hello) {
            let why = refusal.why.clone();
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
                Ok(caller) => return Ok(caller),
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
