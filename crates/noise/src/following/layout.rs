//! Tracepoints about single threads, and the positions of their fields.

use crate::decode::{FieldPlace, IN_INTERRUPT, flags, id, place};
use onbeat_os::tracefs::{Format, Tracefs};
use std::io;

/// Positions of the fields.
#[derive(Debug)]
pub(super) struct FollowedLayout {
    tracepoints: Vec<Tracepoint>,
    /// Field with the thread that had the core, in every tracepoint.
    by: FieldPlace,
    prev: FieldPlace,
    state: FieldPlace,
    next: FieldPlace,
    woken: Option<FieldPlace>,
    memory: Option<MemoryFields>,
}

/// Fields of the tracepoint about the memory of a process.
#[derive(Debug)]
struct MemoryFields {
    is_own: FieldPlace,
    kind: FieldPlace,
    bytes: FieldPlace,
}

/// A tracepoint.
#[derive(Debug)]
pub(super) struct Tracepoint {
    pub id: u64,
    /// Group and name.
    pub name: (&'static str, &'static str),
    role: FollowedRole,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FollowedRole {
    Switch,
    Waking,
    Fault,
    Memory,
}

impl Tracepoint {
    /// Returns a filter, in the kernel's filter language, that passes only records of these threads.
    pub fn filter(&self, tids: &[i32]) -> String {
        let fields: &[&str] = match self.role {
            FollowedRole::Switch => &["prev_pid", "next_pid"],
            FollowedRole::Waking => &["pid"],
            FollowedRole::Fault | FollowedRole::Memory => &["common_pid"],
        };
        let one = |tid: &i32| fields.iter().map(|field| format!("{field} == {tid}")).collect::<Vec<_>>();
        tids.iter().flat_map(one).collect::<Vec<_>>().join(" || ")
    }
}

/// Content of a record.
#[derive(Debug, Clone, Copy)]
pub(super) enum FollowedRecord {
    Switch {
        prev: i32,
        state: u64,
        next: i32,
    },
    Waking {
        tid: i32,
        by: i32,
        is_interrupt: bool,
    },
    Fault {
        tid: i32,
    },
    /// A thread has changed the amount of its process's memory of a kind. The kind is invalid for another
    /// process's memory.
    Memory {
        tid: i32,
        kind: usize,
        bytes: u64,
    },
}

impl FollowedLayout {
    pub fn read(tracefs: &Tracefs) -> io::Result<Self> {
        let missing =
            |what: &str| io::Error::new(io::ErrorKind::NotFound, format!("this kernel has no {what}"));
        let switch = tracefs
            .format("sched", "sched_switch")?
            .ok_or_else(|| missing("tracepoint sched:sched_switch"))?;
        let need = |name: &str| {
            place(&switch, name).ok_or_else(|| missing(&format!("field {name} in sched_switch")))
        };
        let one = |format: &Format, name, role| Tracepoint { id: format.id, name, role };
        let mut layout = FollowedLayout {
            tracepoints: vec![one(&switch, ("sched", "sched_switch"), FollowedRole::Switch)],
            by: need("common_pid")?,
            prev: need("prev_pid")?,
            state: need("prev_state")?,
            next: need("next_pid")?,
            woken: None,
            memory: None,
        };
        if let Some(format) = tracefs.format("sched", "sched_waking")?
            && let Some(pid) = place(&format, "pid")
        {
            layout.woken = Some(pid);
            layout.tracepoints.push(one(&format, ("sched", "sched_waking"), FollowedRole::Waking));
        }
        for name in ["page_fault_user", "page_fault_kernel"] {
            let format = tracefs.format("exceptions", name)?;
            layout
                .tracepoints
                .extend(format.map(|format| one(&format, ("exceptions", name), FollowedRole::Fault)));
        }
        // Before 6.2, the kernel batched these counts per thread, and reported them after each 64th fault
        // (commit f1a7941243c1).
        if let Some(format) = tracefs.format("kmem", "rss_stat")?
            && let [Some(is_own), Some(kind), Some(bytes)] =
                ["curr", "member", "size"].map(|name| place(&format, name))
        {
            layout.memory = Some(MemoryFields { is_own, kind, bytes });
            layout.tracepoints.push(one(&format, ("kmem", "rss_stat"), FollowedRole::Memory));
        }
        Ok(layout)
    }

    pub fn tracepoints(&self) -> &[Tracepoint] {
        &self.tracepoints
    }

    /// Decodes a tracepoint; `None` if its bytes are too few, or belong to another tracepoint.
    pub fn what(&self, raw: &[u8]) -> Option<FollowedRecord> {
        let id = u64::from(id(raw)?);
        let tid = |place: &FieldPlace| place.unsigned(raw).map(|tid| tid as i32);
        let by = tid(&self.by)?;
        let tracepoint = self.tracepoints.iter().find(|tracepoint| tracepoint.id == id)?;
        Some(match tracepoint.role {
            FollowedRole::Switch => FollowedRecord::Switch {
                prev: tid(&self.prev)?,
                state: self.state.unsigned(raw)?,
                next: tid(&self.next)?,
            },
            FollowedRole::Waking => {
                let is_interrupt = flags(raw)? & IN_INTERRUPT != 0;
                FollowedRecord::Waking { tid: tid(self.woken.as_ref()?)?, by, is_interrupt }
            }
            FollowedRole::Fault => FollowedRecord::Fault { tid: by },
            FollowedRole::Memory => {
                let MemoryFields { is_own, kind, bytes } = self.memory.as_ref()?;
                let kind = if is_own.unsigned(raw)? == 1 { kind.unsigned(raw)? as usize } else { usize::MAX };
                FollowedRecord::Memory { tid: by, kind, bytes: bytes.unsigned(raw)? }
            }
        })
    }
}
