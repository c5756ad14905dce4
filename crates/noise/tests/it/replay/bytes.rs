//! The kernel's bytes, decoded by its own descriptions, of two kernels with different field positions.

use onbeat_noise::decode::{Extent, Form, Id, RecordKind, RingRecord, TracepointLayout, decode};
use onbeat_os::tracefs::Tracefs;
use onbeat_trace::Class;
use proptest::prelude::*;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

/// A tracefs with these tracepoints: group, name, id, fields as `declaration offset size signed`.
fn tracefs(root: &Path, tracepoints: &[(&str, &str, u32, &[&str])]) -> Tracefs {
    for (group, name, id, fields) in tracepoints {
        let folder = root.join("events").join(group).join(name);
        fs::create_dir_all(&folder).unwrap();
        let mut text = format!("name: {name}\nID: {id}\nformat:\n");
        for field in *fields {
            let mut parts: Vec<&str> = field.rsplitn(4, ' ').collect();
            parts.reverse();
            let [declaration, offset, size, signed] = parts[..] else { panic!("{field}") };
            text += &format!("\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n");
        }
        fs::write(folder.join("format"), text).unwrap();
    }
    Tracefs::at(root)
}

const SWITCH: &[&str] = &[
    "int common_pid 4 4 1",
    "char prev_comm[16] 8 16 0",
    "pid_t prev_pid 24 4 1",
    "int prev_prio 28 4 1",
    "long prev_state 32 8 1",
    "char next_comm[16] 40 16 0",
    "pid_t next_pid 56 4 1",
    "int next_prio 60 4 1",
];
/// The same fields at other positions.
const SWITCH_ELSEWHERE: &[&str] = &[
    "int common_pid 4 4 1",
    "pid_t prev_pid 12 4 1",
    "long prev_state 16 8 1",
    "pid_t next_pid 24 4 1",
    "int next_prio 28 4 1",
    "char next_comm[16] 32 16 0",
];
const HANDLER: &[&str] = &["int irq 8 4 1", "__data_loc char[] name 12 4 0"];
const THREAD: &[&str] = &["char comm[16] 8 16 0", "pid_t pid 24 4 1", "int prio 28 4 1"];
const VEC: &[&str] = &["unsigned int vec 8 4 0"];

pub fn x86(root: &Path) -> TracepointLayout {
    let tracefs = tracefs(
        root,
        &[
            ("irq_vectors", "local_timer_entry", 10, &["int vector 8 4 1"]),
            ("irq_vectors", "local_timer_exit", 11, &["int vector 8 4 1"]),
            ("irq_vectors", "irq_work_entry", 12, &["int vector 8 4 1"]),
            ("irq_vectors", "irq_work_exit", 13, &["int vector 8 4 1"]),
            ("irq", "irq_handler_entry", 20, HANDLER),
            ("irq", "irq_handler_exit", 21, &["int irq 8 4 1", "int ret 12 4 1"]),
            ("irq", "softirq_entry", 22, VEC),
            ("irq", "softirq_exit", 23, VEC),
            (
                "nmi",
                "nmi_handler",
                30,
                &["void * handler 8 8 0", "s64 delta_ns 16 8 1", "int handled 24 4 1"],
            ),
            ("sched", "sched_wakeup", 50, &[THREAD, &["int target_cpu 32 4 1"]].concat()),
            (
                "sched",
                "sched_migrate_task",
                51,
                &[THREAD, &["int orig_cpu 32 4 1", "int dest_cpu 36 4 1"]].concat(),
            ),
            ("exceptions", "page_fault_user", 52, &["unsigned long address 8 8 0"]),
            ("exceptions", "page_fault_kernel", 53, &["unsigned long address 8 8 0"]),
            ("sched", "sched_switch", 40, SWITCH),
        ],
    );
    TracepointLayout::read(&tracefs, Extent::Threads).unwrap()
}

/// A sample record with this tracepoint's bytes, of a thread that both of them name.
fn sample(pid: i32, time_ns: u64, raw: &[u8]) -> Vec<u8> {
    // The kernel pads so that the whole record has a multiple of 8 bytes.
    let length = (raw.len() + 4).next_multiple_of(8) - 4;
    let mut raw = raw.to_vec();
    raw.resize(length, 0);
    if let Some(common_pid) = raw.get_mut(4..8) {
        common_pid.copy_from_slice(&pid.to_ne_bytes());
    }
    let mut record = Vec::new();
    record.extend(9u32.to_ne_bytes());
    record.extend(1u16.to_ne_bytes());
    record.extend((8 + 16 + 4 + length as u16).to_ne_bytes());
    record.extend([pid, pid].map(i32::to_ne_bytes).concat());
    record.extend(time_ns.to_ne_bytes());
    record.extend((length as u32).to_ne_bytes());
    record.extend(raw);
    record
}

/// The bytes of a tracepoint: its id, and values at their places.
pub fn raw(id: u16, values: &[(usize, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[..2].copy_from_slice(&id.to_ne_bytes());
    for (offset, value) in values {
        bytes[*offset..offset + value.len()].copy_from_slice(value);
    }
    bytes
}

fn decoded(bytes: &[u8], layout: &TracepointLayout) -> (Vec<RingRecord>, u64) {
    let mut records = Vec::new();
    let strange = decode(bytes, Form::Perf, layout, |record| records.push(record));
    (records, strange)
}

fn kind(raw: &[u8], layout: &TracepointLayout) -> RecordKind {
    let (mut records, strange) = decoded(&sample(5, 1234, raw), layout);
    assert_eq!((records.len(), strange), (1, 0));
    let record = records.remove(0);
    assert_eq!((record.pid, record.time_ns), (5, 1234));
    record.kind
}

#[test]
fn that_a_switch_is_due_is_in_the_flags() {
    let folder = tempfile::tempdir().unwrap();
    let layout = x86(folder.path());
    for (flags, expected) in [(0x09u8, false), (0x0d, true)] {
        let (records, _) = decoded(&sample(0, 1, &raw(11, &[(2, &[flags])])), &layout);
        assert_eq!(records[0].is_going, expected);
    }
}

#[test]
fn every_kind_of_record_is_understood() {
    let folder = tempfile::tempdir().unwrap();
    let layout = x86(folder.path());
    let irq = |number| Id { class: Class::Irq, number };
    let softirq = |number| Id { class: Class::Softirq, number };
    for (raw, expected) in [
        (raw(10, &[]), RecordKind::Enter(irq(Id::VECTORS), "local_timer".into())),
        (raw(11, &[]), RecordKind::Exit(irq(Id::VECTORS))),
        (
            raw(20, &[(8, &36i32.to_ne_bytes()), (12, &(20u32 | 7 << 16).to_ne_bytes()), (20, b"virtio\0")]),
            RecordKind::Enter(irq(36), "virtio".into()),
        ),
        (raw(21, &[(8, &36i32.to_ne_bytes())]), RecordKind::Exit(irq(36))),
        (raw(22, &[(8, &9u32.to_ne_bytes())]), RecordKind::Enter(softirq(9), "RCU".into())),
        (raw(22, &[(8, &77u32.to_ne_bytes())]), RecordKind::Enter(softirq(77), "softirq 77".into())),
        (raw(23, &[(8, &9u32.to_ne_bytes())]), RecordKind::Exit(softirq(9))),
        (raw(30, &[(16, &900i64.to_ne_bytes())]), RecordKind::Nmi { duration_ns: 900 }),
        (
            raw(
                50,
                &[
                    (8, b"iq\0"),
                    (24, &7i32.to_ne_bytes()),
                    (28, &19i32.to_ne_bytes()),
                    (32, &3u32.to_ne_bytes()),
                ],
            ),
            RecordKind::Woken { pid: 7, comm: "iq".into(), priority: 19, core: 3 },
        ),
        (
            raw(
                51,
                &[
                    (8, b"iq\0"),
                    (24, &7i32.to_ne_bytes()),
                    (28, &120i32.to_ne_bytes()),
                    (36, &2u32.to_ne_bytes()),
                ],
            ),
            RecordKind::Migrated { pid: 7, comm: "iq".into(), priority: 120, core: 2 },
        ),
        (raw(52, &[]), RecordKind::PageFault { is_user: true }),
        (raw(53, &[]), RecordKind::PageFault { is_user: false }),
        (
            raw(
                40,
                &[
                    (8, b"hog\0"),
                    (24, &5i32.to_ne_bytes()),
                    (28, &49i32.to_ne_bytes()),
                    (32, &1i64.to_ne_bytes()),
                    (40, b"sixteen-letters!"),
                    (56, &7i32.to_ne_bytes()),
                    (60, &98i32.to_ne_bytes()),
                ],
            ),
            RecordKind::Switch {
                prev: 5,
                was: Some(("hog".into(), 49)),
                is_prev_runnable: false,
                next: 7,
                comm: "sixteen-letters!".into(),
                priority: 98,
            },
        ),
    ] {
        assert_eq!(kind(&raw, &layout), expected);
    }
}

#[test]
fn fields_are_where_this_kernel_says() {
    let folder = tempfile::tempdir().unwrap();
    let tracefs = tracefs(folder.path(), &[("sched", "sched_switch", 300, SWITCH_ELSEWHERE)]);
    let layout = TracepointLayout::read(&tracefs, Extent::Threads).unwrap();
    let bytes = raw(
        300,
        &[(12, &5i32.to_ne_bytes()), (24, &7i32.to_ne_bytes()), (28, &120i32.to_ne_bytes()), (32, b"sh\0")],
    );
    let expected = RecordKind::Switch {
        prev: 5,
        was: None,
        is_prev_runnable: true,
        next: 7,
        comm: "sh".into(),
        priority: 120,
    };
    assert_eq!(kind(&bytes, &layout), expected);
    assert!(layout.missing().iter().any(|missing| missing.name == "ipi:ipi_entry"));
}

#[test]
fn elsewhere_cores_interrupt_each_other_by_one_tracepoint() {
    let folder = tempfile::tempdir().unwrap();
    let tracefs = tracefs(
        folder.path(),
        &[
            ("ipi", "ipi_entry", 60, &["const char * reason 8 8 0"]),
            ("ipi", "ipi_exit", 61, &["const char * reason 8 8 0"]),
            ("irq", "irq_handler_entry", 20, HANDLER),
            ("sched", "sched_switch", 40, SWITCH),
        ],
    );
    let layout = TracepointLayout::read(&tracefs, Extent::Threads).unwrap();
    let ipi = Id { class: Class::Irq, number: Id::IPI };
    assert_eq!(kind(&raw(60, &[]), &layout), RecordKind::Enter(ipi, "ipi".into()));
    assert_eq!(kind(&raw(61, &[]), &layout), RecordKind::Exit(ipi));
    assert!(layout.missing().iter().all(|missing| !missing.name.starts_with("irq_vectors")));
}

/// No kernel can sample `irq_work_exit`.
#[test]
fn a_begin_whose_end_is_refused_is_a_point() {
    let folder = tempfile::tempdir().unwrap();
    let mut layout = x86(folder.path());
    layout.refused(13, "Operation not permitted");
    assert_eq!(kind(&raw(12, &[]), &layout), RecordKind::Point(Class::Irq, "irq_work"));
    assert!(!layout.ids().contains(&13) && layout.ids().contains(&12));
    let missing = layout.missing().iter().find(|missing| missing.name == "irq_vectors:irq_work_exit");
    assert_eq!(missing.unwrap().why, "Operation not permitted");
}

#[test]
fn without_switches_nothing_can_be_said() {
    let folder = tempfile::tempdir().unwrap();
    let error =
        TracepointLayout::read(&tracefs(folder.path(), &[("irq", "softirq_entry", 22, VEC)]), Extent::Cores)
            .unwrap_err();
    assert!(error.to_string().contains("no tracepoint sched:sched_switch"), "{error}");
}

#[test]
fn lost_records_are_told_and_strange_ones_counted() {
    let folder = tempfile::tempdir().unwrap();
    let layout = x86(folder.path());
    let mut bytes = Vec::new();
    bytes.extend(2u32.to_ne_bytes());
    bytes.extend(0u16.to_ne_bytes());
    bytes.extend(24u16.to_ne_bytes());
    bytes.extend([1u64, 17].map(u64::to_ne_bytes).concat());
    // An unknown tracepoint, and a known one that is too short for its fields.
    bytes.extend(sample(5, 1, &raw(999, &[])));
    bytes.extend(sample(5, 1, &raw(40, &[])[..12]));
    bytes.extend(sample(5, 9, &raw(11, &[])));
    let (records, strange) = decoded(&bytes, &layout);
    let kinds: Vec<&RecordKind> = records.iter().map(|record| &record.kind).collect();
    assert!(matches!(kinds[..], [RecordKind::Lost(17), RecordKind::Exit(_)]), "{kinds:?}");
    assert_eq!(strange, 1);
}

#[test]
fn this_kernel_is_understood() {
    let layout = Tracefs::find().and_then(|tracefs| TracepointLayout::read(&tracefs, Extent::Threads));
    match layout {
        Ok(layout) => assert!(layout.ids().len() >= 5, "{layout:?}"),
        #[expect(clippy::disallowed_macros, reason = "a test says why it was skipped")]
        Err(error) => println!("skipped: {error}"),
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_fall(bytes in prop::collection::vec(any::<u8>(), 0..300), at in 0usize..200, byte: u8) {
        static LAYOUT: LazyLock<TracepointLayout> = LazyLock::new(|| x86(tempfile::tempdir().unwrap().path()));
        let layout = &*LAYOUT;
        decode(&bytes, Form::Perf, layout, drop);
        // Correct except for one byte.
        let mut nearly = sample(5, 1, &raw(20, &[(12, &(20u32 | 7 << 16).to_ne_bytes())]));
        nearly.extend(sample(5, 2, &raw(40, &[])));
        let at = at % nearly.len();
        nearly[at] = byte;
        decode(&nearly, Form::Perf, layout, drop);
    }
}
