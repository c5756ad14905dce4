//! Decoding: from the bytes of a core's ring to records.
//!
//! Fields are found by the kernel's own description ([`TracepointLayout`]). Bytes that do not match it are
//! skipped and counted.

mod entries;
mod layout;
mod pages;

pub use entries::Form;
pub(crate) use entries::entries;
pub use layout::{Extent, MissingTracepoint, TracepointLayout};
pub(crate) use layout::{FieldPlace, place};

use layout::FieldRole;
use onbeat_trace::Class;
use std::borrow::Cow;

/// A record of a core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RingRecord {
    /// Time in nanoseconds on `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    /// Thread that had the core; interrupts run on its behalf.
    pub pid: i32,
    /// Whether a switch to another thread is due and has not happened yet.
    pub is_going: bool,
    /// Content of the record.
    pub kind: RecordKind,
}

/// Content of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordKind {
    /// Begin of an interrupt or softirq.
    Enter(Id, Cow<'static, str>),
    /// End of an interrupt or softirq.
    Exit(Id),
    /// Begin of an interrupt whose end is not recorded.
    Point(Class, &'static str),
    /// End of a non-maskable interrupt.
    Nmi {
        /// Its duration.
        duration_ns: u64,
    },
    /// Switch from one thread to another.
    Switch {
        /// Thread that had the core.
        prev: i32,
        /// Its name and its priority, if the kernel says so. The switch to it may be missing.
        was: Option<(String, i32)>,
        /// Whether that thread could have continued.
        is_prev_runnable: bool,
        /// Thread that gets the core.
        next: i32,
        /// Name of the thread that gets the core.
        comm: String,
        /// Its priority, on the kernel's scale: 0 to 98 real-time, 100 to 139 others.
        priority: i32,
    },
    /// A thread is woken.
    Woken {
        /// The woken thread.
        pid: i32,
        /// Its name.
        comm: String,
        /// Its priority, on the kernel's scale.
        priority: i32,
        /// Core that it should run on.
        core: u32,
    },
    /// A thread moves to another core.
    Migrated {
        /// The thread.
        pid: i32,
        /// Its name.
        comm: String,
        /// Its priority, on the kernel's scale.
        priority: i32,
        /// Its new core.
        core: u32,
    },
    /// The current thread, or the kernel on its behalf, touches memory that is not present.
    PageFault {
        /// Whether the thread's own code touched it.
        is_user: bool,
    },
    /// Number of records that had no room.
    Lost(u64),
}

/// Entry of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RingEntry<'b> {
    /// Bytes of a tracepoint.
    Raw(&'b [u8]),
    /// Number of records missing at this place.
    Lost(u64),
}

/// Identifies an interrupt or softirq: a begin and an end with equal ids belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Id {
    /// Class.
    pub class: Class,
    /// Number within the class: of the interrupt or the softirq.
    pub number: u32,
}

impl Id {
    /// First number of interrupts with their own tracepoint; device interrupts are numbered from 0.
    pub const VECTORS: u32 = 1 << 16;
    /// Interrupt from another core, if the kernel has one tracepoint for all of them. It occurs within the
    /// handler of an interrupt.
    pub const IPI: u32 = 1 << 17;
}

/// Names of the softirqs, in the kernel's numbering.
pub const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// Decodes all records in `bytes` and passes them to `take` in order. Returns the number of unreadable ones.
pub fn decode(
    bytes: &[u8],
    form: Form<'_>,
    layout: &TracepointLayout,
    mut take: impl FnMut(RingRecord),
) -> u64 {
    let mut strange = 0;
    let broken = entries(bytes, form, |time_ns, entry| match entry {
        RingEntry::Lost(lost) => {
            take(RingRecord { time_ns, pid: -1, is_going: false, kind: RecordKind::Lost(lost) });
        }
        RingEntry::Raw(raw) => match record(raw, time_ns, layout) {
            Some(Some(record)) => take(record),
            Some(None) => {}
            None => strange += 1,
        },
    });
    strange + broken
}

/// `None` for an unreadable record, `Some(None)` for a tracepoint that is not in the layout.
fn record(raw: &[u8], time_ns: u64, layout: &TracepointLayout) -> Option<Option<RingRecord>> {
    let Some(role) = layout.role(id(raw)?) else { return Some(None) };
    let is_going = flags(raw)? & NEED_RESCHED != 0;
    Some(Some(RingRecord { time_ns, pid: layout.pid(raw)?, is_going, kind: kind(role, raw)? }))
}

/// Bits of [`flags`] (`include/linux/trace_events.h`): a switch is due; the core is in a hardware or software
/// interrupt.
const NEED_RESCHED: u8 = 0x04;
pub(crate) const IN_INTERRUPT: u8 = 0x08 | 0x10;

/// Number of the tracepoint.
pub(crate) fn id(raw: &[u8]) -> Option<u16> {
    number(raw, 0)
}

/// State of the core, in every tracepoint (`common_flags`).
pub(crate) fn flags(raw: &[u8]) -> Option<u8> {
    number(raw, 2)
}

/// Decodes a tracepoint; `None` if there are too few bytes.
fn kind(role: &FieldRole, raw: &[u8]) -> Option<RecordKind> {
    Some(match role {
        FieldRole::Enter { number: id, name } => RecordKind::Enter(irq(*id), Cow::Borrowed(name)),
        FieldRole::Exit { number: id } => RecordKind::Exit(irq(*id)),
        FieldRole::Point { name } => RecordKind::Point(Class::Irq, name),
        FieldRole::HandlerEnter { irq: field, name } => {
            let id = field.unsigned(raw)? as u32 % Id::VECTORS;
            let name = name.text(raw).unwrap_or_else(|| format!("irq {id}"));
            RecordKind::Enter(irq(id), Cow::Owned(name))
        }
        FieldRole::HandlerExit { irq: field } => {
            RecordKind::Exit(irq(field.unsigned(raw)? as u32 % Id::VECTORS))
        }
        FieldRole::SoftirqEnter { vec } => {
            let vec = vec.unsigned(raw)? as u32;
            let name =
                SOFTIRQS.get(vec as usize).map_or_else(|| format!("softirq {vec}").into(), |n| (*n).into());
            RecordKind::Enter(Id { class: Class::Softirq, number: vec }, name)
        }
        FieldRole::SoftirqExit { vec } => {
            RecordKind::Exit(Id { class: Class::Softirq, number: vec.unsigned(raw)? as u32 })
        }
        FieldRole::Nmi { delta_ns } => RecordKind::Nmi { duration_ns: delta_ns.unsigned(raw)? },
        FieldRole::Switch { prev, was, state, next, comm, priority } => RecordKind::Switch {
            prev: prev.unsigned(raw)? as i32,
            was: was.as_ref().and_then(|(comm, priority)| {
                let comm = comm.text(raw).filter(|comm| !comm.is_empty())?;
                Some((comm, priority.unsigned(raw)? as i32))
            }),
            // The low bits say why it waits.
            is_prev_runnable: state.unsigned(raw)? & 0xff == 0,
            next: next.unsigned(raw)? as i32,
            comm: comm.text(raw)?,
            priority: priority.unsigned(raw)? as i32,
        },
        FieldRole::Wakeup { thread, core } => {
            let (pid, comm, priority) = thread.read(raw)?;
            RecordKind::Woken { pid, comm, priority, core: core.unsigned(raw)? as u32 }
        }
        FieldRole::Migrate { thread, core } => {
            let (pid, comm, priority) = thread.read(raw)?;
            RecordKind::Migrated { pid, comm, priority, core: core.unsigned(raw)? as u32 }
        }
        FieldRole::PageFault { is_user } => RecordKind::PageFault { is_user: *is_user },
    })
}

fn irq(number: u32) -> Id {
    Id { class: Class::Irq, number }
}

/// Number in the machine's byte order.
pub(crate) trait NativeNumber: Sized {
    fn read(bytes: &[u8]) -> Option<Self>;
}

macro_rules! number {
    ($($kind:ty)*) => { $(
        impl NativeNumber for $kind {
            fn read(bytes: &[u8]) -> Option<Self> {
                Some(<$kind>::from_ne_bytes(bytes.get(..size_of::<$kind>())?.try_into().ok()?))
            }
        }
    )* };
}
number!(u8 u16 u32 u64 i32);

fn number<T: NativeNumber>(bytes: &[u8], at: usize) -> Option<T> {
    T::read(bytes.get(at..)?)
}
