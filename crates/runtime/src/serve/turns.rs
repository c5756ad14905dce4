//! The thread: whoever has something to say has a turn, and nobody's turn takes long.

use super::client::Client;
use super::place::Place;
use crate::run::RunHandle;
use onbeat_os::{local, poll};
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Connections at a time.
const CLIENTS: usize = 8;

/// Between two looks at an order that workers carry out.
const LOOK: Duration = Duration::from_millis(2);

/// How long nobody is taken when that was not possible, because the process has no more files.
const DEAF: Duration = Duration::from_millis(100);

/// Everything that the thread has.
pub(super) struct Turns {
    place: Place,
    handle: RunHandle,
    /// Readable when the run has ended.
    ended: UnixStream,
    clients: Vec<Client>,
    deaf_until: Option<Instant>,
}

impl Turns {
    pub fn new(place: Place, handle: RunHandle, ended: UnixStream) -> Self {
        Turns { place, handle, ended, clients: Vec::new(), deaf_until: None }
    }

    /// Until the run has ended.
    pub fn run(mut self) {
        // Where the system refuses to wait for files there is nobody to tell it to: clients see that nobody serves them.
        while let Ok((has_ended, knocks)) = self.wait() {
            for client in &mut self.clients {
                client.turn(&self.handle);
            }
            if knocks || has_ended {
                self.take();
            }
            self.clients.retain(|client| !client.is_gone());
            if has_ended {
                return;
            }
        }
    }

    /// Says whether the run has ended and whether somebody wants to be taken.
    fn wait(&mut self) -> io::Result<(bool, bool)> {
        let now = Instant::now();
        self.deaf_until = self.deaf_until.filter(|&until| until > now);
        let mut deadline = self.deaf_until;
        if self.clients.iter().any(Client::is_asking) {
            deadline = deadline.into_iter().chain([now + LOOK]).min();
        }
        if self.clients.iter().any(Client::is_due) {
            deadline = Some(now);
        }
        let deadlines = self.clients.iter().filter_map(Client::deadline);
        let timeout = deadlines.chain(deadline).min().map(|deadline| deadline.saturating_duration_since(now));
        let mut files = vec![(self.ended.as_fd(), false)];
        if self.deaf_until.is_none() {
            files.push((self.place.listener.as_fd(), false));
        }
        files.extend(self.clients.iter().filter_map(Client::waits));
        let ready = poll::wait_any(&files, timeout)?;
        Ok((ready[0], self.deaf_until.is_none() && ready[1]))
    }

    /// Takes those who want to connect, so many at a time that the others have their turn.
    fn take(&mut self) {
        for _ in 0..CLIENTS {
            match self.place.listener.accept() {
                Ok((stream, _)) => self.admit(stream),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error)
                    if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                Err(_) => {
                    self.deaf_until = Some(Instant::now() + DEAF);
                    return;
                }
            }
        }
    }

    fn admit(&mut self, stream: UnixStream) {
        let peer = local::peer(&stream);
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        let mut client = Client::new(stream);
        let owner = local::user();
        match peer {
            Ok(peer) if peer.uid == owner || peer.uid == 0 => {}
            Ok(peer) => {
                let uid = peer.uid;
                return client
                    .refuse(&format!("refused: this is a run of user {owner}, and you are user {uid}"));
            }
            Err(error) => {
                return client.refuse(&format!("refused: the system does not say who you are: {error}"));
            }
        }
        self.clients.retain(|client| !client.is_gone());
        if self.clients.len() >= CLIENTS {
            // Whoever has been silent for longest goes: to keep connections and say nothing keeps nobody away.
            let idle = self.clients.iter().enumerate().filter(|(_, client)| !client.is_asking());
            let Some((number, _)) = idle.min_by_key(|(_, client)| client.heard()) else {
                return client.refuse(&format!("refused: {CLIENTS} others are being served: try again"));
            };
            let mut idle = self.clients.swap_remove(number);
            idle.refuse(&format!("closed: {CLIENTS} others wanted to be served, and this one was silent"));
        }
        client.turn(&self.handle);
        self.clients.push(client);
    }
}
