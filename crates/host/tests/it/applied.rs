//! Changes are applied and undone, to the byte, even if the program stops in between.

use onbeat_host::Root;
use onbeat_host::tune::apply::{self, PreparedChanges};
use onbeat_host::tune::{TuningPlan, Write, undo};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A few settings, in a folder.
struct Machine {
    folder: TempDir,
    root: Root,
}

const FILES: [(&str, &str); 8] = [
    ("proc/sys/kernel/random/boot_id", "1111\n"),
    ("proc/sys/kernel/timer_migration", "1\n"),
    ("proc/sys/vm/stat_interval", "1\n"),
    ("sys/kernel/mm/transparent_hugepage/defrag", "always defer defer+madvise [madvise] never\n"),
    ("proc/irq/24/smp_affinity_list", "0-1\n"),
    ("proc/irq/24/effective_affinity_list", "1\n"),
    ("sys/devices/virtual/workqueue/cpumask", "00000003\n"),
    ("proc/sys/kernel/already", "7\n"),
];

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in FILES {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let root = Root::new(folder.path());
        Machine { folder, root }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.path(path), text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    /// All files below a folder, to the byte.
    fn all(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        fn walk(folder: &Path, all: &mut BTreeMap<PathBuf, Vec<u8>>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(&path, all);
                } else {
                    drop(all.insert(path.clone(), fs::read(&path).unwrap()));
                }
            }
        }
        let mut all = BTreeMap::new();
        walk(self.folder.path(), &mut all);
        all
    }

    fn prepare(&self) -> PreparedChanges {
        apply::prepare(&self.root, &plan(), false).unwrap()
    }
}

fn plan() -> TuningPlan {
    let writes = [
        ("proc/sys/kernel/timer_migration", "0"),
        ("proc/sys/vm/stat_interval", "10"),
        ("proc/irq/24/smp_affinity_list", "0"),
        ("sys/devices/virtual/workqueue/cpumask", "1"),
        ("proc/sys/kernel/already", "7"),
        ("proc/sys/vm/there_is_no_such", "1"),
        ("etc/passwd", "root"),
    ];
    TuningPlan {
        cpus: "1".to_owned(),
        house: "0".to_owned(),
        parameters: Vec::new(),
        writes: writes
            .map(|(path, value)| Write {
                path: path.to_owned(),
                value: value.to_owned(),
                finding: "x".to_owned(),
            })
            .into(),
        by_hand: Vec::new(),
        notes: Vec::new(),
    }
}

#[test]
fn everything_comes_back_to_the_byte() {
    let machine = Machine::new();
    let before = machine.all();
    let prepared = machine.prepare();
    assert_eq!((prepared.len(), prepared.already, prepared.refused.len()), (4, 1, 2), "{prepared:?}");
    assert_eq!(machine.all(), before, "preparing changes nothing");
    let done: Vec<_> = prepared.begin(&machine.root).unwrap().collect();
    assert!(done.iter().all(|done| done.refused.is_none()), "{done:?}");
    assert_eq!(machine.read("proc/sys/vm/stat_interval"), "10\n");
    let outcomes = apply::undo(&machine.root).unwrap().unwrap();
    // A file in a folder is not a kernel file: the mask is restored as it was read.
    assert!(outcomes.iter().all(|(_, outcome)| *outcome == undo::UndoOutcome::Back), "{outcomes:?}");
    assert_eq!(machine.all(), before);
    assert_eq!(apply::undo(&machine.root).unwrap(), None, "there is nothing left to undo");
}

#[test]
fn whoever_stops_in_the_middle_can_be_taken_back() {
    for steps in 0..=4 {
        let machine = Machine::new();
        let before = machine.all();
        let mut applying = machine.prepare().begin(&machine.root).unwrap();
        // The file exists before anything is changed.
        assert!(machine.path(undo::FILE).exists());
        for _ in 0..steps {
            assert_eq!(applying.next().unwrap().refused, None);
        }
        std::mem::forget(applying);
        let outcomes = apply::undo(&machine.root).unwrap().unwrap();
        let back = outcomes.iter().filter(|(_, outcome)| *outcome == undo::UndoOutcome::Back).count();
        assert_eq!(back, steps);
        assert_eq!(machine.all(), before, "after {steps} steps");
    }
}

#[test]
fn a_second_time_is_refused_or_changes_nothing() {
    let machine = Machine::new();
    let before = machine.all();
    machine.prepare().begin(&machine.root).unwrap().for_each(drop);
    let after = machine.all();
    let again = machine.prepare();
    assert!(again.is_nothing() && again.already == 5, "{again:?}");
    again.begin(&machine.root).unwrap().for_each(drop);
    assert_eq!(machine.all(), after);
    // There is a new change to make: the earlier ones must be undone first.
    machine.write("proc/sys/vm/stat_interval", "3\n");
    let error = apply::prepare(&machine.root, &plan(), false).unwrap_err().to_string();
    assert!(error.contains("tune.undo.json; run onbeat tune --undo"), "{error}");
    // A setting that another program has changed is left alone.
    let outcomes = apply::undo(&machine.root).unwrap().unwrap();
    assert!(
        outcomes.iter().any(|(_, outcome)| *outcome == undo::UndoOutcome::Foreign("3".to_owned())),
        "{outcomes:?}"
    );
    machine.write("proc/sys/vm/stat_interval", "1\n");
    assert_eq!(machine.all(), before);
}

#[test]
fn another_boot_has_nothing_to_take_back() {
    let machine = Machine::new();
    machine.prepare().begin(&machine.root).unwrap().for_each(drop);
    machine.write("proc/sys/kernel/random/boot_id", "2222\n");
    machine.write("proc/sys/vm/stat_interval", "1\n");
    let again = machine.prepare();
    assert_eq!(again.len(), 1, "the old file is of another boot");
    again.begin(&machine.root).unwrap().for_each(drop);
    machine.write("proc/sys/kernel/random/boot_id", "3333\n");
    assert_eq!(apply::undo(&machine.root).unwrap(), None);
    assert_eq!(machine.read("proc/sys/vm/stat_interval"), "10\n");
    assert!(!machine.path(undo::FILE).exists());
}

#[test]
fn a_file_that_lies_is_not_followed() {
    for (text, message) in [
        ("", "it is damaged"),
        ("{\"schema\": \"onbeat.tune.undo\"", "it is damaged"),
        (
            "{\"schema\": \"onbeat.tune.undo\", \"version\": 1, \"boot_id\": \"1111\", \"made_unix_ns\": 0, \"changes\": \
             [{\"kind\": \"file\", \"path\": \"etc/passwd\", \"old\": \"x\", \"new\": \"y\", \"back\": [\"x\"]}]}",
            "it names `etc/passwd`, which is not a kernel setting",
        ),
        (
            "{\"schema\": \"onbeat.tune.undo\", \"version\": 9, \"boot_id\": \"1111\", \"made_unix_ns\": 0, \"changes\": []}",
            "version 9, not",
        ),
    ] {
        let machine = Machine::new();
        fs::create_dir_all(machine.path("run/onbeat")).unwrap();
        machine.write(undo::FILE, text);
        let before = machine.all();
        let error = apply::undo(&machine.root).unwrap_err().to_string();
        assert!(error.contains(message) && error.contains("; inspect it"), "{error}");
        let error = apply::prepare(&machine.root, &plan(), false).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
        assert_eq!(machine.all(), before);
    }
}

#[test]
fn without_the_file_nothing_is_changed() {
    let machine = Machine::new();
    // A file instead of its folder.
    machine.write("run", "");
    let before = machine.all();
    let error =
        machine.prepare().begin(&machine.root).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(
        error.contains("cannot be written") && error.contains("without it nothing is changed"),
        "{error}"
    );
    assert_eq!(machine.all(), before);
}

#[test]
fn what_cannot_be_put_back_is_kept_for_another_try() {
    let machine = Machine::new();
    let before = machine.all();
    machine.prepare().begin(&machine.root).unwrap().for_each(drop);
    // A folder instead of the file: it can be neither read nor written.
    let place = machine.path("proc/sys/vm/stat_interval");
    fs::remove_file(&place).unwrap();
    fs::create_dir(&place).unwrap();
    let outcomes = apply::undo(&machine.root).unwrap().unwrap();
    let failed =
        outcomes.iter().filter(|(_, outcome)| matches!(outcome, undo::UndoOutcome::Failed(_))).count();
    assert_eq!(failed, 1, "{outcomes:?}");
    fs::remove_dir(&place).unwrap();
    fs::write(&place, "10\n").unwrap();
    assert_eq!(apply::undo(&machine.root).unwrap().unwrap().len(), 1);
    assert_eq!(machine.all(), before);
}

#[test]
fn a_partition_needs_cpusets() {
    let machine = Machine::new();
    let prepared = apply::prepare(&machine.root, &plan(), true).unwrap();
    assert!(
        prepared.refused.iter().any(|(_, why)| why.contains("not mounted on /sys/fs/cgroup")),
        "{prepared:?}"
    );
    fs::create_dir_all(machine.path("sys/fs/cgroup")).unwrap();
    machine.write("sys/fs/cgroup/cgroup.controllers", "cpuset cpu\n");
    machine.write("sys/fs/cgroup/cgroup.subtree_control", "cpu\n");
    let prepared = apply::prepare(&machine.root, &plan(), true).unwrap();
    assert_eq!(prepared.len(), 4 + 4, "{prepared:?}");
}
