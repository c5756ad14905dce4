//! Connections that are cut.

use crate::relay::Relay;
use crate::{consumer, ends, run_both};
use onbeat_link::{LinkPeer, LinkSettings, LinkSink, OnCut};
use onbeat_queue::sync::atomic::{AtomicBool, Ordering};
use onbeat_runtime::{Graph, Options};
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Found = Arc<Mutex<Vec<u64>>>;

const BEAT: u64 = 30_000_000;

/// Both ends, with a relay between them.
fn relayed(name: &str, on_cut: OnCut) -> (LinkSettings, LinkSettings, Relay) {
    let (mut sink, mut source) = ends(name);
    let relay = Relay::to(source.peer.address());
    sink.peer = LinkPeer::Connect(relay.address.clone());
    for settings in [&mut sink, &mut source] {
        settings.on_cut = on_cut;
        settings.heartbeat_ns = BEAT;
    }
    (sink, source, relay)
}

/// A run that sends the numbers below `count`, one every 100 µs.
pub fn paced(count: u64, settings: LinkSettings) -> Graph {
    let mut graph = Graph::new("producer");
    let mut n = 0_u64;
    let numbers = graph.source("numbers", move || {
        std::thread::sleep(Duration::from_micros(100));
        n += 1;
        (n <= count).then_some(n - 1)
    });
    let to = graph.add("to", LinkSink::<u64>::new(settings));
    graph.connect(numbers, |s| &s.out, to, |s| &s.input);
    graph
}

/// Does something to the relay again and again, in a thread, once something has come through.
pub fn meanwhile(relay: &Relay, found: &Found, times: usize, what: impl Fn(&Relay) + Send + 'static) {
    let (relay, found) = (relay.clone(), Arc::clone(found));
    let body = move || {
        while found.lock().unwrap().is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
        for _ in 0..times {
            std::thread::sleep(Duration::from_millis(50));
            what(&relay);
        }
    };
    onbeat_os::thread::spawn("faults", body).unwrap();
}

#[test]
fn nothing_is_lost_or_doubled_while_it_is_held() {
    let (sink, source, relay) = relayed("held", OnCut::Hold);
    let (consumer, found) = consumer::<u64>(source);
    meanwhile(&relay, &found, 8, Relay::cut);
    let (one, other) = run_both(paced(4_000, sink), consumer);
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!(*found.lock().unwrap(), (0..4_000).collect::<Vec<u64>>());
    let (to, from) = (&one.links[0], &other.links[0]);
    assert!(to.cuts > 0 && from.cuts > 0, "{to:?} {from:?}");
    assert_eq!((to.messages, from.messages, to.dropped, to.in_flight), (4_000, 4_000, 0, 0));
    assert!(to.cut_ns > 0);
}

/// Random faults, one after the other: 1000 take two minutes, with `ONBEAT_FAULTS=1000`.
#[test]
fn random_faults_lose_and_double_nothing() {
    let faults: u64 = std::env::var("ONBEAT_FAULTS").map_or(15, |text| text.parse().expect("a number"));
    let (sink, source, relay) = relayed("soak", OnCut::Hold);
    let (consumer, found) = consumer::<u64>(source);
    let is_over = Arc::new(AtomicBool::new(false));
    let (over, flag) = (Arc::clone(&is_over), Arc::clone(&is_over));
    let mut graph = Graph::new("producer");
    let mut n = 0_u64;
    let numbers = graph.source("numbers", move || {
        std::thread::sleep(Duration::from_micros(100));
        n += 1;
        (!over.load(Ordering::Relaxed)).then_some(n - 1)
    });
    let to = graph.add("to", LinkSink::<u64>::new(sink));
    graph.connect(numbers, |s| &s.out, to, |s| &s.input);
    onbeat_os::thread::spawn("faults", move || {
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..faults {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (kind, pause_ms) = (random >> 62, (random >> 40) % 120);
            relay.hold(kind != 0);
            if kind != 1 {
                relay.cut();
            }
            std::thread::sleep(Duration::from_millis(pause_ms));
            relay.hold(false);
            std::thread::sleep(Duration::from_millis(20));
        }
        flag.store(true, Ordering::Relaxed);
    })
    .unwrap();
    let (one, other) = run_both(graph, consumer);
    let (one, other) = (one.unwrap(), other.unwrap());
    let (to, from) = (&one.links[0], &other.links[0]);
    assert_eq!((to.messages, to.dropped, to.in_flight), (from.messages, 0, 0));
    let found = found.lock().unwrap();
    assert!(found.iter().copied().eq(0..to.messages), "{} of {}", found.len(), to.messages);
    assert!(to.cuts > 0, "{to:?}");
}

#[test]
fn a_partition_is_survived() {
    let (sink, source, relay) = relayed("split", OnCut::Hold);
    let (consumer, found) = consumer::<u64>(source);
    // Longer than three signs of life, so that both ends part.
    meanwhile(&relay, &found, 3, |relay| {
        relay.hold(true);
        std::thread::sleep(Duration::from_nanos(5 * BEAT));
        relay.hold(false);
    });
    let (one, other) = run_both(paced(4_000, sink), consumer);
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!(*found.lock().unwrap(), (0..4_000).collect::<Vec<u64>>());
    assert!(one.links[0].cuts > 0 && other.links[0].cuts > 0, "{:?} {:?}", one.links, other.links);
}

#[test]
fn the_run_goes_on_without_the_link() {
    let (sink, source, relay) = relayed("degraded", OnCut::Degrade);
    let (consumer, found) = consumer::<u64>(source);
    meanwhile(&relay, &found, 4, |relay| {
        relay.hold(true);
        relay.cut();
        std::thread::sleep(Duration::from_millis(60));
        relay.hold(false);
    });
    let (one, other) = run_both(paced(6_000, sink), consumer);
    let (one, other) = (one.unwrap(), other.unwrap());
    let (to, from) = (&one.links[0], &other.links[0]);
    assert!(to.dropped > 0, "{to:?}");
    // Both ends have the same books.
    assert_eq!((to.messages, to.dropped), (from.messages, from.dropped));
    assert_eq!(to.messages + to.dropped, 6_000);
    let found = found.lock().unwrap();
    assert_eq!(found.len() as u64, from.messages);
    assert!(found.is_sorted_by(|a, b| a < b));
}

#[test]
fn a_run_that_goes_on_without_the_link_ends_with_its_source() {
    let (mut sink, source, relay) = relayed("gone", OnCut::Degrade);
    sink.hold_ns = 200_000_000;
    let (consumer, found) = consumer::<u64>(source);
    let run = consumer.start(&Options::default()).unwrap();
    meanwhile(&relay, &found, 1, |relay| {
        relay.hold(true);
        relay.cut();
    });
    let record = paced(1_500, sink).run(&Options::default()).unwrap();
    let end = &record.links[0];
    assert_eq!(end.messages + end.dropped, 1_500, "{end:?}");
    assert!(end.dropped > 0 && record.result.lost == end.in_flight, "{end:?} {:?}", record.result);
    run.stop();
    run.wait().unwrap();
}

#[test]
fn a_cut_ends_the_run() {
    let (sink, source, relay) = relayed("ended", OnCut::End);
    let (consumer, found) = consumer::<u64>(source);
    meanwhile(&relay, &found, 1, Relay::cut);
    let (one, other) = run_both(paced(100_000, sink), consumer);
    for error in [one.unwrap_err().to_string(), other.unwrap_err().to_string()] {
        assert!(error.contains("link `ended`: the connection with") && error.contains("was cut"), "{error}");
    }
}

#[test]
fn a_silent_end_is_noticed() {
    let (sink, source, relay) = relayed("silent", OnCut::End);
    let (consumer, found) = consumer::<u64>(source);
    meanwhile(&relay, &found, 1, |relay| relay.hold(true));
    let (one, other) = run_both(paced(100_000, sink), consumer);
    for error in [one.unwrap_err().to_string(), other.unwrap_err().to_string()] {
        assert!(error.contains("the other end was silent for 90 ms"), "{error}");
    }
    relay.hold(false);
}

#[test]
fn nobody_to_talk_to_is_an_error() {
    let (mut sink, mut source) = ends("alone");
    (sink.patience_ns, source.patience_ns) = (50_000_000, 50_000_000);
    let error = paced(5, sink).run(&Options::default()).unwrap_err().to_string();
    assert!(error.contains("link `alone`: cannot reach the `link.source` at 127."), "{error}");
    assert!(error.contains("within 50 ms (`patience`)"), "{error}");
    let error = consumer::<u64>(source).0.run(&Options::default()).unwrap_err().to_string();
    assert!(error.contains("link `alone`: no `link.sink` called 127."), "{error}");
}

#[test]
fn a_producer_that_comes_back_as_another_run_is_taken() {
    let (sink, mut source) = ends("again");
    source.on_cut = OnCut::Hold;
    let (graph, found) = consumer::<u64>(source);
    let run = graph.start(&Options::default()).unwrap();
    // The first one is gone without a word: its run is dropped, as by a kill.
    let killed = Relay::to(sink.peer.address());
    let mut first = sink.clone();
    first.peer = LinkPeer::Connect(killed.address.clone());
    first.patience_ns = 3_000_000_000;
    let one = paced(100_000, first).start(&Options::default()).unwrap();
    while found.lock().unwrap().len() < 50 {
        std::thread::sleep(Duration::from_millis(1));
    }
    killed.hold(true);
    killed.cut();
    paced(100, sink).run(&Options::default()).unwrap();
    let record = run.wait().unwrap();
    assert!(
        record.notes.iter().any(|note| note.contains("is another run of the producer")),
        "{:?}",
        record.notes
    );
    assert_eq!(
        found.lock().unwrap().iter().rev().take(100).copied().collect::<Vec<_>>(),
        (0..100).rev().collect::<Vec<_>>()
    );
    one.stop();
    let _lost = one.wait();
}
