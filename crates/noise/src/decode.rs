//! From the bytes of a core's ring to records.
//!
//! Every field is found by the kernel's own description ([`TracepointLayout`]); bytes that do not fit are passed over and counted, never
//! trusted.

mod entries;
mod layout;
mod pages;

pub use entries::Form;
pub(crate) use entries::entries;
pub use layout::{Extent, MissingTracepoint, TracepointLayout};
pub(crate) use layout::{FieldPlace, place};

use layout::Role;
use onbeat_trace::Class;
use std::borrow::Cow;

/// One thing that the kernel has told of a core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RingRecord {
    /// When, in nanoseconds on `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    /// The thread that had the core; an interrupt borrows it.
    pub pid: i32,
    /// Whether the kernel has decided to give the core to another thread, and has not done so yet.
    pub is_going: bool,
    /// What.
    pub kind: RecordKind,
}

/// What a record says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordKind {
    /// Something begins that interrupts.
    Enter(Id, Cow<'static, str>),
    /// It ends.
    Exit(Id),
    /// Something of which only the begin is told.
    Point(Class, &'static str),
    /// An interrupt that cannot be masked has just ended.
    Nmi {
        /// How long it took.
        duration_ns: u64,
    },
    /// The core goes from one thread to another.
    Switch {
        /// Who had it.
        prev: i32,
        /// Whether that one could have gone on.
        is_prev_runnable: bool,
        /// Who gets it.
        next: i32,
        /// The name of that one.
        comm: String,
        /// And its priority, as the kernel counts: 0 to 98 real-time, 100 to 139 others.
        priority: i32,
    },
    /// Somebody wakes a thread.
    Woken {
        /// Which one.
        pid: i32,
        /// Its name.
        comm: String,
        /// Its priority, as the kernel counts.
        priority: i32,
        /// The core that it is to run on.
        core: u32,
    },
    /// A thread goes to another core.
    Migrated {
        /// Which one.
        pid: i32,
        /// Its name.
        comm: String,
        /// Its priority, as the kernel counts.
        priority: i32,
        /// The core that it goes to.
        core: u32,
    },
    /// The thread that has the core touches memory that is not there yet, or the kernel does for it.
    PageFault {
        /// Whether it is the thread's own code.
        is_user: bool,
    },
    /// So many records had no room.
    Lost(u64),
}

/// What a ring holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RingEntry<'b> {
    /// The bytes of a tracepoint.
    Raw(&'b [u8]),
    /// So many records are missing here.
    Lost(u64),
}

/// What begins and ends: two records with equal ids belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Id {
    /// What kind.
    pub class: Class,
    /// Its number among those of its class: the interrupt, the softirq.
    pub number: u32,
}

impl Id {
    /// Interrupts that have a tracepoint of their own are numbered from here, those of devices from 0.
    pub const VECTORS: u32 = 1 << 16;
    /// An interrupt from another core, where the kernel has one tracepoint for all of them. It comes inside of the handler
    /// of an interrupt.
    pub const IPI: u32 = 1 << 17;
}

/// The softirqs, as the kernel numbers them.
pub const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// Reads all records of `bytes` and gives them to `take` in their order. Says how many could not be understood.
pub fn decode(
    bytes: &[u8],
    form: Form<'_>,
    layout: &TracepointLayout,
    mut take: impl FnMut(RingRecord),
) -> u64 {
    let mut strange = 0;
    let broken = entries(bytes, form, |time_ns, entry| match entry {
        RingEntry::Lost(lost) => {
            take(RingRecord { time_ns, pid: -1, is_going: false, kind: RecordKind::Lost(lost) })
        }
        RingEntry::Raw(raw) => match record(raw, time_ns, layout) {
            Some(Some(record)) => take(record),
            Some(None) => {}
            None => strange += 1,
        },
    });
    strange + broken
}

/// `None` for what cannot be understood, `Some(None)` for a tracepoint of somebody else.
fn record(raw: &[u8], time_ns: u64, layout: &TracepointLayout) -> Option<Option<RingRecord>> {
    let Some(role) = layout.role(id(raw)?) else { return Some(None) };
    let is_going = flags(raw)? & NEED_RESCHED != 0;
    Some(Some(RingRecord { time_ns, pid: layout.pid(raw)?, is_going, kind: kind(role, raw)? }))
}

/// Bits of [`flags`] (`include/linux/trace_events.h`): a switch is due, and the core is within an interrupt, of hardware or soft.
const NEED_RESCHED: u8 = 0x04;
pub(crate) const IN_INTERRUPT: u8 = 0x08 | 0x10;

/// Which tracepoint these are the bytes of.
pub(crate) fn id(raw: &[u8]) -> Option<u16> {
    number(raw, 0)
}

/// The state of the core that every tracepoint has (`common_flags`).
pub(crate) fn flags(raw: &[u8]) -> Option<u8> {
    number(raw, 2)
}

/// What the bytes of a tracepoint say; `None` where they are too few.
fn kind(role: &Role, raw: &[u8]) -> Option<RecordKind> {
    Some(match role {
        Role::Enter { number: id, name } => RecordKind::Enter(irq(*id), Cow::Borrowed(name)),
        Role::Exit { number: id } => RecordKind::Exit(irq(*id)),
        Role::Point { name } => RecordKind::Point(Class::Irq, name),
        Role::HandlerEnter { irq: field, name } => {
            let id = field.unsigned(raw)? as u32 % Id::VECTORS;
            let name = name.text(raw).unwrap_or_else(|| format!("irq {id}"));
            RecordKind::Enter(irq(id), Cow::Owned(name))
        }
        Role::HandlerExit { irq: field } => RecordKind::Exit(irq(field.unsigned(raw)? as u32 % Id::VECTORS)),
        Role::SoftirqEnter { vec } => {
            let vec = vec.unsigned(raw)? as u32;
            let name =
                SOFTIRQS.get(vec as usize).map_or_else(|| format!("softirq {vec}").into(), |n| (*n).into());
            RecordKind::Enter(Id { class: Class::Softirq, number: vec }, name)
        }
        Role::SoftirqExit { vec } => {
            RecordKind::Exit(Id { class: Class::Softirq, number: vec.unsigned(raw)? as u32 })
        }
        Role::Nmi { delta_ns } => RecordKind::Nmi { duration_ns: delta_ns.unsigned(raw)? },
        Role::Switch { prev, state, next, comm, priority } => RecordKind::Switch {
            prev: prev.unsigned(raw)? as i32,
            // The low bits say why it waits.
            is_prev_runnable: state.unsigned(raw)? & 0xff == 0,
            next: next.unsigned(raw)? as i32,
            comm: comm.text(raw)?,
            priority: priority.unsigned(raw)? as i32,
        },
        Role::Wakeup { thread, core } => {
            let (pid, comm, priority) = thread.read(raw)?;
            RecordKind::Woken { pid, comm, priority, core: core.unsigned(raw)? as u32 }
        }
        Role::Migrate { thread, core } => {
            let (pid, comm, priority) = thread.read(raw)?;
            RecordKind::Migrated { pid, comm, priority, core: core.unsigned(raw)? as u32 }
        }
        Role::PageFault { is_user } => RecordKind::PageFault { is_user: *is_user },
    })
}

fn irq(number: u32) -> Id {
    Id { class: Class::Irq, number }
}

/// A number in the machine's own byte order.
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
