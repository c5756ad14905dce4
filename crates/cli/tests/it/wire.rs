//! Losses at the wire, against the counts of a real peer: each thing that was sent arrived or is counted,
//! what arrived is kept, and the exit status says so. Each case again with a stop in the middle.

use super::harness::{Answer, Place, until, wait};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Stdio};

/// Mark of the last datagram.
const LAST: u64 = 1 << 63;

/// A run whose record is read afterwards.
struct Wire {
    place: Place,
    child: Child,
}

/// End of a run.
struct Ended {
    place: Place,
    answer: Answer,
    record: serde_json::Value,
}

impl Wire {
    fn start(pipeline: &str) -> Self {
        let place = Place::new();
        fs::write(place.path("wire.toml"), pipeline).expect("a file");
        let child = place.start(&["run", "wire.toml"]);
        Wire { place, child }
    }

    fn interrupt(&self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).expect("it lives");
    }

    /// Waits for the end, which the watchdog of the harness limits.
    fn end(self) -> Ended {
        let answer = self.place.end(self.child);
        let record = fs::read_to_string(self.place.path("out/wire.record.json")).expect("a record");
        Ended { place: self.place, answer, record: serde_json::from_str(&record).expect("JSON") }
    }
}

impl Ended {
    /// Number of lost things with this unit, and reasons that contain this text.
    fn lost(&self, unit: &str, reason: &str) -> u64 {
        let operators = self.record["operators"].as_array().expect("operators").iter();
        let losses = operators.flat_map(|operator| operator["losses"].as_array().expect("losses"));
        let of = losses.filter(|loss| {
            loss["unit"] == unit && loss["reason"].as_str().expect("a reason").contains(reason)
        });
        of.map(|loss| loss["count"].as_u64().expect("a count")).sum()
    }

    /// Messages on the first edge.
    fn messages(&self) -> u64 {
        self.record["edges"][0]["sent"].as_u64().expect("a count")
    }

    fn file(&self, name: &str) -> Vec<u8> {
        fs::read(self.place.path("out").join(name)).unwrap_or_default()
    }

    /// Checks the exit status: 3 if anything was lost, also in the table.
    fn check(&self, what: &str) {
        let lost = self.record["result"]["lost"].as_u64().expect("a count");
        let expected = if lost > 0 { 3 } else { 0 };
        assert_eq!(self.answer.status, Some(expected), "{what}: {:?}", self.answer);
        assert_eq!(self.answer.stdout.contains("lost: "), lost > 0, "{what}: {}", self.answer.stdout);
    }
}

fn edge(from: &str, to: &str) -> String {
    format!("[[edge]]\nfrom = \"{from}\"\nto = \"{to}\"\n")
}

fn operator(name: &str, kind: &str, parameters: &str) -> String {
    format!("[[operator]]\nname = \"{name}\"\nkind = \"{kind}\"\n{parameters}\n")
}

/// A port that nobody uses.
fn port() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port")
}

/// Waits until somebody has a UDP socket at this port.
fn until_bound(address: SocketAddr) {
    let port = format!(":{:04X} ", address.port());
    let bound = || {
        let table = fs::read_to_string("/proc/net/udp").ok()?;
        table
            .lines()
            .skip(1)
            .any(|line| {
                line.split_once(": ").is_some_and(|(_, rest)| {
                    rest.split(' ').next().is_some_and(|local| format!("{local} ").ends_with(&port))
                })
            })
            .then_some(())
    };
    until("the receiver has its socket", bound).expect("it does");
}

/// From `udp.source` to a file, through an operator that takes its time.
fn receiver(address: SocketAddr, parameters: &str, busy: &str) -> String {
    let parameters = format!("bind = \"{address}\"\ntimeout = \"1 s\"\n{parameters}");
    operator("rx", "udp.source", &parameters)
        + &operator("slow", "load", &format!("busy = \"{busy}\""))
        + &operator("file", "file.sink", "path = \"came\"")
        + &edge("rx", "slow")
        + &edge("slow", "file")
}

fn sender(to: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.connect(to).expect("an address");
    socket
}

/// A datagram of 100 samples with a number.
fn numbered(number: u64) -> Vec<u8> {
    number.to_le_bytes().into_iter().chain([(number % 251) as u8; 400]).collect()
}

fn send(socket: &UdpSocket, number: u64) {
    let sent = socket.send(&numbered(number)).expect("a datagram leaves");
    assert_eq!(sent, 408);
}

#[test]
fn each_datagram_is_in_the_file_or_counted() {
    const SENT: u64 = 20_000;
    for (header, busy, is_interrupted) in [
        (false, "20 ms", false),
        (false, "20 ms", true),
        (true, "20 ms", false),
        (true, "20 ms", true),
        (false, "1 us", false),
        (true, "1 us", true),
    ] {
        let what = format!("header {header}, busy {busy}, interrupted {is_interrupted}");
        let address = port();
        let wire = Wire::start(&receiver(address, &format!("header = {header}"), busy));
        until_bound(address);
        let socket = sender(address);
        for number in 0..SENT {
            socket.send(&numbered(number)[if header { 0 } else { 8 }..]).expect("sent");
        }
        if is_interrupted {
            wire.interrupt();
        } else if header {
            // The end comes when there is room for it.
            until("the socket is empty", || (unread(address) == 0).then_some(())).expect("it is");
            socket.send(&(SENT | LAST).to_le_bytes()).expect("sent");
        }
        let ended = wire.end();
        ended.check(&what);
        let received = ended.file("came").len() as f64 / 400.0;
        // A datagram whose first part is in the file when the run is stopped.
        let rest = ended.lost("samples", "waited") as f64 / 100.0;
        let lost = ended.lost("datagrams", "");
        assert_eq!(received + rest + lost as f64, SENT as f64, "{what}: {:?}", ended.answer);
        assert!(busy != "20 ms" || lost > 0, "{what}");
    }
}

/// Sends these numbers, the last of which is the end. Returns what became of it.
fn sent(numbers: &[u64], end: Option<u64>) -> Ended {
    let address = port();
    let wire = Wire::start(&receiver(address, "header = true", "1 us"));
    until_bound(address);
    let socket = sender(address);
    numbers.iter().for_each(|&number| send(&socket, number));
    match end {
        Some(number) => {
            socket.send(&(number | LAST).to_le_bytes()).expect("sent");
        }
        // Only a stop ends it.
        None => {
            let taken = || (unread(address) == 0).then_some(());
            until("the datagrams are taken", taken).expect("they are");
            wire.interrupt();
        }
    }
    wire.end()
}

/// Bytes that wait in the UDP socket at this port.
fn unread(address: SocketAddr) -> u64 {
    let port = format!(":{:04X}", address.port());
    let table = fs::read_to_string("/proc/net/udp").expect("a table");
    let queue = table.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.get(1).filter(|local| local.ends_with(&port))?;
        u64::from_str_radix(words.get(4)?.split_once(':')?.1, 16).ok()
    });
    queue.expect("the socket")
}

#[test]
fn gaps_and_swaps_are_counted() {
    for is_interrupted in [false, true] {
        let end = |number| (!is_interrupted).then_some(number);
        let all = sent(&[0, 1, 2], end(3));
        all.check("all");
        assert_eq!((all.answer.status, all.file("came").len()), (Some(0), 1200));
        let gap = sent(&[0, 1, 5, 6], end(7));
        gap.check("gap");
        assert_eq!((gap.lost("datagrams", "never came"), gap.file("came").len()), (3, 1600));
        let swap = sent(&[0, 2, 1, 3, 3], end(4));
        swap.check("swap");
        assert_eq!((swap.lost("datagrams", ""), swap.lost("datagrams", "after their successors")), (1, 1));
        assert_eq!(swap.file("came").len(), 1200);
        assert!(swap.answer.stdout.contains("1 datagrams were duplicates"), "{}", swap.answer.stdout);
    }
}

#[test]
fn losses_are_seen_while_it_runs() {
    let address = port();
    let place = Place::new();
    fs::write(place.path("wire.toml"), receiver(address, "header = true", "1 us")).expect("a file");
    let child = place.start(&["run", "wire.toml", "--metrics", "127.0.0.1:0"]);
    until_bound(address);
    let mut metrics = None;
    let said = || {
        let said = fs::read_to_string(place.path("stderr.txt")).ok()?;
        metrics = Some(said.split("http://").nth(1)?.split_once("/metrics\n")?.0.to_string());
        Some(())
    };
    until("it says where its metrics are", said).expect("it does");
    let socket = sender(address);
    let counted = || {
        // Again and again, so that the source does not run into its timeout.
        [3, 7].into_iter().for_each(|number| send(&socket, number));
        let mut client = TcpStream::connect(metrics.as_deref().expect("an address")).ok()?;
        client.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").ok()?;
        let mut text = String::new();
        client.read_to_string(&mut text).ok()?;
        text.lines()
            .any(|line| {
                line.starts_with("onbeat_operator_lost_total{operator=\"rx\"") && line.ends_with(" 6.0")
            })
            .then_some(())
    };
    until("the metrics have the loss", counted).expect("they do");
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it lives");
    assert_eq!(place.end(child).status, Some(3));
}

#[test]
fn a_foreign_sender_ends_the_run_with_the_fix() {
    let address = port();
    let wire = Wire::start(&receiver(address, "header = true", "1 us"));
    until_bound(address);
    sender(address).send(&[63; 400]).expect("sent");
    let ended = wire.end();
    assert_eq!(ended.answer.status, Some(1));
    let said = &ended.answer.stderr;
    assert!(said.contains("operator `rx`") && said.contains("set `header = false`"), "{said}");
}

#[test]
fn a_sender_that_comes_back_is_followed() {
    let address = port();
    let wire = Wire::start(&receiver(address, "header = true", "1 us"));
    until_bound(address);
    let old = sender(address);
    (0..50).for_each(|number| send(&old, number));
    drop(old);
    let new = sender(address);
    (0..30).for_each(|number| send(&new, number));
    new.send(&(31 | LAST).to_le_bytes()).expect("sent");
    let ended = wire.end();
    ended.check("it comes back");
    assert_eq!((ended.file("came").len(), ended.lost("datagrams", "never came")), (80 * 400, 1));
}

/// From `tcp.source` to a file.
fn connected(address: SocketAddr) -> String {
    operator("rx", "tcp.source", &format!("connect = \"{address}\""))
        + &operator("file", "file.sink", "path = \"came\"")
        + &edge("rx", "file")
}

fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    (listener, address)
}

#[test]
fn half_a_close_is_the_end() {
    let (listener, address) = listener();
    let wire = Wire::start(&connected(address));
    let mut peer = listener.accept().expect("a call").0;
    peer.write_all(&[1; 100_000]).expect("written");
    peer.shutdown(Shutdown::Write).expect("half closed");
    // It goes on reading until the other side closes.
    peer.read_to_end(&mut Vec::new()).expect("the end");
    let ended = wire.end();
    ended.check("half close");
    assert_eq!((ended.answer.status, ended.file("came").len()), (Some(0), 100_000));
}

#[test]
fn a_reset_is_an_error_and_what_came_is_kept() {
    let (listener, address) = listener();
    // An error ends a run at once, whatever other operators wait for.
    let (silent, other) = self::listener();
    let wire = Wire::start(&(connected(address) + &flood(&format!("connect = \"{other}\""))));
    let mut peer = listener.accept().expect("a call").0;
    let never_reads = silent.accept().expect("a call").0;
    until_full(&never_reads);
    peer.write_all(&[1; 100_000]).expect("written");
    let taken = || (onbeat_os::socket::unacknowledged(&peer).ok()? == 0).then_some(());
    until("it has arrived", taken).expect("it has");
    let written = || (wire.place.path("out/came.part").metadata().ok()?.len() > 0).then_some(());
    until("some of it is in the file", written).expect("it is");
    onbeat_os::socket::reset_on_close(&peer).expect("a socket");
    drop(peer);
    let ended = wire.end();
    assert_eq!(ended.answer.status, Some(1), "{:?}", ended.answer);
    assert!(ended.answer.stderr.contains("the connection with"), "{:?}", ended.answer);
    let kept = ended.file("came.part");
    assert!(!kept.is_empty() && kept.len().is_multiple_of(4) && kept.iter().all(|&byte| byte == 1));
    assert!(ended.answer.stdout.contains("came.part has the data from before"), "{:?}", ended.answer);
}

#[test]
fn what_is_unread_at_a_stop_is_counted() {
    let (listener, address) = listener();
    let pipeline = operator("rx", "tcp.source", &format!("connect = \"{address}\""))
        + &operator("slow", "load", "busy = \"10 ms\"")
        + &operator("file", "file.sink", "path = \"came\"")
        + &edge("rx", "slow")
        + &edge("slow", "file");
    let wire = Wire::start(&pipeline);
    let mut peer = listener.accept().expect("a call").0;
    // As much as both sockets take while nobody reads much.
    peer.set_nonblocking(true).expect("a socket");
    let mut written = 0;
    loop {
        match peer.write(&[1; 4096]) {
            Ok(count) => written += count as u64,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        }
    }
    wire.interrupt();
    let ended = wire.end();
    ended.check("unread");
    let waits = ended.lost("bytes", "waited in the socket");
    let came = ended.file("came").len() as u64;
    let own = onbeat_os::socket::unacknowledged(&peer).expect("a count");
    // Some of what waits may not have been acknowledged before the reset.
    let all = waits > 0 && came + waits <= written && written <= came + waits + own;
    assert!(all, "{came} + {waits} + {own} of {written}");
}

/// From an endless source to a peer.
fn flood(parameters: &str) -> String {
    operator("from", "null.source", "size = 1000")
        + &operator("tx", "tcp.sink", parameters)
        + &edge("from", "tx")
}

/// Waits until no more bytes arrive in a socket.
fn until_full(peer: &TcpStream) {
    let (mut last, mut same) = (0, 0);
    let full = || {
        let now = rustix::io::ioctl_fionread(peer).expect("a count");
        same = if now == last && now > 0 { same + 1 } else { 0 };
        last = now;
        (same > 40).then_some(())
    };
    until("the socket is full", full).expect("it is");
}

/// Reads until the connection ends. Returns the number of bytes, and whether it was reset.
fn drain(peer: &mut TcpStream) -> (u64, bool) {
    let (mut bytes, mut buffer) = (0, [0; 65536]);
    loop {
        match peer.read(&mut buffer) {
            Ok(0) => return (bytes, false),
            Ok(count) => bytes += count as u64,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return (bytes, true),
        }
    }
}

#[test]
fn a_peer_that_never_reads_does_not_hold_the_end() {
    for (how, scheduler) in [("interrupt", "greedy"), ("duration", "pinned"), ("interrupt", "event")] {
        let (listener, address) = listener();
        let duration = if how == "duration" { "duration = \"200 ms\"\n" } else { "" };
        let workers = if scheduler == "greedy" { "" } else { "workers = 2\n" };
        let head = format!("{duration}{workers}scheduler = \"{scheduler}\"\n");
        let wire = Wire::start(&(head + &flood(&format!("connect = \"{address}\"\npatience = \"300 ms\""))));
        let mut peer = listener.accept().expect("a call").0;
        if how == "interrupt" {
            until_full(&peer);
            wire.interrupt();
        }
        let ended = wire.end();
        ended.check(how);
        assert_eq!(ended.answer.status, Some(3), "{how}, {scheduler}");
        let (received, is_reset) = drain(&mut peer);
        // A stream that is not complete does not look complete.
        assert!(is_reset, "{how}, {scheduler}");
        let lost = ended.lost("bytes", "did not take");
        assert_eq!(received + lost, ended.messages() * 4000, "{how}, {scheduler}: {lost} lost");
    }
}

#[test]
fn a_peer_that_closes_is_a_loss_unless_it_may() {
    for (may_close, framing, expected) in
        [(false, "raw", 3), (true, "raw", 0), (false, "strict", 1), (true, "strict", 0)]
    {
        let (listener, address) = listener();
        let parameters = format!("connect = \"{address}\"\nmay_close = {may_close}\nframing = \"{framing}\"");
        let wire = Wire::start(&flood(&parameters));
        let mut peer = listener.accept().expect("a call").0;
        peer.read_exact(&mut [0; 100_000]).expect("samples");
        drop(peer);
        let ended = wire.end();
        assert_eq!(ended.answer.status, Some(expected), "{may_close}, {framing}: {:?}", ended.answer);
        assert_eq!(ended.lost("bytes", "the peer closed") > 0, !may_close, "{may_close}, {framing}");
        let said = format!("{}{}", ended.answer.stdout, ended.answer.stderr);
        assert!(said.contains("closed the connection before the end"), "{said}");
    }
}

#[test]
fn a_peer_that_is_not_there_does_not_hold_the_end() {
    // An unused address of this machine, with a port that is never assigned; and one that nobody calls.
    for parameters in ["connect = \"127.9.8.7:1\"", "listen = \"127.0.0.1:0\""] {
        let wire = Wire::start(&flood(&format!("{parameters}\npatience = \"1 s\"")));
        let begun = || {
            let threads = fs::read_dir(format!("/proc/{}/task", wire.child.id())).ok()?;
            (threads.count() > 2).then_some(())
        };
        until("it runs", begun).expect("it does");
        wire.interrupt();
        let ended = wire.end();
        // It may have used up its patience before the stop came.
        if ended.answer.status != Some(1) {
            ended.check(parameters);
            let lost = ended.lost("bytes", "there was no connection");
            assert_eq!(lost, ended.messages() * 4000, "{parameters}");
        }
        let source = operator("rx", "tcp.source", &format!("{parameters}\npatience = \"50 s\""))
            + &operator("end", "null.sink", "")
            + &edge("rx", "end");
        let wire = Wire::start(&format!("duration = \"100 ms\"\n{source}"));
        assert_eq!(wire.end().answer.status, Some(0), "{parameters}");
    }
}

#[test]
fn a_pipe_that_nobody_writes_to_does_not_hold_the_end() {
    let place = Place::new();
    place.fifo("pipe");
    let copy = operator("in", "stdin.source", "") + &operator("end", "null.sink", "") + &edge("in", "end");
    fs::write(place.path("wire.toml"), copy).expect("a file");
    // Open for both, so that opening does not wait, and reading does not end.
    let pipe = OpenOptions::new().read(true).write(true).open(place.path("pipe")).expect("a pipe");
    let mut child = place
        .command(&["run", "wire.toml", "--control", "wire.ctl"])
        .stdin(pipe)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command");
    until("it runs", || place.path("wire.ctl").exists().then_some(())).expect("it does");
    let stopped = || (place.onbeat(&["ctl", "wire.ctl", "stop"]).status == Some(0)).then_some(());
    until("it is told", stopped).expect("it is");
    assert_eq!(wait(&mut child), Some(0));
}

#[test]
fn a_pipe_that_nobody_reads_does_not_hold_the_end() {
    let place = Place::new();
    place.fifo("pipe");
    for (source, sink) in [
        (operator("from", "null.source", "size = 1000"), "stdout.sink"),
        (operator("from", "text.source", "path = \"lines.txt\""), "text.sink"),
    ] {
        let path = if sink == "text.sink" { "path = \"-\"\n" } else { "" };
        let parameters = format!("{path}patience = \"300 ms\"");
        let pipeline = source + &operator("out", sink, &parameters) + &edge("from", "out");
        fs::write(place.path("wire.toml"), pipeline).expect("a file");
        fs::write(place.path("lines.txt"), "a line of some length\n".repeat(50_000)).expect("a file");
        let mut pipe = OpenOptions::new().read(true).write(true).open(place.path("pipe")).expect("a pipe");
        let mut child = place
            .command(&["run", "wire.toml", "-d", "200ms"])
            .stdout(pipe.try_clone().expect("a pipe"))
            .stderr(File::create(place.path("stderr.txt")).expect("a file"))
            .spawn()
            .expect("the command");
        let status = wait(&mut child);
        let said = fs::read_to_string(place.path("stderr.txt")).expect("a file");
        assert_eq!(status, Some(3), "{sink}: {said}");
        assert!(said.contains("lost: out: ") && said.contains("the reader of stdout did not take"), "{said}");
        // What it wrote is in the pipe; with what is lost that is all.
        let record = fs::read_to_string(place.path("out/wire.record.json")).expect("a record");
        let record: serde_json::Value = serde_json::from_str(&record).expect("JSON");
        let lost = record["operators"][1]["losses"][0]["count"].as_u64().expect("a count");
        let sent = record["edges"][0]["sent"].as_u64().expect("a count");
        let each = if sink == "text.sink" { 22 } else { 4000 };
        let waits = rustix::io::ioctl_fionread(&pipe).expect("a count");
        assert_eq!(waits + lost, sent * each, "{sink}");
        pipe.read_exact(&mut vec![0; waits as usize]).expect("bytes");
    }
}

#[test]
fn an_ignored_hangup_stays_ignored() {
    let place = Place::new();
    let mut shell = std::process::Command::new("sh");
    let program = env!("CARGO_BIN_EXE_onbeat");
    let mut child = shell
        .args(["-c", "trap '' HUP; exec \"$@\"", "sh", program])
        .args(["run", "endless.toml", "--control", "endless.ctl", "-q"])
        .current_dir(place.path(""))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(place.path("stderr.txt")).expect("a file"))
        .spawn()
        .expect("the command");
    until("it runs", || place.path("endless.ctl").exists().then_some(())).expect("it does");
    kill_process(Pid::from_child(&child), Signal::HUP).expect("it lives");
    // Two answers, so that the signal has had its time.
    for _ in 0..2 {
        let runs =
            || place.onbeat(&["ctl", "endless.ctl", "status"]).stdout.contains(": running").then_some(());
        until("it goes on", runs).expect("it does");
    }
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it lives");
    assert_eq!(wait(&mut child), Some(0));
}
