//! A stream operator in a lane: it resumes where the marks of its chunks say so.

use super::Stream;
use super::rows::whole_rows;
use crate::operator::Step;
use crate::operator::chunk::{Chunk, Info};
use crate::operator::kernel::{Kernel, Ratio};
use crate::operator::lanes::{LaneCopy, LaneSlot, Marks};
use crate::{Context, Error};

/// What the operator keeps in a lane.
pub(super) struct StreamLane {
    pub copy: LaneCopy,
    /// Marks of the chunk in hand.
    marks: Marks,
    /// Samples of the history that it does not use: outputs begin at a multiple of `Ratio::down`.
    skip: u64,
    /// Whether its next chunk does not follow the one before.
    resumes: bool,
    /// Whether the stream has ended in this lane.
    pub has_ended: bool,
}

impl StreamLane {
    pub fn new(slot: LaneSlot) -> Self {
        StreamLane {
            copy: LaneCopy::new(slot),
            marks: Marks::NONE,
            skip: 0,
            resumes: false,
            has_ended: false,
        }
    }

    /// Marks of the chunk that is sent now, before the end of a block.
    pub fn marks_to_send(&mut self) -> Marks {
        let resumes = std::mem::take(&mut self.resumes);
        self.marks.set(Marks::RESUME, resumes)
    }
}

impl<K: Kernel> Stream<K> {
    /// Resumes and begins where the marks of a chunk of `len` samples say so. Returns the number of samples
    /// that are skipped.
    pub(super) fn heed_marks(&mut self, info: &Info, len: usize) -> Result<usize, Error> {
        let Some(lane) = &mut self.lane else { return Ok(0) };
        if lane.copy.has_placed() {
            let orders = lane.copy.take_placed();
            self.changes.add_orders(orders, |name, value| self.kernel.change(name, value))?;
        }
        let before = std::mem::replace(&mut lane.marks, info.marks);
        if info.marks.has(Marks::RESUME) {
            lane.resumes = true;
        }
        let Some(finite) = self.kernel.finite() else {
            if info.marks.has(Marks::RESUME) {
                (self.received, self.sent) = (info.start, info.start);
                self.tags.clear();
                self.changes.make(info.start, &mut self.kernel)?;
            }
            return Ok(0);
        };
        if info.marks.has(Marks::RESUME) {
            let Ratio { up, down } = self.kernel.ratio();
            let begin = info.start.next_multiple_of(u64::from(down));
            lane.skip = begin - info.start;
            self.tags.clear();
            self.received = info.start;
            self.sent = begin / u64::from(down) * u64::from(up);
            self.changes.make_in_lane(begin, &mut self.kernel, |kernel, at| {
                if let Some(finite) = kernel.finite() {
                    finite.resume(at - at % u64::from(down));
                }
            })?;
        } else if before.has(Marks::HISTORY) && !info.marks.has(Marks::HISTORY) {
            finite.begin();
        }
        let skipped = lane.skip.min(len as u64);
        lane.skip -= skipped;
        Ok(skipped as usize)
    }

    /// Whether the next chunk must be sent, even without samples.
    pub(super) fn must_resume(&self) -> bool {
        self.lane.as_ref().is_some_and(|lane| lane.resumes)
    }

    /// Whether the chunk in hand ends a block. It has no samples.
    pub(super) fn is_at_end_of_block(&self) -> bool {
        let ends = |lane: &StreamLane| lane.marks.has(Marks::END) || lane.marks.has(Marks::LAST);
        self.held.is_some() && self.is_finite && self.lane.as_deref().is_some_and(ends)
    }

    /// Ends a block, and first the stream if it ends there.
    pub(super) fn end_block(&mut self, cx: &mut Context, mut chunk: Chunk<K::Out>) -> Result<Step, Error> {
        let Some(lane) = &mut self.lane else { return Ok(Step::Wait) };
        let marks = lane.marks;
        if marks.has(Marks::LAST) {
            lane.has_ended = true;
            let output = chunk.edit_unique().expect("a new chunk is not shared");
            let output = whole_rows(output, self.kernel.row())?;
            let produced = self.kernel.finish(output);
            if produced > 0 {
                lane.marks = Marks::NONE;
                self.send(cx, chunk, produced)?;
                if let Some(lane) = &mut self.lane {
                    lane.marks = marks;
                }
                return Ok(Step::Again);
            }
        }
        self.held = None;
        self.send(cx, chunk, 0)?;
        Ok(Step::Wait)
    }
}
