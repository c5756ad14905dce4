//! Clients without messages, with the real clock: they connect, and notice a broker that hangs.

use super::{ACCEPTED, GRANTED, packet, restart};
use onbeat_operators::mqtt::{LinePayload, MqttPublishing, MqttSetup, MqttSink};
use onbeat_operators::registry;
use onbeat_runtime::testing::Trial;
use onbeat_runtime::{
    ClockKind, Context, Error, Graph, OnError, Operator, Options, Output, Ports, Run, Step,
};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// After that time, what should have happened does not happen any more.
const WATCHDOG: Duration = Duration::from_secs(60);
/// PINGREQ.
const PING: (u8, Vec<u8>) = (0xc0, vec![]);
/// DISCONNECT.
const LEAVE: (u8, Vec<u8>) = (0xe0, vec![]);

/// Sends nothing, and ends at once or never.
struct Quiet {
    out: Output<String>,
    ends: bool,
}

impl Operator for Quiet {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.ends {
            return Ok(Step::Done);
        }
        let next_ns = cx.now_ns() + 10_000_000;
        Ok(cx.until(next_ns))
    }
}

/// A run of a sink behind sources that send nothing. Each of `ends` is a source.
fn quiet_run(address: &str, ends: &[bool], on_error: OnError, patience_ms: u64) -> Run {
    let mut setup = MqttSetup::new(address).unwrap();
    (setup.keep_alive_s, setup.patience_ns) = (1, patience_ms * 1_000_000);
    let publishing = MqttPublishing { topic: "t".into(), qos: 1, retain: false };
    let mut graph = Graph::new("quiet");
    let sink = graph.add("sink", MqttSink::new(setup, publishing, LinePayload::default()).unwrap());
    graph.on_error(sink, on_error);
    for (number, ends) in ends.iter().enumerate() {
        graph.add(format!("quiet{number}"), Quiet { out: Output::default(), ends: *ends });
        let _ = graph.connect_names(format!("quiet{number}.out"), "sink.in");
    }
    graph.start(&Options { clock: ClockKind::Real, ..Options::default() }).unwrap()
}

/// Waits until a run is over.
fn watch(run: &Run) {
    let begin = Instant::now();
    while !run.is_finished() {
        assert!(begin.elapsed() < WATCHDOG, "the run does not end");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

/// Waits for a call and accepts it.
fn greet(listener: &TcpListener) -> TcpStream {
    let begin = Instant::now();
    let mut peer = loop {
        match listener.accept() {
            Ok((peer, _)) => break peer,
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
        assert!(begin.elapsed() < WATCHDOG, "nobody calls");
        std::thread::sleep(Duration::from_millis(2));
    };
    peer.set_read_timeout(Some(WATCHDOG)).unwrap();
    assert_eq!(packet(&mut peer).0, 0x10);
    peer.write_all(&ACCEPTED).unwrap();
    peer
}

/// Also a sink that waits for messages of two edges.
#[test]
fn a_sink_connects_before_its_first_message() {
    for ends in [&[false][..], &[false, false]] {
        let (listener, address) = listen();
        let run = quiet_run(&address, ends, OnError::Stop, 20_000);
        let mut peer = greet(&listener);
        for _ in 0..2 {
            assert_eq!(packet(&mut peer), PING);
            peer.write_all(&[0xd0, 0]).unwrap();
        }
        run.handle().stop();
        assert_eq!(packet(&mut peer), LEAVE);
        watch(&run);
        let record = run.wait().unwrap();
        assert_eq!((record.result.exit_status, record.result.lost), (0, 0));
    }
}

#[test]
fn a_sink_without_any_message_ends_well() {
    for ends in [&[true][..], &[true, true]] {
        let (listener, address) = listen();
        let run = quiet_run(&address, ends, OnError::Stop, 20_000);
        let mut peer = greet(&listener);
        assert_eq!(packet(&mut peer), LEAVE);
        watch(&run);
        let record = run.wait().unwrap();
        assert_eq!((record.result.exit_status, record.result.lost), (0, 0));
    }
}

#[test]
fn a_broker_that_is_not_there_is_an_error_without_messages() {
    let run = quiet_run("127.9.8.7:1", &[false], OnError::Stop, 100);
    watch(&run);
    let said = run.wait().err().unwrap().to_string();
    assert!(said.contains("cannot connect to 127.9.8.7:1 within 100 ms"), "{said}");
}

/// It answers no PINGREQ, and keeps the connection.
#[test]
fn a_source_notices_a_broker_that_hangs() {
    let (listener, address) = listen();
    let text = format!("broker = \"{address}\"\ntopic = \"t\"\nkeep_alive = \"1 s\"\npatience = \"1 s\"");
    let said = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut peer = greet(&listener);
            assert_eq!(packet(&mut peer).0, 0x82);
            peer.write_all(&GRANTED[0]).unwrap();
            assert_eq!(packet(&mut peer), PING);
            let _ = peer.read(&mut [0]);
        });
        Trial::kind(&registry(), "mqtt.source", &text)
            .options(|options| options.clock = ClockKind::Real)
            .failure()
    });
    assert!(said.contains("did not answer within 1000 ms (`patience`)"), "{said}");
}

#[test]
fn a_sink_calls_a_broker_that_hangs_again() {
    let (listener, address) = listen();
    let run = quiet_run(&address, &[false], restart(3), 1_000);
    let mut hung = greet(&listener);
    assert_eq!(packet(&mut hung), PING);
    let mut peer = greet(&listener);
    run.handle().stop();
    assert_eq!(packet(&mut peer), LEAVE);
    watch(&run);
    let record = run.wait().unwrap();
    let fault = &record.faults[0].text;
    assert!(fault.contains("did not answer within 1000 ms (`patience`)"), "{fault}");
    let notes = record.notes.join("\n");
    assert!(notes.contains("was away for "), "{notes}");
    assert_eq!(record.result.lost, 0);
}
