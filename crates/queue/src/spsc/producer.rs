//! The producer's side.

use super::{NOBODY, Sender, Spsc, notify};
use crate::owner::Owner;
use crate::ring::Full;
use crate::sync::atomic::Ordering;
use crate::sync::{full_fence, order};

impl<T> Spsc<T> {
    /// Puts an item in, and publishes it and all staged ones. Returns how many items were inside before, as
    /// far as the producer knows: never too few.
    ///
    /// # Errors
    /// [`Full`] returns the item. Nothing is published then.
    #[inline(always)]
    pub fn push(&self, producer: &mut Owner, item: T) -> Result<u32, Full<T>> {
        let before = self.stage(producer, item)?;
        self.publish(producer);
        Ok(before)
    }

    /// Puts an item in, to be published with the next [`publish`](Spsc::publish). Returns how many items were
    /// inside before, as far as the producer knows: never too few.
    ///
    /// # Errors
    /// [`Full`] returns the item.
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

    /// Makes an item directly in its slot, and publishes it and all staged ones: an item of many fields is
    /// not copied. False if there is no room; then nothing is made.
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

    /// Number of items inside, as far as the producer knows, if one more fits.
    #[inline(always)]
    fn len_if_room(&self, sender: &mut Sender) -> Option<u32> {
        let mut len = (sender.tail - sender.head) as u32;
        // Only now: reading the consumer's counter costs a cache miss.
        if len >= self.capacity {
            len = self.refresh_head(sender);
        }
        (len < self.capacity).then_some(len)
    }

    /// Puts an item in, for which there is room. If `make` panics, nothing has changed.
    #[inline(always)]
    fn put(&self, sender: &mut Sender, make: impl FnOnce() -> T) {
        // SAFETY: the slot is the producer's and holds no value: `tail - head < capacity <= slots`, where
        // `head` is the consumer's released counter. The consumer gets the slot only when it is published.
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
                // Release, partner: the Acquire in `poll`. The items are written before their count is seen.
                self.sent.tail.store(sender.tail, order("spsc publish", Ordering::Release));
            }
        });
    }

    /// Whether the consumer must be notified of the last publication: always, unless it has
    /// [declined](Spsc::decline_notifications).
    #[inline(always)]
    pub fn must_notify(&self, producer: &Owner) -> bool {
        self.sender.check(producer);
        // Relaxed: EACH is only ever taken back; if that is seen late, there is one notification too many.
        if self.notify.load(Ordering::Relaxed) == notify::EACH {
            return true;
        }
        // Partner: the fence in `wait_for_item`. Either the consumer sees the new tail, or we see its
        // request.
        full_fence("spsc notify fence");
        // Relaxed, both: the fences order them. If it is a later request by now, that one is answered, and
        // the consumer asks again.
        self.notify.load(Ordering::Relaxed) == notify::NEXT
            && self
                .notify
                .compare_exchange(notify::NEXT, notify::NOTHING, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    /// Number of items that still fit, exact at this moment.
    #[inline]
    pub fn room(&self, producer: &mut Owner) -> usize {
        self.sender.with(producer, |sender| (self.capacity - self.refresh_head(sender)) as usize)
    }

    /// Number of items that still fit, as of the producer's last poll of the other side: never too many.
    #[inline]
    pub fn room_known(&self, producer: &Owner) -> usize {
        let sender = self.sender.get(producer);
        self.capacity as usize - (sender.tail - sender.head) as usize
    }

    /// Whether items were taken out since the producer's last poll of the other side. A hint.
    #[inline(always)]
    pub fn has_gone(&self, producer: &Owner) -> bool {
        // Relaxed: the next poll synchronises.
        self.taken.head.load(Ordering::Relaxed) != self.sender.get(producer).head
    }

    /// Asks for a notification when there is room for `items` (1 at least). Publishes all staged items,
    /// because without them no room might ever come.
    ///
    /// True: there is not enough, and the [`release`](Spsc::release) that makes it will return true, once.
    /// False: there is room now. (A release that made this room can return true anyway: one notification too
    /// many, never one too few.)
    ///
    /// A consumer that leaves says so by [`leave`](Spsc::leave) and not here: check
    /// [`is_left`](Spsc::is_left) afterwards.
    pub fn wait_for_room(&self, producer: &mut Owner, items: usize) -> bool {
        // More room than the capacity never comes.
        let items = items.clamp(1, self.capacity as usize) as u32;
        let most = self.capacity - items;
        self.publish(producer);
        self.sender.with(producer, |sender| {
            if self.refresh_head(sender) <= most {
                return false;
            }
            // Relaxed: the fence orders it. (More than `most` are inside, so this does not underflow.)
            self.taken.wanted.store(sender.tail - u64::from(most) - 1, Ordering::Relaxed);
            // Partner: the fence in `release`. Either we see the new head, or the consumer sees the request.
            full_fence("spsc wait fence");
            if self.refresh_head(sender) > most {
                return true;
            }
            // Relaxed: if the consumer has seen the request already, it notifies, and nothing is lost.
            self.taken.wanted.store(NOBODY, Ordering::Relaxed);
            false
        })
    }

    /// Publishes all staged items and declares that no more will come.
    pub fn close(&self, producer: &mut Owner) {
        self.publish(producer);
        // Release, partner: the Acquire in `is_closed`. A consumer that sees this also sees the last
        // published count.
        self.sent.closed.store(true, order("spsc close", Ordering::Release));
    }

    /// Whether the consumer has left: it takes no more items out.
    pub fn is_left(&self, producer: &Owner) -> bool {
        self.sender.check(producer);
        // Acquire, partner: the Release in `leave`. A producer that sees this also sees the last head.
        self.taken.left.load(Ordering::Acquire)
    }

    /// Number of items ever put in, including staged ones.
    pub fn sent(&self, producer: &Owner) -> u64 {
        self.sender.get(producer).tail
    }

    /// Most items that were inside when the producer polled the other side, which it does when the ring seems
    /// full. Exact for a ring that was full, otherwise never above the truth. The consumer can have seen
    /// [more](Spsc::most_visible).
    pub fn deepest(&self, producer: &Owner) -> u32 {
        self.sender.get(producer).deepest
    }
}
