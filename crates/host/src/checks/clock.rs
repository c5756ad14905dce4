//! The clock, and what the firmware takes.

use super::Check;
use crate::case::Case;
use crate::fact::Fact;
use crate::finding::{Fix, Judged, Severity};

pub const CHECKS: &[Check] = &[
    Check {
        id: "clock-source",
        area: "clock",
        severity: Severity::Critical,
        title: "what time is taken from",
        what: "The processor's own counter (tsc) and kvm-clock are read without a system call. From hpet or acpi_pm every look costs a microsecond and more, and a spin loop then measures itself.",
        how: "Mend the firmware or the hypervisor so that the kernel trusts the tsc; tsc=reliable where you know that it is.",
        cost: "tsc=reliable on a machine where it is not: time runs wrong, and nobody says so.",
        skip: "Never for periods below a millisecond.",
        judge: source,
    },
    Check {
        id: "clock-read",
        area: "clock",
        severity: Severity::Warning,
        title: "what a look at the clock costs",
        what: "The engine looks at the clock for every span, and a spinning worker all the time.",
        how: "See clock-source; a kernel without vDSO, a seccomp filter or valgrind make a system call of it too.",
        cost: "None.",
        skip: "Never.",
        judge: read,
    },
    Check {
        id: "smi",
        area: "clock",
        severity: Severity::Warning,
        title: "system management interrupts",
        what: "The firmware takes all cores, for tens of microseconds up to milliseconds. No kernel can forbid it, and no tracepoint tells of it.",
        how: "In the BIOS: switch off legacy USB, power capping, memory scrubbing reports.",
        cost: "The features that are switched off.",
        skip: "Never switch off those that watch the temperature.",
        judge: smi,
    },
];

fn source(case: &Case) -> Judged {
    let source = match &case.facts.power.clock_source {
        Fact::Known(source) => source.as_str(),
        Fact::Unknown(why) => return Judged::unknown(why),
    };
    match source {
        "tsc" | "kvm-clock" | "arch_sys_counter" => Judged::good(source),
        "hyperv_clocksource_tsc_page" => Judged::good(source),
        _ => {
            let cost = case
                .measured
                .clock_read_ns
                .known()
                .map_or(String::new(), |ns| format!(" ({ns:.0} ns per look here)"));
            let fix = match case.facts.is_guest() {
                Some(true) => "have the hypervisor offer an invariant tsc or kvm-clock",
                _ => "mend the firmware; where the counter is known to be good, boot with tsc=reliable",
            };
            Judged::bad(format!(
                "time is taken from {}: every look is a system call{cost}",
                crate::fact::short(source)
            ))
            .fix(Fix::advice(fix))
        }
    }
}

/// Through the vDSO it takes 15 to 60 ns.
const SLOW_NS: f64 = 100.0;

fn read(case: &Case) -> Judged {
    match &case.measured.clock_read_ns {
        Fact::Known(ns) if *ns < SLOW_NS => Judged::good(format!("a look at the clock takes {ns:.1} ns")),
        Fact::Known(ns) => Judged::bad(format!("a look at the clock takes {ns:.0} ns: it is a system call"))
            .fix(Fix::advice("see `onbeat doctor --explain clock-source`")),
        Fact::Unknown(why) => Judged::unknown(why),
    }
}

fn smi(case: &Case) -> Judged {
    match &case.measured.smi {
        Fact::Known(0) => Judged::good("none while it was measured"),
        Fact::Known(count) => Judged::bad(format!("{count} while it was measured (nine seconds)"))
            .fix(Fix::advice("look for legacy USB, power capping and memory scrubbing in the BIOS")),
        Fact::Unknown(why) => Judged::unknown(why),
    }
}
