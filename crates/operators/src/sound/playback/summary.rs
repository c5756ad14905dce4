//! Notes of corrections, and notes at the end of a run.

use super::{APART, FRAMES, FramePlacement, NOT_PLAYED, NOTED, Playback};
use crate::format::Lost;
use onbeat_runtime::{Context, Ending};

impl Playback {
    /// Counts frames that put the delay right, and notes the first of such events.
    pub(super) fn count_correction(
        &mut self,
        FramePlacement { dropped, silence }: FramePlacement,
        due_ns: u64,
        error_ns: i64,
        cx: &mut Context,
    ) {
        self.corrected += 1;
        self.inserted += silence;
        cx.lose(dropped, FRAMES, APART);
        if self.corrected <= NOTED {
            let (at_ns, ms) = (cx.from_monotonic_ns(due_ns), error_ns as f64 / 1e6);
            let at_s = at_ns.map_or(0.0, |at_ns| at_ns.saturating_sub(cx.start_ns()) as f64 / 1e9);
            cx.note(format!(
                "the delay was put right at {at_s:.3} s: it was {ms:+.2} ms wrong ({dropped} frames were dropped, \
                 {silence} frames of silence inserted)"
            ));
        }
    }

    /// Tells of delays, clocks, underruns and clipped samples at the end of the run.
    pub fn sum_up(self, ending: Ending, name: &str, cx: &mut Context) {
        if ending == Ending::Failed {
            cx.lose(self.pending(), FRAMES, NOT_PLAYED);
        }
        if let Some(delays @ [mean, least, largest]) = self.timeline.statistics.delays_ms() {
            let names = ["delay", "delay, least mean over 1 s", "delay, largest mean over 1 s"];
            names.iter().zip(delays).for_each(|(what, ms)| cx.measured(what, ms * 1e6, "ns"));
            cx.note(format!(
                "{name}: samples were heard {mean:.3} ms after they were due ({least:.3} to {largest:.3} ms, means over 1 s)"
            ));
        }
        if self.corrected > 0 {
            cx.note(format!(
                "{name}: the delay was put right {} times, with {} frames of silence; dropped frames are counted as lost",
                self.corrected, self.inserted
            ));
        }
        if let Some((servo, _)) = self.adapting.as_ref().filter(|_| !self.is_paced()) {
            let ppm = servo.correction() * 1e6;
            cx.measured("resampling ratio", 1.0 + servo.correction(), "1");
            cx.measured("clock difference", ppm, "ppm");
            let which = if ppm >= 0.0 { "faster" } else { "slower" };
            cx.note(format!(
                "{name}: resampled by {:.7}: its clock is {:.1} ppm {which} than the source's",
                1.0 + servo.correction(),
                ppm.abs()
            ));
        }
        if self.underruns > 0 {
            let ms = self.longest as f64 * 1e3 / self.rate_hz();
            cx.note(format!(
                "{} underruns of the sound card's buffer (xruns); the longest was {ms:.2} ms ({} frames)",
                self.underruns, self.longest
            ));
        }
        let Lost { clipped, not_finite } = self.lost;
        if clipped > 0 {
            cx.note(format!(
                "{clipped} samples were beyond full scale and were clipped: put a `gain` before it"
            ));
        }
        if not_finite > 0 {
            cx.note(format!("{not_finite} samples were not finite and were played as 0"));
        }
    }
}
