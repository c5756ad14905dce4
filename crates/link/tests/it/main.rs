//! Links between runs of one process, over the loopback.

mod cuts;
mod delays;
mod messages;
mod refusals;
mod relay;
#[cfg(feature = "tls")]
mod secure;
mod unix;

use onbeat_link::{Carried, LinkPeer, LinkSettings, LinkSink, LinkSource};
use onbeat_runtime::testing::free_address;
use onbeat_runtime::{Graph, Options, RunError};
use onbeat_trace::Record;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Settings of both ends: the producer calls.
fn ends(name: &str) -> (LinkSettings, LinkSettings) {
    let address = free_address().to_string();
    let sink = LinkSettings::new(name, LinkPeer::Connect(address.clone()));
    (sink, LinkSettings::new(name, LinkPeer::Listen(address)))
}

/// A run that sends `messages`.
fn producer<M: Carried>(messages: Vec<M>, settings: LinkSettings) -> Graph {
    let mut graph = Graph::new("producer");
    let mut left = messages.into_iter();
    let source = graph.source("numbers", move || left.next());
    let sink = graph.add("to", LinkSink::<M>::new(settings));
    graph.connect(source, |s| &s.out, sink, |s| &s.input);
    graph
}

/// A run that keeps what comes.
fn consumer<M: Carried>(settings: LinkSettings) -> (Graph, Arc<Mutex<Vec<M>>>) {
    let found = Arc::new(Mutex::new(Vec::new()));
    let mut graph = Graph::new("consumer");
    let source = graph.add("from", LinkSource::<M>::new(settings));
    let kept = Arc::clone(&found);
    let end = graph.sink("end", move |message: M| kept.lock().expect("nobody panics").push(message));
    graph.connect(source, |s| &s.out, end, |s| &s.input);
    (graph, found)
}

/// Runs both, and ends after a time in which they surely end.
fn run_both(one: Graph, other: Graph) -> (Result<Record, RunError>, Result<Record, RunError>) {
    let options = Options::default();
    let (one, other) = (one.start(&options).expect("it starts"), other.start(&options).expect("it starts"));
    let dog = watchdog();
    let results = (one.wait(), other.wait());
    drop(dog);
    results
}

/// Aborts the test if it hangs: dropped when it has not.
fn watchdog() -> Sender<()> {
    let (sender, receiver) = channel::<()>();
    let wait = move || {
        if receiver.recv_timeout(Duration::from_secs(600)) == Err(RecvTimeoutError::Timeout) {
            std::process::abort();
        }
    };
    onbeat_os::thread::spawn("watchdog", wait).expect("a thread starts");
    sender
}
