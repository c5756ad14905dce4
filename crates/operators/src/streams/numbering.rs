//! Numbers of datagrams: gaps, late ones, duplicates, and senders that are not `udp.sink`.

use super::udp_sink::{HEADER, LAST};
use std::net::SocketAddr;

/// Number of datagrams, back from the newest one, that are told apart: missing or there.
const WINDOW: u64 = 1 << 16;
/// Numbers from here on are impossible for a first datagram: at 10 million per second it would be sent after
/// ten months.
const FIRST: u64 = 1 << 48;
/// A step of this length is impossible: it would be an outage of a day at 10 million per second.
const STEP: u64 = 1 << 40;
/// Number of times that the same number in a row is impossible. Networks duplicate now and then.
const REPEATS: u32 = 16;

/// Datagrams of one sender, by their numbers.
#[derive(Debug)]
pub(super) struct Numbering {
    /// Number of the next datagram.
    next: u64,
    /// One bit for each of the last [`WINDOW`] numbers: whether the datagram came.
    seen: Box<[u64]>,
    sender: Option<SocketAddr>,
    /// The sender before it.
    former: Option<SocketAddr>,
    /// Last number, and how often it came in a row.
    row: (u64, u32),
    has_begun: bool,
}

/// Place of a datagram in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Newer than all others. `gap` datagrams before it are missing so far.
    New { gap: u64, is_restart: bool },
    /// It was missing, and has come after its successor.
    Late,
    /// It has come before.
    Duplicate,
    /// It is of a sender that another one has replaced, or of one that does not number like `udp.sink`.
    Foreign,
}

/// Place of a datagram before it is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberPlace {
    /// It continues the stream, perhaps after others that are missing so far.
    Ahead,
    /// It belongs to a new stream, whose numbers begin at 0 again.
    Restart,
    /// It does not continue the stream.
    Settled(Arrival),
}

/// A number that `udp.sink` does not send, in words.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ForeignNumber(pub String);

impl Default for Numbering {
    fn default() -> Self {
        Numbering {
            next: 0,
            seen: vec![0; WINDOW as usize / 64].into(),
            sender: None,
            former: None,
            row: (0, 0),
            has_begun: false,
        }
    }
}

impl Numbering {
    /// Whether a datagram has come.
    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Finds the place of a datagram, and takes it. `is_end`: it marks the end of the stream, and its number
    /// is the number of datagrams sent.
    pub fn arrive(
        &mut self,
        number: u64,
        is_end: bool,
        from: Option<SocketAddr>,
    ) -> Result<Arrival, ForeignNumber> {
        Ok(match self.place(number, is_end, from)? {
            NumberPlace::Ahead => self.accept(number, is_end, false),
            NumberPlace::Restart => {
                self.restart(number);
                self.accept(number, is_end, true)
            }
            NumberPlace::Settled(arrival) => arrival,
        })
    }

    /// Finds the place of a datagram. One that is ahead, or the first of a new stream, is not taken yet.
    pub fn place(
        &mut self,
        number: u64,
        is_end: bool,
        from: Option<SocketAddr>,
    ) -> Result<NumberPlace, ForeignNumber> {
        if !self.has_begun {
            if number >= FIRST {
                return Err(ForeignNumber(format!("the first datagram{} has the number {number}", by(from))));
            }
            (self.has_begun, self.sender, self.row) = (true, from, (number, 1));
            return Ok(NumberPlace::Ahead);
        }
        if from != self.sender {
            // A sender that was restarted has another port, and begins at 0.
            if from == self.former || number >= WINDOW || is_end {
                return Ok(NumberPlace::Settled(Arrival::Foreign));
            }
            self.former = std::mem::replace(&mut self.sender, from);
            return Ok(NumberPlace::Restart);
        }
        self.row = if self.row.0 == number { (number, self.row.1 + 1) } else { (number, 1) };
        if self.row.1 > REPEATS && !is_end {
            let text = format!("{REPEATS} datagrams{} in a row have the number {number}", by(from));
            return Err(ForeignNumber(text));
        }
        let step = |to: &str| {
            ForeignNumber(format!("the number of datagrams{} jumps from {to} to {number}", by(from)))
        };
        if number >= self.next {
            if number - self.next >= STEP {
                return Err(step(&self.newest()));
            }
            return Ok(NumberPlace::Ahead);
        }
        if is_end {
            return Ok(NumberPlace::Settled(Arrival::Duplicate));
        }
        if self.next - number > WINDOW {
            return if number < WINDOW { Ok(NumberPlace::Restart) } else { Err(step(&self.newest())) };
        }
        Ok(NumberPlace::Settled(if self.is_seen(number) {
            Arrival::Duplicate
        } else {
            self.set_seen(number, true);
            Arrival::Late
        }))
    }

    /// Number of the datagram that continues the stream.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Begins a new stream, of which this is the first number that came.
    pub fn restart(&mut self, number: u64) {
        (self.next, self.row) = (0, (number, 1));
        self.seen.fill(0);
    }

    /// Gives up the datagrams below this number. Returns how many are missing.
    pub fn give_up_below(&mut self, number: u64) -> u64 {
        let gap = number.saturating_sub(self.next);
        let end = self.next + gap;
        (end.saturating_sub(WINDOW).max(self.next)..end).for_each(|missing| self.set_seen(missing, false));
        self.next = end;
        gap
    }

    /// Takes a datagram that is ahead. Those before it are given up.
    pub fn accept(&mut self, number: u64, is_end: bool, is_restart: bool) -> Arrival {
        let gap = self.give_up_below(number);
        if !is_end {
            self.set_seen(number, true);
        }
        self.next = number + u64::from(!is_end);
        Arrival::New { gap, is_restart }
    }

    fn newest(&self) -> String {
        self.next.saturating_sub(1).to_string()
    }

    fn is_seen(&self, number: u64) -> bool {
        let (word, bit) = place(number);
        self.seen[word] >> bit & 1 == 1
    }

    fn set_seen(&mut self, number: u64, is_seen: bool) {
        let (word, bit) = place(number);
        self.seen[word] = self.seen[word] & !(1 << bit) | u64::from(is_seen) << bit;
    }
}

/// Word and bit of a number.
fn place(number: u64) -> (usize, u64) {
    let at = number % WINDOW;
    ((at / 64) as usize, at % 64)
}

fn by(from: Option<SocketAddr>) -> String {
    from.map_or(String::new(), |from| format!(" from {from}"))
}

/// What the first bytes of datagrams would be as numbers, where nobody asked for numbers.
#[derive(Debug, Default)]
pub(super) struct UnreadNumbers {
    last: Option<u64>,
    /// Datagrams whose number is that of the one before plus 1, and others.
    in_order: u64,
    others: u64,
}

impl UnreadNumbers {
    pub fn look(&mut self, datagram: &[u8]) {
        let number = datagram.first_chunk::<HEADER>().map(|bytes| u64::from_le_bytes(*bytes));
        if let Some(last) = self.last {
            let follows = number.is_some_and(|number| number & !LAST == last.wrapping_add(1));
            *if follows { &mut self.in_order } else { &mut self.others } += 1;
        }
        self.last = number;
    }

    /// Whether they are: samples do not look so.
    pub fn are_numbers(&self) -> bool {
        self.in_order > 2 && self.in_order > 8 * self.others
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn new(gap: u64) -> Arrival {
        Arrival::New { gap, is_restart: false }
    }

    fn all(numbers: &[u64]) -> Vec<Arrival> {
        let mut numbering = Numbering::default();
        numbers.iter().map(|&number| numbering.arrive(number, false, None).unwrap()).collect()
    }

    #[test]
    fn late_ones_are_told_from_duplicates() {
        assert_eq!(
            all(&[0, 3, 2, 2, 1, 4]),
            [new(0), new(2), Arrival::Late, Arrival::Duplicate, Arrival::Late, new(0),]
        );
        assert_eq!(
            all(&[5, 0, 5 + WINDOW, 6, 5]),
            [
                new(5),
                Arrival::Late,
                new(WINDOW - 1),
                Arrival::Late,
                Arrival::New { gap: 5, is_restart: true },
            ]
        );
    }

    #[test]
    fn other_numbers_are_refused() {
        // Two samples of 1.0 in floating point, and text.
        for number in [0x3f80_0000_3f80_0000, u64::from_le_bytes(*b"$GPGGA,1") & !(1 << 63)] {
            assert!(Numbering::default().arrive(number, false, None).is_err());
        }
        let mut numbering = Numbering::default();
        numbering.arrive(7, false, None).unwrap();
        let text = numbering.arrive(1 << 41, false, None).unwrap_err().0;
        assert_eq!(text, "the number of datagrams jumps from 7 to 2199023255552");
        // Silence.
        let mut numbering = Numbering::default();
        let answers: Vec<_> = (0..=REPEATS).map(|_| numbering.arrive(0, false, None)).collect();
        assert!(answers[..REPEATS as usize].iter().all(Result::is_ok) && answers[REPEATS as usize].is_err());
    }

    #[test]
    fn a_sender_that_comes_back_begins_again() {
        let [old, new_one, stray] = [1, 2, 3].map(|port| Some(SocketAddr::from(([127, 0, 0, 1], port))));
        let mut numbering = Numbering::default();
        for number in 0..10 {
            assert_eq!(numbering.arrive(number, false, old), Ok(new(0)));
        }
        assert_eq!(numbering.arrive(1, false, new_one), Ok(Arrival::New { gap: 1, is_restart: true }));
        assert_eq!(numbering.arrive(0, false, new_one), Ok(Arrival::Late));
        assert_eq!(numbering.arrive(10, false, old), Ok(Arrival::Foreign));
        assert_eq!(numbering.arrive(1 << 60, false, stray), Ok(Arrival::Foreign));
        assert_eq!(numbering.arrive(2, true, new_one), Ok(new(0)));
        assert_eq!(numbering.arrive(2, true, new_one), Ok(new(0)));
    }

    proptest! {
        /// Whatever the network does to the order: sent = received + missing + late, and duplicates are
        /// apart.
        #[test]
        fn the_sum_is_exact(sent in 1_u64..3000, lost in 0..100_u64, far in 1..200_u64, seed: u64) {
            let mut state = seed | 1;
            let mut random = |most: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % most
            };
            let (mut order, mut gone, mut doubled) = (Vec::new(), 0, 0);
            for number in 0..sent {
                if random(100) < lost {
                    gone += 1;
                    continue;
                }
                order.push((number + random(far), number));
                if random(50) == 0 {
                    doubled += 1;
                    order.push((number + random(far), number));
                }
            }
            order.sort_unstable();
            let (mut received, mut missing, mut late, mut duplicates) = (0, 0, 0, 0);
            let mut numbering = Numbering::default();
            for (_, number) in order {
                match numbering.arrive(number, false, None).unwrap() {
                    Arrival::New { gap, .. } => (received, missing) = (received + 1, missing + gap),
                    Arrival::Late => (late, missing) = (late + 1, missing - 1),
                    Arrival::Duplicate => duplicates += 1,
                    Arrival::Foreign => unreachable!(),
                }
            }
            if let Ok(Arrival::New { gap, .. }) = numbering.arrive(sent, true, None) {
                missing += gap;
            }
            prop_assert_eq!((received + missing + late, missing, duplicates), (sent, gone, doubled));
        }
    }
}
