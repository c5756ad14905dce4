//! What the workers of a run share: an inbox each, and the knowledge of when nothing goes on any more.

use crate::link::Bell;
use crate::units::Seconds;
use onbeat_os::{Parker, Unparked, Unparker};
use onbeat_queue::sync::CachePadded;
use onbeat_queue::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use onbeat_queue::{Owner, Sleeper};
use std::sync::Arc;

/// How one worker hears of what others did.
pub(crate) type Inbox = onbeat_queue::Inbox<Wakeup>;

/// Most heads of an inbox: workers share them when there are more.
const SLOTS: usize = 8;

/// No alarm.
const NEVER: u64 = u64::MAX;

/// How a worker waits for something to do.
///
/// In text it is `park`, `spin`, or `spin:` and a time:
///
/// ```
/// use onbeat_runtime::Idle;
/// assert_eq!("spin:20us".parse(), Ok(Idle::SpinFor(20_000)));
/// assert_eq!(Idle::Park.to_string(), "park");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Idle {
    /// It gives its core away until it is woken: 10 to 50 µs later on most machines.
    #[default]
    Park,
    /// It looks all the time: nothing is faster, and its core does nothing else.
    Spin,
    /// It looks for so many nanoseconds, then parks.
    SpinFor(u64),
}

/// Counts the workers that can still bring something about. A worker that sleeps without an alarm cannot; whoever wakes it
/// counts it *before* it may be awake, and is itself counted meanwhile, so the count reaches 0 only when nothing is under
/// way anywhere: then all is done, or a dead-lock is (or virtual time moves on to the next alarm).
pub(crate) struct Quiet {
    active: CachePadded<AtomicU32>,
    /// The count has reached 0 and no alarm was left. It never goes back.
    silent: AtomicBool,
    /// Virtual time in nanoseconds, under the manual clock.
    now_ns: AtomicU64,
    manual: bool,
    sleepers: Box<[Sleeping]>,
}

/// One worker, as others see it while it sleeps.
struct Sleeping {
    unparker: Unparker,
    /// Under the manual clock: its next alarm, or [`NEVER`].
    alarm_ns: AtomicU64,
    /// Under the manual clock: virtual time has come to its alarm, and it was counted as active again.
    called: AtomicBool,
}

impl Quiet {
    // All orderings of `active` are AcqRel: who brings it to 0 has seen what all others did before they counted
    // themselves out. `alarm_ns` is written before the owner counts itself out and read by who reaches 0, so Relaxed is
    // enough there; `called` and `silent` are Release with the Acquire of the woken worker.

    /// One more that is awake.
    fn enter(&self, count: u32) {
        self.active.fetch_add(count, Ordering::AcqRel);
    }

    /// `count` fewer. Whoever is the last says what that means.
    fn leave(&self, count: u32) {
        if count > 0 && self.active.fetch_sub(count, Ordering::AcqRel) == count {
            self.all_quiet();
        }
    }

    #[cold]
    fn all_quiet(&self) {
        let alarms = || self.sleepers.iter().map(|sleeper| sleeper.alarm_ns.load(Ordering::Relaxed));
        let next_ns = if self.manual { alarms().min().unwrap_or(NEVER) } else { NEVER };
        if next_ns == NEVER {
            self.silent.store(true, Ordering::Release);
            self.sleepers.iter().for_each(|sleeper| sleeper.unparker.unpark());
            return;
        }
        // Counted in meanwhile, so that nobody else finds the count at 0 before all that are due are awake.
        self.enter(1);
        self.now_ns.fetch_max(next_ns, Ordering::Relaxed);
        for sleeper in &self.sleepers {
            let alarm_ns = sleeper.alarm_ns.load(Ordering::Relaxed);
            let taken = || {
                let (done, lost) = (Ordering::Relaxed, Ordering::Relaxed);
                sleeper.alarm_ns.compare_exchange(alarm_ns, NEVER, done, lost).is_ok()
            };
            if alarm_ns <= next_ns && taken() {
                self.enter(1);
                sleeper.called.store(true, Ordering::Release);
                sleeper.unparker.unpark();
            }
        }
        self.leave(1);
    }
}

/// The sleeper of one inbox.
pub(crate) struct Wakeup {
    quiet: Arc<Quiet>,
    worker: usize,
}

impl Sleeper for Wakeup {
    fn claim(&self) {
        self.quiet.enter(1);
    }

    fn unclaim(&self) {
        self.quiet.leave(1);
    }

    fn wake(&self) {
        self.quiet.sleepers[self.worker].unparker.unpark();
    }
}

/// What is scheduled in a worker's inbox, by number of the item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// Something came on an edge from another worker.
    Data(u32),
    /// There is room on an edge to another worker, or its consumer is done.
    Room(u32),
    /// A chunk came home from another worker.
    Chunk,
    /// Somebody wants the run to end.
    Control,
}

/// Number of the item for [`Event::Control`], and of that for [`Event::Chunk`].
pub(crate) const CONTROL: u32 = 0;
pub(crate) const CHUNK: u32 = 1;

/// All inboxes of a run.
#[derive(Clone)]
pub(crate) struct Team {
    pub inboxes: Arc<[Arc<Inbox>]>,
    quiet: Arc<Quiet>,
}

impl Team {
    /// For the workers with these tokens; `events` has how many items each one's inbox needs.
    pub fn new(owners: &[Owner], events: &[usize], manual: bool) -> (Team, Vec<Parker>) {
        let parkers: Vec<Parker> = owners.iter().map(|_| Parker::new()).collect();
        let sleepers = parkers.iter().map(|parker| Sleeping {
            unparker: parker.unparker(),
            alarm_ns: AtomicU64::new(NEVER),
            called: AtomicBool::new(false),
        });
        let quiet = Arc::new(Quiet {
            active: CachePadded::new(AtomicU32::new(owners.len() as u32)),
            silent: AtomicBool::new(false),
            now_ns: AtomicU64::new(0),
            manual,
            sleepers: sleepers.collect(),
        });
        let slots = owners.len().min(SLOTS);
        let inboxes = owners
            .iter()
            .zip(events)
            .enumerate()
            .map(|(worker, (owner, &events))| {
                let wakeup = Wakeup { quiet: Arc::clone(&quiet), worker };
                Arc::new(Inbox::new(owner, slots, events, wakeup))
            })
            .collect();
        (Team { inboxes, quiet }, parkers)
    }

    /// For worker `from` to tell worker `to` something.
    pub fn bell(&self, from: usize, to: usize, item: u32) -> Bell {
        Bell { inbox: Arc::clone(&self.inboxes[to]), slot: from, item }
    }

    /// Lets every worker look up. From any thread.
    pub fn wake_all(&self) {
        for inbox in &*self.inboxes {
            inbox.schedule(0, CONTROL);
        }
    }

    pub fn len(&self) -> usize {
        self.inboxes.len()
    }
}

/// One worker's place in its team.
pub(crate) struct Seat {
    pub team: Team,
    /// Its own, of the team's.
    pub inbox: Arc<Inbox>,
    pub worker: usize,
    pub parker: Parker,
    pub idle: Idle,
}

/// Why a worker's rest is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rested {
    /// There may be something to do.
    Up,
    /// There is nothing to do for anyone, and nothing will come.
    Silence,
}

impl Seat {
    #[inline]
    pub fn inbox(&self) -> &Arc<Inbox> {
        &self.inbox
    }

    /// Waits until something is in the inbox, or until `alarm_ns` on the run's clock. `now_ns` reads the real clock.
    pub fn rest(&self, owner: &mut Owner, alarm_ns: Option<u64>, now_ns: impl Fn() -> u64) -> Rested {
        let quiet = &*self.team.quiet;
        let inbox = self.inbox();
        if let Err(replaced) = inbox.sleep(owner) {
            // Whoever replaced a mark has counted us, and we are counted already.
            quiet.leave(replaced);
            return Rested::Up;
        }
        let sleeper = &quiet.sleepers[self.worker];
        let out = quiet.manual || alarm_ns.is_none();
        if out {
            sleeper.alarm_ns.store(alarm_ns.unwrap_or(NEVER), Ordering::Relaxed);
            quiet.leave(1);
        }
        let up = || {
            inbox.is_woken(owner)
                || out && (sleeper.called.load(Ordering::Acquire) || quiet.silent.load(Ordering::Acquire))
        };
        self.wait(if out { None } else { alarm_ns }, up, now_ns);
        let replaced = inbox.wake_up(owner);
        let called = sleeper.called.swap(false, Ordering::Acquire);
        let counted = u32::from(!out) + replaced + u32::from(called);
        if counted == 0 {
            return Rested::Silence;
        }
        if out {
            sleeper.alarm_ns.store(NEVER, Ordering::Relaxed);
        }
        quiet.leave(counted - 1);
        Rested::Up
    }

    fn wait(&self, alarm_ns: Option<u64>, up: impl Fn() -> bool, now_ns: impl Fn() -> u64) {
        let spin_ns = match self.idle {
            Idle::Park => 0,
            Idle::SpinFor(spin_ns) => spin_ns,
            Idle::Spin => NEVER,
        };
        if spin_ns > 0 {
            let end_ns = now_ns().saturating_add(spin_ns).min(alarm_ns.unwrap_or(NEVER));
            let mut turns = 0u32;
            while !up() {
                turns = turns.wrapping_add(1);
                // A look at the clock costs more than a look at the inbox.
                if turns.is_multiple_of(8) && now_ns() >= end_ns {
                    break;
                }
                std::hint::spin_loop();
            }
        }
        while !up() {
            match alarm_ns {
                Some(alarm_ns) => {
                    if now_ns() >= alarm_ns || self.parker.park_until(alarm_ns) == Unparked::TimedOut {
                        return;
                    }
                }
                None => self.parker.park(),
            }
        }
    }

    /// Virtual time.
    pub fn virtual_ns(&self) -> u64 {
        self.team.quiet.now_ns.load(Ordering::Relaxed)
    }

    /// This worker is done for good. It sleeps no more, so nobody counts it again.
    pub fn retire(&self) {
        self.team.quiet.leave(1);
    }
}

impl std::str::FromStr for Idle {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "park" => Ok(Idle::Park),
            None if text == "spin" => Ok(Idle::Spin),
            Some(("spin", time)) => match time.parse::<Seconds>().ok().and_then(Seconds::as_ns) {
                Some(ns) if ns > 0 => Ok(Idle::SpinFor(ns)),
                _ => Err(format!("`{time}` is no time to spin for: write `spin:20us`")),
            },
            _ => Err(format!("`{text}` is no way to idle: it is `park`, `spin`, or `spin:20us`")),
        }
    }
}

impl serde::Serialize for Idle {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Idle {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl std::fmt::Display for Idle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Idle::Park => f.write_str("park"),
            Idle::Spin => f.write_str("spin"),
            Idle::SpinFor(ns) if ns.is_multiple_of(1000) => write!(f, "spin:{}us", ns / 1000),
            Idle::SpinFor(ns) => write!(f, "spin:{ns}ns"),
        }
    }
}
