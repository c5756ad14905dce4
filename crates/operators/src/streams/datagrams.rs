//! Datagrams from a socket, in order, with a count of those that do not come.

use super::numbering::{Arrival, ForeignNumber, NumberPlace, Numbering, UnreadNumbers};
use super::reordering::{EarlyDatagram, RESTART, ReorderingWindow};
use super::udp_sink::{HEADER, LAST};
use onbeat_os::clock;
use onbeat_os::socket::{DatagramSocket, ReceivedDatagram};
use onbeat_runtime::{Context, Error, Step};
use onbeat_trace::record::Obtained;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::ops::Range;

/// Unit of losses.
const DATAGRAMS: &str = "datagrams";
// Reasons of losses.
const MISSING: &str = "their numbers never came: the network dropped them";
const KERNEL: &str = "the kernel dropped them because the socket's buffer was full: increase `receive_buffer`, or \
                      use a faster consumer";
const LATE: &str = "came after their successors";
const SHORT: &str = "shorter than the header of 8 bytes";
const FOREIGN: &str = "came from another sender";
const HELD: &str = "waited for a missing one when the run was stopped";
/// Reason of losses at a stop.
pub(super) const UNREAD: &str = "waited in the socket when the run was stopped";

/// Receiver of datagrams that counts those that do not come.
#[derive(Debug)]
pub(super) struct DatagramReceiver {
    /// Address to receive on.
    pub bind: String,
    /// Whether each datagram begins with its number.
    pub header: bool,
    /// Size of the socket's buffer to request.
    pub receive_buffer: Option<usize>,
    /// A socket that is open before the start.
    pub given: Option<UdpSocket>,
    socket: Option<DatagramSocket>,
    pub buffer: Box<[u8]>,
    /// Time at which the kernel received the last datagram, on the run's clock.
    pub came_ns: u64,
    /// Datagrams lost since this was last set to 0.
    pub gap: u64,
    /// Whether the end of the stream has come.
    pub ended: bool,
    /// Window in which datagrams with numbers are put in order.
    pub window: ReorderingWindow,
    numbering: Numbering,
    unread_numbers: UnreadNumbers,
    kernel: KernelDrops,
    counts: DatagramCounts,
}

/// Datagrams that the kernel dropped.
#[derive(Debug, Default)]
struct KernelDrops {
    /// Counter of the socket at the last datagram.
    counter: u32,
    /// Number of drops up to it that no gap in the numbers has shown yet.
    pending: u64,
}

impl KernelDrops {
    /// Sets the counter. Returns the number of drops since the last call.
    fn set(&mut self, counter: u32) -> u64 {
        u64::from(counter.wrapping_sub(std::mem::replace(&mut self.counter, counter)))
    }
}

#[derive(Debug, Default)]
struct DatagramCounts {
    received: u64,
    /// Lost or late.
    lost: u64,
    duplicates: u64,
    restarts: u64,
}

impl DatagramReceiver {
    pub fn new(bind: String) -> Self {
        DatagramReceiver {
            bind,
            header: false,
            receive_buffer: None,
            given: None,
            socket: None,
            buffer: vec![0; 1 << 16].into(),
            came_ns: 0,
            gap: 0,
            ended: false,
            window: ReorderingWindow::default(),
            numbering: Numbering::default(),
            unread_numbers: UnreadNumbers::default(),
            kernel: KernelDrops::default(),
            counts: DatagramCounts::default(),
        }
    }

    /// Opens the socket.
    pub fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        let cannot = |error| Error::with_source(format!("cannot receive on {}", self.bind), error);
        let socket = match self.given.take() {
            Some(socket) => socket,
            None => UdpSocket::bind(&self.bind).map_err(cannot)?,
        };
        let socket = DatagramSocket::new(socket).map_err(cannot)?;
        if let Some(asked) = self.receive_buffer {
            cx.obtained(obtained_buffer(asked, socket.set_receive_buffer(asked).map_err(cannot)?))?;
        }
        // A socket after a restart counts from 0.
        self.kernel = KernelDrops::default();
        self.socket = Some(socket);
        self.window.start(self.buffer.len());
        Ok(())
    }

    /// Takes the next datagram from the socket. Returns the range of its data in the buffer, which is empty
    /// if it does not continue the stream; `None` if there was no datagram.
    pub fn receive(&mut self, cx: &mut Context) -> Result<Option<Range<usize>>, Error> {
        if !self.window.is_empty()
            && let Some(data) = self.release(cx)
        {
            return Ok(Some(data));
        }
        let Some(socket) = &self.socket else { return Ok(None) };
        let received = match socket.receive(&mut self.buffer) {
            Ok(received) => received,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                // The missing one is not in the socket.
                let is_over = !self.window.is_empty() && self.window.expire(cx.now_ns());
                return Ok(if is_over { self.release(cx) } else { None });
            }
            Err(error) => {
                return Err(Error::with_source(format!("cannot receive on {}", self.bind), error));
            }
        };
        self.came_ns = received.stamped_ns.map_or_else(|| cx.now_ns(), |unix_ns| cx.time_of_unix_ns(unix_ns));
        if !self.place(&received, cx)? {
            return Ok(Some(0..0));
        }
        Ok(Some(self.take(received.length)))
    }

    /// Counts the datagram in the buffer as received. Returns the range of its data.
    fn take(&mut self, length: usize) -> Range<usize> {
        self.counts.received += 1;
        let begin = if self.header { HEADER } else { 0 };
        begin..length
    }

    /// Takes the next datagram from the window, if it continues the stream or those before it are given up.
    fn release(&mut self, cx: &mut Context) -> Option<Range<usize>> {
        let lowest = self.window.lowest()?;
        if lowest != RESTART && lowest >= self.window.floor {
            let gap = self.numbering.give_up_below(self.window.floor);
            self.miss(gap, cx);
            if lowest > self.numbering.next() {
                return None;
            }
        }
        let (key, mut early) = self.window.take_lowest()?;
        if key == RESTART {
            self.numbering.restart(early.number);
            self.counts.restarts += 1;
            self.window.floor = 0;
            self.window.hold(early.number, early);
            return Some(0..0);
        }
        std::mem::swap(&mut self.buffer, &mut early.bytes);
        self.came_ns = early.came_ns;
        let (is_end, length) = (early.is_end, early.length);
        let arrival = self.numbering.accept(early.number, is_end, false);
        self.window.give_back(early);
        Some(if self.settle(arrival, is_end, cx) { self.take(length) } else { 0..0 })
    }

    /// Returns the result of a step that found nothing.
    pub fn wait(&self, until_ns: u64, cx: &mut Context) -> Result<Step, Error> {
        let until_ns = self.window.until_ns().unwrap_or(until_ns);
        match &self.socket {
            Some(socket) => cx.readable_until(socket, until_ns),
            None => Ok(Step::Done),
        }
    }

    /// Finds the place of the datagram in the buffer, and counts datagrams that are missing before it.
    /// Returns whether it continues the stream.
    fn place(&mut self, received: &ReceivedDatagram, cx: &mut Context) -> Result<bool, Error> {
        let drops = self.kernel.set(received.dropped);
        if !self.header {
            self.unread_numbers.look(&self.buffer[..received.length]);
            self.lose(drops, KERNEL, cx);
            return Ok(true);
        }
        self.kernel.pending += drops;
        let Some((number, _)) = self.buffer[..received.length].split_first_chunk::<HEADER>() else {
            if !self.numbering.has_begun() {
                return Err(self.foreign(&format!("the first datagram has {} bytes", received.length)));
            }
            self.lose(1, SHORT, cx);
            return Ok(false);
        };
        let number = u64::from_le_bytes(*number);
        let (number, is_end) = (number & !LAST, number & LAST != 0);
        if self.window.size > 0 {
            return self.place_in_window(number, is_end, received, cx);
        }
        let arrival = self.numbering.arrive(number, is_end, received.from);
        let arrival = arrival.map_err(|ForeignNumber(text)| self.foreign(&text))?;
        Ok(self.settle(arrival, is_end, cx))
    }

    /// As [`place`](Self::place), but a datagram that comes early is held.
    fn place_in_window(
        &mut self,
        number: u64,
        is_end: bool,
        received: &ReceivedDatagram,
        cx: &mut Context,
    ) -> Result<bool, Error> {
        let place = self.numbering.place(number, is_end, received.from);
        let arrival = match place.map_err(|ForeignNumber(text)| self.foreign(&text))? {
            NumberPlace::Settled(arrival) => arrival,
            NumberPlace::Ahead if number == self.numbering.next() => {
                self.numbering.accept(number, is_end, false)
            }
            NumberPlace::Ahead if self.window.holds(number) => Arrival::Duplicate,
            place => {
                let key = if place == NumberPlace::Restart { RESTART } else { number };
                self.hold(key, (number, is_end), received.length, cx);
                return Ok(false);
            }
        };
        Ok(self.settle(arrival, is_end, cx))
    }

    /// Lets the datagram in the buffer wait in the window.
    fn hold(&mut self, key: u64, (number, is_end): (u64, bool), length: usize, cx: &Context) {
        let Some(place) = self.window.place() else { return };
        let bytes = std::mem::replace(&mut self.buffer, place.bytes);
        let until_ns = cx.now_ns().saturating_add(self.window.wait_ns);
        let came_ns = self.came_ns;
        self.window.hold(key, EarlyDatagram { number, is_end, length, came_ns, until_ns, bytes });
    }

    /// Counts an arrival, and the datagrams that are missing before it. Returns whether it continues the
    /// stream.
    fn settle(&mut self, arrival: Arrival, is_end: bool, cx: &mut Context) -> bool {
        match arrival {
            Arrival::New { gap, is_restart } => {
                self.miss(gap, cx);
                self.counts.restarts += u64::from(is_restart);
                self.ended = is_end;
                return !is_end;
            }
            Arrival::Late => {
                // It was counted as missing.
                if cx.reclassify_lost(1, DATAGRAMS, MISSING, LATE) == 0 {
                    cx.reclassify_lost(1, DATAGRAMS, KERNEL, LATE);
                }
            }
            Arrival::Duplicate => self.counts.duplicates += u64::from(!is_end),
            Arrival::Foreign => self.lose(1, FOREIGN, cx),
        }
        false
    }

    /// Counts datagrams that are missing.
    fn miss(&mut self, gap: u64, cx: &mut Context) {
        let by_kernel = gap.min(self.kernel.pending);
        self.kernel.pending -= by_kernel;
        self.lose(by_kernel, KERNEL, cx);
        self.lose(gap - by_kernel, MISSING, cx);
        self.gap += gap;
    }

    fn lose(&mut self, count: u64, reason: &'static str, cx: &mut Context) {
        self.counts.lost += count;
        cx.lose(count, DATAGRAMS, reason);
    }

    fn foreign(&self, text: &str) -> Error {
        Error::new(format!(
            "{}: {text}: this is not the numbering of `udp.sink`; set `header = false` to take all bytes as \
             samples",
            self.bind
        ))
    }

    /// Closes the socket, and notes the totals.
    pub fn stop(&mut self, cx: &mut Context) {
        self.count_unread(cx);
        let DatagramCounts { received, lost, duplicates, restarts } = std::mem::take(&mut self.counts);
        if lost > 0 {
            cx.note(format!("{received} datagrams were received, {lost} were lost or late"));
        }
        if std::mem::take(&mut self.unread_numbers).are_numbers() {
            cx.note(format!(
                "{}: the first 8 bytes of the datagrams count up, as `udp.sink` numbers them with `header = true`; \
                 they were taken as samples: set `header = true` here, too",
                self.bind
            ));
        }
        for (count, what) in [
            (duplicates, "datagrams were duplicates and were dropped"),
            (restarts, "restarts of the sender were detected"),
        ] {
            if count > 0 {
                cx.note(format!("{count} {what}"));
            }
        }
    }

    /// Counts datagrams that wait in the window.
    fn count_held(&mut self, cx: &mut Context) {
        while let Some((key, early)) = self.window.take_lowest() {
            if key == RESTART {
                self.numbering.restart(early.number);
            }
            let arrival = self.numbering.accept(early.number, early.is_end, key == RESTART);
            if self.settle(arrival, early.is_end, cx) {
                self.lose(1, HELD, cx);
            }
        }
    }

    /// Counts datagrams that wait in the window and in the socket, and those that the kernel dropped after
    /// the last one.
    fn count_unread(&mut self, cx: &mut Context) {
        self.count_held(cx);
        let size = std::mem::take(&mut self.window.size);
        self.count_in_socket(cx);
        self.window.size = size;
    }

    fn count_in_socket(&mut self, cx: &mut Context) {
        let Some(socket) = self.socket.take().filter(|_| !self.ended) else { return };
        let mut all = socket.dropped().unwrap_or(self.kernel.counter);
        // A stop can wait for other operators. Datagrams that came meanwhile do not count.
        let stop_ns = clock::realtime_unix_ns().saturating_sub(cx.stopped_for_ns().unwrap_or(0));
        while !self.ended {
            let asked_ns = clock::realtime_unix_ns();
            let Ok(received) = socket.receive(&mut self.buffer) else { break };
            // The kernel begins to stamp some time after the socket was made. Older datagrams have the time
            // of this call.
            if received.stamped_ns.is_some_and(|stamped_ns| stop_ns < stamped_ns && stamped_ns < asked_ns) {
                all = received.dropped;
                break;
            }
            // A datagram of an unknown sender counts as unread as well.
            if self.place(&received, cx).unwrap_or(true) {
                self.lose(1, UNREAD, cx);
            }
        }
        if !self.ended {
            let drops = self.kernel.set(all);
            // The counter of a datagram that was read here can be newer.
            self.lose(if drops > u64::from(u32::MAX / 2) { 0 } else { drops }, KERNEL, cx);
        }
    }
}

/// The size of a socket's buffer, as requested and obtained.
pub(crate) fn obtained_buffer(asked: usize, obtained: usize) -> Obtained {
    let is_less = obtained < asked;
    Obtained {
        what: "receive buffer".to_string(),
        asked: format!("{asked} bytes"),
        // The kernel rounds small sizes up.
        obtained: format!("{} bytes", if is_less { obtained } else { asked }),
        reason: is_less.then(|| {
            format!("the kernel's limit is lower: run `sysctl -w net.core.rmem_max={asked}`, or grant CAP_NET_ADMIN")
        }),
    }
}
