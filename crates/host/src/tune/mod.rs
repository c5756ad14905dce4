//! Tuning of a machine for quiet cores: a plan, made of the fixes of findings.

pub mod apply;
pub mod boot;
pub mod grants;
pub mod undo;

use crate::case::MachineCase;
use crate::doctor::Report;
use crate::finding::{Fix, State};
use onbeat_os::CoreSet;
use serde::Serialize;

/// Planned changes.
#[derive(Debug, Clone, Serialize)]
pub struct TuningPlan {
    /// The quiet cores.
    pub cpus: String,
    /// The cores left to the system.
    pub house: String,
    /// Parameters for the kernel's command line, from the next boot on.
    pub parameters: Vec<BootParameter>,
    /// Settings that take effect at once and can be undone.
    pub writes: Vec<Write>,
    /// Advice that a person has to follow, each with the finding that gives it.
    pub by_hand: Vec<(String, String)>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// A boot parameter and its purpose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BootParameter {
    /// Its name.
    pub name: String,
    /// Its value, if it has one.
    pub value: Option<String>,
    /// Its purpose.
    pub why: &'static str,
}

/// Value for a kernel file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Write {
    /// The file, without the leading slash.
    pub path: String,
    /// The value.
    pub value: String,
    /// The finding that asks for it.
    pub finding: String,
}

/// Why a plan cannot be made or applied, and what to do instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}; {fix}")]
pub struct TuneError {
    /// The problem.
    pub what: String,
    /// What to do instead.
    pub fix: String,
}

impl TuneError {
    pub(crate) fn new(what: impl Into<String>, fix: impl Into<String>) -> Self {
        TuneError { what: what.into(), fix: fix.into() }
    }
}

impl std::fmt::Display for BootParameter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{}={value}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// Plans the changes for the quiet cores of a case. `report` holds its findings; those for which `leave_out`
/// returns true are left alone.
///
/// # Errors
/// Quiet cores that are not online, and a choice that leaves no core to the system.
pub fn plan(
    case: &MachineCase,
    report: &Report,
    leave_out: &dyn Fn(&str) -> bool,
) -> Result<TuningPlan, TuneError> {
    let (cpus, online) = (&case.cpus, case.online());
    let beside = case.facts.cpus.siblings_of(cpus).common(&online);
    // Hardware threads that share a physical core with a quiet one are isolated with it: no thread should run
    // there.
    let kept = cpus.and(&beside);
    let house = online.without(&kept);
    check_cores(case, &online, &beside, &house)?;
    let mut notes = notes(cpus, &online, &beside, &house);
    let parameters = parameters(case, &kept, &house, &mut notes);
    let mut plan = TuningPlan {
        cpus: cpus.to_string(),
        house: house.to_string(),
        parameters,
        writes: Vec::new(),
        by_hand: Vec::new(),
        notes,
    };
    for finding in
        report.findings.iter().filter(|finding| finding.state == State::Bad && !leave_out(finding.id))
    {
        finding.fixes.iter().for_each(|fix| plan.add(finding.id, fix));
    }
    Ok(plan)
}

/// Refuses quiet cores that are not online, or that leave no core to the system.
fn check_cores(
    case: &MachineCase,
    online: &CoreSet,
    beside: &CoreSet,
    house: &CoreSet,
) -> Result<(), TuneError> {
    let cpus = &case.cpus;
    let missing = cpus.without(online);
    let (what, fix) = if online.is_empty() {
        let why = case.facts.cpus.online.why();
        (format!("the list of online cores is unknown: {why}"), "mount /sys".to_owned())
    } else if !missing.is_empty() {
        (format!("the cores {missing} are not online"), format!("name some of {online} with --cpus"))
    } else if cpus.is_empty() {
        ("no core is named".to_owned(), format!("name some of {online} with --cpus"))
    } else if online.without(cpus).is_empty() {
        let fix = match online.len() {
            1 => "this machine has one core and cannot spare it".to_owned(),
            _ => format!("leave at least one of {online} out"),
        };
        (format!("{cpus} are all cores of this machine: the system needs one, better two"), fix)
    } else if house.is_empty() {
        let what = format!(
            "{cpus} and their SMT siblings ({beside}) are all cores of this machine: the system needs one, better two"
        );
        (what, format!("leave a whole core out of {online}"))
    } else {
        return Ok(());
    };
    Err(TuneError::new(what, fix))
}

/// Notes on the choice of the quiet cores.
fn notes(cpus: &CoreSet, online: &CoreSet, beside: &CoreSet, house: &CoreSet) -> Vec<String> {
    let mut notes = Vec::new();
    if house.len() == 1 && online.len() > 2 {
        notes.push(format!("one core ({house}) is left to the system; two are better"));
    }
    if !beside.is_empty() {
        notes.push(format!(
            "{beside} share physical cores with {cpus}: they are isolated with them and should stay empty"
        ));
    }
    if cpus.contains(0) {
        notes.push(
            "core 0 boots the machine and keeps some of its work: choose another core if possible".to_owned(),
        );
    }
    notes
}

impl TuningPlan {
    /// Adds a fix of a finding. Boot parameters are left out: [`parameters`] has them all.
    fn add(&mut self, finding: &str, fix: &Fix) {
        match fix {
            Fix::Boot { .. } => {}
            Fix::Write { path, value } => {
                let write = Write { path: path.clone(), value: value.clone(), finding: finding.to_owned() };
                if !self.writes.iter().any(|known| known.path == write.path) {
                    self.writes.push(write);
                }
            }
            Fix::Command { line: text } | Fix::Advice { text } => {
                self.by_hand.push((finding.to_owned(), text.clone()));
            }
        }
    }
}

/// Returns all parameters for these cores, including those already in force: the new line should be complete.
fn parameters(
    case: &MachineCase,
    kept: &CoreSet,
    house: &CoreSet,
    notes: &mut Vec<String>,
) -> Vec<BootParameter> {
    let kernel = &case.facts.kernel;
    let mut parameters = Vec::new();
    let mut add = |name: &str, value: String, why| {
        parameters.push(BootParameter { name: name.to_owned(), value: Some(value), why });
    };
    add("isolcpus", format!("managed_irq,domain,{kept}"), "keeps threads and queue interrupts off them");
    match kernel.has("NO_HZ_FULL") {
        Some(false) => notes.push(
            "this kernel was built without NO_HZ_FULL: nohz_full is left out, and the tick stays".to_owned(),
        ),
        _ => add("nohz_full", kept.to_string(), "no tick while one thread runs"),
    }
    match kernel.has("RCU_NOCB_CPU") {
        Some(false) => {
            notes.push("this kernel was built without RCU_NOCB_CPU: rcu_nocbs is left out".to_owned());
        }
        _ => add("rcu_nocbs", kept.to_string(), "RCU callbacks run elsewhere"),
    }
    add("irqaffinity", house.to_string(), "device interrupts go to the other cores");
    let is_dynamic = kernel.version.known().is_some_and(|version| version.contains("PREEMPT_DYNAMIC"));
    if is_dynamic && kernel.is_realtime().known() == Some(&false) {
        add("preempt", "full".to_owned(), "system calls of other threads cause no delay");
    }
    if case.facts.is_guest() == Some(false) {
        add("nmi_watchdog", "0".to_owned(), "no NMI on every core");
        if case.online().len() >= 8 {
            add("skew_tick", "1".to_owned(), "spreads the ticks of the cores over time");
        }
    }
    if kernel.has("RT_GROUP_SCHED") == Some(true) && kernel.number() >= (6, 15) {
        add("rt_group_sched", "0".to_owned(), "services may have real-time threads");
    }
    parameters
}
