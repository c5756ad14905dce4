//! Bare loops: the least that an echo takes. They make the system calls that a loop in C would make.

use super::client::is_again;
use super::messages::{EchoLine, EchoLoop, EchoReport, EchoRequest};
use super::server::{open_listeners, open_socket, say};
use super::settings::{EchoTransport, EchoWait};
use onbeat_os::clock;
use onbeat_os::socket::DatagramSocket;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::UdpSocket;
use std::os::fd::{AsFd, OwnedFd};

/// Room for the largest message.
const ROOM: usize = 2048;
/// Room for the times of a stamped loop, so that it seldom allocates.
const TIMES: usize = 1 << 16;

/// Sends messages back until the client ends.
pub(super) fn echo(request: &EchoRequest) -> io::Result<EchoReport> {
    let mut held_ns = Vec::new();
    if request.kind == EchoLoop::Stamped {
        held_ns.reserve(TIMES);
    }
    match request.transport {
        EchoTransport::Udp => {
            let (socket, port) = open_socket()?;
            datagrams(request, &socket, port, &mut held_ns)?;
        }
        EchoTransport::Tcp => {
            let ([from, to], ready) = open_listeners()?;
            say(&ready);
            let (input, _) = from.accept()?;
            let (out, _) = to.accept()?;
            out.set_nodelay(true)?;
            stream(request, OwnedFd::from(input).into(), OwnedFd::from(out).into(), &mut held_ns)?;
        }
        EchoTransport::Pipe => {
            let input = io::stdin().as_fd().try_clone_to_owned()?;
            let out = io::stdout().as_fd().try_clone_to_owned()?;
            say(&EchoLine::Ready { port: 0, echoes: 0 });
            stream(request, input.into(), out.into(), &mut held_ns)?;
        }
    }
    Ok(EchoReport { held_ns, ..EchoReport::default() })
}

fn datagrams(request: &EchoRequest, socket: &UdpSocket, port: u16, held_ns: &mut Vec<u64>) -> io::Result<()> {
    let stamped = match request.kind {
        EchoLoop::Stamped => Some(DatagramSocket::new(socket.try_clone()?)?),
        _ => None,
    };
    // For the kernel, both are the same socket.
    socket.set_nonblocking(request.wait == EchoWait::Spin)?;
    say(&EchoLine::Ready { port, echoes: 0 });
    match stamped {
        Some(stamped) => echo_stamped_datagrams(socket, &stamped, held_ns),
        None => echo_datagrams(socket),
    }
}

/// `recvfrom` and `sendto`. An empty datagram ends the loop.
fn echo_datagrams(socket: &UdpSocket) -> io::Result<()> {
    let mut buffer = [0; ROOM];
    loop {
        match socket.recv_from(&mut buffer) {
            Ok((0, _)) => return Ok(()),
            Ok((length, from)) => _ = socket.send_to(&buffer[..length], from)?,
            Err(error) if is_again(&error) => {}
            Err(error) => return Err(error),
        }
    }
}

/// The same, and how long the machine had each datagram: from the kernel's receive stamp until it was sent.
fn echo_stamped_datagrams(
    socket: &UdpSocket,
    stamped: &DatagramSocket,
    held_ns: &mut Vec<u64>,
) -> io::Result<()> {
    let mut buffer = [0; ROOM];
    loop {
        let received = match stamped.receive(&mut buffer) {
            Ok(received) if received.length == 0 => return Ok(()),
            Ok(received) => received,
            Err(error) if is_again(&error) => continue,
            Err(error) => return Err(error),
        };
        let from = received.from.ok_or_else(|| io::Error::other("a datagram without a sender"))?;
        socket.send_to(&buffer[..received.length], from)?;
        let now_ns = clock::realtime_unix_ns();
        let stamp_ns = received.stamped_ns.ok_or_else(|| io::Error::other("a datagram without a stamp"))?;
        held_ns.push(now_ns.saturating_sub(stamp_ns));
    }
}

fn stream(request: &EchoRequest, mut input: File, mut out: File, held_ns: &mut Vec<u64>) -> io::Result<()> {
    rustix::io::ioctl_fionbio(&input, request.wait == EchoWait::Spin)?;
    match request.kind {
        EchoLoop::Stamped => echo_stamped_stream(&mut input, &mut out, held_ns),
        _ => echo_stream(&mut input, &mut out),
    }
}

/// `read` and `write`.
fn echo_stream(input: &mut File, out: &mut File) -> io::Result<()> {
    let mut buffer = [0; ROOM];
    loop {
        match input.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => out.write_all(&buffer[..length])?,
            Err(error) if is_again(&error) => {}
            Err(error) => return Err(error),
        }
    }
}

/// The same, and how long it had each message: from the end of the read until it was written.
fn echo_stamped_stream(input: &mut File, out: &mut File, held_ns: &mut Vec<u64>) -> io::Result<()> {
    let mut buffer = [0; ROOM];
    loop {
        match input.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => {
                let read_ns = clock::monotonic_ns();
                out.write_all(&buffer[..length])?;
                held_ns.push(clock::monotonic_ns() - read_ns);
            }
            Err(error) if is_again(&error) => {}
            Err(error) => return Err(error),
        }
    }
}
