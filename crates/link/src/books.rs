//! The books of both ends: which messages were sent, taken, dropped. Plain data, without input or output, so
//! that the tests can take them through any order of faults.
//!
//! Messages of a link are numbered from 0. The producer keeps each message until the consumer has taken it.
//! After a cut, both ends say where they stand, and the producer sends again what was not taken. A consumer
//! that knows the producer's instance goes on where it stood, so nothing comes twice. Another one begins
//! with the oldest message that the producer still has.

use crate::frame::Place;
use std::collections::VecDeque;

/// The producer's books. `K` is what it keeps of a message.
#[derive(Debug)]
pub struct SentBooks<K> {
    kept: VecDeque<(u64, K)>,
    /// Number of `kept` that were sent in this session.
    sent: usize,
    next: u64,
    /// Most messages that the consumer lets be in flight.
    window: usize,
    dropped: u64,
    repeated: u64,
    /// Number of messages that were sent at least once.
    begun: u64,
    abandoned: u64,
}

impl<K> Default for SentBooks<K> {
    fn default() -> Self {
        SentBooks {
            kept: VecDeque::new(),
            sent: 0,
            next: 0,
            window: 0,
            dropped: 0,
            repeated: 0,
            begun: 0,
            abandoned: 0,
        }
    }
}

/// A message of the other end that contradicts the books.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contradiction {
    /// Number that the other end says.
    pub said: u64,
    /// Number up to which it could be true.
    pub limit: u64,
}

impl<K> SentBooks<K> {
    /// Begins a session with a consumer that stands at `place`; `instance` is the producer's own.
    pub fn resume(&mut self, instance: u64, place: Place, each: impl FnMut(K)) -> Result<(), Contradiction> {
        self.sent = 0;
        self.window = place.window as usize;
        if place.of == Some(instance) { self.taken(place.next, each) } else { Ok(()) }
    }

    /// Where the producer stands.
    pub fn place(&self) -> Place {
        Place { next: self.kept.front().map_or(self.next, |(number, _)| *number), ..Place::default() }
    }

    /// Whether the consumer lets one more message be in flight.
    pub fn has_credit(&self) -> bool {
        self.kept.len() < self.window
    }

    /// Enters the next message, and returns its number.
    pub fn enter(&mut self, what: K) -> u64 {
        let number = self.next;
        self.next += 1;
        self.kept.push_back((number, what));
        number
    }

    /// Gives the next message up: its number stays unused.
    pub fn give_up_next(&mut self) {
        self.next += 1;
        self.dropped += 1;
    }

    /// Returns the next message to send in this session.
    pub fn to_send(&self) -> Option<(u64, &K)> {
        self.kept.get(self.sent).map(|(number, what)| (*number, what))
    }

    /// The same, to note how it was sent.
    pub fn to_send_mut(&mut self) -> Option<&mut K> {
        self.kept.get_mut(self.sent).map(|(_, what)| what)
    }

    /// Visits what is kept of the messages in flight.
    pub fn each_kept(&mut self, mut visit: impl FnMut(&mut K)) {
        self.kept.iter_mut().for_each(|(_, kept)| visit(kept));
    }

    /// Whether a message was sent before.
    pub fn is_repeat(&self, number: u64) -> bool {
        number < self.begun
    }

    /// Notes that [`to_send`](Self::to_send) was sent.
    pub fn has_sent(&mut self) {
        if let Some((number, _)) = self.kept.get(self.sent) {
            self.repeated += u64::from(*number < self.begun);
            self.begun = self.begun.max(number + 1);
            self.sent += 1;
        }
    }

    /// Notes that the consumer has taken all messages below `next`, and hands out what was kept of them.
    pub fn taken(&mut self, next: u64, mut each: impl FnMut(K)) -> Result<(), Contradiction> {
        if next > self.next {
            return Err(Contradiction { said: next, limit: self.next });
        }
        while self.kept.front().is_some_and(|(number, _)| *number < next) {
            if let Some((_, kept)) = self.kept.pop_front() {
                each(kept);
            }
            self.sent = self.sent.saturating_sub(1);
        }
        Ok(())
    }

    /// Number of messages that were entered and are not known to be taken.
    pub fn in_flight(&self) -> u64 {
        self.kept.len() as u64 + self.abandoned
    }

    /// Keeps nothing any more: there is no consumer.
    pub fn abandon(&mut self) {
        self.abandoned += self.kept.len() as u64;
        self.kept.clear();
        self.sent = 0;
    }

    /// Whether all that was entered was sent in this session.
    pub fn is_all_sent(&self) -> bool {
        self.sent == self.kept.len()
    }

    /// Number of the next message: that of all messages so far.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Number of messages given up.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Number of messages sent again.
    pub fn repeated(&self) -> u64 {
        self.repeated
    }

    /// Number of messages that the consumer has taken.
    pub fn has_taken(&self) -> u64 {
        self.next - self.dropped - self.in_flight()
    }
}

/// The consumer's books.
#[derive(Debug, Default)]
pub struct TakenBooks {
    /// The producer whose messages are counted.
    of: Option<u64>,
    next: u64,
    taken: u64,
    missing: u64,
    repeated: u64,
    /// Number of producers before this one.
    before: u64,
    /// What the producer was last told.
    told: u64,
}

/// What the consumer does with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageArrival {
    /// Takes it.
    New,
    /// Drops it: it was taken before.
    Repeated,
}

impl TakenBooks {
    /// Begins a session with a producer that stands at `place`.
    pub fn resume(&mut self, instance: u64, place: Place) {
        if self.of != Some(instance) {
            self.before += u64::from(self.of.is_some());
            (self.of, self.next) = (Some(instance), place.next);
        }
        self.told = self.next;
    }

    /// Where the consumer stands.
    pub fn place(&self) -> Place {
        Place { next: self.next, of: self.of, window: 0 }
    }

    /// Notes a message that has come whole.
    pub fn arrive(&mut self, number: u64) -> MessageArrival {
        if number < self.next {
            self.repeated += 1;
            return MessageArrival::Repeated;
        }
        self.missing = self.missing.saturating_add(number - self.next);
        self.taken += 1;
        self.next = number.saturating_add(1);
        MessageArrival::New
    }

    /// Notes the end of the producer, after `count` messages.
    pub fn end(&mut self, count: u64) {
        self.missing = self.missing.saturating_add(count.saturating_sub(self.next));
        self.next = self.next.max(count);
    }

    /// Returns the number to tell the producer, if it was not told yet, or not for half of a window.
    pub fn tell_next(&mut self, is_idle: bool, window: u32) -> Option<u64> {
        let new = self.next - self.told;
        let is_due = new > 0 && (is_idle || 2 * new >= u64::from(window));
        is_due.then(|| {
            self.told = self.next;
            self.next
        })
    }

    /// Whether the producer knows of all messages that were taken.
    pub fn is_all_told(&self) -> bool {
        self.told == self.next
    }

    /// Number of messages taken.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Number of messages that the producer gave up.
    pub fn missing(&self) -> u64 {
        self.missing
    }

    /// Number of messages that came again.
    pub fn repeated(&self) -> u64 {
        self.repeated
    }

    /// Number of producers that were replaced by another run.
    pub fn replaced(&self) -> u64 {
        self.before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What happens next to a link.
    #[derive(Debug, Clone, Copy)]
    enum Happening {
        Enter,
        Drop,
        Send,
        Arrive,
        Tell,
        Hear,
        Cut,
    }

    fn happening() -> impl Strategy<Value = Happening> {
        use Happening::{Arrive, Cut, Drop, Enter, Hear, Send, Tell};
        prop_oneof![
            6 => Just(Enter), 1 => Just(Drop), 6 => Just(Send), 6 => Just(Arrive), 3 => Just(Tell),
            3 => Just(Hear), 1 => Just(Cut),
        ]
    }

    proptest! {
        /// Whatever is cut when: each message is taken once, in order, or was given up, and both books agree.
        #[test]
        fn each_message_is_taken_once(happenings in prop::collection::vec(happening(), 0..400)) {
            const WINDOW: u32 = 4;
            let (mut sent, mut taken) = (SentBooks::<u64>::default(), TakenBooks::default());
            let (mut data, mut answers) = (VecDeque::new(), VecDeque::new());
            let (mut found, mut expected) = (Vec::new(), Vec::new());
            let restart = |sent: &mut SentBooks<u64>, taken: &mut TakenBooks| {
                let (of, place) = (Place { window: WINDOW, ..taken.place() }, sent.place());
                sent.resume(7, of, drop).unwrap();
                taken.resume(7, place);
            };
            restart(&mut sent, &mut taken);
            let finish = (0..2000).map(|step| match step % 4 {
                0 => Happening::Send, 1 => Happening::Arrive, 2 => Happening::Tell, _ => Happening::Hear,
            });
            for happening in happenings.into_iter().chain(finish) {
                match happening {
                    Happening::Enter if sent.has_credit() => {
                        let number = sent.next();
                        expected.push(number);
                        sent.enter(number);
                    }
                    Happening::Enter => prop_assert_eq!(sent.in_flight(), u64::from(WINDOW)),
                    Happening::Drop => sent.give_up_next(),
                    Happening::Send => if let Some((number, _)) = sent.to_send() {
                        data.push_back(number);
                        sent.has_sent();
                    },
                    Happening::Arrive => if let Some(number) = data.pop_front()
                        && taken.arrive(number) == MessageArrival::New {
                        found.push(number);
                    },
                    Happening::Tell => answers.extend(taken.tell_next(true, WINDOW)),
                    Happening::Hear => if let Some(next) = answers.pop_front() {
                        sent.taken(next, drop).unwrap();
                    },
                    Happening::Cut => {
                        data.clear();
                        answers.clear();
                        restart(&mut sent, &mut taken);
                    }
                }
                prop_assert!(data.len() <= WINDOW as usize);
            }
            taken.end(sent.next());
            prop_assert_eq!(&found, &expected);
            prop_assert_eq!(sent.in_flight(), 0);
            prop_assert_eq!((taken.taken(), taken.missing()), (sent.has_taken(), sent.dropped()));
        }
    }

    #[test]
    fn a_new_consumer_begins_with_what_is_kept() {
        let mut sent = SentBooks::default();
        sent.resume(1, Place { window: 8, ..Place::default() }, drop).unwrap();
        for message in 0..5 {
            sent.enter(message);
        }
        sent.taken(3, drop).unwrap();
        let mut taken = TakenBooks::default();
        taken.resume(1, sent.place());
        sent.resume(1, Place { window: 8, ..Place::default() }, drop).unwrap();
        assert_eq!((taken.place().next, sent.to_send()), (3, Some((3, &3))));
    }

    #[test]
    fn a_consumer_cannot_have_taken_what_was_not_sent() {
        let mut sent = SentBooks::<()>::default();
        assert_eq!(sent.taken(1, drop), Err(Contradiction { said: 1, limit: 0 }));
    }
}
