//! Machines made up of files in a temporary folder.

use std::fs;
use std::path::Path;

use onbeat_trace::Machine;
use onbeat_trace::machine::Tsc;
use tempfile::TempDir;

/// A path below the root and the content of the file there.
type MadeUp<'a> = (&'a str, &'a str);

/// Files with their contents, as a root to read from.
fn root(files: &[MadeUp]) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    root
}

fn read(files: &[MadeUp]) -> Machine {
    Machine::read_from(root(files).path())
}

/// A desktop on bare metal, tuned for real time.
const DESKTOP: &[MadeUp] = &[
    (
        "proc/cpuinfo",
        "processor\t: 0\nmodel name\t: Example CPU 9000\nflags\t\t: fpu tsc constant_tsc nonstop_tsc\n\n\
         processor\t: 1\nmodel name\t: Example CPU 9000\nflags\t\t: fpu tsc constant_tsc nonstop_tsc\n",
    ),
    ("proc/meminfo", "MemTotal:       16318964 kB\nMemFree:         1000000 kB\n"),
    (
        "proc/version",
        "Linux version 6.12.1-rt (x@y) (gcc 14) #1 SMP PREEMPT_RT Mon Jan  1 00:00:00 UTC 2025\n",
    ),
    ("proc/cmdline", "root=/dev/secret isolcpus=2-3 nohz_full=2-3 quiet processor.max_cstate=1 -- nosmt\n"),
    ("proc/sys/kernel/osrelease", "6.12.1-rt\n"),
    ("proc/sys/kernel/tainted", "4096\n"),
    ("sys/devices/system/cpu/online", "0-3,8\n"),
    ("sys/devices/system/cpu/possible", "0-15\n"),
    ("sys/devices/system/cpu/isolated", "2-3\n"),
    ("sys/devices/system/cpu/nohz_full", "2-3\n"),
    ("sys/devices/system/cpu/smt/active", "1\n"),
    ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
    ("sys/devices/system/cpu/cpu0/cache/index0/level", "1\n"),
    ("sys/devices/system/cpu/cpu0/cache/index0/type", "Data\n"),
    ("sys/devices/system/cpu/cpu0/cache/index0/size", "48K\n"),
    ("sys/devices/system/cpu/cpu0/cache/index1/level", "1\n"),
    ("sys/devices/system/cpu/cpu0/cache/index1/type", "Instruction\n"),
    ("sys/devices/system/cpu/cpu0/cache/index1/size", "32K\n"),
    ("sys/devices/system/cpu/cpu0/cache/index2/level", "2\n"),
    ("sys/devices/system/cpu/cpu0/cache/index2/type", "Unified\n"),
    ("sys/devices/system/cpu/cpu0/cache/index2/size", "2M\n"),
    ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
    ("etc/os-release", "NAME=\"Example\"\nPRETTY_NAME=\"Example Linux 12\"\n"),
];

#[test]
fn a_whole_machine() {
    let some = |text: &str| Some(text.to_owned());
    let expected = Machine {
        cpu_model: some("Example CPU 9000"),
        cores_online: Some(5),
        cores_possible: Some(16),
        cores_isolated: some("2-3"),
        cores_nohz_full: some("2-3"),
        smt: Some(true),
        l1d_bytes: Some(48 << 10),
        l2_bytes: Some(2 << 20),
        l3_bytes: None,
        tsc: Some(Tsc { constant: true, nonstop: true, reliable: false, known_frequency: false }),
        clock_source: some("tsc"),
        governor: some("performance"),
        virtualisation: some("none"),
        memory_bytes: Some(16_318_964 * 1024),
        kernel: some("6.12.1-rt"),
        preemption: some("PREEMPT_RT"),
        tainted: Some(4096),
        kernel_parameters: Some(
            ["isolcpus=2-3", "nohz_full=2-3", "processor.max_cstate=1"].map(str::to_owned).into(),
        ),
        distribution: some("Example Linux 12"),
    };
    assert_eq!(read(DESKTOP), expected);
}

#[test]
fn a_machine_that_tells_nothing_is_no_error() {
    assert_eq!(read(&[]), Machine::default());
    assert_eq!(Machine::read_from(Path::new("/nowhere/at/all")), Machine::default());
}

#[test]
fn nonsense_is_unknown() {
    let machine = read(&[
        ("proc/cpuinfo", "\u{0}garbage"),
        ("proc/meminfo", "MemTotal: lots\n"),
        ("proc/version", "Linux"),
        ("proc/sys/kernel/tainted", "yes"),
        ("sys/devices/system/cpu/online", "3-0"),
        ("sys/devices/system/cpu/possible", ""),
        ("sys/devices/system/cpu/smt/active", "maybe"),
        ("sys/devices/system/cpu/cpu0/cache/index0/level", "1"),
        ("sys/devices/system/cpu/cpu0/cache/index0/type", "Data"),
        ("sys/devices/system/cpu/cpu0/cache/index0/size", "99999999999999999999K"),
    ]);
    assert_eq!(machine, Machine::default());
}

#[test]
fn who_runs_the_machine() {
    const GUEST: MadeUp = ("proc/cpuinfo", "flags : fpu hypervisor\n");
    const METAL: MadeUp = ("proc/cpuinfo", "flags : fpu\n");
    const ARM: MadeUp = ("proc/cpuinfo", "Features : fp asimd\n");
    const DMI: &str = "sys/class/dmi/id/sys_vendor";
    const CLOCKS: &str = "sys/devices/system/clocksource/clocksource0/available_clocksource";
    let cases: &[(&str, &[MadeUp], Option<&str>)] = &[
        ("bare metal", &[METAL, (DMI, "Dell Inc.")], Some("none")),
        ("a guest that hides its name", &[GUEST], Some("unknown hypervisor")),
        ("by its DMI vendor", &[GUEST, (DMI, "QEMU\n")], Some("qemu")),
        ("by its product", &[GUEST, ("sys/class/dmi/id/product_name", "VirtualBox")], Some("oracle")),
        ("by its clocks", &[GUEST, (CLOCKS, "tsc kvm-clock acpi_pm")], Some("kvm")),
        ("Xen reports itself", &[GUEST, ("sys/hypervisor/type", "xen\n")], Some("xen")),
        ("the first domain of Xen", &[METAL, ("sys/hypervisor/type", "xen\n")], Some("xen")),
        ("an ARM guest", &[ARM, (DMI, "QEMU")], Some("qemu")),
        ("an ARM board gives no sign", &[ARM], None),
    ];
    for (title, files, expected) in cases {
        assert_eq!(read(files).virtualisation.as_deref(), *expected, "{title}");
    }
}

#[test]
fn how_the_kernel_is_preempted() {
    const MODES: &str = "sys/kernel/debug/sched/preempt";
    let version = |word: &str| format!("Linux version 6.1.0 (a@b) #1 SMP {word} @0\n");
    let cases: &[(&str, Option<&str>, Option<&str>)] = &[
        ("PREEMPT_DYNAMIC", Some("none voluntary (full) lazy\n"), Some("PREEMPT_DYNAMIC (full)")),
        ("PREEMPT_DYNAMIC", None, Some("PREEMPT_DYNAMIC")),
        ("PREEMPT", None, Some("PREEMPT")),
        ("", None, None),
    ];
    for (word, modes, expected) in cases {
        let version = version(word);
        let mut files = vec![("proc/version", version.as_str())];
        files.extend(modes.map(|modes| (MODES, modes)));
        assert_eq!(read(&files).preemption.as_deref(), *expected, "{word} {modes:?}");
    }
}

#[test]
fn a_list_of_cores_that_was_never_set_up_is_empty() {
    let machine = read(&[("sys/devices/system/cpu/nohz_full", "(null)\n")]);
    assert_eq!(machine.cores_nohz_full.as_deref(), Some(""));
}

#[test]
fn this_machine_has_a_kernel_and_cores() {
    let machine = Machine::read();
    assert!(machine.kernel.is_some());
    assert!(machine.cores_online >= Some(1));
}
