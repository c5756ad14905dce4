//! Clock rates and idle states.

use super::Check;
use crate::case::MachineCase;
use crate::fact::Fact;
use crate::finding::{Fix, Judgement, Severity};
use onbeat_os::CoreSet;

pub const CHECKS: &[Check] = &[
    Check {
        id: "governor",
        area: "power",
        severity: Severity::Warning,
        title: "clock rates",
        what: "A power-saving governor lowers the clock rate of a core that mostly waits. Its next step then takes longer, by up to the ratio of the rates.",
        how: "Write performance to scaling_governor of these cores, or cpupower frequency-set -g performance for all.",
        cost: "Power and heat; the heat may lower the turbo rate of other cores.",
        skip: "In a virtual machine, where the host decides.",
        judge: governor,
    },
    Check {
        id: "energy-bias",
        area: "power",
        severity: Severity::Info,
        title: "balance between performance and power",
        what: "The processor chooses its clock rate by this preference (EPP, EPB).",
        how: "Write performance to energy_performance_preference, 0 to energy_perf_bias.",
        cost: "Power.",
        skip: "If the governor is performance and the clock rate stays constant.",
        judge: bias,
    },
    Check {
        id: "idle-states",
        area: "power",
        severity: Severity::Warning,
        title: "deep idle states",
        what: "A core in a deep idle state needs its exit latency to wake up, before it runs any thread or interrupt.",
        how: "Let the program hold /dev/cpu_dma_latency (dma_latency = \"0us\" in the pipeline, --dma-latency 0): the request ends with the program. Per core: pm_qos_resume_latency_us = n/a.",
        cost: "Power: these cores never enter deeper states.",
        skip: "If every deadline is far above the largest exit latency.",
        judge: idle_states,
    },
    Check {
        id: "dma-latency",
        area: "power",
        severity: Severity::Warning,
        title: "wake-up latency with and without idle states",
        what: "Latency of a timer that wakes a FIFO thread: with the machine's current settings, and while /dev/cpu_dma_latency is held at 0.",
        how: "dma_latency = \"0us\" in the pipeline, or --dma-latency 0us: the request is held until the last cycle ends.",
        cost: "Idle cores consume power.",
        skip: "If the difference is small compared with the deadline.",
        judge: dma_latency,
    },
    Check {
        id: "haltpoll",
        area: "power",
        severity: Severity::Info,
        title: "polling before an idle guest halts",
        what: "A virtual CPU that halts goes back to the hypervisor; waking it takes tens of microseconds. With haltpoll it first polls for work for a while.",
        how: "Write 200000 or more to /sys/module/haltpoll/parameters/guest_halt_poll_ns.",
        cost: "A busy virtual CPU, which the host may bill or share.",
        skip: "On bare metal, or if other guests need the host's cores.",
        judge: haltpoll,
    },
];

/// Judges a value that each core has, and gives the fixes for cores whose value is not a good one.
fn values(
    case: &MachineCase,
    fact: &Fact<Vec<(String, CoreSet)>>,
    what: &str,
    good: &[&str],
    file: &str,
    value: &str,
) -> Judgement {
    let found = match fact {
        Fact::Known(found) => found,
        Fact::Unknown(why) => return Judgement::unknown(why),
    };
    let of_ours = |(value, cores): &(String, CoreSet)| {
        let ours = cores.common(&case.cpus);
        (!ours.is_empty()).then(|| (value.clone(), ours))
    };
    let ours: Vec<(String, CoreSet)> = found.iter().filter_map(of_ours).collect();
    let shown = |sets: &[(String, CoreSet)]| {
        sets.iter().map(|(value, cores)| format!("{value} on {cores}")).collect::<Vec<_>>().join(", ")
    };
    let (fine, bad): (Vec<_>, Vec<_>) =
        ours.into_iter().partition(|(value, _)| good.contains(&value.as_str()));
    if bad.is_empty() {
        return match fine.is_empty() {
            true => Judgement::unknown(format!("no core of {} has a {what}", case.cpus)),
            false => Judgement::good(format!("{what}: {}", shown(&fine))),
        };
    }
    let cores = bad.iter().flat_map(|(_, cores)| cores.iter());
    let fixes: Vec<Fix> =
        cores.map(|core| Fix::write(format!("sys/devices/system/cpu/cpu{core}/{file}"), value)).collect();
    Judgement::bad(format!("{what}: {}", shown(&bad))).fixes(fixes)
}

fn governor(case: &MachineCase) -> Judgement {
    let fact = &case.facts.power.governors;
    let lists = case.facts.power.known_governors.known().into_iter().flatten();
    let lacks = |list: &str| !list.split_whitespace().any(|name| name == "performance");
    let is_ours = |cores: &CoreSet| !cores.common(&case.cpus).is_empty();
    if let Some((list, cores)) = lists.clone().find(|(list, cores)| is_ours(cores) && lacks(list)) {
        let judged = values(case, fact, "governor", &[], "cpufreq/scaling_governor", "performance");
        return Judgement::bad(format!(
            "{}; {cores} lack the governor `performance`: there are {list}",
            judged.evidence
        ))
        .fix(Fix::advice(
            "load the module cpufreq_performance, or set scaling_min_freq to scaling_max_freq",
        ));
    }
    values(case, fact, "governor", &["performance"], "cpufreq/scaling_governor", "performance")
}

fn bias(case: &MachineCase) -> Judgement {
    let power = &case.facts.power;
    if power.preferences.known().is_some() {
        let file = "cpufreq/energy_performance_preference";
        return values(case, &power.preferences, "preference", &["performance", "0"], file, "performance");
    }
    values(case, &power.biases, "bias", &["0", "performance"], "power/energy_perf_bias", "0")
}

fn idle_states(case: &MachineCase) -> Judgement {
    let power = &case.facts.power;
    let states = match &power.idle_states {
        Fact::Known(states) => states,
        Fact::Unknown(why) => return Judgement::unknown(why),
    };
    let slack_us = case
        .pipeline
        .as_ref()
        .and_then(|pipeline| pipeline.shortest_ns)
        .map_or(10, |ns| i64::try_from(ns / 1000 / 20).unwrap_or(i64::MAX).max(1));
    let held = case.pipeline.as_ref().and_then(|pipeline| pipeline.dma_latency_us).map(i64::from);
    let kept_us = power.dma_latency_us.known().copied().unwrap_or(i64::MAX).min(held.unwrap_or(i64::MAX));
    let awake = case.cpus.without(&power.kept_awake).is_empty();
    let deep: Vec<String> = states
        .iter()
        .filter(|state| state.enabled && state.latency_us > slack_us && state.latency_us <= kept_us && !awake)
        .map(|state| format!("{} ({} us)", state.name, state.latency_us))
        .collect();
    let all: Vec<String> =
        states.iter().map(|state| format!("{} {} us", state.name, state.latency_us)).collect();
    if deep.is_empty() {
        return Judgement::good(format!(
            "no idle state in use takes longer than {slack_us} us, or it is already prevented: {}",
            all.join(", ")
        ));
    }
    let qos = case.cpus.iter().next().map_or(String::new(), |core| {
        format!("; for one core: echo n/a > /sys/devices/system/cpu/cpu{core}/power/pm_qos_resume_latency_us")
    });
    Judgement::bad(format!("waking up from {} takes longer than {slack_us} us", deep.join(", "))).fix(
        Fix::advice(format!(
            "dma_latency = \"0us\" in the pipeline (--dma-latency 0us), which holds while it runs{qos}"
        )),
    )
}

/// A smaller gain does not justify a finding.
const WORTH_NS: u64 = 5_000;

fn dma_latency(case: &MachineCase) -> Judgement {
    let power = &case.facts.power;
    let (wake, awake) = match (&case.measured.wake, &case.measured.wake_awake) {
        (Fact::Known(wake), Fact::Known(awake)) => (wake, awake),
        (Fact::Unknown(why), _) | (_, Fact::Unknown(why)) => return Judgement::unknown(why),
    };
    let one = |wake: &crate::measured::WakeLatency| {
        format!(
            "{:.1}/{:.1}/{:.1}",
            wake.median_ns as f64 / 1e3,
            wake.p99_ns as f64 / 1e3,
            wake.max_ns as f64 / 1e3
        )
    };
    let seen = format!(
        "a timer wakes a FIFO thread {} us late (median/p99/max); {} us while dma latency is held at 0",
        one(wake),
        one(awake)
    );
    let held_us = case.pipeline.as_ref().and_then(|pipeline| pipeline.dma_latency_us);
    let in_force =
        power.dma_latency_us.known().map_or(String::new(), |us| format!("; the limit now is {us} us"));
    let gain_ns =
        wake.median_ns.saturating_sub(awake.median_ns).max(wake.p99_ns.saturating_sub(awake.p99_ns));
    if held_us == Some(0) {
        return Judgement::good(format!("{seen}; the pipeline holds it"));
    }
    match gain_ns >= WORTH_NS && awake.median_ns < wake.median_ns {
        true => Judgement::bad(format!("{seen}{in_force}"))
            .fix(Fix::advice("dma_latency = \"0us\" in the pipeline, or --dma-latency 0us")),
        false => Judgement::good(format!("{seen}: holding it would not help")),
    }
}

fn haltpoll(case: &MachineCase) -> Judgement {
    match case.facts.is_guest() {
        Some(false) => return Judgement::good("this is not a virtual machine"),
        None => return Judgement::unknown(case.facts.cpus.flags.why().to_owned()),
        Some(true) => {}
    }
    match &case.facts.power.halt_poll_ns {
        Fact::Known(ns) if *ns > 0 => {
            Judgement::good(format!("an idle virtual CPU polls for work for {ns} ns before it halts"))
        }
        Fact::Known(ns) => {
            let wake = case.measured.wake.known().map_or(String::new(), |wake| {
                format!("; a wake-up took {} here (median)", super::us(wake.median_ns))
            });
            Judgement::bad(format!(
                "haltpoll is off ({ns} ns): an idle virtual CPU goes back to the hypervisor at once{wake}"
            ))
            .fix(Fix::write("sys/module/haltpoll/parameters/guest_halt_poll_ns", "200000"))
        }
        Fact::Unknown(why) => Judgement::unknown(why),
    }
}
