//! Batches: one poll of the other side, one publication, and a loop that the processor can overlap.

use super::{Receiver, Sender, Spsc};
use crate::owner::Owner;

/// Writes the counter back even if the caller's code panics: an item is handed out once.
struct DrainCursor<'r> {
    receiver: &'r mut Receiver,
    head: u64,
}

impl Drop for DrainCursor<'_> {
    fn drop(&mut self) {
        self.receiver.head = self.head;
    }
}

/// As [`DrainCursor`]: an item that was put in stays in.
struct ExtendCursor<'s> {
    sender: &'s mut Sender,
    tail: u64,
}

impl Drop for ExtendCursor<'_> {
    fn drop(&mut self) {
        self.sender.tail = self.tail;
    }
}

impl<T> Spsc<T> {
    /// Takes all visible items out, oldest first, and returns their number. As with [`pop`](Spsc::pop), their
    /// places become room with [`release`](Spsc::release).
    ///
    /// ```
    /// use onbeat_queue::{Owner, Spsc};
    /// let (mut producer, mut consumer) = (Owner::new(), Owner::new());
    /// let ring = Spsc::new(&producer, &consumer, 4);
    /// assert_eq!(ring.extend(&mut producer, 1..10), 4);
    /// ring.poll(&mut consumer);
    /// let mut sum = 0;
    /// assert_eq!(ring.drain(&mut consumer, |x| sum += x), 4);
    /// assert_eq!(sum, 1 + 2 + 3 + 4);
    /// ```
    #[inline]
    pub fn drain(&self, consumer: &mut Owner, mut take: impl FnMut(T)) -> usize {
        self.receiver.with(consumer, |receiver| {
            let (first, tail) = (receiver.head, receiver.tail);
            let mut cursor = DrainCursor { receiver, head: first };
            while cursor.head < tail {
                let item = self.slot(cursor.head).with_mut(|slot| {
                    // SAFETY: the slot is the consumer's: its item was published and its place not yet
                    // released.
                    let slot = unsafe { &*slot };
                    // SAFETY: it holds the oldest value, and `head` moves past it before other code runs, so
                    // it is read once.
                    unsafe { slot.assume_init_read() }
                });
                cursor.head += 1;
                take(item);
            }
            (tail - first) as usize
        })
    }

    /// Puts in as many of `items` as there is room for, publishes them and all staged ones, and returns their
    /// number. It takes no item from `items` for which there is no room.
    #[inline]
    pub fn extend(&self, producer: &mut Owner, items: impl IntoIterator<Item = T>) -> usize {
        let count = self.sender.with(producer, |sender| {
            let mut room = u64::from(self.capacity) - (sender.tail - sender.head);
            let mut items = items.into_iter();
            // Without a poll of the other side if the known room is enough.
            if items.size_hint().1.is_none_or(|most| most as u64 > room) {
                room = u64::from(self.capacity - self.refresh_head(sender));
            }
            let first = sender.tail;
            let mut cursor = ExtendCursor { sender, tail: first };
            while cursor.tail - first < room {
                let Some(item) = items.next() else { break };
                // SAFETY: the slot is the producer's and holds no value: `tail` is less than the capacity
                // above the consumer's released counter. The consumer gets the slot only when it is
                // published.
                self.slot(cursor.tail).with_mut(|slot| unsafe { (*slot).write(item) });
                cursor.tail += 1;
            }
            (cursor.tail - first) as usize
        });
        self.publish(producer);
        count
    }
}
