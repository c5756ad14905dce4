//! The client: sends messages at fixed times, and times each echo.

use super::settings::EchoWait;
use onbeat_os::clock;
use onbeat_queue::sync::atomic::{AtomicBool, Ordering::Relaxed};
use rustix::io::ioctl_fionbio;
use std::fs::File;
use std::hint::spin_loop;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// Time after which an echo counts as lost.
const PATIENCE: Duration = Duration::from_secs(1);
/// Number of lost echoes after which the client gives up.
const MOST_LOST: u64 = 3;
/// How long before a message is due a spinning client wakes.
const EARLY_NS: u64 = 200_000;
/// A sample of the message, which fills it.
const FILLING: [u8; NUMBER] = 1.0_f32.to_le_bytes();
/// Bytes of a message's number, at its begin.
const NUMBER: usize = 4;

/// The client's end of a transport.
#[derive(Debug)]
pub(super) enum ClientLine {
    Datagrams {
        socket: UdpSocket,
        to: SocketAddr,
    },
    Stream {
        /// `None` after the end of the stream.
        out: Option<File>,
        input: File,
    },
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
            ClientLine::Datagrams { socket, .. } => {
                socket.set_read_timeout(Some(PATIENCE))?;
                socket.set_nonblocking(wait == EchoWait::Spin)
            }
            ClientLine::Stream { input, .. } => Ok(ioctl_fionbio(input, wait == EchoWait::Spin)?),
        }
    }

    /// Tells a bare loop to end.
    pub fn end(&mut self) {
        match self {
            // If that fails, the loop is killed.
            ClientLine::Datagrams { socket, to } => _ = socket.send_to(&[], *to),
            ClientLine::Stream { out, .. } => *out = None,
        }
    }

    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        match self {
            ClientLine::Datagrams { socket, to } => socket.send_to(message, *to).map(|_| ()),
            ClientLine::Stream { out, .. } => out.as_mut().ok_or(ErrorKind::BrokenPipe)?.write_all(message),
        }
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            ClientLine::Datagrams { socket, .. } => socket.recv(buffer),
            ClientLine::Stream { input, .. } => match input.read(buffer)? {
                0 => Err(io::Error::other("the server closed its end")),
                count => Ok(count),
            },
        }
    }

    /// Receives the echo of this message into `buffer`, which has its size. Returns the time at which it
    /// came; `None` if it is lost.
    fn echo(&mut self, message: &[u8], begin_ns: u64, buffer: &mut [u8]) -> io::Result<Option<u64>> {
        let end_ns = begin_ns + PATIENCE.as_nanos() as u64;
        let mut filled = 0;
        loop {
            let result = self.receive(&mut buffer[filled..]);
            let now_ns = clock::monotonic_ns();
            match result {
                Ok(count) => filled += count,
                Err(error) if is_again(&error) => spin_loop(),
                Err(error) => return Err(error),
            }
            // A datagram comes whole. An echo that was given up comes before this one.
            let is_whole =
                filled == message.len() || filled > 0 && matches!(self, ClientLine::Datagrams { .. });
            if is_whole && buffer[..NUMBER] == message[..NUMBER] {
                return Ok(Some(now_ns));
            }
            if is_whole {
                filled = 0;
            }
            if now_ns > end_ns && filled > 0 {
                return Err(io::Error::other(format!("{filled} of {} bytes came", message.len())));
            }
            if now_ns > end_ns {
                return Ok(None);
            }
        }
    }
}

/// Whether a call has found nothing yet.
pub(super) fn is_again(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Sends the messages and times their echoes, until `stop` is set.
pub(super) fn measure(
    line: &mut ClientLine,
    plan: ClientPlan,
    stop: &AtomicBool,
) -> Result<RoundTrips, String> {
    let mut message = FILLING.repeat(plan.bytes / NUMBER);
    let mut buffer = vec![0; message.len()];
    let mut seen = RoundTrips { trips_ns: Vec::with_capacity(plan.messages), ..RoundTrips::default() };
    let mut due_ns = clock::monotonic_ns();
    for number in 0..plan.messages {
        if stop.load(Relaxed) {
            break;
        }
        wait_until(due_ns, plan.wait);
        // As a sample, the number is a float with the same bits.
        message[..NUMBER].copy_from_slice(&(number as u32).to_le_bytes());
        let begin_ns = clock::monotonic_ns();
        line.send(&message).map_err(|error| format!("cannot send message {number}: {error}"))?;
        let echo = line.echo(&message, begin_ns, &mut buffer);
        match echo.map_err(|error| format!("cannot receive the echo of message {number}: {error}"))? {
            Some(now_ns) => {
                seen.trips_ns.push(now_ns - begin_ns);
                seen.wrong += u64::from(buffer != message);
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
