//! Clock source, and interrupts of the firmware.

use super::Check;
use crate::case::MachineCase;
use crate::fact::Fact;
use crate::finding::{Fix, Judgement, Severity};

pub const CHECKS: &[Check] = &[
    Check {
        id: "clock-source",
        area: "clock",
        severity: Severity::Critical,
        title: "the clock source",
        what: "The processor's own counter (tsc) and kvm-clock are read without a system call. With hpet or acpi_pm, every clock read costs a microsecond or more, and a spin loop then measures itself.",
        how: "Correct the firmware or the hypervisor so that the kernel trusts the tsc; boot with tsc=reliable only if you know that the tsc is reliable.",
        cost: "tsc=reliable on a machine with an unreliable tsc: time is wrong, and the kernel reports no error.",
        skip: "Never for periods below a millisecond.",
        judge: source,
    },
    Check {
        id: "clock-read",
        area: "clock",
        severity: Severity::Warning,
        title: "cost of a clock read",
        what: "The engine reads the clock for every span; a spinning worker reads it all the time.",
        how: "See clock-source. A kernel without vDSO, a seccomp filter or valgrind also turns each read into a system call.",
        cost: "None.",
        skip: "Never.",
        judge: read,
    },
    Check {
        id: "smi",
        area: "clock",
        severity: Severity::Warning,
        title: "system management interrupts",
        what: "The firmware takes all cores, for tens of microseconds up to milliseconds. The kernel cannot prevent it, and no tracepoint shows it.",
        how: "In the BIOS, switch off legacy USB, power capping and memory scrubbing reports.",
        cost: "The features that you switch off.",
        skip: "Never switch off the interrupts that watch the temperature.",
        judge: smi,
    },
];

fn source(case: &MachineCase) -> Judgement {
    let source = match &case.facts.power.clock_source {
        Fact::Known(source) => source.as_str(),
        Fact::Unknown(why) => return Judgement::unknown(why),
    };
    match source {
        "tsc" | "kvm-clock" | "arch_sys_counter" => Judgement::good(source),
        "hyperv_clocksource_tsc_page" => Judgement::good(source),
        _ => {
            let cost = case
                .measured
                .clock_read_ns
                .known()
                .map_or(String::new(), |ns| format!(" ({ns:.0} ns per clock read here)"));
            let fix = match case.facts.is_guest() {
                Some(true) => "have the hypervisor offer an invariant tsc or kvm-clock",
                _ => "correct the firmware; if the counter is known to be good, boot with tsc=reliable",
            };
            Judgement::bad(format!(
                "the clock source is {}: every clock read is a system call{cost}",
                crate::fact::short(source)
            ))
            .fix(Fix::advice(fix))
        }
    }
}

/// A read through the vDSO takes 15 to 60 ns.
const SLOW_NS: f64 = 100.0;

fn read(case: &MachineCase) -> Judgement {
    match &case.measured.clock_read_ns {
        Fact::Known(ns) if *ns < SLOW_NS => Judgement::good(format!("a clock read takes {ns:.1} ns")),
        Fact::Known(ns) => Judgement::bad(format!("a clock read takes {ns:.0} ns: it is a system call"))
            .fix(Fix::advice("see `onbeat doctor --explain clock-source`")),
        Fact::Unknown(why) => Judgement::unknown(why),
    }
}

fn smi(case: &MachineCase) -> Judgement {
    match &case.measured.smi {
        Fact::Known(0) => Judgement::good("none during the measurement"),
        Fact::Known(count) => Judgement::bad(format!("{count} during the measurement (nine seconds)"))
            .fix(Fix::advice("look for legacy USB, power capping and memory scrubbing in the BIOS")),
        Fact::Unknown(why) => Judgement::unknown(why),
    }
}
