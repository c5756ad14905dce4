//! Tracepoints of this kernel, and the positions of their fields.

use super::{Id, number};
use onbeat_os::tracefs::{Field, Format, Tracefs};
use std::collections::HashMap;
use std::io;

/// x86 interrupts with tracepoints of their own, each `NAME_entry` and `NAME_exit`.
const VECTORS: [&str; 11] = [
    "local_timer",
    "reschedule",
    "call_function",
    "call_function_single",
    "irq_work",
    "x86_platform_ipi",
    "thermal_apic",
    "threshold_apic",
    "deferred_error_apic",
    "error_apic",
    "spurious_apic",
];

/// Tracepoints that show what has a core, as one kernel describes them.
#[derive(Debug, Default)]
pub struct TracepointLayout {
    roles: HashMap<u16, FieldRole>,
    tracepoints: Vec<(u64, String)>,
    missing: Vec<MissingTracepoint>,
    /// Field with the thread that had the core, in every tracepoint.
    pid: Option<FieldPlace>,
}

/// Tracepoints to record: each one has its cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Extent {
    /// What has a core.
    #[default]
    Cores,
    /// Also events of threads: wake-ups, migrations, page faults.
    Threads,
}

/// A tracepoint that is not available.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingTracepoint {
    /// `group:name`.
    pub name: String,
    /// The reason.
    pub why: String,
}

/// Meaning of a tracepoint's records.
#[derive(Debug)]
pub(super) enum FieldRole {
    Enter {
        number: u32,
        name: &'static str,
    },
    Exit {
        number: u32,
    },
    Point {
        name: &'static str,
    },
    HandlerEnter {
        irq: FieldPlace,
        name: FieldPlace,
    },
    HandlerExit {
        irq: FieldPlace,
    },
    SoftirqEnter {
        vec: FieldPlace,
    },
    SoftirqExit {
        vec: FieldPlace,
    },
    Nmi {
        delta_ns: FieldPlace,
    },
    Switch {
        prev: FieldPlace,
        /// Name and priority of the thread that had the core.
        was: Option<(FieldPlace, FieldPlace)>,
        state: FieldPlace,
        next: FieldPlace,
        comm: FieldPlace,
        priority: FieldPlace,
    },
    Wakeup {
        thread: ThreadFields,
        core: FieldPlace,
    },
    Migrate {
        thread: ThreadFields,
        core: FieldPlace,
    },
    PageFault {
        is_user: bool,
    },
}

/// Fields about a thread other than the one that has the core.
#[derive(Debug)]
pub(super) struct ThreadFields {
    pid: FieldPlace,
    comm: FieldPlace,
    priority: FieldPlace,
}

impl ThreadFields {
    fn of(format: &Format) -> Option<Self> {
        let [pid, comm, priority] = ["pid", "comm", "prio"].map(|name| place(format, name));
        Some(ThreadFields { pid: pid?, comm: comm?, priority: priority? })
    }

    /// Reads id, name and priority.
    pub(super) fn read(&self, raw: &[u8]) -> Option<(i32, String, i32)> {
        Some((self.pid.unsigned(raw)? as i32, self.comm.text(raw)?, self.priority.unsigned(raw)? as i32))
    }
}

/// Position of a field in the bytes of a tracepoint.
#[derive(Debug, Clone)]
pub(crate) struct FieldPlace {
    offset: usize,
    size: usize,
    is_signed: bool,
    is_elsewhere: bool,
}

impl FieldPlace {
    /// Reads a number; a negative one has its sign in the upper bits.
    pub(crate) fn unsigned(&self, raw: &[u8]) -> Option<u64> {
        let value = match self.size {
            1 => u64::from(number::<u8>(raw, self.offset)?),
            2 => u64::from(number::<u16>(raw, self.offset)?),
            4 if self.is_signed => i64::from(number::<i32>(raw, self.offset)?) as u64,
            4 => u64::from(number::<u32>(raw, self.offset)?),
            _ => number::<u64>(raw, self.offset)?,
        };
        Some(value)
    }

    /// Reads a text, up to its first zero byte.
    pub(super) fn text(&self, raw: &[u8]) -> Option<String> {
        let (offset, size) = if self.is_elsewhere {
            let place = number::<u32>(raw, self.offset)?;
            ((place & 0xffff) as usize, (place >> 16) as usize)
        } else {
            (self.offset, self.size)
        };
        let bytes = raw.get(offset..offset + size)?;
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(size);
        Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }
}

impl From<&Field> for FieldPlace {
    fn from(field: &Field) -> Self {
        let Field { offset, size, is_signed, is_elsewhere, .. } = *field;
        FieldPlace { offset, size, is_signed, is_elsewhere }
    }
}

impl TracepointLayout {
    /// Reads the layout of the kernel that this tracefs belongs to.
    ///
    /// # Errors
    /// What reading tracefs returns, and `NotFound` if `sched:sched_switch` is missing: without it, the
    /// thread that has a core is unknown.
    pub fn read(tracefs: &Tracefs, extent: Extent) -> io::Result<Self> {
        let mut layout = TracepointLayout::default();
        for (place, name) in VECTORS.into_iter().enumerate() {
            let id = Id::VECTORS + place as u32;
            layout.pair(tracefs, ("irq_vectors", name), id, name)?;
        }
        // Not on x86: one tracepoint for interrupts between cores. Timers are devices there.
        if layout.tracepoints.is_empty() {
            layout.missing.clear();
            layout.pair(tracefs, ("ipi", "ipi"), Id::IPI, "ipi")?;
        }
        layout.one(tracefs, "irq", "irq_handler_entry", |format| {
            Some(FieldRole::HandlerEnter { irq: place(format, "irq")?, name: place(format, "name")? })
        })?;
        layout.one(tracefs, "irq", "irq_handler_exit", |f| {
            Some(FieldRole::HandlerExit { irq: place(f, "irq")? })
        })?;
        layout.one(tracefs, "irq", "softirq_entry", |f| {
            Some(FieldRole::SoftirqEnter { vec: place(f, "vec")? })
        })?;
        layout.one(tracefs, "irq", "softirq_exit", |f| {
            Some(FieldRole::SoftirqExit { vec: place(f, "vec")? })
        })?;
        layout.one(tracefs, "nmi", "nmi_handler", |f| {
            Some(FieldRole::Nmi { delta_ns: place(f, "delta_ns")? })
        })?;
        if extent == Extent::Threads {
            layout.threads(tracefs)?;
        }
        let mut pid = None;
        let has_switch = layout.one(tracefs, "sched", "sched_switch", |format| {
            pid = Some(place(format, "common_pid")?);
            Some(FieldRole::Switch {
                prev: place(format, "prev_pid")?,
                was: place(format, "prev_comm").zip(place(format, "prev_prio")),
                state: place(format, "prev_state")?,
                next: place(format, "next_pid")?,
                comm: place(format, "next_comm")?,
                priority: place(format, "next_prio")?,
            })
        })?;
        if !has_switch {
            let message =
                "this kernel has no tracepoint sched:sched_switch: it was built without CONFIG_TRACEPOINTS";
            return Err(io::Error::new(io::ErrorKind::NotFound, message));
        }
        layout.pid = pid;
        Ok(layout)
    }

    fn threads(&mut self, tracefs: &Tracefs) -> io::Result<()> {
        for name in ["sched_wakeup", "sched_wakeup_new"] {
            self.one(tracefs, "sched", name, |format| {
                Some(FieldRole::Wakeup {
                    thread: ThreadFields::of(format)?,
                    core: place(format, "target_cpu")?,
                })
            })?;
        }
        self.one(tracefs, "sched", "sched_migrate_task", |format| {
            Some(FieldRole::Migrate { thread: ThreadFields::of(format)?, core: place(format, "dest_cpu")? })
        })?;
        for (name, is_user) in [("page_fault_user", true), ("page_fault_kernel", false)] {
            self.one(tracefs, "exceptions", name, |_| Some(FieldRole::PageFault { is_user }))?;
        }
        Ok(())
    }

    /// Adds the begin and the end of an interrupt. If the end is missing or refused, the begin becomes a
    /// point.
    fn pair(
        &mut self,
        tracefs: &Tracefs,
        (group, stem): (&str, &str),
        number: u32,
        name: &'static str,
    ) -> io::Result<()> {
        let has_exit =
            self.one(tracefs, group, &format!("{stem}_exit"), |_| Some(FieldRole::Exit { number }))?;
        self.one(tracefs, group, &format!("{stem}_entry"), |_| {
            Some(if has_exit { FieldRole::Enter { number, name } } else { FieldRole::Point { name } })
        })?;
        Ok(())
    }

    fn one(
        &mut self,
        tracefs: &Tracefs,
        group: &str,
        name: &str,
        role: impl FnOnce(&Format) -> Option<FieldRole>,
    ) -> io::Result<bool> {
        let full = format!("{group}:{name}");
        let Some(format) = tracefs.format(group, name)? else {
            self.missing.push(MissingTracepoint {
                name: full,
                why: "this kernel has no tracepoint of that name".to_owned(),
            });
            return Ok(false);
        };
        match (role(&format), u16::try_from(format.id)) {
            (Some(role), Ok(id)) => {
                self.roles.insert(id, role);
                self.tracepoints.push((format.id, full));
                Ok(true)
            }
            _ => {
                let why = "its fields on this kernel are not the expected ones".to_owned();
                self.missing.push(MissingTracepoint { name: full, why });
                Ok(false)
            }
        }
    }

    /// Numbers of the tracepoints, for a ring.
    #[must_use]
    pub fn ids(&self) -> Vec<u64> {
        self.tracepoints.iter().map(|(id, _)| *id).collect()
    }

    /// Group and name of each tracepoint, in the same order.
    #[must_use]
    pub fn names(&self) -> Vec<(&str, &str)> {
        self.tracepoints.iter().filter_map(|(_, name)| name.split_once(':')).collect()
    }

    /// Removes a tracepoint that the kernel refuses. A begin without its end becomes a point.
    pub fn refused(&mut self, id: u64, why: &str) {
        let Some(at) = self.tracepoints.iter().position(|(known, _)| *known == id) else { return };
        let (_, name) = self.tracepoints.remove(at);
        self.missing.push(MissingTracepoint { name, why: why.to_owned() });
        let Some(FieldRole::Exit { number }) = u16::try_from(id).ok().and_then(|id| self.roles.remove(&id))
        else {
            return;
        };
        for role in self.roles.values_mut() {
            if let FieldRole::Enter { number: begun, name } = *role
                && begun == number
            {
                *role = FieldRole::Point { name };
            }
        }
    }

    /// Tracepoints that this kernel does not have.
    #[must_use]
    pub fn missing(&self) -> &[MissingTracepoint] {
        &self.missing
    }

    /// Thread that had the core, from the tracepoint's own bytes.
    pub(super) fn pid(&self, raw: &[u8]) -> Option<i32> {
        Some(self.pid.as_ref()?.unsigned(raw)? as i32)
    }

    pub(super) fn role(&self, id: u16) -> Option<&FieldRole> {
        self.roles.get(&id)
    }
}

/// Position of the field with this name.
pub(crate) fn place(format: &Format, name: &str) -> Option<FieldPlace> {
    format.field(name).map(FieldPlace::from)
}
