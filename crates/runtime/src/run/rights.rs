//! Settings that a run requests from the machine, and what it obtained: each is read back from the kernel.

use super::RunError;
use crate::base::options::{Explain, Options, PREFAULT_MOST_BYTES};
use crate::engine::control::{Control, RunFault};
use crate::plan::Plan;
use onbeat_os::memory::{self, MemoryLock};
use onbeat_os::overrun::Overruns;
use onbeat_os::policy::PolicyFlags;
use onbeat_os::rights::{self, Rights};
use onbeat_os::{CoreSet, Policy, latency};
use onbeat_trace::Evidence;
use onbeat_trace::record::Obtained;
use std::mem::MaybeUninit;

/// Default for the bytes of a real-time worker's stack that are prefaulted.
const PREFAULT_BYTES: usize = 256 << 10;

/// Settings of the whole process, in force until this is dropped.
#[derive(Debug, Default)]
pub(super) struct ProcessSettings {
    pub obtained: Vec<Obtained>,
    lock: Option<MemoryLock>,
    dma_latency: Option<latency::DmaLatency>,
    overruns: Option<Overruns>,
}

/// Error text of `strict` for a setting that was not obtained.
fn strictly(setting: &Obtained) -> String {
    let Obtained { what, asked, obtained, reason } = setting;
    let reason = reason.as_deref().unwrap_or("not available");
    format!("strict: {what}: {asked} was asked for, {obtained} obtained: {reason}")
}

impl ProcessSettings {
    /// Applies the settings. Called after all allocations, and before the threads start.
    ///
    /// # Errors
    /// Under `strict`, the first setting that was not obtained.
    pub fn take(plan: &Plan, so_far: Vec<Obtained>) -> Result<Self, RunError> {
        let mut process = ProcessSettings { obtained: so_far, ..ProcessSettings::default() };
        let options = &plan.options;
        if options.lock_memory {
            process.lock_memory();
        }
        if let Some(latency_us) = options.dma_latency_us {
            process.hold_latency(latency_us);
        }
        if plan.pools.iter().any(|pool| matches!(pool.policy, Some(Policy::Deadline { .. }))) {
            match Overruns::count() {
                Ok(overruns) => process.overruns = Some(overruns),
                Err(error) => {
                    process.say("deadline overruns", "counted", "not counted", Some(error.to_string()));
                }
            }
        }
        match process.obtained.iter().find(|setting| options.strict && setting.asked != setting.obtained) {
            Some(missing) => Err(RunError::Begin(strictly(missing))),
            None => Ok(process),
        }
    }

    fn say(
        &mut self,
        what: &str,
        asked: impl Into<String>,
        obtained: impl Into<String>,
        reason: Option<String>,
    ) {
        let (asked, obtained) = (asked.into(), obtained.into());
        self.obtained.push(Obtained { what: what.to_string(), asked, obtained, reason });
    }

    fn lock_memory(&mut self) {
        let rights = Rights::read();
        // If later allocations were locked too, none would succeed beyond a limit.
        let later = rights.ipc_lock || rights.memlock_limit_bytes.is_none();
        let (obtained, reason) = match MemoryLock::take(later) {
            Ok(lock) => {
                self.lock = Some(lock);
                match (memory::locked_bytes(), later) {
                    (0, _) => ("none", Some("the kernel says that nothing is locked".to_string())),
                    (_, true) => ("all", None),
                    (_, false) => {
                        ("what was there at the start", Some(rights::over_the_limit(&rights).to_string()))
                    }
                }
            }
            Err(error) => {
                let refusal = rights::explain_lock(error.raw_os_error().unwrap_or(0), &rights);
                ("none", Some(refusal.to_string()))
            }
        };
        self.say("memory lock", "all", obtained, reason);
    }

    fn hold_latency(&mut self, latency_us: u32) {
        let shown = |us: u32| format!("{us} us");
        let held = latency::DmaLatency::hold(latency_us).and_then(|held| Ok((held.in_force_us()?, held)));
        let asked = shown(latency_us);
        match held {
            Ok((in_force_us, held)) => {
                self.dma_latency = Some(held);
                let (obtained, reason) = match in_force_us {
                    // Another program may have asked for less.
                    us if us <= latency_us => (asked.clone(), None),
                    us => (shown(us), Some("another program's request is in force".to_string())),
                };
                self.say("dma latency", asked, obtained, reason);
            }
            Err(error) => {
                let fix = "grant it: sudo chgrp realtime /dev/cpu_dma_latency && sudo chmod g+rw /dev/cpu_dma_latency; in a \
                           container: --device /dev/cpu_dma_latency; as a service: DeviceAllow=/dev/cpu_dma_latency rw";
                self.say("dma latency", asked, "what the machine does", Some(format!("{error}; {fix}")));
            }
        }
    }

    /// Number of times that `SCHED_DEADLINE` threads used up their run time; `None` if there are none.
    pub fn overruns(&self) -> Option<u64> {
        self.overruns.as_ref().map(Overruns::so_far)
    }
}

/// Evidence that is missing under `explain = on`; `None` if explanations are optional.
pub(super) fn of_evidence(plan: &Plan, evidence: &dyn Evidence) -> Option<Obtained> {
    let (why, fix) = evidence.lack().filter(|_| plan.options.explain == Explain::On)?;
    let obtained = match evidence.source() {
        "proc" => "counts of /proc",
        source => source,
    };
    Some(Obtained {
        what: "events of the kernel".to_owned(),
        asked: "all".to_owned(),
        obtained: obtained.to_owned(),
        reason: Some(format!("{why}; {fix}")),
    })
}

/// Applies to the calling thread the plan's settings for this worker: cores, timer slack, policy, stack.
pub(super) fn take(worker: usize, plan: &Plan, control: &Control) -> Vec<Obtained> {
    let mut settings = ThreadSettings { name: &plan.workers[worker].name, obtained: Vec::new() };
    let policy = plan.pools[plan.workers[worker].pool].policy;
    let options = &plan.options;
    settings.cores(plan.workers[worker].core, options);
    if let Some(slack_ns) =
        options.timer_slack_ns.filter(|_| !policy.is_some_and(|policy| policy.is_real_time()))
    {
        settings.timer_slack(slack_ns);
    }
    if let Some(policy) = policy {
        settings.policy(policy);
    }
    let real_time = policy.is_some_and(|policy| policy.is_real_time());
    if let Some(bytes) = options.prefault.or(real_time.then_some(PREFAULT_BYTES)) {
        settings.stack(bytes);
    }
    if let Some(missing) =
        settings.obtained.iter().find(|setting| options.strict && setting.asked != setting.obtained)
    {
        control.fail(RunFault::of_the_run(strictly(missing)));
    }
    settings.obtained
}

/// Removes the real-time policy of a thread that outlives the run, because an operator on it does not return.
/// Otherwise it would keep other threads from its core for ever, and its overruns would not be counted.
pub(super) fn take_back(worker: usize, plan: &Plan, thread: i32) {
    let is_real_time =
        plan.pools[plan.workers[worker].pool].policy.is_some_and(|policy| policy.is_real_time());
    // 0 would mean the calling thread.
    if is_real_time && thread > 0 {
        // The call fails if the thread has ended meanwhile. That is fine.
        let _ = Policy::Other(0).set_for(thread, PolicyFlags { reset_on_fork: true, overrun_signal: false });
    }
}

/// Settings of one worker's thread.
struct ThreadSettings<'p> {
    name: &'p str,
    obtained: Vec<Obtained>,
}

impl ThreadSettings<'_> {
    fn say(&mut self, what: &str, asked: String, obtained: String, reason: Option<String>) {
        self.obtained.push(Obtained { what: format!("{what} of {}", self.name), asked, obtained, reason });
    }

    fn cores(&mut self, core: Option<usize>, options: &Options) {
        let house_keeping = &options.house_keeping;
        let wanted = match core {
            Some(core) => CoreSet::from_cores([core]),
            // Inherited from the thread that started this one, which may be bound to the house-keeping cores.
            None if !house_keeping.is_empty() => {
                let online: Vec<usize> =
                    CoreSet::online().map_or(Vec::new(), |online| online.iter().collect());
                CoreSet::from_cores(online.into_iter().filter(|core| !house_keeping.contains(core)))
            }
            None => return,
        };
        let set = wanted.map_err(|error| error.to_string());
        let asked = set.as_ref().map_or(String::new(), ToString::to_string);
        let taken = set.and_then(|set| {
            onbeat_os::thread::set_cores(&set).map_err(|error| error.to_string())?;
            onbeat_os::thread::cores().map_err(|error| error.to_string())
        });
        let (obtained, reason) = match taken {
            Ok(cores) => (cores.to_string(), None),
            Err(error) => ("any core".to_string(), Some(error)),
        };
        self.say("cores", asked, obtained, reason);
    }

    fn timer_slack(&mut self, slack_ns: u64) {
        let shown = |ns: u64| format!("{ns} ns");
        let taken = latency::set_timer_slack_ns(slack_ns).and_then(|()| latency::timer_slack_ns());
        let (obtained, reason) = match taken {
            Ok(ns) => (shown(ns), None),
            Err(error) => ("what the kernel gives".to_string(), Some(error.to_string())),
        };
        self.say("timer slack", shown(slack_ns), obtained, reason);
    }

    fn policy(&mut self, policy: Policy) {
        // Threads that an operator starts do not inherit a real-time policy.
        let flags = PolicyFlags {
            reset_on_fork: policy.is_real_time(),
            overrun_signal: matches!(policy, Policy::Deadline { .. }),
        };
        let set = policy.set(flags);
        let found = Policy::of_this_thread();
        let obtained = found.as_ref().map_or("unknown".to_string(), |(policy, _)| policy.to_string());
        let reason = match (&set, &found) {
            (Err(error), _) => {
                let refusal = rights::explain(&policy, error.raw_os_error().unwrap_or(0), &Rights::read());
                Some(refusal.to_string())
            }
            (Ok(()), Err(error)) => Some(error.to_string()),
            (Ok(()), Ok(_)) => None,
        };
        let granted = set.is_ok();
        self.say("policy", policy.to_string(), obtained, reason);
        let Some((_, found)) = found.ok().filter(|_| granted && policy.is_real_time()) else { return };
        let on = |flag| if flag { "on" } else { "off" }.to_string();
        self.say("reset on fork", on(true), on(found.reset_on_fork), None);
        if flags.overrun_signal {
            self.say("overrun signal", on(true), on(found.overrun_signal), None);
        }
    }

    fn stack(&mut self, bytes: usize) {
        let shown = |bytes: usize| format!("{bytes} bytes");
        let most = bytes.min(PREFAULT_MOST_BYTES);
        let (obtained, reason) = match memory::prefault_stack(most) {
            0 if most < bytes => (shown(most), Some("a stack has no room for more".to_string())),
            0 => (shown(bytes), None),
            faults => {
                let why = "the kernel takes the pages away again: lock_memory = true keeps them";
                (format!("{faults} pages are missing again"), Some(why.to_string()))
            }
        };
        self.say("stack brought in", shown(bytes), obtained, reason);
    }
}

/// Settings for the memory of chunk stores.
pub(super) struct StoreMemory {
    huge_pages: bool,
    /// By part: NUMA node of the cores that fill its chunks, if they have a common one. `None` on machines
    /// with one node.
    nodes: Option<Vec<Option<usize>>>,
    asked_numa: bool,
    placed: usize,
    wrong: Vec<String>,
    misplaced: Option<String>,
}

impl StoreMemory {
    pub fn new(plan: &Plan) -> Self {
        let numa = plan.options.numa && memory::nodes().len() > 1;
        let node = |pool: usize| {
            let core = |&worker: &usize| plan.workers[worker].core.and_then(memory::node_of_core);
            let nodes: Option<Vec<usize>> = plan.pools[pool].workers.iter().map(core).collect();
            let nodes = nodes?;
            nodes.windows(2).all(|pair| pair[0] == pair[1]).then(|| nodes.first().copied()).flatten()
        };
        StoreMemory {
            huge_pages: plan.options.huge_pages,
            nodes: numa.then(|| plan.parts.iter().map(|part| node(part.pool)).collect()),
            asked_numa: plan.options.numa,
            placed: 0,
            wrong: Vec::new(),
            misplaced: None,
        }
    }

    /// Applies the settings to the memory of a store of this part, before its first use.
    pub fn prepare(&mut self, part: usize, memory: &mut [MaybeUninit<u8>]) {
        if self.huge_pages
            && let Err(error) = memory::advise_huge_pages(memory)
        {
            self.wrong.push(error.to_string());
        }
        if let Some(node) = self.nodes.as_ref().and_then(|nodes| nodes[part]) {
            match memory::place_on_node(memory, node) {
                Ok(()) => self.placed += 1,
                Err(error) => self.misplaced = Some(error.to_string()),
            }
        }
    }

    /// Returns what was obtained. Called after all stores are made.
    pub fn obtained(&self, stores: usize) -> Vec<Obtained> {
        let mut all = Vec::new();
        let mut say = |what: &str, asked: String, obtained: String, reason| {
            all.push(Obtained { what: what.to_string(), asked, obtained, reason });
        };
        let nothing = (stores == 0).then(|| "there are no chunk stores".to_string());
        if self.huge_pages {
            let (obtained, reason) = match (memory::huge_bytes(), self.wrong.first()) {
                _ if stores == 0 => ("huge pages".to_string(), nothing.clone()),
                (_, Some(error)) => ("none".to_string(), Some(error.clone())),
                (0, None) => {
                    let why = "the kernel gave none: stores below 2 MiB have no room for one, and \
                               /sys/kernel/mm/transparent_hugepage/enabled must not be `never`";
                    ("none".to_string(), Some(why.to_string()))
                }
                (_, None) => ("huge pages".to_string(), None),
            };
            say("pages of chunk stores", "huge pages".to_string(), obtained, reason);
        }
        if self.asked_numa {
            let asked = "the node of their cores".to_string();
            let (obtained, reason) = match (&self.nodes, &self.misplaced) {
                _ if stores == 0 => (asked.clone(), nothing),
                (None, _) => (asked.clone(), Some("one node: nothing to place".to_string())),
                (Some(_), Some(error)) => ("anywhere".to_string(), Some(error.clone())),
                (Some(_), None) if self.placed < stores => {
                    let why = "pools without cores, or with cores of several nodes, have no node of their own: name cores of one";
                    (format!("{} of {stores} stores", self.placed), Some(why.to_string()))
                }
                (Some(_), None) => (asked.clone(), None),
            };
            say("place of chunk stores", asked, obtained, reason);
        }
        all
    }
}
