//! Two workers that now and then have nothing to do, for about the time that they poll before they park. A
//! message that comes in that moment is seen on both sides. The test has a watchdog.

use crate::watchdog::watched;
use onbeat_runtime::{Graph, Idle, Options, Scheduler};
use std::sync::{Arc, Mutex};

const MESSAGES: u64 = 4_000;

/// Takes from nothing to some ten microseconds, by chance; mostly little.
fn dawdle(dice: &mut u64) {
    *dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let turns = (*dice >> 33) % 64;
    for _ in 0..turns * turns {
        std::hint::spin_loop();
    }
}

#[test]
fn nothing_is_overlooked_by_one_who_lies_down() {
    let idles = [1_000, 3_000, 20_000].map(Idle::SpinFor);
    for idle in idles.into_iter().chain([Idle::Spin, Idle::Park, Idle::Early(5_000)]) {
        for capacity in [1, 2, 5] {
            watched(60, move || {
                let came = Arc::new(Mutex::new(Vec::new()));
                let mut graph = Graph::new("now and then");
                let (mut n, mut dice) = (0, 1);
                graph.source("numbers", move || {
                    dawdle(&mut dice);
                    n += 1;
                    (n <= MESSAGES).then_some(n)
                });
                let (kept, mut dice) = (Arc::clone(&came), 2);
                graph.sink("end", move |n: u64| {
                    dawdle(&mut dice);
                    kept.lock().unwrap().push(n);
                });
                graph.connect_names("numbers", "end").capacity(capacity);
                let options =
                    Options { scheduler: Scheduler::Pinned, workers: Some(2), idle, ..Options::default() };
                graph.run(&options).unwrap();
                assert!(came.lock().unwrap().iter().copied().eq(1..=MESSAGES));
            });
        }
    }
}
