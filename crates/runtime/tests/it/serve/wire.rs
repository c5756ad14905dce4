//! What goes over the socket, to the letter: others write clients by it.

use super::{Client, Folder, endless, until};
use crate::ones::Ones;
use crate::watchdog::watched;
use onbeat_queue::sync::atomic::Ordering;
use onbeat_runtime::{
    Activity, Change, Chunk, ControlSocket, Error, Graph, InPlace, Map, Options, RunState, RunStatus, Value,
    When, tried,
};
use onbeat_trace::record::Outcome;
use std::sync::Arc;

/// Digits after the names of fields that differ from run to run.
fn steady(answer: &str) -> String {
    let mut text = answer.to_string();
    for field in ["\"pid\":", "_ns\":", "\"steps\":", "\"sent\":", "\"depth\":"] {
        let mut parts = text.split(field);
        let mut out = parts.next().unwrap().to_string();
        for part in parts {
            out += field;
            let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
            out += if rest.len() < part.len() { "#" } else { "" };
            out += rest;
        }
        text = out;
    }
    text
}

#[test]
fn answers_have_the_form_that_the_book_describes() {
    watched(60, || {
        let folder = Folder::new();
        let path = folder.path("ctl");
        let mut graph = Graph::new("wire");
        let numbers = graph.source("numbers", || Some(1u64));
        let end = graph.sink("end", |_: u64| ());
        graph.connect(numbers, |s| &s.out, end, |e| &e.input);
        let (gate, event) = (graph.gate("door"), graph.event("bell"));
        graph.when(numbers, When::gate(&gate));
        graph.when(numbers, When::event(&event));
        let mut run = graph.start(&Options::default()).unwrap();
        run.serve(ControlSocket::bind(&path).unwrap()).unwrap();
        until(&run, |status| status.operators.iter().all(|operator| operator.state == Activity::Waiting));
        let mut client = Client::new(&path);
        for (fields, answer) in [
            (
                r#""command":"hello""#,
                concat!(
                    r#"{"version":1,"ok":true,"onbeat":""#,
                    env!("CARGO_PKG_VERSION"),
                    r##"","pid":#,"run":"wire","commands":["hello","status","pause","resume","set","stop","gate","ring","fetch"]}"##
                ),
            ),
            (
                r#""command":"status""#,
                concat!(
                    r##"{"version":1,"ok":true,"status":{"name":"wire","state":"running","elapsed_ns":#,"position_ns":#,"##,
                    r##""length_ns":null,"operators":[{"name":"numbers","worker":"onbeat-w0","state":"waiting","##,
                    r##""waits_for":"event `bell` to be rung","steps":#,"busy_ns":#,"late":0,"lost":0,"parameters":[]},"##,
                    r##"{"name":"end","worker":"onbeat-w0","##,
                    r##""state":"waiting","waits_for":"a message on numbers.out → end.in","steps":#,"busy_ns":#,"late":0,"lost":0,"parameters":[]}],"##,
                    r##""edges":[{"from":"numbers.out","to":"end.in","depth":#,"capacity":4,"sent":#,"dropped":0}],"##,
                    r##""paths":[{"from":"numbers","to":"end","max_latency_ns":null,"misses":0,"max_ns":#,"sum_ns":#,"##,
                    r##""latency":{"up_to_ns":[],"count":[]}}],"causes":[],"obtained":[],"##,
                    r##""gates":[{"name":"door","open":true}],"events":[{"name":"bell","rung":0}]}}"##
                ),
            ),
            (r#""command":"gate","name":"door","open":false"#, r#"{"version":1,"ok":true}"#),
            (r#""command":"ring","name":"bell""#, r#"{"version":1,"ok":true}"#),
            (r#""command":"pause""#, r#"{"version":1,"ok":true}"#),
            (r#""command":"resume""#, r#"{"version":1,"ok":true}"#),
            (r#""command":"pause","operator":"end""#, r#"{"version":1,"ok":true}"#),
            (
                r#""command":"pause","operator":"ned""#,
                r#"{"version":1,"ok":false,"error":"there is no operator `ned`: did you mean `end`?"}"#,
            ),
            (
                r#""command":"gate","name":"dor","open":true"#,
                r#"{"version":1,"ok":false,"error":"there is no gate `dor`: did you mean `door`?"}"#,
            ),
            (
                r#""command":"ring","name":"belt""#,
                r#"{"version":1,"ok":false,"error":"there is no event `belt`: did you mean `bell`?"}"#,
            ),
            (
                r#""command":"set","operator":"end","parameter":"gain","value":1"#,
                r#"{"version":1,"ok":false,"error":"operator `end` has no parameter `gain` that can be changed while it runs (it has none)"}"#,
            ),
            (
                r#""command":"fetch","operator":"end""#,
                r#"{"version":1,"ok":false,"error":"operator `end`: there is nothing to fetch from it: a `tap.image` hands out its latest frame"}"#,
            ),
            (r#""command":"stop""#, r#"{"version":1,"ok":true}"#),
        ] {
            assert_eq!(steady(&client.ask(fields)), answer, "{fields}");
        }
        assert_eq!(run.wait().unwrap().result.outcome, Outcome::Stopped);
        assert!(!path.exists());
    });
}

fn status(client: &mut Client) -> RunStatus {
    let answer: serde_json::Value = serde_json::from_str(&client.ask(r#""command":"status""#)).unwrap();
    serde_json::from_value(answer["status"].clone()).unwrap()
}

#[test]
fn orders_are_carried_out_before_they_are_answered() {
    watched(60, || {
        let folder = Folder::new();
        let path = folder.path("ctl");
        let run = endless(&path);
        let mut client = Client::new(&path);
        let mut ok = |fields: &str| {
            let answer = client.ask(fields);
            assert_eq!(answer, r#"{"version":1,"ok":true}"#, "{fields}");
        };
        ok(r#""command":"pause""#);
        assert_eq!(run.status().state, RunState::Paused);
        ok(r#""command":"resume""#);
        assert_eq!(run.status().state, RunState::Running);
        ok(r#""command":"pause","operator":"double""#);
        assert_eq!(run.status().operators[1].state, Activity::Paused);
        ok(r#""command":"resume","operator":"double""#);
        assert_ne!(run.status().operators[1].state, Activity::Paused);
        let seen = status(&mut client);
        assert_eq!((seen.name.as_str(), seen.operators.len(), seen.edges.len()), ("endless", 3, 2));
        assert_eq!(client.ask(r#""command":"stop","operator":"numbers""#), r#"{"version":1,"ok":true}"#);
        let record = run.wait().unwrap();
        assert_eq!((record.result.outcome, record.result.exit_status), (Outcome::Ended, 0));
        let served: Vec<_> = record.threads.iter().filter(|thread| thread.name == "onbeat-control").collect();
        assert!(served.len() == 1 && served[0].tid > 0 && !served[0].purpose.is_empty(), "{served:?}");
        assert_eq!(client.rest(), [""; 0], "the run takes its connections with it");
    });
}

#[derive(Clone)]
struct Gain(f32);

impl Map for Gain {
    type Sample = f32;
    fn map(&mut self, samples: &mut [f32]) {
        samples.iter_mut().for_each(|x| *x *= self.0);
    }
    fn settable(&self) -> &'static [&'static str] {
        &["gain"]
    }
    fn change(&self, name: &str, value: &Value) -> Result<Change<Self>, Error> {
        let gain = value.read(name)?;
        tried(self, move |it| {
            it.0 = gain;
            Ok(())
        })
    }
}

#[test]
fn parameters_change_at_their_sample() {
    watched(60, || {
        let folder = Folder::new();
        let path = folder.path("ctl");
        let source = Ones::new(4096);
        let over = Arc::clone(&source.over);
        let mut graph = Graph::new("gain");
        let ones = graph.add("ones", source);
        let gain = graph.add("gain", InPlace::new(Gain(0.0)));
        let (sent, came) = std::sync::mpsc::channel();
        let mut at = 0u64;
        let end = graph.sink("end", move |chunk: Chunk<f32>| {
            let tens = chunk.iter().filter(|&&x| x == 10.0).count() as u64;
            let first = chunk.iter().position(|&x| x == 10.0).map(|place| at + place as u64);
            at += chunk.len() as u64;
            if first.is_some() {
                let _ = sent.send((first, tens));
            }
        });
        graph.connect(ones, |s| &s.out, gain, |g| &g.input);
        graph.connect(gain, |g| &g.out, end, |e| &e.input);
        let mut run = graph.start(&Options::default()).unwrap();
        // So that the sample is still to come.
        run.pause().unwrap();
        run.serve(ControlSocket::bind(&path).unwrap()).unwrap();
        let mut client = Client::new(&path);
        let set = |value: &str, sample: u64| {
            format!(
                r#""command":"set","operator":"gain","parameter":"gain","value":{value},"sample":{sample}"#
            )
        };
        let sample = 1_000_000_007;
        assert_eq!(client.ask(&set("10", sample)), r#"{"version":1,"ok":true}"#);
        let refused = client.ask(&set("\"much\"", sample));
        assert!(refused.contains(r#""ok":false"#) && refused.contains("expected a number"), "{refused}");
        client.ask(r#""command":"resume""#);
        let (first, _) = came.recv().unwrap();
        assert_eq!(first, Some(sample));
        over.store(true, Ordering::Relaxed);
        run.wait().unwrap();
    });
}

#[test]
fn gates_and_events_are_at_hand() {
    watched(60, || {
        let folder = Folder::new();
        let path = folder.path("ctl");
        let mut graph = Graph::new("outside");
        let rung = graph.source("rung", || Some(1u64));
        let first = graph.sink("first", |_: u64| ());
        let passed = graph.source("passed", || Some(1u64));
        let second = graph.sink("second", |_: u64| ());
        graph.connect(rung, |s| &s.out, first, |e| &e.input);
        graph.connect(passed, |s| &s.out, second, |e| &e.input);
        let (gate, event) = (graph.gate("door"), graph.event("bell"));
        gate.close();
        graph.when(rung, When::event(&event));
        graph.when(passed, When::gate(&gate));
        let mut run = graph.start(&Options::default()).unwrap();
        run.serve(ControlSocket::bind(&path).unwrap()).unwrap();
        let mut client = Client::new(&path);
        assert_eq!(status(&mut client).edges.iter().map(|edge| edge.sent).collect::<Vec<_>>(), [0, 0]);
        client.ask(r#""command":"ring","name":"bell""#);
        until(&run, |status| status.edges[0].sent == 1);
        assert_eq!(run.status().edges[1].sent, 0);
        client.ask(r#""command":"gate","name":"door","open":true"#);
        until(&run, |status| status.edges[1].sent > 10);
        let seen = status(&mut client);
        assert!(seen.gates[0].open && seen.events[0].rung == 1, "{seen:?}");
        run.stop();
        run.wait().unwrap();
    });
}

#[test]
fn lines_may_come_together_or_in_pieces() {
    watched(60, || {
        let folder = Folder::new();
        let path = folder.path("ctl");
        let run = endless(&path);
        let request = b"{\"version\":1,\"command\":\"hello\"}\n";
        // More than one is carried out per turn.
        let mut client = Client::new(&path);
        client.send(&request.repeat(100));
        let answers: Vec<String> = (0..100).map(|_| client.line()).collect();
        assert!(answers.iter().all(|answer| answer == &answers[0]) && answers[0].contains("\"ok\":true"));
        for byte in request {
            client.send(&[*byte]);
        }
        assert_eq!(client.line(), answers[0]);
        // The last one without its end, and then no more.
        let mut client = Client::new(&path);
        client.send(&request[..request.len() - 1]);
        client.shut();
        assert_eq!(client.rest(), [answers[0].clone()]);
        run.stop();
        run.wait().unwrap();
    });
}

#[test]
fn a_run_has_one_socket() {
    watched(60, || {
        let folder = Folder::new();
        let mut run = endless(&folder.path("ctl"));
        let other = ControlSocket::bind(folder.path("other")).unwrap();
        let error = run.serve(other).unwrap_err().to_string();
        assert!(error.ends_with("other`: the run has another one already"), "{error}");
        assert!(folder.path("ctl").exists() && !folder.path("other").exists());
        run.stop();
        run.wait().unwrap();
    });
}
