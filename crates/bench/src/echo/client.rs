//! The client: sends messages at fixed times, and times each echo.

use super::settings::EchoWait;
use onbeat_os::clock;
use onbeat_queue::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::hint::spin_loop;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// Time after which an echo counts as lost.
const PATIENCE: Duration = Duration::from_secs(1);
/// Number of lost echoes after which the client gives up.
const MOST_LOST: u64 = 3;
/// How long before a message is due a spinning client wakes.
const EARLY_NS: u64 = 200_000;
/// A sample of the message, which fills it.
const FILLING: [u8; 4] = 1.0_f32.to_le_bytes();

/// The client's end of a transport.
#[derive(Debug)]
pub(super) enum ClientLine {
    Udp { socket: UdpSocket, to: SocketAddr },
}

/// What the client does.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClientPlan {
    pub messages: usize,
    pub interval_ns: u64,
    pub bytes: usize,
    pub wait: EchoWait,
}

/// What the client saw.
#[derive(Debug, Clone, Default)]
pub(super) struct RoundTrips {
    /// Time from before a message was sent until its echo was received, in the order of the messages.
    pub trips_ns: Vec<u64>,
    /// Messages without an echo.
    pub lost: u64,
    /// Echoes with other content.
    pub wrong: u64,
}

impl ClientLine {
    /// Sets how the line waits.
    pub fn prepare(&self, wait: EchoWait) -> io::Result<()> {
        match self {
            ClientLine::Udp { socket, .. } => {
                socket.set_read_timeout(Some(PATIENCE))?;
                socket.set_nonblocking(wait == EchoWait::Spin)
            }
        }
    }

    /// Tells a bare loop to end.
    pub fn end(self) {
        match self {
            // If that fails, the loop is killed.
            ClientLine::Udp { socket, to } => _ = socket.send_to(&[], to),
        }
    }

    fn send(&self, message: &[u8]) -> io::Result<()> {
        match self {
            ClientLine::Udp { socket, to } => socket.send_to(message, to).map(|_| ()),
        }
    }

    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            ClientLine::Udp { socket, .. } => socket.recv(buffer),
        }
    }

    /// Receives the echo of this message. Returns the time at which it came; `None` if it is lost.
    fn echo(&self, message: &[u8], begin_ns: u64, buffer: &mut [u8]) -> io::Result<Option<(u64, bool)>> {
        let end_ns = begin_ns + PATIENCE.as_nanos() as u64;
        loop {
            let result = self.receive(buffer);
            let now_ns = clock::monotonic_ns();
            match result {
                // An echo that was given up comes before this one.
                Ok(length) if buffer[..length].get(..4) != message.get(..4) => {}
                Ok(length) => return Ok(Some((now_ns, buffer[..length] == *message))),
                Err(error) if is_again(&error) => spin_loop(),
                Err(error) => return Err(error),
            }
            if now_ns > end_ns {
                return Ok(None);
            }
        }
    }
}

fn is_again(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Sends the messages and times their echoes, until `stop` is set.
pub(super) fn measure(line: &ClientLine, plan: ClientPlan, stop: &AtomicBool) -> Result<RoundTrips, String> {
    let mut message = FILLING.repeat(plan.bytes / FILLING.len());
    let mut buffer = vec![0; 2048];
    let mut seen = RoundTrips { trips_ns: Vec::with_capacity(plan.messages), ..RoundTrips::default() };
    let mut due_ns = clock::monotonic_ns();
    for number in 0..plan.messages {
        if stop.load(Relaxed) {
            break;
        }
        wait_until(due_ns, plan.wait);
        // As a sample, the number is a float with the same bits.
        message[..FILLING.len()].copy_from_slice(&(number as u32).to_le_bytes());
        let begin_ns = clock::monotonic_ns();
        line.send(&message).map_err(|error| format!("cannot send message {number}: {error}"))?;
        let echo = line.echo(&message, begin_ns, &mut buffer);
        match echo.map_err(|error| format!("cannot receive the echo of message {number}: {error}"))? {
            Some((now_ns, is_right)) => {
                seen.trips_ns.push(now_ns - begin_ns);
                seen.wrong += u64::from(!is_right);
            }
            None => seen.lost += 1,
        }
        if seen.lost >= MOST_LOST {
            let s = PATIENCE.as_secs();
            return Err(format!("{MOST_LOST} of {} messages had no echo within {s} s", number + 1));
        }
        // A message after a late echo is sent at once, but those after it keep their distance.
        due_ns = (due_ns + plan.interval_ns).max(clock::monotonic_ns());
    }
    Ok(seen)
}

fn wait_until(due_ns: u64, wait: EchoWait) {
    if wait == EchoWait::Park {
        return clock::sleep_until(due_ns);
    }
    clock::sleep_until(due_ns.saturating_sub(EARLY_NS));
    while clock::monotonic_ns() < due_ns {
        spin_loop();
    }
}
