//! Runs that are watched and steered from outside, under every scheduler.

mod orders;
mod pauses;
mod pictures;
mod settings;

pub use crate::ways::ways;
use onbeat_queue::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use onbeat_runtime::{Graph, Run, RunStatus};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Polls a run's status until it is as expected. The watchdog of the test ends it otherwise.
pub fn until(run: &Run, what: impl Fn(&RunStatus) -> bool) -> RunStatus {
    let begin = Instant::now();
    loop {
        let status = run.status();
        if what(&status) {
            return status;
        }
        assert!(begin.elapsed() < Duration::from_secs(50), "{status:#?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// What the source of a line has made, and what has come at its end.
pub struct Line {
    made: Arc<AtomicU64>,
    /// The source goes on while it is false.
    pub ended: Arc<AtomicBool>,
    /// In the order in which it came.
    pub came: Arc<Mutex<Vec<u64>>>,
}

/// numbers → double → end
pub fn line() -> (Graph, Line) {
    let (made, ended) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let came = Arc::new(Mutex::new(Vec::new()));
    let mut graph = Graph::new("line");
    let (count, over) = (Arc::clone(&made), Arc::clone(&ended));
    let numbers = graph.source("numbers", move || {
        (!over.load(Ordering::Relaxed)).then(|| count.fetch_add(1, Ordering::Relaxed))
    });
    let double = graph.map("double", |n: u64| 2 * n);
    let list = Arc::clone(&came);
    let end = graph.sink("end", move |n: u64| list.lock().unwrap().push(n));
    graph.connect(numbers, |s| &s.out, double, |d| &d.input);
    graph.connect(double, |d| &d.out, end, |e| &e.input);
    (graph, Line { made, ended, came })
}

impl Line {
    /// How many numbers were made.
    pub fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    /// Nothing is lost, doubled, or out of order.
    pub fn check(&self, what: &str) {
        let came = self.came.lock().unwrap();
        assert_eq!(came.len() as u64, self.made(), "{what}");
        assert!(came.iter().zip(0u64..).all(|(&n, number)| n == 2 * number), "{what}");
    }
}
