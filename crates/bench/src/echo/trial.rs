//! One measurement: a server, a client, and what they saw.

use super::client::{self, ClientLine, ClientPlan, RoundTrips};
use super::messages::{EchoLoop, EchoReport, EchoRequest};
use super::process::ServerProcess;
use super::settings::{EchoCores, EchoSettings, EchoTransport, EchoWait};
use crate::{BenchWatch, pinned};
use onbeat_queue::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::fs;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// A case: a transport, and the time from one message to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EchoCase {
    pub transport: EchoTransport,
    pub interval_ns: u64,
}

impl EchoCase {
    /// Name in figures.
    pub fn name(self) -> String {
        format!("{}.{}us", self.transport.name(), self.interval_ns / 1000)
    }
}

/// What one measurement found.
#[derive(Debug, Clone)]
pub(super) struct EchoFinding {
    pub trips: RoundTrips,
    pub report: EchoReport,
    pub silence: Option<SilenceCounts>,
}

/// Voluntary context switches of a server in one second without messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct SilenceCounts {
    /// Of the workers.
    pub workers: u64,
    /// Of all threads.
    pub process: u64,
}

/// Interval between two polls for a stop.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Time for a measurement beyond its own duration, before the server is killed.
const GRACE: Duration = Duration::from_secs(10);

/// Makes one measurement, with a second of silence after it if `is_silent`.
pub(super) fn run(
    settings: &EchoSettings,
    cores: &EchoCores,
    case: EchoCase,
    (kind, wait): (EchoLoop, EchoWait),
    is_silent: bool,
    watch: &dyn BenchWatch,
) -> Result<EchoFinding, String> {
    let request = EchoRequest {
        kind,
        wait,
        transport: case.transport,
        port: 0,
        bytes: settings.bytes,
        core: cores.server,
        house: cores.house.clone(),
    };
    let all = settings.messages(case.interval_ns);
    // The client's own cost varies less than what it measures.
    let messages = if kind == EchoLoop::Stamped { all.div_ceil(2) } else { all };
    let plan =
        ClientPlan { messages, interval_ns: case.interval_ns, bytes: settings.bytes, wait: settings.client };
    let (mut server, line) = ServerProcess::start(&settings.server, request)?;
    line.prepare(plan.wait).map_err(|error| format!("the client's end: {error}"))?;
    let (line, trips) = measure(line, plan, cores.client, &mut server, watch)?;
    let before = is_silent.then(|| switches(server.id())).flatten();
    if before.is_some() {
        std::thread::sleep(Duration::from_secs(1));
    }
    let after = before.as_ref().and_then(|_| switches(server.id()));
    let report = server.end(line)?;
    let silence = before.zip(after).map(|(before, after)| {
        let more = |tid: i32, after: u64| {
            let earlier = before.iter().find(|(other, _)| *other == tid).map_or(0, |(_, count)| *count);
            after.saturating_sub(earlier)
        };
        let workers = after.iter().filter(|(tid, _)| report.workers.contains(tid));
        SilenceCounts {
            workers: workers.map(|&(tid, count)| more(tid, count)).sum(),
            process: after.iter().map(|&(tid, count)| more(tid, count)).sum(),
        }
    });
    Ok(EchoFinding { trips, report, silence })
}

/// Lets the client measure on its core.
fn measure(
    mut line: ClientLine,
    plan: ClientPlan,
    core: usize,
    server: &mut ServerProcess,
    watch: &dyn BenchWatch,
) -> Result<(ClientLine, RoundTrips), String> {
    let stop = Arc::new(AtomicBool::new(false));
    let (done, wait) = mpsc::channel();
    let stopped = Arc::clone(&stop);
    let client = pinned::spawn(Some(core), move || {
        let seen = client::measure(&mut line, plan, &stopped);
        // The other end waits for it.
        let _received = done.send(());
        (line, seen)
    });
    let client = client.map_err(|error| error.to_string())?;
    let limit = Duration::from_nanos(plan.interval_ns) * plan.messages as u32 + GRACE;
    let begin = Instant::now();
    while wait.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Timeout) {
        if watch.is_stopped() {
            stop.store(true, Relaxed);
        }
        if begin.elapsed() > limit {
            server.kill();
        }
    }
    let (line, seen) = pinned::join(client);
    seen.map(|seen| (line, seen)).map_err(|reason| server.explain(&reason))
}

/// Voluntary context switches of each thread of a process so far.
fn switches(process: u32) -> Option<Vec<(i32, u64)>> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).ok()?;
    let count = |task: fs::DirEntry| {
        let tid = task.file_name().to_str()?.parse().ok()?;
        let status = fs::read_to_string(task.path().join("status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        Some((tid, line.trim().parse().ok()?))
    };
    Some(tasks.filter_map(|task| count(task.ok()?)).collect())
}
