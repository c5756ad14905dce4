//! The few tracepoints that tell of single threads, and where their fields lie.

use onbeat_os::tracefs::{Field, Format, Tracefs};
use std::io;

/// In `common_flags`: within an interrupt, of hardware or soft.
const IN_INTERRUPT: u8 = 0x08 | 0x10;

/// Where the fields lie.
#[derive(Debug)]
pub(super) struct Layout {
    tracepoints: Vec<Tracepoint>,
    /// Where each has the thread that had the core.
    by: Field,
    prev: Field,
    state: Field,
    next: Field,
    woken: Option<Field>,
}

/// One of them.
#[derive(Debug)]
pub(super) struct Tracepoint {
    pub id: u64,
    /// Group and name.
    pub name: (&'static str, &'static str),
    role: Role,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Switch,
    Waking,
    Fault,
}

impl Tracepoint {
    /// What lets only records of these threads through, in the kernel's own language.
    pub fn filter(&self, tids: &[i32]) -> String {
        let fields: &[&str] = match self.role {
            Role::Switch => &["prev_pid", "next_pid"],
            Role::Waking => &["pid"],
            Role::Fault => &["common_pid"],
        };
        let one = |tid: &i32| fields.iter().map(|field| format!("{field} == {tid}")).collect::<Vec<_>>();
        tids.iter().flat_map(one).collect::<Vec<_>>().join(" || ")
    }
}

/// What a record says.
#[derive(Debug, Clone, Copy)]
pub(super) enum What {
    Switch { prev: i32, state: u64, next: i32 },
    Waking { tid: i32, by: i32, is_interrupt: bool },
    Fault { tid: i32 },
}

impl Layout {
    pub fn read(tracefs: &Tracefs) -> io::Result<Self> {
        let missing =
            |what: &str| io::Error::new(io::ErrorKind::NotFound, format!("this kernel has no {what}"));
        let switch = tracefs
            .format("sched", "sched_switch")?
            .ok_or_else(|| missing("tracepoint sched:sched_switch"))?;
        let need = |name: &str| {
            let field = switch.field(name).cloned();
            field.ok_or_else(|| missing(&format!("field {name} in sched_switch")))
        };
        let one = |format: &Format, name, role| Tracepoint { id: format.id, name, role };
        let mut layout = Layout {
            tracepoints: vec![one(&switch, ("sched", "sched_switch"), Role::Switch)],
            by: need("common_pid")?,
            prev: need("prev_pid")?,
            state: need("prev_state")?,
            next: need("next_pid")?,
            woken: None,
        };
        if let Some(format) = tracefs.format("sched", "sched_waking")?
            && let Some(pid) = format.field("pid")
        {
            layout.woken = Some(pid.clone());
            layout.tracepoints.push(one(&format, ("sched", "sched_waking"), Role::Waking));
        }
        for name in ["page_fault_user", "page_fault_kernel"] {
            let format = tracefs.format("exceptions", name)?;
            layout.tracepoints.extend(format.map(|format| one(&format, ("exceptions", name), Role::Fault)));
        }
        Ok(layout)
    }

    pub fn tracepoints(&self) -> &[Tracepoint] {
        &self.tracepoints
    }

    /// What the bytes of a tracepoint say; `None` where they are too few, or another's.
    pub fn what(&self, raw: &[u8]) -> Option<What> {
        let id = number(raw, 0, 2)?;
        let field = |field: &Field| number(raw, field.offset, field.size);
        let by = field(&self.by)? as i32;
        let tracepoint = self.tracepoints.iter().find(|tracepoint| tracepoint.id == id)?;
        Some(match tracepoint.role {
            Role::Switch => What::Switch {
                prev: field(&self.prev)? as i32,
                state: field(&self.state)?,
                next: field(&self.next)? as i32,
            },
            Role::Waking => {
                let is_interrupt = raw.get(2)? & IN_INTERRUPT != 0;
                What::Waking { tid: field(self.woken.as_ref()?)? as i32, by, is_interrupt }
            }
            Role::Fault => What::Fault { tid: by },
        })
    }
}

/// A number in the machine's own byte order.
pub(super) fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(size)?)?;
    match *bytes {
        [a] => Some(u64::from(a)),
        [a, b] => Some(u64::from(u16::from_ne_bytes([a, b]))),
        [a, b, c, d] => Some(u64::from(u32::from_ne_bytes([a, b, c, d]))),
        _ => Some(u64::from_ne_bytes(bytes.try_into().ok()?)),
    }
}
