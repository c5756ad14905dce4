//! Tags of a stream operator: each stays on the sample of the same instant.

use super::Stream;
use crate::operator::chunk::{Info, Tag};
use crate::operator::kernel::Kernel;

impl<K: Kernel> Stream<K> {
    /// Keeps the tags of the next input samples.
    pub(super) fn keep_tags(&mut self, tags: &[Tag]) {
        for tag in tags {
            let at = self.output_at(self.received + tag.offset as u64);
            // In a lane, another worker has sent what is before this.
            if at >= self.sent {
                self.tags.push_back((at, tag.clone()));
            }
        }
    }

    /// Moves the tags before output sample number `end` to the head of the chunk that is sent next.
    pub(super) fn put_tags(&mut self, end: u64, info: &mut Info) {
        while let Some((at, _)) = self.tags.front()
            && *at < end
        {
            if let Some((at, tag)) = self.tags.pop_front() {
                info.tags.push(Tag { offset: (at - self.sent) as usize, ..tag });
            }
        }
    }

    /// Returns a note on tags that found no sample.
    pub(super) fn lost_tags(&self) -> Option<String> {
        // Where the stream goes on in another lane, that one has them too.
        let left = if self.lane.as_ref().is_none_or(|lane| lane.has_ended) { self.tags.len() } else { 0 };
        (left > 0).then(|| format!("{left} tags came after the last sample of its output"))
    }
}
