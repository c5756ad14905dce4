//! All threads of the machine that `/proc` shows.

use crate::fact::{self, Fact};
use crate::lists;
use crate::tree::Tree;
use onbeat_os::CoreSet;

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemThread {
    /// Id of its process.
    pub pid: u32,
    /// Its own id.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// Core that it last ran on.
    pub core: usize,
    /// `SCHED_*`: 1 FIFO, 2 RR, 6 DEADLINE.
    pub policy: u32,
    /// Priority, for FIFO and RR.
    pub priority: u32,
    /// Whether it is a kernel thread.
    pub is_kernel: bool,
    /// Cores that it may run on, if it has a real-time policy.
    pub cores: Option<CoreSet>,
}

impl SystemThread {
    /// Whether it runs before normal threads.
    #[must_use]
    pub fn is_real_time(&self) -> bool {
        matches!(self.policy, 1 | 2 | 6)
    }
}

/// Limit on the number of threads read.
const MOST_THREADS: usize = 20_000;
/// `PF_KTHREAD`.
const KERNEL: u64 = 0x0020_0000;

pub(super) fn read(tree: &dyn Tree) -> Fact<Vec<SystemThread>> {
    let processes = match tree.list("proc") {
        Ok(names) => names,
        Err(error) => return Fact::Unknown(format!("/proc: {error}")),
    };
    let mut threads = Vec::new();
    for pid in processes.iter().filter_map(|name| name.parse::<u32>().ok()) {
        // // A process may have ended by now.
        for name in tree.list(&format!("proc/{pid}/task")).unwrap_or_default() {
            let Ok(tid) = name.parse() else { continue };
            threads.extend(thread(tree, pid, tid));
        }
        if threads.len() >= MOST_THREADS {
            break;
        }
    }
    match threads.is_empty() {
        true => Fact::Unknown("/proc shows no thread".to_owned()),
        false => Fact::Known(threads),
    }
}

fn thread(tree: &dyn Tree, pid: u32, tid: u32) -> Option<SystemThread> {
    let folder = format!("proc/{pid}/task/{tid}");
    let stat = fact::text(tree, &format!("{folder}/stat")).known()?.clone();
    // The name may contain anything; the text after the last parenthesis begins with field 3.
    let (before, after) = stat.rsplit_once(')')?;
    let name = fact::short(before.split_once('(')?.1);
    let fields: Vec<&str> = after.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).and_then(|field| field.parse::<u64>().ok());
    let policy = u32::try_from(field(41)?).ok()?;
    let mut thread = SystemThread {
        pid,
        tid,
        name,
        core: usize::try_from(field(39)?).ok()?,
        policy,
        priority: u32::try_from(field(40)?).ok()?,
        is_kernel: field(9)? & KERNEL != 0,
        cores: None,
    };
    if thread.is_real_time() {
        let status = fact::text(tree, &format!("{folder}/status"));
        let line = status.known()?.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        thread.cores = line.and_then(lists::file);
    }
    Some(thread)
}
