//! Cores to measure, and cores for all other threads meanwhile.

use crate::error::NoiseError;
use onbeat_os::{CoreSet, Policy, thread};
use std::fs;

/// Returns the cores to measure: those asked for, or all that this process may run on.
///
/// # Errors
/// A core that does not exist, is offline, or is not in this process' cpuset.
pub fn cpus(asked: Option<&CoreSet>) -> Result<Vec<usize>, NoiseError> {
    let online = CoreSet::online().map_err(NoiseError::os("the list of CPUs"))?;
    let allowed = thread::cores().map_err(NoiseError::os("the CPUs of this process"))?;
    let Some(asked) = asked else { return Ok(allowed.iter().collect()) };
    if let Some(cpu) = asked.iter().find(|cpu| !allowed.contains(*cpu) && !can_be_had(*cpu, &allowed)) {
        let is_there = fs::exists(format!("/sys/devices/system/cpu/cpu{cpu}")).unwrap_or(false);
        let (why, fix) = match (online.contains(cpu), is_there) {
            (true, _) => {
                ("is not in the cpuset of this process", "widen its cpuset, or name other CPUs".to_owned())
            }
            (_, true) => ("is offline", format!("echo 1 | sudo tee /sys/devices/system/cpu/cpu{cpu}/online")),
            _ => ("does not exist", format!("name some of {allowed} with -c")),
        };
        return Err(NoiseError::Cpu { cpu, why, online, fix });
    }
    Ok(asked.iter().collect())
}

/// Whether the calling thread may use a core outside its own set. Isolated cores (`isolcpus=`) are in no
/// thread's set until a thread asks for them; cores outside the cpuset are refused.
fn can_be_had(cpu: usize, own: &CoreSet) -> bool {
    let Ok(only) = CoreSet::from_cores([cpu]) else { return false };
    let is_given = thread::set_cores(&only).is_ok();
    if is_given {
        // If the cores of its own set were taken away meanwhile, the thread stays where it is.
        let _refused = thread::set_cores(own);
    }
    is_given
}

/// Keeps the calling thread off the measured cores; dropping it puts the thread back.
#[derive(Debug)]
#[must_use = "dropping it puts the thread back"]
pub struct House {
    before: CoreSet,
    /// Note for readers of the measurement.
    pub note: Option<String>,
}

impl House {
    /// Moves the calling thread, and threads that it starts, off the measured cores: to `asked`, or to all
    /// other cores.
    ///
    /// # Errors
    /// Cores that are not available.
    pub fn keep(asked: Option<&CoreSet>, measured: &[usize]) -> Result<Self, NoiseError> {
        let before = thread::cores().map_err(NoiseError::os("the CPUs of this process"))?;
        let house = match asked {
            Some(asked) => asked.clone(),
            None => spare(&before, measured)?,
        };
        if house.is_empty() {
            let note = "all CPUs are measured, so onbeat's own bookkeeping runs on them: it is part of the noise, named after \
                        the thread `onbeat`; leave it one with -c or -H";
            return Ok(House { before, note: Some(note.to_owned()) });
        }
        thread::set_cores(&house).map_err(|error| NoiseError::Settings(format!("-H {house}: {error}")))?;
        let both: Vec<usize> = house.iter().filter(|cpu| measured.contains(cpu)).collect();
        let note = (!both.is_empty()).then(|| {
            format!(
                "CPUs {both:?} are both measured and used for house-keeping: onbeat's own bookkeeping is part of their noise"
            )
        });
        Ok(House { before, note })
    }
}

impl Drop for House {
    fn drop(&mut self) {
        // If the cores of its own set were taken away meanwhile, the thread stays where it is.
        let _refused = thread::set_cores(&self.before);
    }
}

/// Returns the cores that are not measured: those of the thread's own set, or any other available ones, such
/// as isolated cores.
fn spare(own: &CoreSet, measured: &[usize]) -> Result<CoreSet, NoiseError> {
    let set = |cores: Vec<usize>| {
        CoreSet::from_cores(cores).map_err(|error| NoiseError::Settings(error.to_string()))
    };
    let left = set(own.iter().filter(|cpu| !measured.contains(cpu)).collect())?;
    if !left.is_empty() {
        return Ok(left);
    }
    let online = CoreSet::online().map_err(NoiseError::os("the list of CPUs"))?;
    set(online.iter().filter(|cpu| !measured.contains(cpu) && can_be_had(*cpu, own)).collect())
}

/// Refuses settings that would hang the machine: a thread that never sleeps and runs before all kernel
/// threads.
///
/// # Errors
/// The policy, and a safe alternative.
pub fn check_policy(
    policy: Option<Policy>,
    never_sleeps: bool,
    measured: &[usize],
) -> Result<(), NoiseError> {
    let Some(policy) = policy.filter(|policy| policy.is_real_time() && never_sleeps) else { return Ok(()) };
    if policy.priority() == Some(99) {
        return Err(NoiseError::Settings(format!(
            "-P {policy}: at priority 99 a busy loop runs before the kernel's own threads (migration, watchdog) and can hang this \
             machine; take f:98 or less"
        )));
    }
    let runtime = fs::read_to_string("/proc/sys/kernel/sched_rt_runtime_us").unwrap_or_default();
    let own = thread::cores().map_err(NoiseError::os("the CPUs of this process"))?;
    if !spare(&own, measured)?.is_empty() {
        return Ok(());
    }
    let is_preempt_rt = fs::read_to_string("/sys/kernel/realtime").is_ok_and(|text| text.trim() == "1");
    if is_preempt_rt && has_fair_server() {
        return Err(NoiseError::Settings(format!(
            "-P {policy}: on this kernel (PREEMPT_RT, 6.12 or later) timers are threads of priority f:1, and no limit stops busy \
             real-time threads for them: on all CPUs they would hang this machine; leave a CPU out with -c, or, in `noise top` and \
             `noise hist`, let them sleep with -r below -p"
        )));
    }
    if runtime.trim() == "-1" {
        return Err(NoiseError::Settings(format!(
            "-P {policy}: kernel.sched_rt_runtime_us is -1, so busy real-time threads on all CPUs would leave nothing to anybody \
             else; leave a CPU out with -c, or, in `noise top` and `noise hist`, let them sleep with -r below -p"
        )));
    }
    Ok(())
}

/// Whether normal threads get time next to busy real-time ones by the fair server (6.12 and later).
#[must_use]
pub fn has_fair_server() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse::<u32>().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (6, 12)
}
