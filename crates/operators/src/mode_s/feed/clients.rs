//! Programs that receive frames over TCP: each has a queue, and none of them can hold up another.

use onbeat_os::poll::{Interest, Poll};
use onbeat_runtime::{Context, Error};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;

/// Most clients at a time.
const MOST: usize = 64;
/// Most frames that wait for a client.
const QUEUE: usize = 8192;
/// Most notes about single clients.
const NOTES: u64 = 20;
/// Token of the listening socket; clients have lower ones.
const LISTENER: u64 = u64::MAX - 1;

/// Unit of losses.
const FRAMES: &str = "frames";
// Reasons of losses.
const SLOW: &str = "a client did not take them in time";
const GONE: &str = "waited when the server went away";
const LATE: &str = "clients did not take them within `patience` at the end";

/// The clients of a sink.
pub(super) struct FeedClients {
    /// All descriptors of this sink, as one descriptor.
    pub poll: Poll,
    /// Listening socket, and whether it is waited for.
    pub listener: Option<TcpListener>,
    is_listening: bool,
    clients: Vec<FeedClient>,
    /// Number of clients that came.
    pub came: u64,
    refused: u64,
    notes: u64,
}

/// A client.
struct FeedClient {
    token: u64,
    address: String,
    stream: TcpStream,
    /// Bytes to send, and the lengths of the frames that they are of.
    queue: VecDeque<u8>,
    lengths: VecDeque<u16>,
    /// Bytes of the first frame that were sent.
    begun: usize,
    /// The event that is waited for.
    awaited: Option<Interest>,
    /// Whether the client has ended its own direction, which it need not use.
    is_mute: bool,
    is_gone: bool,
    sent: u64,
    lost: u64,
}

impl FeedClients {
    /// Makes an empty set.
    pub fn new() -> Result<Self, Error> {
        let poll = Poll::new().map_err(|error| Error::with_source("cannot wait for clients", error))?;
        Ok(FeedClients {
            poll,
            listener: None,
            is_listening: false,
            clients: Vec::new(),
            came: 0,
            refused: 0,
            notes: 0,
        })
    }

    /// Number of clients that are connected.
    pub fn count(&self) -> usize {
        self.clients.len()
    }

    /// Adds a client.
    pub fn add(&mut self, stream: TcpStream) -> io::Result<()> {
        let prepared = stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true));
        self.came += 1;
        self.clients.push(FeedClient {
            token: self.came,
            address: stream.peer_addr().map_or_else(|_| "a client".to_string(), |a| a.to_string()),
            stream,
            queue: VecDeque::with_capacity(32 * QUEUE),
            lengths: VecDeque::with_capacity(QUEUE),
            begun: 0,
            awaited: None,
            is_mute: false,
            is_gone: false,
            sent: 0,
            lost: 0,
        });
        prepared
    }

    /// Looks for new clients, and for clients that are gone.
    pub fn look(&mut self, cx: &mut Context) -> Result<(), Error> {
        let (clients, mut calls) = (&mut self.clients, false);
        let looked = self.poll.look(|token| {
            calls |= token == LISTENER;
            if let Some(client) = clients.iter_mut().find(|client| client.token == token) {
                client.awaited = None;
                client.drain();
            }
        });
        looked.map_err(|error| Error::with_source("cannot wait for clients", error))?;
        if calls {
            self.is_listening = false;
        }
        if !self.is_listening {
            self.accept()?;
        }
        self.leave(cx);
        Ok(())
    }

    fn accept(&mut self) -> Result<(), Error> {
        while let Some(listener) = &self.listener {
            match listener.accept() {
                Ok(_) if self.clients.len() >= MOST => self.refused += 1,
                // A client that has gone at once is found later.
                Ok((stream, _)) => drop(self.add(stream)),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => break,
                    ErrorKind::Interrupted | ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset => {}
                    _ => return Err(Error::with_source("cannot accept a client", error)),
                },
            }
        }
        Ok(())
    }

    /// Puts a frame into all queues. A client whose queue is full loses the frame.
    pub fn push(&mut self, frame: &[u8], cx: &mut Context) {
        for client in &mut self.clients {
            if client.lengths.len() < QUEUE {
                client.queue.extend(frame);
                client.lengths.push_back(frame.len() as u16);
            } else {
                client.lost += 1;
                cx.lose(1, FRAMES, SLOW);
            }
        }
    }

    /// Writes as much as the clients take. Returns whether anything waits.
    pub fn write(&mut self, cx: &mut Context) -> bool {
        self.clients.iter_mut().for_each(FeedClient::write);
        self.leave(cx);
        self.clients.iter().any(|client| !client.queue.is_empty())
    }

    /// Lets the poll report what can change.
    pub fn await_all(&mut self) -> Result<(), Error> {
        let cannot = |error| Error::with_source("cannot wait for a client", error);
        if let Some(listener) = self.listener.as_ref().filter(|_| !self.is_listening) {
            self.poll.arm(listener.as_fd(), Interest::Read, LISTENER).map_err(cannot)?;
            self.is_listening = true;
        }
        for client in &mut self.clients {
            let wanted = match client.queue.is_empty() {
                true if client.is_mute => continue,
                true => Interest::Read,
                false => Interest::Write,
            };
            if client.awaited != Some(wanted) {
                self.poll.arm(client.stream.as_fd(), wanted, client.token).map_err(cannot)?;
                client.awaited = Some(wanted);
            }
        }
        Ok(())
    }

    /// Removes clients that are gone.
    fn leave(&mut self, cx: &mut Context) {
        if self.clients.iter().all(|client| !client.is_gone) {
            return;
        }
        let is_server = self.listener.is_none();
        for client in self.clients.extract_if(.., |client| client.is_gone) {
            if is_server {
                cx.lose(client.lengths.len() as u64, FRAMES, GONE);
            }
            self.notes += u64::from(client.note(self.notes, cx));
        }
    }

    /// Ends all connections. Frames that wait are lost.
    pub fn close(&mut self, cx: &mut Context) {
        self.listener = None;
        for mut client in self.clients.drain(..) {
            let left = client.lengths.len() as u64;
            client.lost += left;
            cx.lose(left, FRAMES, LATE);
            // Unread bytes would make a reset of the end, and the client could miss its last frames.
            let _gone = client.stream.shutdown(Shutdown::Write);
            client.drain();
            self.notes += u64::from(client.note(self.notes, cx));
        }
        let (refused, notes) = (std::mem::take(&mut self.refused), std::mem::take(&mut self.notes));
        if refused > 0 {
            cx.note(format!("{refused} clients were refused: {MOST} at a time are the limit"));
        }
        if notes > NOTES {
            cx.note(format!("{} further clients lost frames", notes - NOTES));
        }
    }
}

impl FeedClient {
    /// Takes what the client sends, which is ignored, and finds out whether it is gone.
    fn drain(&mut self) {
        let mut some = [0; 1024];
        // A client that never stops sending cannot hold up the others.
        for _ in 0..16 {
            match self.stream.read(&mut some) {
                Ok(0) => {
                    self.is_mute = true;
                    return;
                }
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => {
                    self.is_gone = true;
                    return;
                }
            }
        }
    }

    fn write(&mut self) {
        while !self.queue.is_empty() {
            match self.stream.write(self.queue.as_slices().0) {
                Ok(count) => self.wrote(count),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => {
                    self.is_gone = true;
                    return;
                }
            }
        }
    }

    fn wrote(&mut self, count: usize) {
        self.queue.drain(..count);
        self.begun += count;
        while let Some(length) = self.lengths.front().map(|length| usize::from(*length))
            && self.begun >= length
        {
            self.begun -= length;
            self.sent += 1;
            self.lengths.pop_front();
        }
    }

    /// Notes what the client lost, unless there were many such notes. Returns whether it lost anything.
    fn note(&self, before: u64, cx: &mut Context) -> bool {
        let FeedClient { address, sent, lost, .. } = self;
        let left = if self.is_gone { self.lengths.len() } else { 0 };
        if *lost == 0 && left == 0 {
            return false;
        }
        if before < NOTES {
            let gone = if left > 0 { format!(", and {left} waited when it was gone") } else { String::new() };
            cx.note(format!(
                "client {address} got {sent} frames and lost {lost}, which it did not take in time{gone}"
            ));
        }
        true
    }
}
