//! The server's thread: each client with input has a turn, and all turns are short.

use super::client::Client;
use crate::run::RunHandle;
use onbeat_os::SocketFile;
use onbeat_os::door::{Door, Woken};
use onbeat_os::local;
use std::io;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Largest number of connections at a time.
const CLIENTS: usize = 8;

/// Time between two polls of an order that workers carry out.
const LOOK: Duration = Duration::from_millis(2);

/// State of the server's thread.
pub(super) struct ControlServer {
    door: Door<SocketFile>,
    handle: RunHandle,
    clients: Vec<Client>,
}

impl ControlServer {
    /// Makes a server that ends once `ended` can be read.
    pub fn new(file: SocketFile, handle: RunHandle, ended: UnixStream) -> Self {
        ControlServer { door: Door::new(file, ended), handle, clients: Vec::new() }
    }

    /// Serves clients until the run has ended.
    pub fn run(mut self) {
        // If the system refuses to wait for files, the server ends. No receiver for the error exists here,
        // and clients see that their connections close.
        while let Ok(Woken { has_ended, knocks }) = self.wait() {
            for client in &mut self.clients {
                client.turn(&self.handle);
            }
            if knocks || has_ended {
                let (handle, clients) = (&self.handle, &mut self.clients);
                self.door.let_in(CLIENTS, |stream| admit(stream, clients, handle));
            }
            self.clients.retain(|client| !client.is_gone());
            if has_ended {
                return;
            }
        }
    }

    fn wait(&mut self) -> io::Result<Woken> {
        let now = Instant::now();
        let is_asking = self.clients.iter().any(Client::is_asking).then(|| now + LOOK);
        let is_due = self.clients.iter().any(Client::is_due).then_some(now);
        let deadlines = self.clients.iter().filter_map(Client::deadline);
        let until = deadlines.chain(is_asking).chain(is_due).min();
        self.door.wait(self.clients.iter().filter_map(Client::waits), until)
    }
}

fn admit(stream: UnixStream, clients: &mut Vec<Client>, handle: &RunHandle) {
    let peer = local::peer(&stream);
    let mut client = Client::new(stream);
    let owner = local::user();
    match peer {
        Ok(peer) if peer.uid == owner || peer.uid == 0 => {}
        Ok(peer) => {
            let uid = peer.uid;
            return client.refuse(&format!("refused: this is a run of user {owner}, and you are user {uid}"));
        }
        Err(error) => {
            return client.refuse(&format!("refused: the system does not say who you are: {error}"));
        }
    }
    clients.retain(|client| !client.is_gone());
    if clients.len() >= CLIENTS {
        // The client that was silent for longest has to leave, so idle connections do not lock others out.
        let idle = clients.iter().enumerate().filter(|(_, client)| !client.is_asking());
        let Some((number, _)) = idle.min_by_key(|(_, client)| client.heard()) else {
            return client.refuse(&format!("refused: {CLIENTS} others are being served: try again"));
        };
        let mut idle = clients.swap_remove(number);
        idle.refuse(&format!("closed: {CLIENTS} others wanted to be served, and this one was silent"));
    }
    client.turn(handle);
    clients.push(client);
}
