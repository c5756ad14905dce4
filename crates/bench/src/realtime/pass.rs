//! One pass: the same frames, by the engine or by a bare loop, under one policy.

use super::causes::FrameCauses;
use super::frames::{FrameLog, FrameTimes};
use super::settings::{RealtimePolicy, RealtimeSettings};
use super::work::{FrameOperator, LoadOperator, TrigonometryWork};
use crate::{BenchError, BenchWatch};
use onbeat_os::policy::PolicyFlags;
use onbeat_os::{CoreSet, Policy, clock, rights, thread};
use onbeat_queue::sync::atomic::{AtomicBool, Ordering::Relaxed};
use onbeat_runtime::{Graph, Options, Overrun, Pool, Scheduler, Share, When};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// The combination of frame loop, policy and load in a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pass {
    /// A `clock_nanosleep` loop instead of the engine: the floor.
    pub is_bare: bool,
    /// The real-time policy of the frames; `None` for the baseline, in which frames and loads have equal
    /// rank.
    pub policy: Option<RealtimePolicy>,
    /// Whether there are load operators.
    pub is_loaded: bool,
}

impl Pass {
    /// Passes that the settings ask for, each followed by its floor.
    pub fn all(settings: &RealtimeSettings) -> Vec<Pass> {
        let is_loaded = settings.dummy_loads > 0;
        let ways = [None].into_iter().chain(settings.policies.iter().copied().map(Some));
        let mut ways: Vec<_> = ways.map(|policy| (policy, is_loaded)).collect();
        if is_loaded {
            ways.push((None, false));
        }
        let both = |(policy, is_loaded)| [false, true].map(|is_bare| Pass { is_bare, policy, is_loaded });
        ways.into_iter().flat_map(both).collect()
    }

    /// Name in figures and tables.
    pub fn name(self) -> String {
        let name = match (self.policy, self.is_loaded) {
            (Some(kind), _) => kind.name(),
            (None, true) => "baseline",
            (None, false) => "no_load",
        };
        if self.is_bare { format!("floor_{name}") } else { name.to_owned() }
    }

    /// Makes the pass. The inner error says why the machine does not allow it.
    pub fn run(
        self,
        settings: &RealtimeSettings,
        causes: &mut FrameCauses,
        watch: &dyn BenchWatch,
    ) -> Result<Result<Vec<FrameTimes>, String>, BenchError> {
        let most = (settings.duration_ns / settings.period_ns()).saturating_add(16);
        let frames = Arc::new(FrameLog::new(usize::try_from(most).unwrap_or(usize::MAX)));
        let _home = HomeCores::leave(self, settings)?;
        if self.is_bare {
            self.run_bare(settings, &frames, causes, watch)
        } else {
            self.run_engine(settings, &frames, causes, watch)
        }
    }

    /// `SCHED_DEADLINE` refuses threads that are pinned to a core: such a thread can run on any core.
    fn is_pinned(self) -> bool {
        self.policy != Some(RealtimePolicy::Deadline)
    }

    fn run_engine(
        self,
        settings: &RealtimeSettings,
        frames: &Arc<FrameLog>,
        causes: &mut FrameCauses,
        watch: &dyn BenchWatch,
    ) -> Result<Result<Vec<FrameTimes>, String>, BenchError> {
        let (graph, options) = self.prepare(settings, frames);
        let run = match graph.start(&options) {
            Ok(run) => run,
            Err(error) => return Ok(Err(error.to_string())),
        };
        follow(settings, frames, causes, watch);
        run.stop();
        let failed =
            |error| BenchError::Run { case: "realtime", recipe: self.name(), error: Box::new(error) };
        run.wait().map_err(failed)?;
        causes.update(frames);
        Ok(Ok(frames.since(0)))
    }

    fn prepare(self, settings: &RealtimeSettings, frames: &Arc<FrameLog>) -> (Graph, Options) {
        let mut graph = Graph::new("realtime");
        let work = TrigonometryWork::new(settings.bm_load_intensity, settings.bm_workload_size);
        let frame = graph.add("frame", FrameOperator { frames: Arc::clone(frames), work });
        graph.when(frame, When::period_ns(settings.period_ns(), Overrun::Skip));
        let loads = if self.is_loaded { settings.dummy_loads } else { 0 };
        let names: Vec<String> = (0..loads).map(|at| format!("load{at}")).collect();
        for name in &names {
            let work = TrigonometryWork::new(settings.bg_load_intensity, settings.bg_workload_size);
            graph.add(name, LoadOperator(work));
        }
        let Some(kind) = self.policy else {
            // All workers share all operators and have inherited the core.
            let options = Options {
                scheduler: Scheduler::Event,
                share: Share::Always,
                workers: Some(settings.worker_threads),
                ..Options::default()
            };
            return (graph, options);
        };
        let pool = Pool::new("frame").policy(settings.policy(kind)).idle(settings.idle).operators(["frame"]);
        let mut pools = vec![if self.is_pinned() { pool.cores([settings.pin_cpu]) } else { pool }];
        let workers = settings.worker_threads.min(names.len());
        for worker in 0..workers {
            let own = names.iter().skip(worker).step_by(workers).cloned();
            pools.push(Pool::new(format!("load{worker}")).cores([settings.pin_cpu]).operators(own));
        }
        let options = Options { scheduler: Scheduler::Custom, pools, strict: true, ..Options::default() };
        (graph, options)
    }

    fn run_bare(
        self,
        settings: &RealtimeSettings,
        frames: &Arc<FrameLog>,
        causes: &mut FrameCauses,
        watch: &dyn BenchWatch,
    ) -> Result<Result<Vec<FrameTimes>, String>, BenchError> {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = self.start_bare(settings, frames, &stop);
        follow(settings, frames, causes, watch);
        stop.store(true, Relaxed);
        let (loop_thread, loads) = threads.map_err(|error| BenchError::System { what: "a thread", error })?;
        let refused = loop_thread.join().unwrap_or_else(|_| Err("its thread panicked".to_owned()));
        for load in loads {
            let _ = load.join();
        }
        causes.update(frames);
        Ok(refused.map(|()| frames.since(0)))
    }

    #[expect(clippy::type_complexity, reason = "the thread of the frames, and those of the loads")]
    fn start_bare(
        self,
        settings: &RealtimeSettings,
        frames: &Arc<FrameLog>,
        stop: &Arc<AtomicBool>,
    ) -> io::Result<(JoinHandle<Result<(), String>>, Vec<JoinHandle<()>>)> {
        let mut loads = Vec::new();
        let core = CoreSet::from_cores([settings.pin_cpu]).map_err(io::Error::other)?;
        for at in 0..if self.is_loaded { settings.dummy_loads } else { 0 } {
            let (stop, core) = (Arc::clone(stop), core.clone());
            let mut work = TrigonometryWork::new(settings.bg_load_intensity, settings.bg_workload_size);
            loads.push(thread::spawn(&format!("bare-load{at}"), move || {
                // If the core is not available, the thread of the frames reports it.
                let _ = thread::set_cores(&core);
                while !stop.load(Relaxed) {
                    work.work();
                }
            })?);
        }
        let (stop, frames) = (Arc::clone(stop), Arc::clone(frames));
        let mut work = TrigonometryWork::new(settings.bm_load_intensity, settings.bm_workload_size);
        let period_ns = settings.period_ns();
        let policy = self.policy.map(|kind| settings.policy(kind));
        let core = self.is_pinned().then_some(core);
        let body = move || {
            if let Some(core) = core {
                thread::set_cores(&core).map_err(|error| format!("its core: {error}"))?;
            }
            if let Some(policy) = policy {
                set(policy)?;
            }
            let mut due_ns = clock::monotonic_ns() + period_ns;
            while !stop.load(Relaxed) {
                clock::sleep_until(due_ns);
                let start_ns = clock::monotonic_ns();
                frames.make(due_ns, start_ns, || work.work());
                let late_ns = clock::monotonic_ns().saturating_sub(due_ns);
                // The behaviour of `skip`.
                due_ns += period_ns * (late_ns / period_ns + 1);
            }
            Ok(())
        };
        Ok((thread::spawn("bare-frame", body)?, loads))
    }
}

/// Interval between two checks for frames: the kernel's ring buffers have room for longer.
const POLL_INTERVAL: Duration = Duration::from_millis(40);

fn set(policy: Policy) -> Result<(), String> {
    let explain = |error: io::Error| {
        let number = error.raw_os_error().unwrap_or(0);
        rights::explain(&policy, number, &rights::Rights::read()).to_string()
    };
    policy.set(PolicyFlags::default()).map_err(explain)
}

/// Original cores of the calling thread, restored on drop. Threads started in between inherit the changed
/// cores.
struct HomeCores(Option<CoreSet>);

impl HomeCores {
    /// In the baseline, workers without a named core share the core of the load.
    fn leave(pass: Pass, settings: &RealtimeSettings) -> Result<HomeCores, BenchError> {
        let system = |what| move |error| BenchError::System { what, error };
        if pass.is_bare || pass.policy.is_some() {
            return Ok(HomeCores(None));
        }
        let before = thread::cores().map_err(system("cores of this thread"))?;
        let core = CoreSet::from_cores([settings.pin_cpu])
            .map_err(|error| BenchError::Settings(error.to_string()))?;
        thread::set_cores(&core).map_err(system("move to --pin-cpu"))?;
        Ok(HomeCores(Some(before)))
    }
}

impl Drop for HomeCores {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // The thread had these cores before.
            let _ = thread::set_cores(before);
        }
    }
}

/// Waits for the duration of a pass, or until a stop.
fn follow(
    settings: &RealtimeSettings,
    frames: &Arc<FrameLog>,
    causes: &mut FrameCauses,
    watch: &dyn BenchWatch,
) {
    causes.begin();
    let end_ns = clock::monotonic_ns() + settings.duration_ns;
    while clock::monotonic_ns() < end_ns && !watch.is_stopped() {
        std::thread::sleep(POLL_INTERVAL);
        causes.update(frames);
    }
}
