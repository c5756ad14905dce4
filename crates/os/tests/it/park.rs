//! Parking through the public interface. Nothing here asserts a longest time; what could hang has a
//! watchdog that fails the test.

use std::sync::mpsc;
use std::time::Duration;

use onbeat_os::clock::monotonic_ns;
use onbeat_os::{Parker, Unparked, Unparker, thread};

const WATCHDOG: Duration = Duration::from_secs(60);
const ROUNDS: u32 = 10_000;

/// Runs `f` on a thread of its own and fails if it has not ended within the watchdog.
fn watched(name: &'static str, f: impl FnOnce() + Send + 'static) {
    let (done, ended) = mpsc::channel();
    let thread = thread::spawn(name, move || {
        f();
        done.send(()).expect("the test waits");
    })
    .unwrap();
    match ended.recv_timeout(WATCHDOG) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("`{name}` hangs: a wake-up was lost"),
        Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => thread.join().unwrap(),
    }
}

#[test]
fn a_notification_before_the_park_is_kept() {
    watched("kept", || {
        let parker = Parker::new();
        parker.unparker().unpark();
        parker.park();
    });
}

#[test]
fn notifications_do_not_add_up() {
    let parker = Parker::new();
    let unparker = parker.unparker();
    unparker.unpark();
    unparker.unpark();
    assert_eq!(parker.park_until(0), Unparked::Notified);
    assert_eq!(parker.park_until(0), Unparked::TimedOut);
}

#[test]
fn a_park_without_notification_times_out_after_its_deadline() {
    let parker = Parker::new();
    let deadline_ns = monotonic_ns() + 3_000_000;
    assert_eq!(parker.park_until(deadline_ns), Unparked::TimedOut);
    assert!(monotonic_ns() >= deadline_ns);
}

#[test]
fn a_notification_after_a_time_out_is_for_the_next_park() {
    let parker = Parker::new();
    assert_eq!(parker.park_until(0), Unparked::TimedOut);
    parker.unparker().unpark();
    assert_eq!(parker.park_until(0), Unparked::Notified);
}

#[test]
fn an_unparker_outlives_its_parker() {
    let parker = Parker::new();
    let unparker = parker.unparker();
    drop(parker);
    unparker.unpark();
}

/// Two threads that wake each other in turn: every round is one sleep and one wake on each side, and
/// a single lost notification stops both.
#[test]
fn ping_pong_loses_no_notification() {
    watched("ping", || {
        let (ping, pong) = (Parker::new(), Parker::new());
        let (wake_ping, wake_pong) = (ping.unparker(), pong.unparker());
        let partner = thread::spawn("pong", move || {
            for _ in 0..ROUNDS {
                pong.park();
                wake_ping.unpark();
            }
        })
        .unwrap();
        for _ in 0..ROUNDS {
            wake_pong.unpark();
            ping.park();
        }
        partner.join().unwrap();
    });
}

/// Several threads notify at once while the waiter sleeps with short deadlines, so that wakes and
/// time-outs meet. All messages must arrive although notifications merge.
#[test]
fn many_unparkers_against_deadlines_lose_nothing() {
    const SENDERS: u32 = 3;
    watched("waiter", || {
        let parker = Parker::new();
        let (send, received) = mpsc::channel();
        let senders: Vec<_> = (0..SENDERS)
            .map(|_| {
                let (send, unparker): (_, Unparker) = (send.clone(), parker.unparker());
                thread::spawn("sender", move || {
                    for round in 0..ROUNDS {
                        send.send(round).expect("the waiter takes all");
                        unparker.unpark();
                    }
                })
                .unwrap()
            })
            .collect();
        let mut sum = 0_u64;
        let mut left = SENDERS * ROUNDS;
        let mut patient = false;
        while left > 0 {
            // By turns with and without a deadline: without one, only a kept notification helps.
            if patient {
                parker.park();
            } else {
                let _either = parker.park_until(monotonic_ns() + 5_000);
            }
            patient = !patient;
            for round in received.try_iter() {
                sum += u64::from(round);
                left -= 1;
            }
        }
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        assert_eq!(sum, u64::from(SENDERS) * u64::from(ROUNDS) * u64::from(ROUNDS - 1) / 2);
    });
}
