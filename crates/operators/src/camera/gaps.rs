//! Numbers and times of frames: which are missing, and why.

use onbeat_runtime::Context;
use std::collections::VecDeque;

/// Unit of losses.
pub(super) const FRAMES: &str = "frames";
/// The driver had nowhere to store them.
pub(super) const TOO_LATE: &str = "the driver had no free buffer, because the worker took the frames before too late: \
                                   the misses at that time name the cause; use a real-time `policy`, or more `buffers`";
/// The driver had buffers.
const NOT_STORED: &str = "the driver lost them although it had a free buffer: the camera, its cable or its bus did not \
                          deliver them";
const AWAY: &str = "were not captured while the camera was away (by the time and the frame rate)";
/// Buffers that drivers keep for the frames to come: with these only, a frame is lost.
const KEPT: usize = 2;
/// Most gaps that are noted one by one.
const NOTED: u64 = 20;

/// A frame, as far as gaps are concerned. Times are on the run's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameMark {
    /// Number by the driver.
    pub sequence: u32,
    /// When it was captured.
    pub captured_ns: u64,
    /// When it was taken from the driver.
    pub taken_ns: u64,
}

/// Frames that are missing before a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FrameGap {
    lost: u64,
    reason: &'static str,
}

/// Follows the frames of a camera.
#[derive(Debug, Default)]
pub(super) struct FrameGaps {
    /// The last frames, as many as there are buffers.
    last: VecDeque<FrameMark>,
    buffers: usize,
    /// Whether the camera was away since the last frame: the driver counts from the start again.
    is_new_stream: bool,
    /// Number of the next frame since the start, with those that were lost.
    next: u64,
    gaps: u64,
}

impl FrameGaps {
    /// A camera with this many buffers begins to capture.
    pub fn open(&mut self, buffers: usize) {
        self.buffers = buffers;
        self.last.reserve(buffers + 1);
    }

    /// The camera was closed, and may come back.
    pub fn close(&mut self) {
        self.is_new_stream = true;
    }

    /// Takes a frame, counts the frames that are missing before it, and returns its number.
    pub fn take(&mut self, frame: FrameMark, period_ns: f64, cx: &mut Context) -> u64 {
        let gap = self.gap(frame, period_ns);
        if let Some(FrameGap { lost, reason }) = gap {
            self.count(lost, reason, frame.captured_ns.saturating_sub(cx.start_ns()), cx);
            self.next += lost;
        }
        if self.is_new_stream {
            self.last.clear();
        }
        self.last.push_back(frame);
        while self.last.len() > self.buffers.max(1) {
            self.last.pop_front();
        }
        self.is_new_stream = false;
        self.next += 1;
        self.next - 1
    }

    /// Counts the frames of the time since the last one, for a camera that did not come back.
    pub fn end_away(&mut self, now_ns: u64, period_ns: f64, cx: &mut Context) {
        if let (Some(last), true) = (self.last.back(), self.is_new_stream) {
            let lost = (now_ns.saturating_sub(last.captured_ns) as f64 / period_ns) as u64;
            cx.lose(lost, FRAMES, AWAY);
        }
    }

    /// Notes the gaps that were not noted one by one.
    pub fn sum_up(&mut self, cx: &mut Context) {
        let more = std::mem::take(&mut self.gaps).saturating_sub(NOTED);
        if more > 0 {
            cx.note(format!("{more} more gaps"));
        }
    }

    fn count(&mut self, lost: u64, reason: &'static str, time_ns: u64, cx: &mut Context) {
        cx.lose(lost, FRAMES, reason);
        self.gaps += 1;
        if self.gaps <= NOTED {
            let (first, last) = (self.next, self.next + lost - 1);
            let which =
                if lost == 1 { format!("frame {first}") } else { format!("frames {first} to {last}") };
            let why = if reason == TOO_LATE {
                "no free buffer"
            } else if reason == AWAY {
                "away"
            } else {
                "not delivered"
            };
            let time_s = time_ns as f64 / 1e9;
            cx.note(format!("lost before {time_s:.3} s: {which} ({why})"));
        }
    }

    /// The frames that are missing before this one. `period_ns` is the usual time from one frame to the next.
    fn gap(&self, frame: FrameMark, period_ns: f64) -> Option<FrameGap> {
        let last = self.last.back()?;
        let passed_ns = frame.captured_ns.saturating_sub(last.captured_ns) as f64;
        if self.is_new_stream {
            let lost = ((passed_ns / period_ns).round() as u64).saturating_sub(1);
            return (lost > 0).then_some(FrameGap { lost, reason: AWAY });
        }
        let step = frame.sequence.wrapping_sub(last.sequence);
        // A driver that begins again, or does not count.
        if step == 0 || step > u32::MAX / 2 {
            return None;
        }
        let lost = u64::from(step - 1);
        let first_lost_ns = last.captured_ns as f64 + passed_ns / f64::from(step);
        // Frames that were in the driver when the first lost one came.
        let full = self.last.iter().filter(|frame| frame.taken_ns as f64 >= first_lost_ns).count();
        let is_full = full >= self.buffers.saturating_sub(KEPT).max(1);
        let reason = if is_full { TOO_LATE } else { NOT_STORED };
        (lost > 0).then_some(FrameGap { lost, reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD_NS: f64 = 16_666_667.0;

    /// A frame `late` periods after its capture at `at` periods.
    fn frame(sequence: u32, at: f64, late: f64) -> FrameMark {
        let ns = |periods: f64| (1e9 + periods * PERIOD_NS) as u64;
        FrameMark { sequence, captured_ns: ns(at), taken_ns: ns(at + late) }
    }

    fn gap(last: FrameMark, next: FrameMark) -> Option<(u64, &'static str)> {
        after(&[last], next)
    }

    /// With four buffers.
    fn after(last: &[FrameMark], next: FrameMark) -> Option<(u64, &'static str)> {
        let last = last.iter().copied().collect();
        let gaps = FrameGaps { last, buffers: 4, ..FrameGaps::default() };
        gaps.gap(next, PERIOD_NS).map(|gap| (gap.lost, gap.reason))
    }

    #[test]
    fn gaps_have_a_reason() {
        assert_eq!(FrameGaps::default().gap(frame(7, 0.0, 0.0), PERIOD_NS), None);
        assert_eq!(gap(frame(7, 0.0, 0.0), frame(8, 1.0, 0.0)), None);
        assert_eq!(gap(frame(7, 0.0, 0.1), frame(9, 2.0, 0.0)), Some((1, NOT_STORED)));
        // The worker was late, but three buffers were free.
        assert_eq!(gap(frame(7, 0.0, 1.1), frame(9, 2.0, 0.0)), Some((1, NOT_STORED)));
        let late = [frame(4, 0.0, 8.0), frame(5, 1.0, 7.0), frame(6, 2.0, 6.0), frame(7, 3.0, 5.0)];
        assert_eq!(after(&late, frame(9, 5.0, 0.0)), Some((1, TOO_LATE)));
        assert_eq!(after(&late, frame(17, 13.0, 0.0)), Some((9, TOO_LATE)));
        // A driver that keeps two buffers for itself.
        assert_eq!(after(&late[2..], frame(9, 5.0, 0.0)), Some((1, TOO_LATE)));
        let in_time = [frame(4, 0.0, 1.5), frame(5, 1.0, 0.5), frame(6, 2.0, 0.5), frame(7, 3.0, 0.5)];
        assert_eq!(after(&in_time, frame(9, 5.0, 0.0)), Some((1, NOT_STORED)));
    }

    #[test]
    fn numbers_that_begin_again() {
        assert_eq!(gap(frame(u32::MAX, 0.0, 0.0), frame(0, 1.0, 0.0)), None);
        assert_eq!(gap(frame(u32::MAX - 1, 0.0, 0.0), frame(1, 3.0, 0.0)), Some((2, NOT_STORED)));
        assert_eq!(gap(frame(700, 0.0, 0.0), frame(0, 1.0, 0.0)), None);
        assert_eq!(gap(frame(0, 0.0, 0.0), frame(0, 1.0, 0.0)), None);
    }

    #[test]
    fn an_absence_is_estimated_by_time() {
        let last = [frame(70, 0.0, 0.0)].into();
        let gaps = FrameGaps { last, is_new_stream: true, ..FrameGaps::default() };
        let lost = |at| gaps.gap(frame(0, at, 0.0), PERIOD_NS).map(|gap| (gap.lost, gap.reason));
        assert_eq!(lost(60.2), Some((59, AWAY)));
        assert_eq!(lost(1.4), None);
    }
}
