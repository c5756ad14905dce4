//! Messages on their way through an edge.

use std::collections::VecDeque;

/// Messages that are followed through one edge: more are not counted.
const FOLLOWED: usize = 65_536;

/// Messages of one source in one edge. A step that waits for its time tells of the message that it is going to send: of several steps
/// with one message the last one has sent it.
#[derive(Debug, Default)]
pub(super) struct Way {
    /// The last step before the edge: its message, and when it ended.
    last: Option<(u64, u64)>,
    /// The first that was not sent yet.
    next: u64,
    pub messages: VecDeque<u64>,
}

impl Way {
    /// A step before the edge has ended. If that tells that a message was sent before: when.
    pub fn ends(&mut self, sequence: u64, time_ns: u64) -> Option<u64> {
        let sent = self.last.filter(|&(last, _)| last < sequence).and_then(|_| self.sent());
        if sequence >= self.next {
            self.last = Some((sequence, time_ns));
        }
        sent
    }

    /// The last step has sent its message.
    pub fn sent(&mut self) -> Option<u64> {
        let (sequence, time_ns) = self.last.take()?;
        self.next = sequence.saturating_add(1);
        if self.messages.len() == FOLLOWED {
            return None;
        }
        self.messages.push_back(sequence);
        Some(time_ns)
    }

    /// A step behind the edge takes this message, and with it those before it. Says when it was sent, if that is new, and how many
    /// are taken.
    pub fn takes(&mut self, sequence: u64) -> (Option<u64>, usize) {
        let sent = self.last.filter(|&(last, _)| last <= sequence).and_then(|_| self.sent());
        let before = self.messages.len();
        while self.messages.front().is_some_and(|&first| first <= sequence) {
            self.messages.pop_front();
        }
        (sent, before - self.messages.len())
    }
}
