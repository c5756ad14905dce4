//! Machines with false, unreadable or changing files.

use crate::made::{Content, Made};
use crate::{case, fixtures};
use onbeat_host::tune::{self, boot};
use onbeat_host::verify;
use onbeat_host::{Facts, Root, Tree, examine};
use proptest::collection::vec;
use proptest::prelude::*;
use std::fs;

fn content() -> impl Strategy<Value = Content> {
    let texts = prop::sample::select(vec![
        "",
        "\n\n\n",
        "-1",
        "99999999999999999999999999",
        "0-99999999",
        "8191",
        "0-8191",
        ",,,",
        "[",
        "[]",
        "([)]",
        "ffffffff,ffffffff,ffffffff",
        "all",
        "NaN",
        "max max",
        "max 0",
        "1 (a) b) (c",
        "isolcpus=2-3, nohz_full==, rcu_nocbs=\"",
        "a: b: c:\n : : :\n24:\n24: x",
        "\u{1b}[2J",
    ]);
    prop_oneof![
        texts.prop_map(|text| Content::Bytes(text.as_bytes().to_vec())),
        vec(any::<u8>(), 0..200).prop_map(Content::Bytes),
        "[0-9a-fx,\\-\\[\\]() \n:/=]{0,60}".prop_map(|text| Content::Bytes(text.into_bytes())),
        (1_usize..20_000, any::<u8>()).prop_map(|(length, byte)| Content::Bytes(vec![byte; length])),
        vec(any::<u8>(), 0..40).prop_map(Content::Vanishes),
        Just(Content::Denied),
        Just(Content::Broken),
    ]
}

/// Calls everything that reads a machine's files.
fn use_all(tree: &dyn Tree, cpus: &str) {
    let mut case =
        onbeat_host::MachineCase { facts: Facts::read(tree), ..onbeat_host::MachineCase::default() };
    case.choose_cpus(cpus.parse().ok().as_ref());
    let report = examine(&case);
    for finding in &report.findings {
        assert!(!finding.evidence.chars().any(char::is_control), "{finding:?}");
    }
    let _rows = verify::parameters(&case.facts);
    if let Ok(plan) = tune::plan(&case, &report, &|_| false) {
        let _edits = boot::edits(tree, "6.12.1-amd64", None, &plan.parameters);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn any_content_of_any_file_is_borne(places in vec((any::<prop::sample::Index>(), content()), 1..12), which in 0_usize..3) {
        let mut made = [fixtures::bare_metal, fixtures::small, fixtures::tuned][which]();
        let paths = made.paths();
        for (place, content) in places {
            made.set(&paths[place.index(paths.len())], content);
        }
        use_all(&made, if which == 1 { "1" } else { "2-3" });
        use_all(&made, "");
    }

    #[test]
    fn all_files_may_be_odd_at_once(content in content()) {
        let mut made = fixtures::bare_metal();
        for path in made.paths() {
            made.set(&path, content.clone());
        }
        use_all(&made, "2-3");
    }
}

#[test]
fn files_that_are_none_are_borne() {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().join(path);
    for path in
        ["proc/sys/kernel/osrelease", "sys/devices/system/cpu/online", "proc/irq", "proc/1/task/1/stat"]
    {
        fs::create_dir_all(at(path)).unwrap();
    }
    // A file of excessive size, and a pipe without a writer.
    fs::File::create(at("proc/interrupts")).unwrap().set_len(1 << 33).unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(at("proc/cmdline")).status();
    if !pipe.is_ok_and(|status| status.success()) {
        fs::write(at("proc/cmdline"), "").unwrap();
    }
    std::os::unix::fs::symlink("version", at("proc/version")).unwrap();
    let root = Root::new(folder.path());
    use_all(&root, "1");
    let length = root.read("proc/interrupts").unwrap().len() as u64;
    assert_eq!(length, onbeat_host::tree::MOST_BYTES);
}

#[test]
fn what_is_shown_does_not_steer_a_terminal() {
    let mut made: Made = fixtures::bare_metal();
    made.set(
        "sys/devices/system/cpu/cpu2/cpufreq/scaling_governor",
        Content::Bytes(b"\x1b[2Jevil\n".to_vec()),
    );
    let report = examine(&case(&made, "2-3"));
    let governor = report.findings.iter().find(|finding| finding.id == "governor").unwrap();
    assert!(governor.evidence.contains("evil") && !governor.evidence.contains('\u{1b}'), "{governor:?}");
}
