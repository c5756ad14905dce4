//! Notes at the end of a run.

use super::{FRAMES, NOT_PLAYED, Playback};
use crate::format::Lost;
use onbeat_runtime::{Context, Ending};

impl Playback {
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
        if let Some((servo, _)) = &self.adapting {
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
