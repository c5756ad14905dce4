//! Messages in flight on an edge.

use std::collections::VecDeque;

/// Most messages that are counted on one edge.
const FOLLOWED: usize = 65_536;

/// Messages of one source on one edge. A step that waits already reports the message that it will send. So
/// the last of several steps with the same message sent it.
#[derive(Debug, Default)]
pub(super) struct EdgeMessages {
    /// Message and end of the producer's last step.
    last: Option<(u64, u64)>,
    /// First message that was not sent yet.
    next: u64,
    pub messages: VecDeque<u64>,
}

impl EdgeMessages {
    /// Notes the end of a producer's step. Returns the time at which the previous message was sent, if it is
    /// known now.
    pub fn ends(&mut self, sequence: u64, time_ns: u64) -> Option<u64> {
        let sent = self.last.filter(|&(last, _)| last < sequence).and_then(|_| self.sent());
        if sequence >= self.next {
            self.last = Some((sequence, time_ns));
        }
        sent
    }

    /// Notes that the last step sent its message. Returns the time, unless there are too many messages.
    pub fn sent(&mut self) -> Option<u64> {
        let (sequence, time_ns) = self.last.take()?;
        self.next = sequence.saturating_add(1);
        if self.messages.len() == FOLLOWED {
            return None;
        }
        self.messages.push_back(sequence);
        Some(time_ns)
    }

    /// Notes that a consumer's step takes this message and those before it. Returns the time at which it was
    /// sent, if it is known now, and the number of messages taken.
    pub fn takes(&mut self, sequence: u64) -> (Option<u64>, usize) {
        let sent = self.last.filter(|&(last, _)| last <= sequence).and_then(|_| self.sent());
        let before = self.messages.len();
        while self.messages.front().is_some_and(|&first| first <= sequence) {
            self.messages.pop_front();
        }
        (sent, before - self.messages.len())
    }
}
