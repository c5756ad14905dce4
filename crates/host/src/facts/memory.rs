//! Settings of memory, and background work on memory.

use crate::fact::{self, Fact};
use crate::tree::Tree;

/// Settings of memory.
#[derive(Debug, Clone, Default)]
pub struct MemoryFacts {
    /// Swap devices and files.
    pub swaps: Fact<Vec<String>>,
    /// `vm.swappiness`.
    pub swappiness: Fact<i64>,
    /// Mode of transparent huge pages: `always`, `madvise`, `never`.
    pub huge_pages: Fact<String>,
    /// Effort at a page fault to get a huge page.
    pub huge_pages_defrag: Fact<String>,
    /// `vm.compaction_proactiveness`.
    pub compaction: Fact<i64>,
    /// `vm.compact_unevictable_allowed`.
    pub moves_locked: Fact<i64>,
    /// `/sys/kernel/mm/ksm/run`.
    pub ksm: Fact<i64>,
    /// States of DAMON's threads, by their number.
    pub damon: Fact<Vec<(String, String)>>,
    /// `vm.stat_interval`, in seconds.
    pub stat_interval_s: Fact<i64>,
    /// Interrupts of a memory balloon, by name and count.
    pub balloon: Fact<Vec<(String, u64)>>,
}

impl MemoryFacts {
    pub(super) fn read(tree: &dyn Tree) -> Self {
        let vm = |name: &str| fact::number(tree, &format!("proc/sys/vm/{name}"));
        let mm = "sys/kernel/mm";
        MemoryFacts {
            swaps: fact::text(tree, "proc/swaps").map(|text| {
                text.lines()
                    .skip(1)
                    .filter_map(|line| line.split_whitespace().next())
                    .map(fact::short)
                    .collect()
            }),
            swappiness: vm("swappiness"),
            huge_pages: fact::chosen(tree, &format!("{mm}/transparent_hugepage/enabled")),
            huge_pages_defrag: fact::chosen(tree, &format!("{mm}/transparent_hugepage/defrag")),
            compaction: vm("compaction_proactiveness"),
            moves_locked: vm("compact_unevictable_allowed"),
            ksm: fact::number(tree, &format!("{mm}/ksm/run")),
            damon: damon(tree),
            stat_interval_s: vm("stat_interval"),
            balloon: fact::text(tree, "proc/interrupts").map(|text| balloon(&text)),
        }
    }
}

fn damon(tree: &dyn Tree) -> Fact<Vec<(String, String)>> {
    let folder = "sys/kernel/mm/damon/admin/kdamonds";
    match tree.list(folder) {
        Ok(names) => {
            let numbers = names.into_iter().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
            let state = |name: String| {
                let state = fact::text(tree, &format!("{folder}/{name}/state"));
                (name, state.known().map_or_else(|| "unknown".to_owned(), |state| fact::short(state)))
            };
            Fact::Known(numbers.take(256).map(state).collect())
        }
        Err(error) => Fact::Unknown(format!("/{folder}: {error}")),
    }
}

/// The queues of a virtio balloon can be recognised by their names.
fn balloon(interrupts: &str) -> Vec<(String, u64)> {
    let one = |line: &str| {
        let name = line.split_whitespace().next_back()?;
        let is_balloon =
            ["inflate", "deflate", "reporting_vq", "free_page_vq"].iter().any(|queue| name.ends_with(queue));
        let counts = line.split_whitespace().skip(1).map_while(|word| word.parse::<u64>().ok());
        is_balloon.then(|| (fact::short(name), counts.fold(0, u64::saturating_add)))
    };
    interrupts.lines().filter_map(one).take(64).collect()
}
