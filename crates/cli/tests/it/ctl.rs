//! `onbeat ctl` and a run, in separate processes.

use super::harness::{Answer, Place, until, wait};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Command, Stdio};

const SOCKET: &str = "run.ctl";

/// Source, a gate that is open, two operators with parameters, and another source that waits for an event.
const STEERED: &str = r#"
name = "steered"
[[operator]]
name = "silence"
kind = "null.source"
rate = "800 kHz"
pace = "real"
size = 800
when = [{ gate = "door" }]
[[operator]]
name = "scale"
kind = "saxpy"
a = 1
[[operator]]
name = "end"
kind = "null.sink"
[[operator]]
name = "numbers"
kind = "counter"
when = [{ event = "bell" }]
[[operator]]
name = "count"
kind = "count.sink"
[[edge]]
from = "silence"
to = "scale"
[[edge]]
from = "scale"
to = "end"
[[edge]]
from = "numbers"
to = "count"
"#;

/// Running run with a control socket.
pub(super) struct Running {
    pub place: Place,
    child: Child,
}

impl Running {
    fn start() -> Self {
        Running::of(Place::new(), STEERED)
    }
    pub fn of(place: Place, pipeline: &str) -> Self {
        fs::write(place.path("steered.toml"), pipeline).expect("a file");
        Running { child: run(&place), place }
    }

    pub fn ctl(&self, arguments: &[&str]) -> Answer {
        self.place.onbeat(&[&["ctl", SOCKET], arguments].concat())
    }

    fn status(&self) -> serde_json::Value {
        let answer = self.ctl(&["status", "--format", "json"]);
        serde_json::from_str(&answer.stdout).unwrap_or_else(|error| panic!("{error}: {answer:?}"))
    }

    /// Number of messages sent.
    fn goes_on(&self) {
        let sent = || self.status()["edges"][1]["sent"].as_u64().expect("a number");
        let before = sent();
        until("it goes on", || (sent() > before).then_some(())).expect("it does");
    }

    /// Stops the run, and checks its result.
    pub fn end(mut self) -> serde_json::Value {
        let answer = self.ctl(&["stop"]);
        assert_eq!((answer.status, answer.stderr.as_str()), (Some(0), ""), "{answer:?}");
        assert_eq!(wait(&mut self.child), Some(0), "{}", self.said());
        assert!(!self.place.path(SOCKET).exists());
        let record = fs::read_to_string(self.place.path("out/steered.record.json")).expect("a record");
        serde_json::from_str(&record).expect("JSON")
    }

    fn said(&self) -> String {
        said(&self.place)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn said(place: &Place) -> String {
    fs::read_to_string(place.path("run.txt")).unwrap_or_default()
}

/// Waits until the socket answers.
fn run(place: &Place) -> Child {
    let text = File::create(place.path("run.txt")).expect("a file");
    let mut child = place
        .command(&["run", "steered.toml", "--control", SOCKET])
        .stdout(text.try_clone().expect("a file"))
        .stderr(text)
        .spawn()
        .expect("the command");
    let served = || {
        assert_eq!(child.try_wait().expect("a child"), None, "{}", said(place));
        (place.onbeat(&["ctl", SOCKET, "status"]).status == Some(0)).then_some(())
    };
    until("the run is served", served).expect("it is");
    child
}

#[test]
fn every_order_is_carried_out() {
    let running = Running::start();
    // Arguments; exit status; a part of stdout; a part of stderr.
    for (arguments, status, stdout, stderr) in [
        (&["status"][..], 0, "steered: running, ", ""),
        (&["status"], 0, "operator  worker     state", ""),
        (&["status"], 0, "silence.out → scale.in", ""),
        (&["status"], 0, "gate  state\ndoor  open", ""),
        (&["status"], 0, "event  triggered\nbell           0", ""),
        (
            &["status", "--format", "csv"],
            0,
            "run,state,elapsed_ns,position_ns,length_ns\nsteered,running,",
            "",
        ),
        (&["status", "--format", "csv"], 0, "operator,worker,state,steps,waits_for\nsilence,onbeat-w0,", ""),
        (&["status", "--format", "csv"], 0, "edge,depth,capacity,sent,dropped\n", ""),
        (&["pause"], 0, "paused\n", ""),
        (&["status"], 0, "steered: paused, ", ""),
        (&["resume"], 0, "resumed\n", ""),
        (&["status"], 0, "steered: running, ", ""),
        (&["pause", "scale"], 0, "paused `scale`\n", ""),
        (&["status", "--format", "csv"], 0, "\nscale,onbeat-w0,paused,", ""),
        (&["resume", "scale"], 0, "resumed `scale`\n", ""),
        (&["gate", "door", "close"], 0, "gate `door` is closed\n", ""),
        (&["status"], 0, "door  closed", ""),
        (&["gate", "door", "open"], 0, "gate `door` is open\n", ""),
        (&["ring", "bell"], 0, "triggered `bell`\n", ""),
        (&["status"], 0, "event  triggered\nbell           1", ""),
        (&["get"], 0, "parameter  value\nscale.a    1\n", ""),
        (&["set", "scale.a=2"], 0, "scale.a = 2 from its next sample on\n", ""),
        (
            &["set", "scale.a=2.5", "--at", "1000000000"],
            0,
            "scale.a = 2.5 at sample 1000000000 of its input\n",
            "",
        ),
        (&["get", "scale.a"], 0, "\nscale.a    2 up to sample 1000000000, 2.5 from there on\n", ""),
        (&["get", "end"], 1, "", "operator `end` has no parameters that can be changed while it runs"),
        (&["pause", "scael"], 1, "", "there is no operator `scael`: did you mean `scale`?"),
        (&["pause", "scael"], 1, "", "help: `onbeat ctl run.ctl status` lists the names"),
        (&["resume", "scael"], 1, "", "did you mean `scale`?"),
        (&["stop", "scael"], 1, "", "did you mean `scale`?"),
        (&["set", "scael.a=1"], 1, "", "did you mean `scale`?"),
        (&["gate", "dor", "open"], 1, "", "there is no gate `dor`: did you mean `door`?"),
        (&["ring", "bel"], 1, "", "there is no event `bel`: did you mean `bell`?"),
        (&["set", "scale.c=1"], 1, "", "operator `scale` has no parameter `c` that can be changed"),
        (&["set", "scale.a=much"], 1, "", "`a`: expected a number, found string \"much\""),
        (&["set", "scale.a=1", "--at", "0"], 1, "", "0"),
        (&["stop", "numbers"], 0, "stopped `numbers`\n", ""),
    ] {
        let answer = running.ctl(arguments);
        assert_eq!(answer.status, Some(status), "{arguments:?}: {answer:?}");
        assert!(answer.stdout.contains(stdout), "{arguments:?}: {answer:?}");
        assert!(answer.stderr.contains(stderr), "{arguments:?}: {answer:?}");
        assert_eq!(status == 0, answer.stderr.is_empty(), "{arguments:?}: {answer:?}");
    }
    running.goes_on();
    let record = running.end();
    assert_eq!(record["result"]["outcome"], "stopped", "{record:#}");
    assert_eq!(record["edges"][2]["received"], 1, "what the event let through");
    let threads = record["threads"].as_array().expect("threads");
    assert!(threads.iter().any(|thread| thread["name"] == "onbeat-control"), "{threads:#?}");
    assert_eq!(record["config"]["control"], SOCKET);
}

#[test]
fn a_run_can_be_watched_until_it_ends() {
    let mut running = Running::start();
    let file = |name: &str| File::create(running.place.path(name)).expect("a file");
    let text = |name: &str| fs::read_to_string(running.place.path(name)).unwrap_or_default();
    let arguments = ["ctl", SOCKET, "status", "--watch", "--format", "json"];
    let mut watch = running
        .place
        .command(&arguments)
        .stdout(file("watch.txt"))
        .stderr(file("end.txt"))
        .spawn()
        .expect("the command");
    until("it was shown twice", || (text("watch.txt").lines().count() > 1).then_some(())).expect("it is");
    assert_eq!(running.ctl(&["stop"]).status, Some(0));
    assert_eq!(wait(&mut running.child), Some(0), "{}", running.said());
    assert_eq!(wait(&mut watch), Some(0));
    assert_eq!(text("end.txt"), "the run has ended\n");
    for line in text("watch.txt").lines() {
        let status: serde_json::Value = serde_json::from_str(line).expect("a line of JSON");
        assert_eq!(status["name"], "steered");
    }
}

#[test]
fn a_reader_of_a_watch_may_go_away() {
    let running = Running::start();
    let arguments = ["ctl", SOCKET, "status", "--watch"];
    let mut watch = running.place.command(&arguments).stdout(Stdio::piped()).spawn().expect("the command");
    drop(watch.stdout.take());
    assert_eq!(wait(&mut watch), Some(0));
    running.end();
}

#[test]
fn after_a_kill_the_next_run_takes_the_socket() {
    let mut running = Running::start();
    let path = running.place.path(SOCKET);
    running.child.kill().expect("a child of ours");
    running.child.wait().expect("a child of ours");
    assert!(fs::symlink_metadata(&path).expect("it is left").file_type().is_socket());
    let answer = running.ctl(&["status"]);
    assert_eq!(answer.status, Some(1), "{answer:?}");
    assert!(answer.stderr.contains("no run listens on it: the run has ended"), "{answer:?}");
    running.child = run(&running.place);
    assert_eq!(fs::symlink_metadata(&path).expect("a socket").mode() & 0o7777, 0o600);
    running.goes_on();
    // Two do not share one.
    let other = running.place.onbeat(&["run", "steered.toml", "--control", SOCKET, "--set", "output=other"]);
    let who = format!("control socket `{SOCKET}`: process {} serves it already", running.child.id());
    assert_eq!(other.status, Some(1), "{other:?}");
    assert!(other.stderr.contains(&who), "{other:?}");
    assert!(!running.place.path("other").exists(), "nothing was begun");
    running.goes_on();
    running.end();
}

#[test]
fn the_socket_of_the_file_is_served_where_the_house_is_kept() {
    let place = Place::new();
    fs::write(place.path("steered.toml"), format!("control = \"{SOCKET}\"\n{STEERED}")).expect("a file");
    let core = onbeat_os::CoreSet::allowed().expect("cores").iter().next().expect("one").to_string();
    let mut child = place
        .command(&["run", "steered.toml", "-q", "-H", &core])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command");
    let stop = || (place.onbeat(&["ctl", SOCKET, "pause"]).status == Some(0)).then_some(());
    until("it is served", stop).expect("it is");
    let thread =
        fs::read_dir(format!("/proc/{}/task", child.id())).expect("its threads").flatten().find(|task| {
            fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.trim_end() == "onbeat-control")
        });
    let status = fs::read_to_string(thread.expect("its thread").path().join("status")).expect("its status");
    assert!(status.lines().any(|line| line == format!("Cpus_allowed_list:\t{core}")), "{status}");
    assert_eq!(place.onbeat(&["ctl", SOCKET, "stop"]).status, Some(0));
    assert_eq!(wait(&mut child), Some(0));
}

/// Sends every kind of rubbish to the real process.
#[test]
fn rubbish_hurts_nobody() {
    let running = Running::start();
    let path = running.place.path(SOCKET);
    let mut held = Vec::new();
    for bytes in [
        &[0; 100][..],
        b"\xff\xfe\n",
        b"{\"version\":1,",
        b"",
        &[b' '; 200_000],
        b"[[[[[[\n",
        b"GET /\r\n\r\n",
    ] {
        for _ in 0..10 {
            let mut client = UnixStream::connect(&path).expect("it is served");
            // It may be closed before all is written.
            let _taken = client.write_all(bytes);
            held.push(client);
        }
        running.goes_on();
    }
    drop(held);
    running.end();
}

#[test]
#[expect(clippy::disallowed_macros, reason = "a test that is skipped says so")]
fn others_are_refused() {
    let running = Running::start();
    let is_root = running.place.path(SOCKET).metadata().expect("a socket").uid() == 0;
    let setpriv = Command::new("setpriv").arg("--version").output().is_ok();
    if !is_root || !setpriv {
        eprintln!("skipped: only root can ask as somebody else, with setpriv");
        return;
    }
    // Where anybody may look.
    let binary = running.place.path("onbeat");
    fs::copy(env!("CARGO_BIN_EXE_onbeat"), &binary).expect("a copy");
    for (path, mode) in [(running.place.path(""), 0o755), (binary, 0o755)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its mode");
    }
    let as_nobody = || {
        let answer = Command::new("setpriv")
            .args(["--reuid", "65534", "--clear-groups", "./onbeat", "ctl", SOCKET, "stop"])
            .current_dir(running.place.path(""))
            .output()
            .expect("setpriv");
        (answer.status.code(), String::from_utf8_lossy(&answer.stderr).into_owned())
    };
    let (status, said) = as_nobody();
    let expected = "Permission denied (os error 13): it belongs to user 0, and you are user 65534\nhelp: run the command as its owner or as root: sudo -u '#0'";
    assert!(status == Some(1) && said.contains(expected), "{said}");
    // A user with access to the socket is still refused.
    fs::set_permissions(running.place.path(SOCKET), fs::Permissions::from_mode(0o666)).expect("its mode");
    let (status, said) = as_nobody();
    let expected = "refused: this is a run of user 0, and you are user 65534";
    assert!(status == Some(1) && said.contains(expected), "{said}");
    // A user without access to the folder.
    fs::set_permissions(running.place.path(""), fs::Permissions::from_mode(0o711)).expect("its mode");
    running.goes_on();
    running.end();
}

/// Other programs at the other end of the socket.
#[test]
fn what_is_no_onbeat_is_found_out() {
    let place = Place::new();
    let hello = r#"{"version":1,"ok":true}"#;
    let cases: &[(&[&str], &str)] = &[
        (&["SSH-2.0-OpenSSH_9.9"], "the answer is not from an onbeat run"),
        (&["{}"], "not from an onbeat run"),
        (&["[1]"], "not from an onbeat run"),
        (&["\u{0}\u{0}"], "not from an onbeat run"),
        (&[r#"{"version":1,"ok":7}"#], "not from an onbeat run"),
        (&[r#"{"version":9,"ok":true}"#], "the run uses protocol version 9, this command 1"),
        (
            &[r#"{"version":9,"ok":false,"error":"version 1 is not spoken here"}"#],
            "version 1 is not spoken here",
        ),
        (&[], "the run ended before it answered"),
        (&[hello], "the run ended before it answered"),
        (&[hello, "what?"], "not from an onbeat run"),
        (&[hello, hello], "cannot read the status: "),
        (&[hello, r#"{"version":1,"ok":true,"status":{"name":7}}"#], "cannot read the status: "),
        (&[hello, "{\"version\":1,\"ok\":false,\"error\":\"\\u001b[2Jno\"}"], " [2Jno"),
    ];
    for (number, (answers, part)) in cases.iter().enumerate() {
        let name = format!("other{number}.ctl");
        let listener = UnixListener::bind(place.path(&name)).expect("a socket");
        let answers: Vec<String> = answers.iter().map(|answer| format!("{answer}\n")).collect();
        let other = onbeat_os::thread::spawn("other", move || {
            let (mut client, _) = listener.accept().expect("a client");
            let mut request = [0; 4096];
            for answer in answers {
                let _asked = client.read(&mut request);
                let _answered = client.write_all(answer.as_bytes());
            }
        });
        let answer = place.onbeat(&["ctl", &name, "status"]);
        assert_eq!((answer.status, answer.stdout.as_str()), (Some(1), ""), "{part}: {answer:?}");
        assert!(answer.stderr.contains(part), "{part}: {answer:?}");
        other.expect("a thread").join().expect("it ends");
    }
    // One who says nothing.
    let _listener = UnixListener::bind(place.path("silent.ctl")).expect("a socket");
    let answer = place.onbeat(&["ctl", "silent.ctl", "status"]);
    assert_eq!(answer.status, Some(1), "{answer:?}");
    assert!(
        answer.stderr.contains("no answer\nhelp: check that it is the socket of an onbeat run"),
        "{answer:?}"
    );
}

#[test]
fn names_have_a_limit() {
    let place = Place::new();
    let long = "x".repeat(108);
    for arguments in [
        &["run", "count.toml", "--control", &long][..],
        &["check", "count.toml", "--control", &long],
        &["ctl", &long, "status"],
    ] {
        let answer = place.onbeat(arguments);
        assert_eq!(answer.status, Some(1), "{answer:?}");
        assert!(answer.stderr.contains("108 bytes, and the name of a socket has at most 107"), "{answer:?}");
    }
    assert!(!place.path("out").exists());
    // Relative to where one is, whatever the folder's name.
    let answer = place.onbeat(&["run", "count.toml", "-q", "--control", &"x".repeat(107)]);
    assert_eq!(answer.status, Some(0), "{answer:?}");
}
