//! Clients that do what none should. The run goes on, others are served, and it ends well.

use super::{Client, Folder, endless, goes_on, until};
use crate::watchdog::watched;
use onbeat_runtime::{ControlSocket, Graph, Options, Run};
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// A run with a socket, before and after what is done to it.
fn survives(what: impl FnOnce(&Path, &Run) + Send + 'static) {
    watched(100, || {
        let folder = Folder::new();
        let path = folder.path("ctl");
        let run = endless(&path);
        what(&path, &run);
        goes_on(&run);
        let begin = Instant::now();
        // One that was refused may still count for a moment.
        while !Client::new(&path).ask(r#""command":"status""#).contains("\"ok\":true") {
            assert!(begin.elapsed() < Duration::from_secs(50));
        }
        run.stop();
        let record = run.wait().unwrap();
        assert_eq!(record.result.exit_status, 0);
        assert!(!path.exists());
    });
}

#[test]
fn what_is_no_request_is_answered_and_the_connection_closed() {
    survives(|path, run| {
        let bytes: Vec<u8> = (0..=255).collect();
        let mut noise = Vec::new();
        let mut seed = 0x2545_f491_4f6c_dd1d_u64;
        for _ in 0..50_000 {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            noise.push(seed as u8);
        }
        let cases: &[(&[u8], &str)] = &[
            (b"\n", "not JSON"),
            (b"hello\n", "not JSON"),
            (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "not JSON"),
            (&[0; 1_000], "not JSON"),
            (&[0xff; 1_000], "not JSON"),
            (&bytes, "not JSON"),
            (&noise, "not JSON"),
            (b"{\"version\":1,\"command\":\"sta", "not JSON"),
            (b"{\"version\":7,\"command\":\"status\"}\n", "version 7 of the protocol is not spoken here"),
            (b"{\"version\":1,\"command\":\"fly\"}\n", "there is no command `fly`"),
            (b"{\"version\":1,\"command\":\"pause\",\"operator\":[]}\n", "expected a string"),
        ];
        for (bytes, part) in cases {
            let mut client = Client::new(path);
            // What follows is not looked at.
            client.send(bytes);
            client.send(b"\n{\"version\":1,\"command\":\"stop\"}\n");
            let answers = client.rest();
            assert!(
                answers.len() == 1 && answers[0].contains("\"ok\":false") && answers[0].contains(part),
                "{answers:?} lacks {part}"
            );
            goes_on(run);
        }
    });
}

#[test]
fn a_line_has_a_limit() {
    survives(|path, _| {
        for (bytes, part) in [
            // It and its end have 64 KiB.
            (65_535, "\"ok\":true"),
            (65_536, "a line of more than 65536 bytes"),
            (1_000_000, "a line of more than 65536 bytes"),
        ] {
            let mut client = Client::new(path);
            let mut line = b"{\"version\":1,\"command\":\"hello\"}".to_vec();
            line.resize(bytes, b' ');
            line.push(b'\n');
            client.send(&line);
            let answer = client.line();
            assert!(answer.contains(part), "{bytes}: {answer}");
        }
        // Without an end.
        let mut client = Client::new(path);
        client.send(&vec![b' '; 70_000]);
        assert!(client.line().contains("a line of more than 65536 bytes"));
        let mut client = Client::new(path);
        client.send("[".repeat(65_000).as_bytes());
        client.send(b"\n");
        assert!(client.line().contains("recursion limit exceeded"));
    });
}

#[test]
fn those_who_are_silent_make_room_for_others() {
    survives(|path, _| {
        let mut silent: Vec<Client> = (0..100).map(|_| Client::new(path)).collect();
        for client in silent.iter_mut().step_by(2) {
            client.send(b"{\"version\":1");
        }
        assert!(Client::new(path).ask(r#""command":"hello""#).contains("\"ok\":true"));
        // The first ones were told why; those that are still there are so few.
        for client in &mut silent[..92] {
            let answers = client.rest();
            assert!(answers.len() == 1 && answers[0].contains("closed: "), "{answers:?}");
        }
    });
}

#[test]
fn those_who_are_silent_for_long_are_closed() {
    survives(|path, _| {
        let (mut silent, mut half) = (Client::new(path), Client::new(path));
        half.send(b"{\"version\":1,");
        assert_eq!(
            silent.rest(),
            [r#"{"version":1,"ok":false,"error":"closed: nothing was heard for 5 s"}"#]
        );
        let answers = half.rest();
        assert!(
            answers.len() == 1 && answers[0].contains("no end of the line was heard for 5 s"),
            "{answers:?}"
        );
    });
}

#[test]
fn those_who_do_not_read_are_not_waited_for() {
    survives(|path, run| {
        let requests = b"{\"version\":1,\"command\":\"status\"}\n".repeat(2_000);
        let deaf: Vec<Client> = (0..4)
            .map(|_| {
                let client = Client::new(path);
                client.0.get_ref().set_nonblocking(true).unwrap();
                client
            })
            .collect();
        let mut deaf = deaf;
        for client in &mut deaf {
            client.send(&requests);
        }
        goes_on(run);
        assert!(Client::new(path).ask(r#""command":"hello""#).contains("\"ok\":true"));
        for client in deaf {
            client.0.get_ref().set_nonblocking(false).unwrap();
            assert!(client.drain() > 0);
        }
    });
}

#[test]
fn those_who_come_and_go_leave_nothing() {
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    survives(move |path, _| {
        let files = open();
        for round in 0..2_000 {
            let mut client = Client::new(path);
            match round % 3 {
                0 => {}
                1 => _ = client.send(b"{\"version\":1,\"command\":\"status\"}\n"),
                _ => _ = client.send(b"\0\n"),
            }
        }
        let begin = Instant::now();
        // Other tests of this process have files, too; 2,000 they have not.
        while open() > files + 500 {
            assert!(begin.elapsed() < Duration::from_secs(50), "{} of {files}", open());
            std::thread::sleep(Duration::from_millis(10));
        }
    });
}

/// A worker that does not answer keeps who has asked it, and nobody else.
#[test]
fn an_order_that_takes_long_keeps_no_other_waiting() {
    watched(60, || {
        let folder = Folder::new();
        let path = folder.path("ctl");
        let (go, gone) = mpsc::channel::<()>();
        let (begun, begins) = mpsc::channel();
        let mut graph = Graph::new("slow");
        let numbers = graph.source("numbers", || Some(1u64));
        let slow = graph.sink("slow", move |_: u64| {
            let _ = begun.send(());
            let _ = gone.recv();
        });
        graph.connect(numbers, |s| &s.out, slow, |e| &e.input);
        let mut run = graph.start(&Options::default()).unwrap();
        run.serve(ControlSocket::bind(&path).unwrap()).unwrap();
        begins.recv().unwrap();
        let mut waiting = Client::new(&path);
        waiting.send(b"{\"version\":1,\"command\":\"pause\",\"operator\":\"slow\"}\n");
        let mut other = Client::new(&path);
        for _ in 0..20 {
            assert!(other.ask(r#""command":"hello""#).contains("\"ok\":true"));
        }
        assert!(other.ask(r#""command":"status""#).contains("\"name\":\"slow\""));
        go.send(()).unwrap();
        assert_eq!(waiting.line(), r#"{"version":1,"ok":true}"#);
        // And one that never returns is named.
        waiting.ask(r#""command":"resume""#);
        begins.recv().unwrap();
        let late = waiting.ask(r#""command":"pause","operator":"slow""#);
        assert!(late.contains("operator `slow` has not answered within 5 s"), "{late}");
        run.stop();
        drop(go);
        let record = run.wait().unwrap();
        assert_eq!(record.result.exit_status, 0);
    });
}

/// A client that asks while the run ends gets an answer or sees the end. No client hangs.
#[test]
fn the_end_of_a_run_ends_all_conversations() {
    watched(100, || {
        for _ in 0..30 {
            let folder = Folder::new();
            let path = folder.path("ctl");
            let run = endless(&path);
            until(&run, |status| status.edges[1].sent > 0);
            let askers: Vec<_> = (0..4)
                .map(|_| {
                    let path = path.clone();
                    onbeat_os::thread::spawn("asker", move || {
                        let Ok(stream) = std::os::unix::net::UnixStream::connect(&path) else { return };
                        let mut client = Client(std::io::BufReader::new(stream));
                        while client.send(b"{\"version\":1,\"command\":\"pause\"}\n") {
                            let answer = client.line();
                            assert!(
                                answer.is_empty()
                                    || answer.contains("\"ok\":true")
                                    || answer.contains("the run has ended")
                                    || answer.contains("the run is coming to its end"),
                                "{answer}"
                            );
                        }
                    })
                    .unwrap()
                })
                .collect();
            run.stop();
            run.wait().unwrap();
            for asker in askers {
                asker.join().unwrap();
            }
        }
    });
}
