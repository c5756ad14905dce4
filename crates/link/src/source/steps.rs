//! Parts of a step of the consumer's end: a chunk that is lent, and the end.

use super::LinkSource;
use crate::books::MessageArrival;
use crate::carry::{Carried, too_long};
use crate::frame::{LentPlace, MessageHead};
use crate::line::{LinkTrouble, hear};
use onbeat_os::clock::monotonic_ns;
use onbeat_runtime::{Context, Step};
use std::io::ErrorKind;

impl<M: Carried> LinkSource<M> {
    /// Sends on a message whose samples stay where they are. `None` if it had come before.
    pub(super) fn borrow(
        &mut self,
        mut head: MessageHead,
        place: LentPlace,
        bytes: usize,
        cx: &mut Context,
    ) -> Result<Option<Step>, LinkTrouble> {
        if self.room.is_none() {
            self.room = M::room(&self.out, cx);
        }
        let Some(room) = self.room else {
            self.waiting = Some((head, 0));
            return Ok(Some(Step::Wait));
        };
        if bytes > room {
            return Err(too_long(bytes, room).into());
        }
        if self.books.arrive(head.sequence) == MessageArrival::Repeated {
            self.borrower.compare(&[place]);
            return Ok(None);
        }
        let message = self.borrower.borrow(&mut head, place, bytes)?;
        Ok(Some(self.deliver(head, message, bytes, cx)?))
    }

    /// Waits until the producer has heard the last word, and closes.
    pub(super) fn leave(&mut self, cx: &mut Context) -> Result<Step, LinkTrouble> {
        let Some(open) = &mut self.line.open else { return Ok(Step::Done) };
        let now_ns = monotonic_ns();
        let until_ns = *self.leave_by_ns.get_or_insert(now_ns + self.line.settings.patience_ns);
        if now_ns >= until_ns {
            self.line.close();
            return Ok(Step::Done);
        }
        let until_ns = cx.in_real_ns(until_ns - now_ns);
        if self.has_unsent {
            return Ok(cx.writable_until(&open.stream, until_ns)?);
        }
        open.reader.clear();
        match hear(open) {
            Ok(true) => Ok(Step::Again),
            Ok(false) => Ok(cx.readable_until(&open.stream, until_ns)?),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                self.line.close();
                Ok(Step::Done)
            }
            Err(error) => Err(error.into()),
        }
    }
}
