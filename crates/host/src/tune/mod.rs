//! What to change on a machine so that some of its cores are quiet: a plan, made of the fixes of findings.

pub mod apply;
pub mod boot;
pub mod grants;
pub mod undo;

use crate::case::Case;
use crate::doctor::Report;
use crate::finding::{Fix, State};
use onbeat_os::CoreSet;
use serde::Serialize;

/// What is to be changed.
#[derive(Debug, Clone, Serialize)]
pub struct Plan {
    /// The cores that are to be quiet.
    pub cpus: String,
    /// The cores that are left to the system.
    pub house: String,
    /// Parameters for the kernel's command line, from the next boot on.
    pub parameters: Vec<Parameter>,
    /// What the kernel takes at once, and can be put back.
    pub writes: Vec<Write>,
    /// What is left to whoever knows the machine, with the finding that asks for it.
    pub by_hand: Vec<(String, String)>,
    /// What a reader has to know.
    pub notes: Vec<String>,
}

/// A parameter, and what it is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its value, if it has one.
    pub value: Option<String>,
    /// What it is for.
    pub why: &'static str,
}

/// A value for a file of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Write {
    /// The file, without the slash in front.
    pub path: String,
    /// The value.
    pub value: String,
    /// The finding that asks for it.
    pub finding: String,
}

/// Why nothing can be planned or done: what, its value, and what to do instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}; {fix}")]
pub struct Error {
    /// What is wrong.
    pub what: String,
    /// What to do instead.
    pub fix: String,
}

impl Error {
    pub(crate) fn new(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Error { what: what.into(), fix: fix.into() }
    }
}

impl std::fmt::Display for Parameter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{}={value}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// Plans for the cores of a case. `report` is what was found there; findings that `leave_out` names are left alone.
///
/// # Errors
/// Cores that are not there, and a choice that leaves none to the system.
pub fn plan(case: &Case, report: &Report, leave_out: &dyn Fn(&str) -> bool) -> Result<Plan, Error> {
    let (cpus, online) = (&case.cpus, case.online());
    if online.is_empty() {
        let why = case.facts.cpus.online.why();
        return Err(Error::new(format!("nobody knows which cores this machine has: {why}"), "mount /sys"));
    }
    let missing = cpus.without(&online);
    if !missing.is_empty() {
        return Err(Error::new(
            format!("the cores {missing} are not online"),
            format!("name some of {online} with --cpus"),
        ));
    }
    if cpus.is_empty() {
        return Err(Error::new("no core is named", format!("name some of {online} with --cpus")));
    }
    let left = online.without(cpus);
    if left.is_empty() {
        return Err(Error::new(
            format!("{cpus} are all cores of this machine: the system needs one, better two"),
            match online.len() {
                1 => "this machine has one core and cannot spare it".to_owned(),
                _ => format!("leave at least one of {online} out"),
            },
        ));
    }
    // Whoever shares a physical core with a quiet one is isolated with it: nobody should run there.
    let beside = case.facts.cpus.siblings_of(cpus).common(&online);
    let kept = cpus.and(&beside);
    let house = online.without(&kept);
    if house.is_empty() {
        return Err(Error::new(
            format!(
                "{cpus} and the hardware threads beside them ({beside}) are all cores of this machine: the system needs one, better two"
            ),
            format!("leave a whole core out of {online}"),
        ));
    }
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
            "core 0 boots the machine, and much stays there: choose others if there are some".to_owned(),
        );
    }
    let parameters = parameters(case, &kept, &house, &mut notes);
    let mut plan = Plan {
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
        for fix in &finding.fixes {
            match fix {
                // All of them are above.
                Fix::Boot { .. } => {}
                Fix::Write { path, value } => {
                    let write =
                        Write { path: path.clone(), value: value.clone(), finding: finding.id.to_owned() };
                    if !plan.writes.iter().any(|known| known.path == write.path) {
                        plan.writes.push(write);
                    }
                }
                Fix::Command { line: text } | Fix::Advice { text } => {
                    plan.by_hand.push((finding.id.to_owned(), text.clone()));
                }
            }
        }
    }
    Ok(plan)
}

/// All that belong to these cores, also those that are there already: the line is to be complete.
fn parameters(case: &Case, kept: &CoreSet, house: &CoreSet, notes: &mut Vec<String>) -> Vec<Parameter> {
    let kernel = &case.facts.kernel;
    let mut parameters = Vec::new();
    let mut add = |name: &str, value: String, why| {
        parameters.push(Parameter { name: name.to_owned(), value: Some(value), why });
    };
    add("isolcpus", format!("managed_irq,domain,{kept}"), "threads and queue interrupts keep off them");
    match kernel.has("NO_HZ_FULL") {
        Some(false) => notes.push(
            "this kernel is built without NO_HZ_FULL: nohz_full is left out, and the tick stays".to_owned(),
        ),
        _ => add("nohz_full", kept.to_string(), "no tick where one thread runs"),
    }
    match kernel.has("RCU_NOCB_CPU") {
        Some(false) => {
            notes.push("this kernel is built without RCU_NOCB_CPU: rcu_nocbs is left out".to_owned());
        }
        _ => add("rcu_nocbs", kept.to_string(), "RCU callbacks run elsewhere"),
    }
    add("irqaffinity", house.to_string(), "interrupts of devices go there");
    let is_dynamic = kernel.version.known().is_some_and(|version| version.contains("PREEMPT_DYNAMIC"));
    if is_dynamic && kernel.is_realtime().known() == Some(&false) {
        add("preempt", "full".to_owned(), "system calls of others do not hold up");
    }
    if case.facts.is_guest() == Some(false) {
        add("nmi_watchdog", "0".to_owned(), "no NMI on every core");
        if case.online().len() >= 8 {
            add("skew_tick", "1".to_owned(), "ticks of cores do not come at once");
        }
    }
    if kernel.has("RT_GROUP_SCHED") == Some(true) && kernel.number() >= (6, 15) {
        add("rt_group_sched", "0".to_owned(), "services may have real-time threads");
    }
    parameters
}
