//! From the bytes of a core's ring to records: those of perf ([`decode`]) and those of a trace instance ([`decode_pages`]).
//!
//! Every field is found by the kernel's own description ([`Layout`]); bytes that do not fit are passed over and counted, never
//! trusted.

mod layout;
mod pages;

pub use layout::{Extent, Layout, Missing};
pub use pages::decode_pages;
pub(crate) use pages::{Entry, entries};

use layout::Role;
use onbeat_trace::Class;
use std::borrow::Cow;

/// One thing that the kernel has told of a core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// When, in nanoseconds on `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    /// The thread that had the core; an interrupt borrows it.
    pub pid: i32,
    /// Whether the kernel has decided to give the core to another thread, and has not done so yet.
    pub is_going: bool,
    /// What.
    pub kind: Kind,
}

/// What a record says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
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

/// Types of records of `perf_event_open(2)`.
const LOST: u32 = 2;
const SAMPLE: u32 = 9;

/// Reads all records of `bytes`, which begin with a whole one, and gives them to `take` in their order. Says how many could not
/// be understood.
pub fn decode(bytes: &[u8], layout: &Layout, mut take: impl FnMut(Record)) -> u64 {
    let mut strange = 0;
    let mut rest = bytes;
    while !rest.is_empty() {
        let (Some(kind), Some(size)) = (number::<u32>(rest, 0), number::<u16>(rest, 6)) else {
            return strange + 1;
        };
        let size = usize::from(size);
        if size < 8 || size > rest.len() {
            // Where the next one begins nobody knows.
            return strange + 1;
        }
        let (record, behind) = rest.split_at(size);
        rest = behind;
        let record = match kind {
            SAMPLE => sample(record, layout),
            LOST => number::<u64>(record, 16)
                .map(|lost| Some(Record { time_ns: 0, pid: -1, is_going: false, kind: Kind::Lost(lost) })),
            // The kernel may tell other things: none that we have asked for.
            _ => Some(None),
        };
        match record {
            Some(Some(record)) => take(record),
            Some(None) => {}
            None => strange += 1,
        }
    }
    strange
}

/// `None` for what cannot be understood, `Some(None)` for a tracepoint of somebody else.
fn sample(record: &[u8], layout: &Layout) -> Option<Option<Record>> {
    let pid = number::<i32>(record, 12)?;
    let time_ns = number::<u64>(record, 16)?;
    let length = number::<u32>(record, 24)? as usize;
    let raw = record.get(28..28 + length)?;
    let Some(role) = layout.role(number::<u16>(raw, 0)?) else { return Some(None) };
    Some(Some(Record { time_ns, pid, is_going: is_going(raw), kind: kind(role, raw)? }))
}

/// Where every tracepoint has the state of the core (`common_flags`), and the bit that is set while a switch is due
/// (`TRACE_FLAG_NEED_RESCHED`, `include/linux/trace_events.h`).
const FLAGS_AT: usize = 2;
const NEED_RESCHED: u8 = 0x04;

fn is_going(raw: &[u8]) -> bool {
    raw.get(FLAGS_AT).is_some_and(|flags| flags & NEED_RESCHED != 0)
}

/// What the bytes of a tracepoint say; `None` where they are too few.
fn kind(role: &Role, raw: &[u8]) -> Option<Kind> {
    Some(match role {
        Role::Enter { number: id, name } => Kind::Enter(irq(*id), Cow::Borrowed(name)),
        Role::Exit { number: id } => Kind::Exit(irq(*id)),
        Role::Point { name } => Kind::Point(Class::Irq, name),
        Role::HandlerEnter { irq: field, name } => {
            let id = field.unsigned(raw)? as u32 % Id::VECTORS;
            let name = name.text(raw).unwrap_or_else(|| format!("irq {id}"));
            Kind::Enter(irq(id), Cow::Owned(name))
        }
        Role::HandlerExit { irq: field } => Kind::Exit(irq(field.unsigned(raw)? as u32 % Id::VECTORS)),
        Role::SoftirqEnter { vec } => {
            let vec = vec.unsigned(raw)? as u32;
            let name =
                SOFTIRQS.get(vec as usize).map_or_else(|| format!("softirq {vec}").into(), |n| (*n).into());
            Kind::Enter(Id { class: Class::Softirq, number: vec }, name)
        }
        Role::SoftirqExit { vec } => {
            Kind::Exit(Id { class: Class::Softirq, number: vec.unsigned(raw)? as u32 })
        }
        Role::Nmi { delta_ns } => Kind::Nmi { duration_ns: delta_ns.unsigned(raw)? },
        Role::Switch { prev, state, next, comm, priority } => Kind::Switch {
            prev: prev.unsigned(raw)? as i32,
            // The low bits say why it waits.
            is_prev_runnable: state.unsigned(raw)? & 0xff == 0,
            next: next.unsigned(raw)? as i32,
            comm: comm.text(raw)?,
            priority: priority.unsigned(raw)? as i32,
        },
        Role::Wakeup { thread, core } => {
            let (pid, comm, priority) = thread.read(raw)?;
            Kind::Woken { pid, comm, priority, core: core.unsigned(raw)? as u32 }
        }
        Role::Migrate { thread, core } => {
            let (pid, comm, priority) = thread.read(raw)?;
            Kind::Migrated { pid, comm, priority, core: core.unsigned(raw)? as u32 }
        }
        Role::PageFault { is_user } => Kind::PageFault { is_user: *is_user },
    })
}

fn irq(number: u32) -> Id {
    Id { class: Class::Irq, number }
}

/// A number in the machine's own byte order.
pub(crate) trait Number: Sized {
    fn read(bytes: &[u8]) -> Option<Self>;
}

macro_rules! number {
    ($($kind:ty)*) => { $(
        impl Number for $kind {
            fn read(bytes: &[u8]) -> Option<Self> {
                Some(<$kind>::from_ne_bytes(bytes.get(..size_of::<$kind>())?.try_into().ok()?))
            }
        }
    )* };
}
number!(u8 u16 u32 u64 i32);

fn number<T: Number>(bytes: &[u8], at: usize) -> Option<T> {
    T::read(bytes.get(at..)?)
}
