//! The work queue: the five parts of the self test of the kernel module that it follows, what that does not
//! check, and what is refused.

mod further;

use onbeat::work_queue::{CoreSet, Item, Owned, Shared, Turn, WorkQueueError};
use onbeat::{Idle, WorkQueue};
use onbeat_queue::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

/// Runs a test in a thread of its own, and fails when it does not come back.
#[expect(clippy::disallowed_methods, reason = "a test outside of the workspace's layers")]
fn watched(test: impl FnOnce() + Send + 'static) {
    let (done, wait) = mpsc::channel();
    let thread = thread::spawn(move || {
        test();
        let _ = done.send(());
    });
    match wait.recv_timeout(Duration::from_secs(120)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("no end after two minutes"),
        _ => thread.join().unwrap(),
    }
}

/// All ways to wait, plain and with one order.
fn queues() -> Vec<WorkQueue> {
    let mut queues = Vec::new();
    for idle in ["park", "spin", "spin:20us"] {
        for is_fifo in [false, true] {
            let settings = WorkQueue::named("under-test").idle(idle.parse::<Idle>().unwrap());
            let settings = if is_fifo { settings.fifo() } else { settings };
            queues.push(settings.start().unwrap());
        }
    }
    queues
}

/// 1: create and stop, twice; three items, flush, flush, three more, stop: six runs of six items.
#[test]
fn start_and_stop() {
    watched(|| {
        for queue in queues() {
            queue.stop().unwrap();
            queue.stop().unwrap();
            assert!(!queue.is_running());
            queue.start().unwrap();
            let runs: Arc<[AtomicU32; 6]> = Arc::default();
            let items: Vec<_> = (0..6)
                .map(|me| {
                    let runs = runs.clone();
                    Shared::new(move |_: &Turn| {
                        runs[me].fetch_add(1, Ordering::Relaxed);
                    })
                })
                .collect();
            for item in &items[..3] {
                assert!(queue.schedule(item));
            }
            queue.flush().unwrap();
            queue.flush().unwrap();
            assert!(runs[..3].iter().all(|runs| runs.load(Ordering::Relaxed) == 1));
            for item in &items[3..] {
                assert!(queue.schedule(item));
            }
            queue.stop().unwrap();
            queue.stop().unwrap();
            assert!(runs.iter().all(|runs| runs.load(Ordering::Relaxed) == 1));
            assert!(!queue.schedule(&items[0]), "it is stopped");
            queue.start().unwrap();
            assert!(queue.schedule(&items[0]), "it goes on");
            queue.stop().unwrap();
            assert_eq!(runs[0].load(Ordering::Relaxed), 2);
        }
    });
}

/// 2: an item that schedules itself at least ten times, and then stops.
#[test]
fn an_item_that_schedules_itself() {
    watched(|| {
        for queue in queues() {
            let runs = AtomicU32::new(0);
            let item = Item::new(|turn: &Turn| {
                if runs.fetch_add(1, Ordering::Relaxed) < 10 {
                    assert!(turn.again(), "it is not pending while it runs");
                }
            });
            queue
                .scope(|scope| {
                    assert!(scope.schedule(&item));
                    // Each flush waits for two generations.
                    for _ in 0..6 {
                        queue.flush().unwrap();
                    }
                    assert_eq!(runs.load(Ordering::Relaxed), 11);
                })
                .unwrap();
            assert_eq!(runs.load(Ordering::Relaxed), 11, "it has stopped");
        }
    });
}

/// 3: eight threads with 100,000 items of their own each; each flushes and checks its own count.
#[test]
fn eight_threads_with_their_own_items() {
    const EACH: usize = 100_000;
    watched(|| {
        let slotted = WorkQueue::named("slotted").start().unwrap();
        let fifo = WorkQueue::named("fifo").fifo().start().unwrap();
        for queue in [slotted, fifo] {
            let total = AtomicU64::new(0);
            thread::scope(|threads| {
                for _ in 0..8 {
                    threads.spawn(|| {
                        let mine = AtomicU64::new(0);
                        let run = |_: &Turn| {
                            mine.fetch_add(1, Ordering::Relaxed);
                            total.fetch_add(1, Ordering::Relaxed);
                        };
                        let items: Vec<_> = (0..EACH).map(|_| Item::new(run)).collect();
                        queue
                            .scope(|scope| {
                                for item in &items {
                                    assert!(scope.schedule(item));
                                }
                                queue.flush().unwrap();
                                assert_eq!(mine.load(Ordering::Relaxed), EACH as u64);
                            })
                            .unwrap();
                    });
                }
            });
            assert_eq!(total.load(Ordering::Relaxed), 8 * EACH as u64);
        }
    });
}

/// 4: one item, a thousand times in a loop: as many runs as there was a true, one at least.
#[test]
fn one_item_scheduled_over_and_over() {
    watched(|| {
        for queue in queues() {
            let runs = Arc::new(AtomicU32::new(0));
            let counts = runs.clone();
            let item = Shared::new(move |_: &Turn| {
                counts.fetch_add(1, Ordering::Relaxed);
            });
            let queued = (0..1_000).filter(|_| queue.schedule(&item)).count();
            queue.flush().unwrap();
            assert!(queued >= 1);
            assert_eq!(runs.load(Ordering::Relaxed) as usize, queued);
        }
    });
}

/// 5: stacks on memory nodes; at most 20 % of the pages lie elsewhere.
#[test]
#[allow(clippy::disallowed_macros, reason = "a test says what it skips")]
fn stacks_on_memory_nodes() {
    watched(|| {
        let nodes = onbeat_os::memory::nodes();
        if nodes.len() < 2 {
            eprintln!(
                "skipped: the machine has {} memory node, so a stack cannot lie on another one",
                nodes.len()
            );
        }
        for node in nodes {
            let queue = WorkQueue::named("numa").stack_node(node).start().unwrap();
            let [setting] = &queue.obtained()[..] else { panic!("one setting was asked for") };
            match &setting.reason {
                None => assert_eq!(
                    (&*setting.asked, &setting.obtained),
                    (&*format!("node {node}"), &setting.asked)
                ),
                Some(reason) => eprintln!("skipped: node {node}: {reason}"),
            }
            assert!(queue.schedule(&Shared::new(|_| ())));
        }
    });
}

#[test]
fn a_node_that_is_not_there_is_said() {
    let queue = WorkQueue::named("numa").stack_node(999).start().unwrap();
    let [setting] = &queue.obtained()[..] else { panic!("one setting was asked for") };
    assert_eq!((&*setting.asked, &*setting.obtained), ("node 999", "anywhere"));
    assert!(setting.reason.as_ref().unwrap().contains("the machine has the memory nodes"), "{setting:?}");
    let strict = WorkQueue::named("numa").stack_node(999).strict().start();
    assert!(matches!(strict, Err(WorkQueueError::Refused { .. })), "{strict:?}");
}

#[test]
fn what_cannot_be_is_an_error_that_says_why() {
    for (settings, text) in [
        (WorkQueue::named("a-name-that-is-too-long"), "the kernel keeps 15"),
        (WorkQueue::named("cores").cores(CoreSet::from_cores([1000]).unwrap()), "none of them is online"),
        (
            WorkQueue::named("spins").policy("f:50".parse().unwrap()).idle(Idle::Spin),
            "work queue `spins`: policy f:50 with idle spin on any core never lets other threads run",
        ),
    ] {
        let error = settings.start().unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
}

#[test]
#[allow(clippy::disallowed_macros, reason = "a test says what it skips")]
fn its_thread_is_as_it_was_asked_to_be() {
    let core = onbeat_os::thread::cores().unwrap().iter().next().unwrap();
    let one = CoreSet::from_cores([core]).unwrap();
    let queue = WorkQueue::named("asked").cores(one).policy("f:10".parse().unwrap()).start().unwrap();
    let (send, found) = mpsc::channel();
    queue.schedule(&Shared::new(move |_| {
        let policy = onbeat_os::Policy::of_this_thread().unwrap().0.to_string();
        send.send((thread::current().name().unwrap().to_owned(), onbeat_os::thread::current_core(), policy))
            .unwrap();
    }));
    let (name, on, policy) = found.recv().unwrap();
    assert_eq!((&*name, on), ("asked", core));
    let setting = queue.obtained().into_iter().find(|setting| setting.what == "policy").unwrap();
    assert_eq!(setting.obtained, policy);
    match setting.reason {
        None => assert_eq!(policy, "f:10"),
        Some(reason) => eprintln!("skipped: f:10: {reason}"),
    }
}

#[test]
fn callbacks_that_panic_are_told_of() {
    watched(|| {
        let queue = WorkQueue::named("panics").start().unwrap();
        let (send, ran) = mpsc::channel();
        queue.schedule(&Shared::new(|_| panic!("no antenna")));
        queue.schedule(&Shared::new(move |_| send.send(()).unwrap()));
        ran.recv().unwrap();
        queue.flush().unwrap();
        assert_eq!(queue.panics(), 1);
        let error = queue.stop().unwrap_err().to_string();
        assert_eq!(error, "1 callbacks of the work queue `panics` panicked, first: no antenna");
        queue.stop().unwrap();
        queue.start().unwrap();
        queue.stop().unwrap();
    });
}

#[test]
fn a_stopped_queue_gives_owned_items_back() {
    let queue = WorkQueue::named("stopped").start().unwrap();
    queue.stop().unwrap();
    let items = (0..3).map(|at| Owned::new(at, |_, _| panic!("it is stopped")));
    let back = queue.schedule_owned_many(items).unwrap_err();
    assert_eq!(back.iter().map(|item| ***item).collect::<Vec<i32>>(), [0, 1, 2]);
    assert_eq!(**queue.schedule_owned(Owned::new(7, |_, _| ())).unwrap_err(), 7);
}
