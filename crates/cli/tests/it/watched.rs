//! Monitoring of a run: by HTTP, by systemd, on the terminal, in a trace file.

use super::deployed::{NodeProcess, begin, hosts};
use super::harness::{Place, until, wait};
use super::screens::Terminal;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::HashSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::process::Child;
use std::time::Duration;

/// Run with metrics at a port chosen by the system.
struct Running {
    place: Place,
    child: Child,
    address: SocketAddr,
}

impl Running {
    fn start() -> Self {
        let place = Place::new();
        let child = place.start(&["run", "endless.toml", "--metrics", "127.0.0.1:0"]);
        let address = address_of_metrics(&place);
        Running { place, child, address }
    }

    fn connect(&self) -> TcpStream {
        connect(self.address)
    }

    fn asked(&self, request: &[u8]) -> String {
        asked(self.address, request)
    }

    fn metrics(&self) -> String {
        metrics(self.address)
    }

    fn end(mut self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("it lives");
        assert_eq!(wait(&mut self.child), Some(0));
        let record = fs::read_to_string(self.place.path("out/endless.record.json")).expect("a record");
        assert!(record.contains("onbeat-metrics"), "its thread is listed");
        assert!(TcpStream::connect(self.address).is_err(), "nobody listens any more");
    }
}

/// Waits until the program of this folder says where its metrics are.
fn address_of_metrics(place: &Place) -> SocketAddr {
    let mut address = None;
    until("it says where its metrics are", || {
        let said = fs::read_to_string(place.path("stderr.txt")).unwrap_or_default();
        let begin = said.split("http://").nth(1)?;
        address = begin.split_once("/metrics\n")?.0.parse().ok();
        address.map(drop)
    })
    .expect("it does");
    address.expect("an address")
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("somebody listens");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a time limit");
    stream
}

fn asked(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = connect(address);
    // A refused client might not receive the whole answer.
    let _cut = stream.write_all(request);
    let mut answer = String::new();
    let _cut = stream.read_to_string(&mut answer);
    answer
}

fn metrics(address: SocketAddr) -> String {
    let answer = asked(address, b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer:?}"));
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(
        head.contains("Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8"),
        "{head}"
    );
    assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
    body.to_string()
}

/// Reads OpenMetrics as its specification has it, as far as it is used here: families one after the other,
/// each with its type, samples with the family's name and a suffix of its type, buckets that rise, an end.
fn check(text: &str) -> Vec<(String, f64)> {
    let body = text.strip_suffix("# EOF\n").unwrap_or_else(|| panic!("no end: {text}"));
    let (mut families, mut samples, mut family) =
        (HashSet::new(), Vec::new(), (String::new(), String::new()));
    let mut last: (String, f64) = (String::new(), 0.0);
    for line in body.lines() {
        if let Some(rest) = line.strip_prefix("# ") {
            let words: Vec<&str> = rest.splitn(3, ' ').collect();
            if words[0] == "HELP" && words[1] != family.0 {
                assert!(families.insert(words[1].to_string()), "{} comes twice", words[1]);
            }
            if words[0] == "TYPE" {
                family = (words[1].to_string(), words[2].to_string());
            }
            continue;
        }
        let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
        let value: f64 = value.parse().unwrap_or_else(|_| panic!("no number: {line}"));
        let bare = name.split('{').next().expect("a name");
        let suffix =
            bare.strip_prefix(family.0.as_str()).unwrap_or_else(|| panic!("{line} is not of {}", family.0));
        let allowed: &[&str] = match family.1.as_str() {
            "counter" => &["_total"],
            "gauge" => &[""],
            "histogram" => &["_bucket", "_count", "_sum"],
            "info" => &["_info"],
            other => panic!("unknown type {other}"),
        };
        assert!(allowed.contains(&suffix), "{line}: {suffix} of a {}", family.1);
        if suffix == "_bucket" {
            // The bound comes first, then what else belongs to the series.
            let of = name.split_once("\",").unwrap_or_default().1.to_string();
            assert!(last.0 != of || last.1 <= value, "buckets fall: {line}");
            last = (of, value);
        }
        samples.push((name.to_string(), value));
    }
    samples
}

#[test]
fn metrics_are_read_by_http() {
    let running = Running::start();
    let value = |samples: &[(String, f64)], begin: &str| {
        samples
            .iter()
            .find(|(name, _)| name.starts_with(begin))
            .map_or_else(|| panic!("no {begin}"), |(_, value)| *value)
    };
    let steps = || value(&check(&running.metrics()), "onbeat_operator_steps_total{operator=\"file\"");
    let before = steps();
    until("it goes on", || (steps() > before).then_some(())).expect("it does");
    let samples = check(&running.metrics());
    assert_eq!(value(&samples, "onbeat_run_state{state=\"running\"}"), 1.0);
    assert_eq!(value(&samples, "onbeat_run_state{state=\"paused\"}"), 0.0);
    assert!(value(&samples, "onbeat_path_latency_seconds_count{from=\"silence\",to=\"file\"}") > 0.0);
    let whole = samples.iter().find(|(name, _)| name.contains("le=\"+Inf\"")).expect("the last bucket");
    assert!(whole.1 > 0.0);
    for (request, status) in [
        (&b"GET /nothing HTTP/1.1\r\n\r\n"[..], "HTTP/1.1 404"),
        (b"DELETE /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 405"),
        (b"\x16\x03\x01\x00\xa5\x01\n\n", "HTTP/1.1 400"),
    ] {
        let answer = running.asked(request);
        assert!(answer.starts_with(status), "{answer}");
    }
    running.end();
}

#[test]
fn a_node_has_the_metrics_of_all_its_parts() {
    let place = Place::new();
    let nodes = [NodeProcess::start_with(&["--metrics", "127.0.0.1:0"]), NodeProcess::start()];
    let address = address_of_metrics(&nodes[0].place);
    assert!(check(&metrics(address)).is_empty(), "nothing runs yet");
    let fm = begin(&place, &nodes, "");
    let other = Place::new();
    fs::write(other.path("hosts.toml"), hosts(&nodes[..1], &[], "")).unwrap();
    let set = format!("output={}", other.path("out").display());
    let endless = other.start(&["deploy", "endless.toml", "hosts.toml", "--set", &set]);
    let runs = |part: &str| {
        let state = format!("onbeat_run_state{{part=\"{part}\",state=\"running\"}}");
        move || check(&metrics(address)).contains(&(state.clone(), 1.0)).then_some(())
    };
    until("both run", runs("fm-receiver.n0")).unwrap();
    until("both run", runs("endless.n0")).unwrap();
    let samples = check(&metrics(address));
    for operator in ["{part=\"fm-receiver.n0\",operator=\"iq\"", "{part=\"endless.n0\",operator=\"silence\""]
    {
        let begin = format!("onbeat_operator_steps_total{operator}");
        assert_eq!(samples.iter().filter(|(name, _)| name.starts_with(&begin)).count(), 1, "{samples:?}");
    }
    // Two of one name could not be told apart.
    let again = Place::new();
    fs::write(again.path("hosts.toml"), hosts(&nodes[..1], &[], "")).unwrap();
    let answer = again.onbeat(&["deploy", "endless.toml", "hosts.toml", "--set", &set]);
    assert_eq!(answer.status, Some(1), "{answer:?}");
    assert!(answer.stderr.contains("`endless.n0` runs here already"), "{answer:?}");
    for mut child in [fm, endless] {
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        assert_eq!(wait(&mut child), Some(0));
    }
    until("nothing runs", || check(&metrics(address)).is_empty().then_some(())).unwrap();
}

#[test]
fn hostile_clients_keep_nobody_from_the_metrics() {
    let running = Running::start();
    // Silent ones, many more than there is room for; half a request; more than a request may have; nobody who
    // reads.
    let silent: Vec<TcpStream> = (0..60).map(|_| running.connect()).collect();
    let mut half = running.connect();
    half.write_all(b"GET /metr").expect("room");
    let flood = running.asked(&[b'x'; 40_000]);
    assert!(flood.is_empty() || flood.starts_with("HTTP/1.1 431"), "{flood}");
    let deaf: Vec<TcpStream> = (0..10)
        .map(|_| {
            let mut stream = running.connect();
            stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").expect("room");
            stream
        })
        .collect();
    check(&running.metrics());
    drop((silent, half, deaf));
    check(&running.metrics());
    running.end();
}

#[test]
fn an_address_of_others_is_said_to_be_one() {
    let place = Place::new();
    let answer = place.onbeat(&["run", "count.toml", "--metrics", "0.0.0.0:0"]);
    assert_eq!(answer.status, Some(0), "{answer:?}");
    assert!(answer.stderr.contains("anyone who can reach this address can read them"), "{answer:?}");
    let answer = place.onbeat(&["run", "count.toml", "--metrics", "nowhere"]);
    assert_eq!(answer.status, Some(1), "{answer:?}");
    assert!(answer.stderr.contains("--metrics nowhere: not an address with a port"), "{answer:?}");
}

/// Returns the notifications to a service manager, up to `last`.
fn heard(socket: &UnixDatagram, last: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut bytes = [0; 4096];
    until(last, || {
        while let Ok(count) = socket.recv(&mut bytes) {
            let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
            all.extend(text.lines().map(str::to_string));
        }
        all.iter().any(|line| line.starts_with(last)).then_some(())
    })
    .unwrap_or_else(|what| panic!("{what}: {all:?}"));
    all
}

fn service(place: &Place, pipeline: &str, watchdog_us: &str) -> (UnixDatagram, Child) {
    let path = place.path("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    socket.set_nonblocking(true).expect("no waiting");
    let file = |name: &str| fs::File::create(place.path(name)).expect("a file there");
    let child = place
        .command(&["run", pipeline, "-q"])
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", watchdog_us)
        .env_remove("WATCHDOG_PID")
        .stdout(file("stdout.txt"))
        .stderr(file("stderr.txt"))
        .spawn()
        .expect("the command");
    (socket, child)
}

#[test]
fn systemd_is_told_that_it_is_ready_alive_and_at_its_end() {
    let place = Place::new();
    let (socket, mut child) = service(&place, "endless.toml", "300000");
    let begin = heard(&socket, "WATCHDOG=1");
    assert_eq!(begin[0], "READY=1", "{begin:?}");
    assert!(begin.iter().any(|line| line.starts_with("STATUS=endless: running")), "{begin:?}");
    heard(&socket, "WATCHDOG=1");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it lives");
    heard(&socket, "STOPPING=1");
    assert_eq!(wait(&mut child), Some(0));
}

#[test]
fn a_run_that_stands_still_does_not_feed_the_watchdog() {
    let place = Place::new();
    let (socket, mut child) = service(&place, "stuck.toml", "100000");
    heard(&socket, "STATUS=a step has not returned");
    // It was fed before the step began, if at all.
    let mut bytes = [0; 4096];
    std::thread::sleep(Duration::from_millis(500));
    while let Ok(count) = socket.recv(&mut bytes) {
        let text = String::from_utf8_lossy(&bytes[..count]);
        assert!(!text.contains("WATCHDOG=1"), "{text}");
    }
    child.kill().expect("it lives");
    wait(&mut child);
}

#[test]
fn a_socket_of_systemd_that_is_not_there_is_said_once() {
    let place = Place::new();
    let answer = place.onbeat_with(&["run", "count.toml"], &[("NOTIFY_SOCKET", "/nowhere/notify")]);
    assert_eq!(answer.status, Some(0), "{answer:?}");
    assert_eq!(answer.stderr.matches("cannot notify systemd").count(), 1, "{answer:?}");
}

#[test]
fn the_live_view_takes_the_terminal_and_q_ends_the_run() {
    let place = Place::new();
    let mut terminal = Terminal::start(&place, &["run", "endless.toml", "--top"]);
    for part in ["endless: ", "running for", "silence", "steps/s", "per s"] {
        terminal.until_shown(part);
    }
    terminal.ours.write_all(b"q").expect("a key");
    let (status, shown) = terminal.end();
    assert_eq!(status, Some(0), "{shown}");
    assert!(shown.contains("endless: stopped after"), "{shown}");
}

#[test]
fn the_live_view_of_another_process_is_text_without_a_terminal() {
    let place = Place::new();
    let mut child = place.start(&["run", "endless.toml", "-q", "--control", "run.ctl"]);
    until("there is a socket", || place.path("run.ctl").exists().then_some(())).expect("there is");
    let mut watching = place.command(&["ctl", "run.ctl", "top"]);
    watching
        .stdout(fs::File::create(place.path("top.txt")).expect("a file"))
        .stderr(std::process::Stdio::null());
    let mut watching = watching.spawn().expect("the command");
    let shown = || fs::read_to_string(place.path("top.txt")).unwrap_or_default();
    until("two pictures", || (shown().matches("endless: running").count() > 1).then_some(()))
        .expect("it goes on");
    assert!(shown().contains("silence → file") && !shown().contains('\x1b'), "{}", shown());
    assert_eq!(place.onbeat(&["ctl", "run.ctl", "stop"]).status, Some(0));
    assert_eq!(wait(&mut child), Some(0));
    assert_eq!(wait(&mut watching), Some(0), "{}", shown());
}

#[test]
fn a_trace_has_operators_queues_and_misses() {
    let place = Place::new();
    let answer = place.onbeat(&["run", "late.toml", "--trace", "late.pftrace"]);
    assert_eq!(answer.status, Some(0), "{answer:?}");
    assert!(
        answer.stderr.contains(" events written to late.pftrace: open it at ui.perfetto.dev"),
        "{answer:?}"
    );
    let bytes = fs::read(place.path("late.pftrace")).expect("a trace");
    // The run makes that folder.
    let other = Place::new().onbeat(&["run", "late.toml", "--trace", "out/late.pftrace"]);
    assert_eq!(other.status, Some(0), "{other:?}");
    let has = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    for text in
        ["always-late: operators", "numbers", "numbers.out → end.in", "late: numbers → end", "ns_after_due"]
    {
        assert!(has(text), "{text}");
    }
    let cases: [(&[&str], &str); 3] = [
        (&["--trace", "no/x.pftrace"], "--trace no/x.pftrace: cannot be written"),
        (&["--trace", "x.pftrace", "--explain=off"], "steps are not recorded when `explain` is off"),
        (&["--trace", "x.pftrace", "--clock", "manual"], "a trace needs the real clock"),
    ];
    for (arguments, part) in cases {
        let answer = place.onbeat(&[&["run", "late.toml"], arguments].concat());
        assert!(answer.status == Some(1) && answer.stderr.contains(part), "{answer:?}");
        assert!(!place.path("x.pftrace").exists());
    }
}
