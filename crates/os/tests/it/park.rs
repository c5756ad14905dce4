//! Parking through the public interface. Nothing here asserts a longest time; what could hang has a
//! watchdog that fails the test.

use std::cell::Cell;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use onbeat_os::clock::monotonic_ns;
use onbeat_os::poll::{Interest, Poll};
use onbeat_os::{Parker, Unparked, Unparker, thread};

const WATCHDOG: Duration = Duration::from_secs(60);
const ROUNDS: u32 = 10_000;
/// Token of the descriptor that a test waits for.
const TOKEN: u64 = 7;

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

/// The reading end of a socket that is armed at a poll. Any thread reads from it after a report of its token.
struct ArmedSocket {
    poll: Arc<Poll>,
    socket: UnixStream,
    /// Called with the number of bytes that were read.
    bytes: Box<dyn Fn(usize) + Send + Sync>,
    is_armed: Mutex<bool>,
}

impl ArmedSocket {
    fn new(socket: UnixStream, bytes: impl Fn(usize) + Send + Sync + 'static) -> Self {
        socket.set_nonblocking(true).unwrap();
        let poll = Arc::new(Poll::new().unwrap());
        let is_armed = Mutex::new(true);
        assert!(poll.arm(socket.as_fd(), Interest::Read, TOKEN).unwrap());
        ArmedSocket { poll, socket, bytes: Box::new(bytes), is_armed }
    }

    /// Looks at the poll, and reads and arms again if the token is reported. Returns whether the bell rings.
    fn look(&self) -> bool {
        let is_ready = Cell::new(false);
        let rings = self.poll.look(|token| {
            assert_eq!(token, TOKEN);
            assert!(!is_ready.replace(true), "one look reports a token once");
        });
        if is_ready.get() {
            // The lock is held until the socket is armed: the next report comes after that.
            let mut is_armed = self.is_armed.lock().unwrap();
            assert!(std::mem::replace(&mut *is_armed, false), "reported twice although armed once");
            if let Ok(count) = (&self.socket).read(&mut [0; 64]) {
                (self.bytes)(count);
            }
            *is_armed = true;
            assert!(self.poll.arm(self.socket.as_fd(), Interest::Read, TOKEN).unwrap());
        }
        rings.unwrap()
    }

    /// Parks as the thread that waits at the poll, and acts on what is ready.
    fn park(&self, parker: &Parker, deadline_ns: Option<u64>) -> Unparked {
        let unparked = parker.park_polling(&self.poll, deadline_ns);
        if unparked == Unparked::Ready && self.look() {
            self.poll.silence();
        }
        unparked
    }
}

#[test]
fn a_notification_before_a_poll_is_kept_and_rings_no_bell() {
    let (parker, poll) = (Parker::new(), Arc::new(Poll::new().unwrap()));
    parker.unparker().unpark();
    assert_eq!(parker.park_polling(&poll, None), Unparked::Notified);
    assert_eq!(parker.park_polling(&poll, Some(0)), Unparked::TimedOut);
    parker.unparker().unpark();
    assert_eq!(parker.park_until(0), Unparked::Notified, "one notification for both ways to wait");
}

#[test]
fn a_notification_takes_precedence_over_a_descriptor_that_stays_ready() {
    let (reader, mut writer) = UnixStream::pair().unwrap();
    let (parker, poll) = (Parker::new(), Arc::new(Poll::new().unwrap()));
    assert!(poll.arm(reader.as_fd(), Interest::Read, TOKEN).unwrap());
    writer.write_all(b"x").unwrap();
    parker.unparker().unpark();
    assert_eq!(parker.park_polling(&poll, None), Unparked::Notified);
    assert_eq!(parker.park_polling(&poll, None), Unparked::Ready);
}

#[test]
fn a_poll_times_out_after_its_deadline() {
    let (parker, poll) = (Parker::new(), Arc::new(Poll::new().unwrap()));
    // The last ones are long enough for a wait in two parts.
    for wait_ns in [0, 1, 40_000, 3_000_000, 9_999_999, 10_000_000, 25_000_000] {
        let deadline_ns = monotonic_ns() + wait_ns;
        // A signal ends a wait, too.
        while parker.park_polling(&poll, Some(deadline_ns)) != Unparked::TimedOut {}
        assert!(monotonic_ns() >= deadline_ns, "early, after {wait_ns} ns");
    }
}

/// Senders notify while the waiter sleeps in the poll with short deadlines. A socket becomes ready now and
/// then. Each sender waits for the answer to its message, so the waiter sleeps often.
#[test]
fn unparkers_and_a_descriptor_against_deadlines_lose_nothing() {
    const SENDERS: u32 = 3;
    const BYTES: u32 = ROUNDS / 5;
    watched("poller", || {
        let parker = Parker::new();
        let (reader, mut writer) = UnixStream::pair().unwrap();
        let (read, count_read) = mpsc::channel();
        let socket = ArmedSocket::new(reader, move |count| read.send(count).unwrap());
        let (send, received) = mpsc::channel();
        let mut threads = Vec::new();
        let mut answers = Vec::new();
        for sender in 0..SENDERS {
            let (send, unparker, turn) = (send.clone(), parker.unparker(), Parker::new());
            answers.push(turn.unparker());
            let talk = move || {
                for round in 0..ROUNDS {
                    send.send((sender, round)).expect("the waiter takes all");
                    unparker.unpark();
                    turn.park();
                }
            };
            threads.push(thread::spawn("sender", talk).unwrap());
        }
        let turn = Parker::new();
        let answer = turn.unparker();
        let write = move || {
            for _ in 0..BYTES {
                writer.write_all(b"x").unwrap();
                turn.park();
            }
            writer
        };
        let writer = thread::spawn("writer", write).unwrap();
        let (mut messages, mut bytes, mut notified) = (0, 0, 0);
        let mut patient = false;
        while messages < SENDERS * ROUNDS || bytes < BYTES {
            // By turns with and without a deadline: without one, only what was kept helps.
            let deadline_ns = (!patient).then(|| monotonic_ns() + 5_000);
            match socket.park(&parker, deadline_ns) {
                Unparked::Notified => notified += 1,
                Unparked::Ready => {}
                Unparked::TimedOut => assert!(deadline_ns.is_some_and(|until_ns| monotonic_ns() >= until_ns)),
            }
            patient = !patient;
            for (sender, round) in received.try_iter() {
                assert!(round < ROUNDS);
                messages += 1;
                answers[sender as usize].unpark();
            }
            for count in count_read.try_iter() {
                assert_eq!(count, 1, "the writer waits for the answer");
                bytes += 1;
                answer.unpark();
            }
        }
        threads.into_iter().for_each(|sender| sender.join().unwrap());
        let _still_open = writer.join().unwrap();
        assert!(notified <= SENDERS * ROUNDS, "an `unpark` ended {notified} parks");
    });
}

/// One of two threads that share a poll. The thread that gets the watch waits at the poll, the other one in
/// its futex.
fn share_a_poll(
    socket: &ArmedSocket,
    watch: &Mutex<()>,
    (parker, other): (&Parker, &Unparker),
    mut is_over: impl FnMut() -> bool,
) {
    while !is_over() {
        match watch.try_lock() {
            Ok(watching) => {
                let _any = socket.park(parker, None);
                drop(watching);
                // It may have parked because this thread watched.
                other.unpark();
            }
            Err(_) => parker.park(),
        }
    }
}

/// Two threads take turns at one poll, a third one notifies both, and a busy one looks without silencing the
/// bell. A ring that got lost, or that only the other thread heard, stops a round.
#[test]
fn threads_that_share_a_poll_sleep_through_nothing() {
    watched("pool", || {
        let (reader, mut writer) = UnixStream::pair().unwrap();
        let (done, answers) = mpsc::channel();
        let byte_done = done.clone();
        let socket = Arc::new(ArmedSocket::new(reader, move |count| {
            (0..count).for_each(|_| byte_done.send(()).expect("the test waits"));
        }));
        let watch = Arc::new(Mutex::new(()));
        let (end, ended) = mpsc::channel::<()>();
        let busy = {
            let socket = Arc::clone(&socket);
            let look = move || {
                while ended.try_recv() == Err(mpsc::TryRecvError::Empty) {
                    socket.look();
                    std::thread::yield_now();
                }
            };
            thread::spawn("busy", look).unwrap()
        };
        let parkers = [Parker::new(), Parker::new()];
        let unparkers = parkers.each_ref().map(Parker::unparker);
        let mut members = Vec::new();
        for (parker, other) in parkers.into_iter().zip(unparkers.iter().rev().cloned()) {
            let (send, received) = mpsc::channel::<()>();
            let (socket, watch, done) = (Arc::clone(&socket), Arc::clone(&watch), done.clone());
            let run = move || {
                share_a_poll(&socket, &watch, (&parker, &other), || {
                    loop {
                        match received.try_recv() {
                            Ok(()) => done.send(()).expect("the test waits"),
                            Err(end) => return end == mpsc::TryRecvError::Disconnected,
                        }
                    }
                });
            };
            members.push((send, thread::spawn("member", run).unwrap()));
        }
        for round in 0..ROUNDS {
            let mut expected = 2;
            for (member, unparker) in members.iter().zip(&unparkers) {
                member.0.send(()).unwrap();
                unparker.unpark();
            }
            if round % 4 == 0 {
                writer.write_all(b"x").unwrap();
                expected += 1;
            }
            (0..expected).for_each(|_| answers.recv().unwrap());
        }
        for ((send, thread), unparker) in members.into_iter().zip(&unparkers) {
            drop(send);
            unparker.unpark();
            thread.join().unwrap();
        }
        drop(end);
        busy.join().unwrap();
    });
}
