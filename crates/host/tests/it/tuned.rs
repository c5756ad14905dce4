//! Plans: the choice of quiet cores, the command line in boot loader files, rights.

use crate::{case, fixtures, granted, pipeline};
use onbeat_host::tune::boot::{Edit, Loader, edit, edits};
use onbeat_host::tune::{self, BootParameter, TuningPlan, grants};
use onbeat_host::verify::{self, Agreement};
use onbeat_host::{Facts, MachineCase, examine};

fn plan(case: &MachineCase) -> Result<TuningPlan, tune::TuneError> {
    tune::plan(case, &examine(case), &|_| false)
}

fn words(plan: &TuningPlan) -> Vec<String> {
    plan.parameters.iter().map(ToString::to_string).collect()
}

#[test]
fn at_least_one_core_is_left_to_the_system() {
    let bare = fixtures::bare_metal();
    for (cpus, refusal) in [
        ("0-15", "0-15 are all cores of this machine: the system needs one, better two; leave at least one"),
        ("0-7", "0-7 and their SMT siblings (8-15) are all cores of this machine"),
        ("14-17", "the cores 16-17 are not online; name some of 0-15 with --cpus"),
    ] {
        let error = plan(&case(&bare, cpus)).unwrap_err().to_string();
        assert!(error.contains(refusal), "{error}");
    }
    let one_left = plan(&case(&bare, "1-7,9-15")).unwrap();
    assert_eq!(one_left.house, "0,8");
    let small = plan(&case(&fixtures::small(), "1")).unwrap();
    assert_eq!((small.house.as_str(), small.notes.len()), ("0", 1), "{:?}", small.notes);
    assert!(small.notes[0].contains("built without NO_HZ_FULL"));
    let cloud = plan(&case(&fixtures::cloud(), "1-3")).unwrap();
    assert!(
        cloud.notes.iter().any(|note| note.contains("one core (0) is left to the system; two are better"))
    );
}

#[test]
fn the_parameters_belong_to_the_cores_and_their_siblings() {
    let made = plan(&case(&fixtures::bare_metal(), "2-3")).unwrap();
    assert_eq!(
        words(&made),
        [
            "isolcpus=managed_irq,domain,2-3,10-11",
            "nohz_full=2-3,10-11",
            "rcu_nocbs=2-3,10-11",
            "irqaffinity=0-1,4-9,12-15",
            "preempt=full",
            "nmi_watchdog=0",
            "skew_tick=1"
        ]
    );
    assert!(made.notes.iter().any(|note| note.contains("10-11 share physical cores with 2-3")));
    // Without NO_HZ_FULL, with RT_GROUP_SCHED.
    let small = plan(&case(&fixtures::small(), "1")).unwrap();
    assert_eq!(
        words(&small),
        ["isolcpus=managed_irq,domain,1", "rcu_nocbs=1", "irqaffinity=0", "preempt=full", "rt_group_sched=0"]
    );
    insta::assert_json_snapshot!("plan_bare_metal", made);
}

#[test]
fn findings_may_be_left_out() {
    let bare = case(&fixtures::bare_metal(), "2-3");
    let report = examine(&bare);
    let only = tune::plan(&bare, &report, &|id| id != "ksm").unwrap();
    assert_eq!(only.writes.len(), 1, "{:?}", only.writes);
    assert!(only.by_hand.is_empty());
    // DAMON and throttling are left alone unless asked for.
    let all = tune::plan(&case(&fixtures::small(), "1"), &report, &|_| false).unwrap();
    assert!(
        all.writes
            .iter()
            .all(|write| !write.path.contains("damon") && !write.path.contains("sched_rt_runtime_us"))
    );
}

fn parameters() -> Vec<BootParameter> {
    [("isolcpus", "managed_irq,domain,2-3"), ("nohz_full", "2-3")]
        .map(|(name, value)| BootParameter { name: name.to_owned(), value: Some(value.to_owned()), why: "" })
        .into()
}

#[test]
fn boot_loaders_get_their_own_lines() {
    let tuned = "isolcpus=managed_irq,domain,2-3 nohz_full=2-3";
    let table: [(Loader, &str, Vec<String>); 8] = [
        (
            Loader::Grub,
            "GRUB_DEFAULT=0\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet splash\"\nGRUB_CMDLINE_LINUX=\"\"\n",
            vec![format!("GRUB_CMDLINE_LINUX_DEFAULT=\"quiet splash {tuned}\"")],
        ),
        (
            // A parameter in both variables is written once.
            Loader::Grub,
            "GRUB_CMDLINE_LINUX='isolcpus=1 root=x'\nGRUB_CMDLINE_LINUX_DEFAULT='isolcpus=1 quiet'",
            vec![
                "GRUB_CMDLINE_LINUX='root=x'".to_owned(),
                format!("GRUB_CMDLINE_LINUX_DEFAULT='isolcpus=managed_irq,domain,2-3 quiet nohz_full=2-3'"),
            ],
        ),
        (Loader::Grub, "", vec![format!("GRUB_CMDLINE_LINUX_DEFAULT=\"{tuned}\"")]),
        (
            Loader::Extlinux,
            "DEFAULT primary\nLABEL backup\n\tAPPEND root=/dev/old\nLABEL primary\n      APPEND ${cbootargs} root=/dev/a isolcpus=1 nohzfull=3\n",
            vec![
                "      APPEND ${cbootargs} root=/dev/a isolcpus=managed_irq,domain,2-3 nohz_full=2-3"
                    .to_owned(),
            ],
        ),
        (Loader::Extlinux, "label l0\n append root=/dev/a", vec![format!(" append root=/dev/a {tuned}")]),
        (
            Loader::SystemdBoot,
            "title Debian\nlinux /vmlinuz\noptions root=UUID=1 ro\n",
            vec![format!("options root=UUID=1 ro {tuned}")],
        ),
        (Loader::KernelInstall, "root=UUID=1 ro quiet\n", vec![format!("root=UUID=1 ro quiet {tuned}")]),
        (Loader::KernelInstall, "", vec![tuned.to_owned()]),
    ];
    for (loader, text, expected) in table {
        let Edit { lines, .. } = edit(loader, "file", text, &parameters());
        let new: Vec<String> = lines.into_iter().map(|(_, new)| new).collect();
        assert_eq!(new, expected, "{loader:?}: {text}");
    }
}

#[test]
fn the_loader_is_the_one_that_is_there() {
    for (made, loaders) in [
        (fixtures::bare_metal(), vec![Loader::Grub]),
        (fixtures::jetson(), vec![Loader::Extlinux]),
        (fixtures::cloud(), vec![Loader::KernelInstall]),
        (fixtures::small(), vec![Loader::KernelInstall]),
    ] {
        let found: Vec<Loader> =
            edits(&made, "", None, &parameters()).into_iter().map(|edit| edit.loader).collect();
        assert_eq!(found, loaders);
    }
    let mut boots = fixtures::small();
    boots.without("etc/kernel");
    boots.and("boot/loader/entries/a.conf title old\\noptions root=old\nboot/loader/entries/b.conf linux /6.18/vmlinuz\\noptions root=new");
    let found = edits(&boots, "6.18", None, &parameters());
    assert_eq!(found[0].file, "boot/loader/entries/b.conf");
    assert!(edits(&boots, "6.18", Some(Loader::Grub), &parameters()).is_empty());
}

#[test]
fn what_the_kernel_took_is_compared_with_what_was_asked() {
    let mut made = fixtures::tuned();
    let rows = verify::parameters(&Facts::read(&made));
    assert_eq!(rows.len(), 4);
    assert!(rows.iter().all(|row| row.agreement == Agreement::Same), "{rows:#?}");
    made.and("proc/cmdline isolcpus=managed_irqs,domain,2-3 nohz_full=2-3 rcu_nocbs=2-x irqaffinity=0-1\nsys/devices/system/cpu/isolated ");
    let rows = verify::parameters(&Facts::read(&made));
    let of = |name: &str| rows.iter().find(|row| row.name == name).unwrap();
    assert_eq!((of("isolcpus").agreement, of("isolcpus").found.as_str()), (Agreement::Differs, "none"));
    assert_eq!(of("nohz_full").agreement, Agreement::Differs);
    assert_eq!(of("rcu_nocbs").agreement, Agreement::Differs);
    assert_eq!(of("irqaffinity").agreement, Agreement::Differs);
}

#[test]
fn rights_are_those_that_the_pipeline_needs() {
    let pipeline = pipeline(2, "f:81");
    let case = MachineCase {
        pipeline: Some(pipeline.clone()),
        tried: granted(),
        ..case(&fixtures::bare_metal(), "2-3")
    };
    let plan = plan(&case).unwrap();
    let house = plan.house.parse().unwrap();
    let run = grants::ServiceRun { command: "/usr/bin/onbeat", pipeline: &pipeline, house: &house };
    insta::assert_snapshot!("unit", grants::systemd(&run, &case, &plan).unwrap());
    insta::assert_snapshot!("limits", grants::limits(Some(&pipeline)));
    insta::assert_snapshot!(
        "container_flags",
        grants::container(Some(&pipeline), &house, &case.cpus).join("\n")
    );
    // SCHED_DEADLINE needs all cores of its root domain.
    let deadline = crate::pipeline(2, "d:1ms:10ms");
    let flags = grants::container(Some(&deadline), &house, &case.cpus).join(" ");
    assert!(!flags.contains("--cpuset-cpus"), "{flags}");
    let odd = onbeat_host::PipelineNeeds { file: "/a b/50%\".toml".to_owned(), ..pipeline.clone() };
    let run = grants::ServiceRun { pipeline: &odd, ..run };
    let unit = grants::systemd(&run, &case, &plan).unwrap();
    assert!(unit.contains("run \"/a b/50%%\\\".toml\" -H"), "{unit}");
    let broken = onbeat_host::PipelineNeeds { file: "/a\n[Service]".to_owned(), ..pipeline.clone() };
    assert!(grants::systemd(&grants::ServiceRun { pipeline: &broken, ..run }, &case, &plan).is_err());
}
