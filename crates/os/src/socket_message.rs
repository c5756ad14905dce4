//! Messages of a socket with what the kernel says of each: times, and the number of dropped ones.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// What the kernel says of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct MessageStamps {
    /// Time at which the kernel received it (`SO_TIMESTAMPNS`), on `CLOCK_REALTIME`.
    pub stamped_ns: Option<u64>,
    /// Time at which the hardware received it (`SO_TIMESTAMPING`), on its own clock.
    pub hardware_ns: Option<u64>,
    /// Number of messages that the kernel had dropped up to this one (`SO_RXQ_OVFL`).
    pub dropped: Option<u32>,
}

/// A message that was taken from a socket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReceivedMessage {
    /// Number of its bytes in the buffer.
    pub length: usize,
    /// Number of bytes of its sender's address.
    pub name: usize,
    pub stamps: MessageStamps,
}

/// Takes the next message, and the address of its sender. Bytes beyond the buffers are dropped.
///
/// # Errors
/// What `recvmsg(2)` reports.
pub(crate) fn receive(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
    name: &mut [u8; 128],
) -> io::Result<ReceivedMessage> {
    // Room for three control messages of at most 64 bytes.
    let mut control = [0_u64; 24];
    let mut place = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: plain data; all zeros are null pointers and lengths of 0.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_name = name.as_mut_ptr().cast();
    header.msg_namelen = name.len() as libc::socklen_t;
    header.msg_iov = &raw mut place;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = size_of_val(&control) as _;
    // SAFETY: all pointers in the header are to local variables or to arguments, which outlive the call and
    // are not used during it, and the lengths are theirs. The control buffer is aligned for its headers.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, 0) };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    let used = (header.msg_controllen as usize).min(size_of_val(&control));
    let control = control.map(u64::to_ne_bytes);
    let stamps = stamps(&control.as_flattened()[..used]);
    Ok(ReceivedMessage { length, name: (header.msg_namelen as usize).min(name.len()), stamps })
}

/// Number of messages that the kernel has dropped since the socket was made. It starts over after `u32::MAX`.
///
/// # Errors
/// What `getsockopt(2)` reports for `SO_MEMINFO`.
pub(crate) fn dropped(socket: BorrowedFd<'_>) -> io::Result<u32> {
    let mut counts = [0_u32; 9];
    let mut length = size_of_val(&counts) as libc::socklen_t;
    // SAFETY: the pointers are to local variables, and `length` is the size of `counts`.
    let status = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            counts.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(counts[libc::SK_MEMINFO_DROPS as usize])
}

/// Requests a receive buffer of this size. Returns the size obtained.
///
/// # Errors
/// What `setsockopt(2)` reports.
pub(crate) fn set_receive_buffer(socket: BorrowedFd<'_>, bytes: usize) -> io::Result<usize> {
    use rustix::net::sockopt;
    // The kernel takes an `i32`, and doubles it for its own data.
    let asked = bytes.min(i32::MAX as usize / 2);
    if sockopt::set_socket_recv_buffer_size_force(socket, asked).is_err() {
        sockopt::set_socket_recv_buffer_size(socket, asked)?;
    }
    Ok(sockopt::socket_recv_buffer_size(socket)? / 2)
}

/// Sets an option of the socket's own level to 1.
///
/// # Errors
/// What `setsockopt(2)` reports.
pub(crate) fn set_flag(socket: BorrowedFd<'_>, option: libc::c_int) -> io::Result<()> {
    set_option(socket, (libc::SOL_SOCKET, option), &1_i32.to_ne_bytes())
}

/// Sets an option, of a level and a number.
///
/// # Errors
/// What `setsockopt(2)` reports.
pub(crate) fn set_option(
    socket: BorrowedFd<'_>,
    (level, option): (libc::c_int, libc::c_int),
    value: &[u8],
) -> io::Result<()> {
    // SAFETY: the pointer is to an argument, and the length is its size.
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            value.as_ptr().cast(),
            value.len() as libc::socklen_t,
        )
    };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads a control buffer (`cmsg(3)`).
fn stamps(mut control: &[u8]) -> MessageStamps {
    const WORD: usize = size_of::<usize>();
    // Length of the message with this header, level, type.
    const HEADER: usize = WORD + 8;
    let mut found = MessageStamps::default();
    while let Some((head, _)) = control.split_at_checked(HEADER) {
        let (length, kind) = head.split_at(WORD);
        let length = usize::from_ne_bytes(length.try_into().expect("a word"));
        let Some(data) = control.get(HEADER..length) else { break };
        let number = |at: usize| Some(i32::from_ne_bytes(kind.get(at..at + 4)?.try_into().ok()?));
        match (number(0), number(4)) {
            (Some(libc::SOL_SOCKET), Some(libc::SO_TIMESTAMPNS)) => found.stamped_ns = time_ns(data),
            // Three times: of the kernel, none, of the hardware.
            (Some(libc::SOL_SOCKET), Some(libc::SO_TIMESTAMPING)) if data.len().is_multiple_of(3) => {
                let hardware = time_ns(&data[data.len() / 3 * 2..]);
                found.hardware_ns = hardware.filter(|time_ns| *time_ns > 0);
            }
            (Some(libc::SOL_SOCKET), Some(libc::SO_RXQ_OVFL)) => {
                found.dropped = data.first_chunk().map(|data| u32::from_ne_bytes(*data));
            }
            _ => {}
        }
        control = control.get(length.next_multiple_of(WORD)..).unwrap_or_default();
    }
    found
}

/// Nanoseconds of a `timespec`, whose two numbers have 4 or 8 bytes.
fn time_ns(data: &[u8]) -> Option<u64> {
    let (seconds, ns) = match data.len() {
        16 => {
            let number = |at: usize| Some(i64::from_ne_bytes(data.get(at..at + 8)?.try_into().ok()?));
            (number(0)?, number(8)?)
        }
        8 => {
            let number = |at: usize| Some(i32::from_ne_bytes(data.get(at..at + 4)?.try_into().ok()?));
            (i64::from(number(0)?), i64::from(number(4)?))
        }
        _ => return None,
    };
    u64::try_from(seconds).ok()?.checked_mul(1_000_000_000)?.checked_add(u64::try_from(ns).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: libc::c_int, data: &[u8]) -> Vec<u8> {
        let length = size_of::<usize>() + 8 + data.len();
        let mut bytes = length.to_ne_bytes().to_vec();
        bytes.extend(libc::SOL_SOCKET.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(data);
        bytes.resize(bytes.len().next_multiple_of(size_of::<usize>()), 0);
        bytes
    }

    #[test]
    fn control_messages_are_read_in_any_order() {
        let time = |seconds: i64, ns: i64| [seconds.to_ne_bytes(), ns.to_ne_bytes()].concat();
        let stamps_of_hardware = [time(1, 2), time(0, 0), time(3, 4)].concat();
        let all = [
            message(libc::SO_RXQ_OVFL, &7_u32.to_ne_bytes()),
            message(libc::SO_TIMESTAMPING, &stamps_of_hardware),
            message(77, &[1, 2, 3]),
            message(libc::SO_TIMESTAMPNS, &time(5, 6)),
        ]
        .concat();
        let expected = MessageStamps {
            stamped_ns: Some(5_000_000_006),
            hardware_ns: Some(3_000_000_004),
            dropped: Some(7),
        };
        assert_eq!(stamps(&all), expected);
        let none = [time(1, 2), time(0, 0), time(0, 0)].concat();
        assert_eq!(stamps(&message(libc::SO_TIMESTAMPING, &none)), MessageStamps::default());
        for length in 0..all.len() {
            let _no_panic = stamps(&all[..length]);
        }
    }
}
