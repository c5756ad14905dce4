//! Detection of a virtual machine and its hypervisor.

use std::path::Path;

use super::text;

/// Unique parts of hypervisors' DMI vendor or product names, and our word for each. The words are those of
/// `systemd-detect-virt(1)`.
const DMI_NAMES: &[(&str, &str)] = &[
    ("KVM", "kvm"),
    ("OpenStack", "kvm"),
    ("Amazon EC2", "amazon"),
    ("Google Compute Engine", "google"),
    ("QEMU", "qemu"),
    ("VMware", "vmware"),
    ("VirtualBox", "oracle"),
    ("innotek GmbH", "oracle"),
    ("Xen", "xen"),
    ("Bochs", "bochs"),
    ("Parallels", "parallels"),
    ("BHYVE", "bhyve"),
    ("Hyper-V", "microsoft"),
    ("Virtual Machine", "microsoft"),
    ("Apple Virtualization", "apple"),
];

/// Clock sources that only a hypervisor offers, and our word for the hypervisor.
const CLOCK_SOURCES: &[(&str, &str)] = &[("kvm-clock", "kvm"), ("hyperv", "microsoft"), ("xen", "xen")];

/// Word for a hypervisor that hides its name.
const SOME: &str = "unknown hypervisor";

/// Detects the hypervisor. `flags` are those of `/proc/cpuinfo`, which only x86 has.
///
/// `none` needs proof by the processor: hypervisors set the flag `hypervisor` on x86. On other processors,
/// the absence of any sign proves nothing, and the result is `None`.
pub(super) fn read(root: &Path, flags: Option<&str>) -> Option<String> {
    let flagged = flags.map(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"));
    if flagged == Some(false) {
        // Xen's first domain sees the real flags of the processor, although it is a guest.
        return Some(text(root, "sys/hypervisor/type").unwrap_or_else(|| "none".to_owned()));
    }
    let name = text(root, "sys/hypervisor/type")
        .or_else(|| from_dmi(root).map(str::to_owned))
        .or_else(|| from_clock_sources(root).map(str::to_owned));
    match flagged {
        Some(true) => Some(name.unwrap_or_else(|| SOME.to_owned())),
        _ => name,
    }
}

fn from_dmi(root: &Path) -> Option<&'static str> {
    let facts: Vec<String> = ["product_name", "sys_vendor", "board_vendor", "bios_vendor"]
        .iter()
        .filter_map(|name| text(root, &format!("sys/class/dmi/id/{name}")))
        .collect();
    find(DMI_NAMES, &facts.join("\n"))
}

fn from_clock_sources(root: &Path) -> Option<&'static str> {
    let path = "sys/devices/system/clocksource/clocksource0/available_clocksource";
    find(CLOCK_SOURCES, &text(root, path)?)
}

fn find(names: &[(&str, &'static str)], text: &str) -> Option<&'static str> {
    names.iter().find(|(part, _)| text.contains(part)).map(|(_, word)| *word)
}
