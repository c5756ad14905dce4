//! The side that puts items in.

use super::{NOBODY, Sender, Spsc, notify};
use crate::owner::Owner;
use crate::ring::Full;
use crate::sync::atomic::Ordering;
use crate::sync::{full_fence, order};

impl<T> Spsc<T> {
    /// Puts an item in, publishes it and all staged ones, and says how many were there before, as far as the
    /// producer knows: never too few.
    ///
    /// # Errors
    /// [`Full`] gives the item back. Nothing is published then.
    #[inline(always)]
    pub fn push(&self, producer: &mut Owner, item: T) -> Result<u32, Full<T>> {
        let before = self.stage(producer, item)?;
        self.publish(producer);
        Ok(before)
    }

    /// Puts an item in, to be visible with the next [`publish`](Spsc::publish), and says how many were there
    /// before, as far as the producer knows: never too few.
    ///
    /// # Errors
    /// [`Full`] gives the item back.
    #[inline(always)]
    pub fn stage(&self, producer: &mut Owner, item: T) -> Result<u32, Full<T>> {
        self.sender.with(producer, |sender| match self.len_if_room(sender) {
            Some(len) => {
                self.put(sender, || item);
                Ok(len)
            }
            None => Err(Full(item)),
        })
    }

    /// Puts an item in that is made right where it will lie, and publishes it and all staged ones: one of many fields is not
    /// copied. False where there is no room; then nothing is made.
    #[inline(always)]
    pub fn push_with(&self, producer: &mut Owner, make: impl FnOnce() -> T) -> bool {
        let has_room = self.sender.with(producer, |sender| {
            let has_room = self.len_if_room(sender).is_some();
            if has_room {
                self.put(sender, make);
            }
            has_room
        });
        self.publish(producer);
        has_room
    }

    /// How many are inside, as far as the producer knows, if one more fits.
    #[inline(always)]
    fn len_if_room(&self, sender: &mut Sender) -> Option<u32> {
        let mut len = (sender.tail - sender.head) as u32;
        // Only now: a look at what the consumer writes costs a cache miss.
        if len >= self.capacity {
            len = self.refresh_head(sender);
        }
        (len < self.capacity).then_some(len)
    }

    /// Puts one in, for which there is room. (Where making it panics nothing has happened.)
    #[inline(always)]
    fn put(&self, sender: &mut Sender, make: impl FnOnce() -> T) {
        // SAFETY: the slot is the producer's and holds no value: `tail - head < capacity <= slots`, where `head` is what the consumer
        // has given back, and it is not the consumer's again before it is published.
        self.slot(sender.tail).with_mut(|slot| unsafe {
            (*slot).write(make());
        });
        sender.tail += 1;
    }

    /// Makes all staged items visible.
    #[inline(always)]
    pub fn publish(&self, producer: &mut Owner) {
        self.sender.with(producer, |sender| {
            if sender.published != sender.tail {
                sender.published = sender.tail;
                // Release: the items are written before the consumer's Acquire load in `poll` sees the count.
                self.sent.tail.store(sender.tail, order("spsc publish", Ordering::Release));
            }
        });
    }

    /// Whether the consumer is to be told of what was published just now: always, unless it
    /// [looks by itself](Spsc::decline_notifications).
    #[inline(always)]
    pub fn must_notify(&self, producer: &Owner) -> bool {
        self.sender.check(producer);
        // Relaxed: that it wants to be told of each is only ever taken back, and then a word too many is no harm.
        if self.notify.load(Ordering::Relaxed) == notify::EACH {
            return true;
        }
        // Partner: the fence in `wait_for_item`. Either the consumer sees the new tail, or we see that it asks.
        full_fence("spsc notify fence");
        // Relaxed, both: the fences order them. If it is another wish by now, the consumer is told of that one, and asks again.
        self.notify.load(Ordering::Relaxed) == notify::NEXT
            && self
                .notify
                .compare_exchange(notify::NEXT, notify::NOTHING, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    /// Items that still fit, exact at this moment.
    #[inline]
    pub fn room(&self, producer: &mut Owner) -> usize {
        self.sender.with(producer, |sender| (self.capacity - self.refresh_head(sender)) as usize)
    }

    /// Items that still fit as of the producer's last look at the other side: never too many.
    #[inline]
    pub fn room_known(&self, producer: &Owner) -> usize {
        let sender = self.sender.get(producer);
        self.capacity as usize - (sender.tail - sender.head) as usize
    }

    /// Whether some were taken out since the producer's last look at the other side. A hint: nothing goes by it.
    #[inline(always)]
    pub fn has_gone(&self, producer: &Owner) -> bool {
        // Relaxed: the next look does the synchronising.
        self.taken.head.load(Ordering::Relaxed) != self.sender.get(producer).head
    }

    /// Asks to be told when there is room for `items` (1 at least), and publishes all staged items, because otherwise
    /// none might ever come.
    ///
    /// True: there is not, and the [`release`](Spsc::release) that makes it will return true, once.
    /// False: there is now. (A release that made this room may return true all the same: a word too
    /// many, never one too few.)
    ///
    /// A consumer that leaves says so with [`leave`](Spsc::leave) and not here: ask
    /// [`is_left`](Spsc::is_left) afterwards.
    pub fn wait_for_room(&self, producer: &mut Owner, items: usize) -> bool {
        // More than all of it never comes.
        let items = items.clamp(1, self.capacity as usize) as u32;
        let most = self.capacity - items;
        self.publish(producer);
        self.sender.with(producer, |sender| {
            if self.refresh_head(sender) <= most {
                return false;
            }
            // Relaxed: the fence orders it. (More than `most` are inside, so this does not underflow.)
            self.taken.wanted.store(sender.tail - u64::from(most) - 1, Ordering::Relaxed);
            // Partner: the fence in `release`. Either we see the new head, or the consumer sees what we want.
            full_fence("spsc wait fence");
            if self.refresh_head(sender) > most {
                return true;
            }
            // Relaxed: if the consumer has already seen the wish, it says so, and nothing is lost by that.
            self.taken.wanted.store(NOBODY, Ordering::Relaxed);
            false
        })
    }

    /// Publishes all staged items and says that no more will come.
    pub fn close(&self, producer: &mut Owner) {
        self.publish(producer);
        // Release: partner is the Acquire in `is_closed`. Who sees this sees the last published count as
        // well.
        self.sent.closed.store(true, order("spsc close", Ordering::Release));
    }

    /// Whether the consumer has left: what is put in is not taken out any more.
    pub fn is_left(&self, producer: &Owner) -> bool {
        self.sender.check(producer);
        // Acquire: partner is the Release in `leave`. Who sees that sees the last head as well.
        self.taken.left.load(Ordering::Acquire)
    }

    /// Items ever put in, staged ones included.
    pub fn sent(&self, producer: &Owner) -> u64 {
        self.sender.get(producer).tail
    }

    /// Most items that were inside when the producer looked at the other side, which it does when it seems full: exact for a
    /// ring that was full, and otherwise not above the truth. The consumer may have seen
    /// [more](Spsc::most_visible).
    pub fn deepest(&self, producer: &Owner) -> u32 {
        self.sender.get(producer).deepest
    }
}
