//! What a sink has taken is in its file soon, whatever becomes of the process.

use onbeat_os::clock::monotonic_ns;
use onbeat_runtime::{Context, Step};

/// Longest time for which data stay in a buffer.
const AGE_NS: u64 = 500_000_000;

/// When the buffer of a file is written out at the latest. In real time: a process can be killed under every
/// clock.
#[derive(Debug, Default)]
pub(crate) struct FlushTimer {
    due_ns: Option<u64>,
}

impl FlushTimer {
    /// Whether the buffer has to be written out now. Asked once in each step.
    pub fn is_due(&mut self) -> bool {
        let is_due = self.due_ns.is_some_and(|due_ns| monotonic_ns() >= due_ns);
        if is_due {
            self.due_ns = None;
        }
        is_due
    }

    /// Result of a step that waits for data. `is_buffered`: whether the buffer has some. The operator is then
    /// stepped in time, also without data.
    pub fn wait(&mut self, is_buffered: bool, wait: Step, cx: &mut Context) -> Step {
        if !is_buffered || self.due_ns.is_some() || wait != Step::Wait {
            return wait;
        }
        self.due_ns = Some(monotonic_ns() + AGE_NS);
        cx.until(cx.in_real_ns(AGE_NS))
    }
}
