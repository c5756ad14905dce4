//! A relay between the ends, which cuts and holds.

use onbeat_queue::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Passes on all connections to an address.
#[derive(Clone)]
pub struct Relay {
    pub address: String,
    state: Arc<RelayState>,
}

struct RelayState {
    streams: Mutex<Vec<TcpStream>>,
    is_held: AtomicBool,
    /// From the caller, in nanoseconds.
    delay_ns: AtomicU64,
    /// How long each delay really was.
    delays: Mutex<Vec<Duration>>,
    /// What has passed, in both directions.
    seen: Mutex<Vec<u8>>,
}

impl Relay {
    pub fn to(target: &str) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = RelayState {
            streams: Mutex::default(),
            is_held: AtomicBool::new(false),
            delay_ns: AtomicU64::new(0),
            delays: Mutex::default(),
            seen: Mutex::default(),
        };
        let relay = Relay { address, state: Arc::new(state) };
        let (target, theirs) = (target.to_string(), relay.clone());
        spawn("relay", move || {
            for caller in listener.incoming().flatten() {
                // Nobody may listen yet.
                let Ok(called) = TcpStream::connect(&target) else { continue };
                for stream in [&caller, &called] {
                    stream.set_nodelay(true).unwrap();
                    theirs.state.streams.lock().unwrap().push(stream.try_clone().unwrap());
                }
                theirs.pass(caller.try_clone().unwrap(), called.try_clone().unwrap(), true);
                theirs.pass(called, caller, false);
            }
        });
        relay
    }

    fn pass(&self, mut from: TcpStream, mut to: TcpStream, is_delayed: bool) {
        let state = Arc::clone(&self.state);
        spawn("relay way", move || {
            let mut bytes = vec![0; 64 << 10];
            while let Ok(count @ 1..) = from.read(&mut bytes) {
                while state.is_held.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                let delay = Duration::from_nanos(state.delay_ns.load(Ordering::Relaxed));
                if is_delayed && !delay.is_zero() {
                    let begin = Instant::now();
                    std::thread::sleep(delay);
                    state.delays.lock().unwrap().push(begin.elapsed());
                }
                state.seen.lock().unwrap().extend_from_slice(&bytes[..count]);
                if to.write_all(&bytes[..count]).is_err() {
                    break;
                }
            }
            // What holds tells neither end that the other has gone.
            while state.is_held.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
            }
            let _gone = (from.shutdown(Shutdown::Read), to.shutdown(Shutdown::Write));
        });
    }

    /// What has passed until now.
    #[cfg(feature = "tls")]
    pub fn seen(&self) -> Vec<u8> {
        self.state.seen.lock().unwrap().clone()
    }

    /// Breaks all connections. Later ones are passed on again.
    pub fn cut(&self) {
        for stream in self.state.streams.lock().unwrap().drain(..) {
            let _gone = stream.shutdown(Shutdown::Both);
        }
    }

    /// Delays what the caller sends, from now on.
    pub fn delay(&self, delay: Duration) {
        self.state.delay_ns.store(delay.as_nanos() as u64, Ordering::Relaxed);
    }

    /// How long the delays really were.
    pub fn delays(&self) -> Vec<Duration> {
        self.state.delays.lock().unwrap().clone()
    }

    /// Stops passing on, or goes on.
    pub fn hold(&self, is_held: bool) {
        self.state.is_held.store(is_held, Ordering::Relaxed);
    }
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) {
    onbeat_os::thread::spawn(name, body).unwrap();
}
