//! Callers that do not fit, and callers that do not speak the protocol.

use crate::{consumer, ends, producer, run_both, watchdog};
use onbeat_link::{LinkPeer, LinkSettings};
use onbeat_runtime::{Chunk, Options};
use std::io::{Read, Write};
use std::net::TcpStream;

#[test]
fn types_are_compared() {
    let (sink, source) = ends("typed");
    let (graph, _) = consumer::<f64>(source);
    let run = graph.start(&Options::default()).unwrap();
    let error = producer(vec![1_u64], sink).run(&Options::default()).unwrap_err().to_string();
    assert!(
        error.contains("link `typed`:") && error.contains("of type numbers") && error.contains("has value"),
        "{error}"
    );
    run.stop();
    run.wait().unwrap();
}

#[test]
fn two_producers_are_no_link() {
    let (sink, mut other) = ends("twice");
    other.patience_ns = 3_000_000_000;
    let one = producer(vec![1_u64], other).start(&Options::default()).unwrap();
    let error = producer(vec![1_u64], sink).run(&Options::default()).unwrap_err().to_string();
    assert!(error.contains("both ends are a `link.sink`"), "{error}");
    let error = one.wait().unwrap_err().to_string();
    assert!(error.contains("both ends are a `link.sink`"), "{error}");
}

#[test]
fn an_unknown_name_is_said() {
    let (mut sink, mut source) = ends("right");
    sink.name = "wrong".to_string();
    (sink.patience_ns, source.patience_ns) = (2_000_000_000, 4_000_000_000);
    let run = consumer::<u64>(source).0.start(&Options::default()).unwrap();
    let error = producer(vec![1_u64], sink).run(&Options::default()).unwrap_err().to_string();
    assert!(error.contains("there is no link `wrong`") && error.contains("`right`"), "{error}");
    let error = run.wait().unwrap_err().to_string();
    assert!(error.contains("called for link `wrong`, which is not here"), "{error}");
}

#[test]
fn another_machine_must_be_allowed() {
    let settings = LinkSettings::new("far", LinkPeer::Listen("0.0.0.0:0".to_string()));
    let error = consumer::<u64>(settings).0.run(&Options::default()).unwrap_err().to_string();
    assert!(error.contains("not the loopback") && error.contains("insecure = true"), "{error}");
}

#[test]
fn links_share_an_address() {
    let (sink, source) = ends("one");
    let (mut other_sink, mut other_source) = (sink.clone(), source.clone());
    (other_sink.name, other_source.name) = ("two".to_string(), "two".to_string());
    let (first, found) = consumer::<u64>(source);
    let (second, texts) = consumer::<String>(other_source);
    let (first, second) =
        (first.start(&Options::default()).unwrap(), second.start(&Options::default()).unwrap());
    let (one, other) =
        run_both(producer((0..100_u64).collect(), sink), producer(vec!["a".to_string()], other_sink));
    one.unwrap();
    other.unwrap();
    first.wait().unwrap();
    second.wait().unwrap();
    assert_eq!((found.lock().unwrap().len(), texts.lock().unwrap().len()), (100, 1));
}

#[test]
fn strangers_do_no_harm() {
    let (sink, source) = ends("calm");
    let address = source.peer.address().to_string();
    let (graph, found) = consumer::<u64>(source);
    let run = graph.start(&Options::default()).unwrap();
    let dog = watchdog();
    // The operator opens the door a moment after the start.
    while TcpStream::connect(&address).is_err() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    // A length of 4 GB, garbage, an answer before the question, and many that say nothing.
    for bytes in [&[0xff_u8; 64][..], b"GET / HTTP/1.1\r\n\r\n", &[2, 0, 0, 0, 0, 0, 0, 0, 5, 0]] {
        let mut stranger = TcpStream::connect(&address).unwrap();
        stranger.write_all(bytes).unwrap();
        // The door closes the connection: an end or a reset.
        let _closed = stranger.read(&mut [0; 64]);
    }
    // One after the other, and none stays: twice the kernel's queue at a time would wait for seconds.
    for _ in 0..10_000 {
        drop(TcpStream::connect(&address));
    }
    let silent: Vec<TcpStream> = (0..400).filter_map(|_| TcpStream::connect(&address).ok()).collect();
    producer((0..1000_u64).collect(), sink).run(&Options::default()).unwrap();
    let notes = run.wait().unwrap().notes;
    drop((dog, silent));
    assert_eq!(found.lock().unwrap().len(), 1000);
    assert!(
        notes.iter().any(|note| note.contains("callers at") && note.contains("were refused")),
        "{notes:?}"
    );
}

#[test]
fn larger_chunks_are_refused_by_name() {
    let (sink, source) = ends("large");
    let send = |count: usize, quantum: usize| {
        let mut graph = onbeat_runtime::Graph::new("chunks");
        let source = graph.add("zeros", crate::messages::Zeros::new(count));
        let to = graph.add("to", onbeat_link::LinkSink::<Chunk<f32>>::new(sink.clone()));
        graph.connect(source, |s| &s.out, to, |s| &s.input).quantum(quantum);
        graph
    };
    let mut graph = onbeat_runtime::Graph::new("small");
    let from = graph.add("from", onbeat_link::LinkSource::<Chunk<f32>>::new(source));
    let end = graph.sink("end", |_: Chunk<f32>| ());
    graph.connect(from, |s| &s.out, end, |s| &s.input).quantum(1024);
    let (one, other) = run_both(send(4, 4096), graph);
    let error = other.unwrap_err().to_string();
    assert!(error.contains("bytes came, and chunks have at most 1024 here"), "{error}");
    assert!(one.unwrap_err().to_string().contains("failed"));
}
