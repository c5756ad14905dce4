//! World-readable counts of a process's own threads, used without tracepoints: no names and no times.

use onbeat_trace::{Counted, Evidence, KernelEvent};
use std::collections::VecDeque;
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Number of samples kept: one per question.
const KEPT: usize = 1024;

/// The counts in `/proc` of some threads: time spent waiting for a core, and page faults.
///
/// ```
/// use onbeat_noise::ProcEvidence;
/// use onbeat_trace::Evidence;
/// let mut evidence = ProcEvidence::new("tracefs cannot be read", "run as root");
/// evidence.follow(&[onbeat_os::thread::current_id()]);
/// assert_eq!(evidence.source(), "proc");
/// assert_eq!(evidence.lack().unwrap().1, "run as root");
/// ```
#[derive(Debug)]
pub struct ProcEvidence {
    why: String,
    fix: String,
    threads: Vec<CountedThread>,
    /// Samples: the time, and the counts of each thread.
    looks: VecDeque<(u64, Vec<ThreadCounts>)>,
}

#[derive(Debug)]
struct CountedThread {
    tid: i32,
    schedstat: Option<File>,
    stat: Option<File>,
}

/// Counts since the thread began.
#[derive(Debug, Clone, Copy, Default)]
struct ThreadCounts {
    run_queue_ns: u64,
    page_faults: u64,
}

impl ProcEvidence {
    /// Takes the reason why no better source is available, and how to get one.
    pub fn new(why: impl Into<String>, fix: impl Into<String>) -> Self {
        ProcEvidence { why: why.into(), fix: fix.into(), threads: Vec::new(), looks: VecDeque::new() }
    }

    fn look(&mut self) {
        let now_ns = onbeat_os::clock::monotonic_ns();
        let counts = self.threads.iter().map(CountedThread::counts).collect();
        if self.looks.len() == KEPT {
            self.looks.pop_front();
        }
        self.looks.push_back((now_ns, counts));
    }
}

impl CountedThread {
    fn open(tid: i32) -> Self {
        let file = |name: &str| File::open(format!("/proc/self/task/{tid}/{name}")).ok();
        CountedThread { tid, schedstat: file("schedstat"), stat: file("stat") }
    }

    /// Reads the counts; zero for a thread that is unreadable or has ended.
    fn counts(&self) -> ThreadCounts {
        let (mut schedstat, mut stat) = ([0; 80], [0; 512]);
        let schedstat = text(self.schedstat.as_ref(), &mut schedstat);
        let stat = text(self.stat.as_ref(), &mut stat);
        let number = |text: &str, at: usize| {
            text.split_ascii_whitespace().nth(at).and_then(|it| it.parse::<u64>().ok()).unwrap_or(0)
        };
        // The name may contain anything. Field 3 follows it; minor faults are field 10, major faults field
        // 12.
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        ThreadCounts {
            run_queue_ns: number(schedstat, 1),
            page_faults: number(fields, 7) + number(fields, 9),
        }
    }
}

fn text<'b>(file: Option<&File>, bytes: &'b mut [u8]) -> &'b str {
    let length = file.and_then(|file| file.read_at(bytes, 0).ok()).unwrap_or(0);
    std::str::from_utf8(&bytes[..length]).unwrap_or_default()
}

impl Evidence for ProcEvidence {
    fn source(&self) -> &str {
        // Some kernels do not have these counts.
        if fs::exists("/proc/self/schedstat").unwrap_or(false) { "proc" } else { "none" }
    }

    fn events(&mut self, _: u32, _: Range<u64>) -> Vec<KernelEvent> {
        Vec::new()
    }

    fn follow(&mut self, tids: &[i32]) {
        self.threads = tids.iter().copied().map(CountedThread::open).collect();
        self.looks.clear();
        self.look();
    }

    fn counted(&mut self, window_ns: Range<u64>) -> Vec<Counted> {
        if self.looks.back().is_none_or(|(at_ns, _)| *at_ns < window_ns.end) {
            self.look();
        }
        let before = self.looks.iter().rev().find(|(at_ns, _)| *at_ns <= window_ns.start);
        let Some((from_ns, before)) = before.or_else(|| self.looks.front()) else { return Vec::new() };
        let Some((to_ns, after)) = self.looks.iter().find(|(at_ns, _)| *at_ns >= window_ns.end) else {
            return Vec::new();
        };
        let of = |((thread, before), after): ((&CountedThread, &ThreadCounts), &ThreadCounts)| Counted {
            tid: thread.tid,
            from_ns: *from_ns,
            to_ns: *to_ns,
            run_queue_ns: after.run_queue_ns.saturating_sub(before.run_queue_ns),
            page_faults: after.page_faults.saturating_sub(before.page_faults),
        };
        self.threads.iter().zip(before).zip(after).map(of).collect()
    }

    fn drain(&mut self) {
        self.look();
    }

    fn lack(&self) -> Option<(String, String)> {
        let what = "causes have classes but no names: ";
        Some((format!("{what}{}", self.why), self.fix.clone()))
    }
}
