//! `mqtt.*` with mosquitto, its publisher and its subscriber.
#![allow(clippy::disallowed_macros, reason = "says why a test was skipped")]

use onbeat_operators::mqtt::{
    LinePayload, MqttPassword, MqttPublishing, MqttSetup, MqttSink, MqttSource, MqttSubscription, MqttWill,
};
use onbeat_operators::registry;
use onbeat_runtime::testing::{Feed, Seen, Trial, free_address};
use onbeat_runtime::{
    ClockKind, Context, Error, Graph, OnError, Operator, Options, Output, Ports, Restart, Run, Step, Then,
};
use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

/// A broker of its own, with a folder for what it keeps.
pub struct Mosquitto {
    folder: TempDir,
    pub address: SocketAddr,
    process: Option<Child>,
}

impl Mosquitto {
    /// Starts one, with more lines in its configuration. `None`, and a line that says so, where it is not
    /// installed.
    pub fn start(more: &str) -> Option<Self> {
        for program in ["mosquitto", "mosquitto_pub", "mosquitto_sub", "mosquitto_passwd"] {
            if Command::new(program).arg("--help").output().is_err() {
                println!("skipped: {program} is not installed");
                return None;
            }
        }
        let (folder, address) = (tempfile::tempdir().unwrap(), free_address());
        let place = folder.path().display();
        let mut lines = format!(
            "listener {} {}\npersistence true\npersistence_location {place}/\nmax_queued_messages 0\n\
             queue_qos0_messages true\n{}",
            address.port(),
            address.ip(),
            more.replace("FOLDER", &place.to_string())
        );
        if !more.contains("allow_anonymous") {
            lines += "allow_anonymous true\n";
        }
        // As root it would give up its rights, and then could not read the folder.
        if Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout == b"0\n") {
            lines += "user root\n";
        }
        fs::write(folder.path().join("mosquitto.conf"), lines).unwrap();
        Some(Mosquitto { folder, address, process: None }).map(|mut broker| {
            broker.run();
            broker
        })
    }

    fn run(&mut self) {
        let log = fs::File::options().create(true).append(true).open(self.folder.path().join("log")).unwrap();
        let configuration = self.folder.path().join("mosquitto.conf");
        let mut command = Command::new("mosquitto");
        command.arg("-c").arg(configuration).stdout(Stdio::null()).stderr(log);
        self.process = Some(command.spawn().unwrap());
        while TcpStream::connect(self.address).is_err() {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Ends it, as a service manager would. It saves its sessions.
    fn end(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        Command::new("kill").arg(process.id().to_string()).status().unwrap();
        process.wait().unwrap();
    }

    /// The command of a client.
    pub fn client(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(["-h", &self.address.ip().to_string(), "-p", &self.address.port().to_string()]);
        command.args(arguments);
        command
    }

    /// Publishes lines, each as a message.
    fn publish(&self, topic: &str, qos: &str, lines: &[String]) {
        let mut command = self.client("mosquitto_pub", &["-t", topic, "-q", qos, "-l"]);
        let mut process = command.stdin(Stdio::piped()).spawn().unwrap();
        process.stdin.take().unwrap().write_all((lines.join("\n") + "\n").as_bytes()).unwrap();
        assert!(process.wait().unwrap().success());
    }

    /// Makes the broker keep all messages for a subscriber.
    pub fn subscribe(&self, topic: &str) {
        let arguments = ["-i", "keeper", "-c", "-q", "1", "-t", topic, "-E"];
        assert!(self.client("mosquitto_sub", &arguments).status().unwrap().success());
    }

    /// The kept messages: `count` lines `topic payload`.
    fn kept(&self, topic: &str, count: usize) -> Vec<String> {
        let count = count.to_string();
        let arguments = ["-i", "keeper", "-c", "-q", "1", "-t", topic, "-v", "-W", "30", "-C", &count];
        let output = self.client("mosquitto_sub", &arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_string).collect()
    }

    /// All kept messages.
    pub fn all_kept(&self, topic: &str) -> Vec<String> {
        let arguments = ["-i", "keeper", "-c", "-q", "1", "-t", topic, "-v", "-W", "3"];
        let output = self.client("mosquitto_sub", &arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_string).collect()
    }

    fn parameters(&self, more: &str) -> String {
        format!("broker = \"mqtt://{}\"\n{more}", self.address)
    }

    /// Runs a sink.
    fn sink(&self, kind: &str, more: &str, feed: Feed, on_error: OnError) -> Result<Seen, String> {
        Trial::kind(&registry(), kind, &self.parameters(more))
            .feed("in", feed)
            .on_error(on_error)
            .options(|options| options.clock = ClockKind::Real)
            .try_run()
    }

    fn failure(&self, more: &str) -> String {
        Trial::kind(&registry(), "mqtt.source", &self.parameters(more)).failure()
    }
}

impl Drop for Mosquitto {
    fn drop(&mut self) {
        self.end();
    }
}

fn lines(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|n| format!("{n} {}", "x".repeat(n % 300))).collect()
}

fn restart() -> OnError {
    OnError::Restart(Restart { limit: 100, delay_ns: 20_000_000, then: Then::Stop, ..Restart::default() })
}

/// Sends lines, one each half millisecond, and then ends or fails.
struct Clockwork {
    out: Output<String>,
    lines: std::vec::IntoIter<String>,
    fails: bool,
}

impl Operator for Clockwork {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        match self.lines.next() {
            Some(line) => self.out.push(cx, line)?,
            None if self.fails => return Err(Error::new("on purpose")),
            None => return Ok(Step::Done),
        }
        let next_ns = cx.now_ns() + 500_000;
        Ok(cx.until(next_ns))
    }
}

/// A run that publishes lines with QoS 1 to the topic `a`.
fn publisher(broker: &Mosquitto, lines: Vec<String>, fails: bool) -> Run {
    let mut setup = MqttSetup::new(&broker.address.to_string()).unwrap();
    let (topic, payload) = ("state".to_string(), "offline".to_string());
    setup.will = fails.then_some(MqttWill { topic, payload, qos: 1, is_retained: false });
    let publishing = MqttPublishing { topic: "a".to_string(), qos: 1, retain: false };
    let mut graph = Graph::new("publisher");
    graph.add("lines", Clockwork { out: Output::default(), lines: lines.into_iter(), fails });
    let sink = graph.add("sink", MqttSink::new(setup, publishing, LinePayload::default()).unwrap());
    graph.on_error(sink, restart());
    let _ = graph.connect_names("lines.out", "sink.in");
    graph.start(&Options { clock: ClockKind::Real, ..Options::default() }).unwrap()
}

/// A run of a source of text, and what it sent.
struct Receiver {
    run: Run,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Receiver {
    fn start(
        broker: &Mosquitto,
        topic: &str,
        change: impl FnOnce(&mut MqttSetup, &mut MqttSubscription),
    ) -> Self {
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let into = Arc::clone(&lines);
        let mut setup = MqttSetup::new(&broker.address.to_string()).unwrap();
        let topics = vec![topic.to_string()];
        let mut wanted = MqttSubscription { topics, qos: 0, retained: true, longest: 1000 };
        change(&mut setup, &mut wanted);
        let mut graph = Graph::new("receiver");
        let source = graph.add("in", MqttSource::new(setup, wanted, LinePayload::default()).unwrap());
        graph.on_error(source, restart());
        graph.sink("end", move |line: String| into.lock().unwrap().push(line));
        let _ = graph.connect_names("in.out", "end.in");
        let options = Options { clock: ClockKind::Real, ..Options::default() };
        Receiver { run: graph.start(&options).unwrap(), lines }
    }

    /// Waits for that number of lines.
    fn wait(&self, count: usize) {
        while self.lines.lock().unwrap().len() < count {
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Publishes until something arrives, so that the subscription is there. Returns the number of lines.
    fn wait_for_subscription(&self, broker: &Mosquitto, topic: &str) {
        while self.lines.lock().unwrap().is_empty() {
            broker.publish(topic, "0", &["probe".to_string()]);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Stops it. Returns the lines without probes, and the notes.
    fn stop(self) -> (Vec<String>, String, u64) {
        self.run.handle().stop();
        let record = self.run.wait().unwrap();
        let lines =
            self.lines.lock().unwrap().iter().filter(|line| !line.ends_with("probe")).cloned().collect();
        (lines, record.notes.join("\n"), record.result.lost)
    }
}

#[test]
fn lines_of_mosquitto_pub_arrive() {
    let Some(broker) = Mosquitto::start("") else { return };
    for qos in ["0", "1"] {
        let receiver = Receiver::start(&broker, "plant/+/rms", |_, wanted| wanted.qos = qos.parse().unwrap());
        receiver.wait_for_subscription(&broker, "plant/2/rms");
        broker.publish("plant/1/other", "1", &lines(0..10));
        broker.publish("plant/1/rms", qos, &lines(0..5000));
        let end = "the end".to_string();
        broker.publish("plant/1/rms", "1", std::slice::from_ref(&end));
        while receiver.lines.lock().unwrap().last() != Some(&end) {
            std::thread::sleep(Duration::from_millis(2));
        }
        let (found, notes, lost) = receiver.stop();
        assert!(found == [lines(0..5000), vec![end]].concat(), "{} lines, {notes}", found.len());
        assert_eq!(lost, 0);
    }
}

#[test]
fn mosquitto_sub_gets_what_a_sink_sends() {
    let Some(broker) = Mosquitto::start("") else { return };
    for qos in [0, 1] {
        broker.subscribe("a/#");
        let more = format!("topic = \"a/b\"\nqos = {qos}");
        let seen = broker.sink("mqtt.sink", &more, Feed::messages(lines(0..5000)), OnError::Stop).unwrap();
        assert_eq!((seen.losses(), seen.notes()), (vec![], &[][..]));
        let expected: Vec<String> = lines(0..5000).iter().map(|line| format!("a/b {}", line)).collect();
        let found = broker.kept("a/#", 5000);
        // Lines that end with a space are shown without it by neither.
        assert!(found == expected, "{} lines", found.len());
    }
}

#[test]
fn retained_values_reach_a_later_source() {
    let Some(broker) = Mosquitto::start("") else { return };
    let more = "topic = \"pump/rms\"\nfield = \"v.rms\"\nqos = 1\nretain = true";
    broker.sink("mqtt.sink.value", more, Feed::messages([0.25, 1.0 / 3.0]), OnError::Stop).unwrap();
    let output = broker.client("mosquitto_sub", &["-t", "pump/#", "-C", "1", "-W", "20"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "{\"v\":{\"rms\":0.3333333333333333}}\n");
    let receiver = Receiver::start(&broker, "pump/+", |_, _| ());
    receiver.wait(1);
    let (found, notes, _) = receiver.stop();
    assert_eq!(found, ["{\"v\":{\"rms\":0.3333333333333333}}"]);
    assert!(notes.contains("1 retained messages"), "{notes}");
}

/// The broker ends twice while the sink publishes, and each time is back a moment later.
#[test]
fn a_sink_loses_nothing_while_the_broker_restarts() {
    let Some(mut broker) = Mosquitto::start("") else { return };
    broker.subscribe("a");
    let run = publisher(&broker, lines(0..3000), false);
    for _ in 0..2 {
        std::thread::sleep(Duration::from_millis(400));
        broker.end();
        std::thread::sleep(Duration::from_millis(50));
        broker.run();
    }
    let record = run.wait().unwrap();
    assert_eq!(record.result.lost, 0);
    let notes = record.notes.join("\n");
    assert!(notes.contains("was away for "), "{notes}");
    broker.publish("a", "1", &["the end".to_string()]);
    // As many as there are: duplicates are possible.
    let all = broker.all_kept("a");
    let (mut next, mut again) = (0, 0);
    let expected = lines(0..3000);
    for line in all.iter().map(|line| line.strip_prefix("a ").unwrap()).take_while(|line| *line != "the end")
    {
        if next < expected.len() && line == expected[next] {
            next += 1;
        } else {
            assert!(expected[..next].iter().any(|before| before == line), "{line} after line {next}");
            again += 1;
        }
    }
    assert_eq!(next, 3000);
    println!("{again} lines arrived twice; {notes}");
}

#[test]
fn a_source_loses_nothing_while_the_broker_restarts() {
    let Some(mut broker) = Mosquitto::start("") else { return };
    let receiver = Receiver::start(&broker, "a", |setup, wanted| {
        (setup.client_id, setup.clean_session, wanted.qos) = (Some("source".into()), false, 1);
    });
    receiver.wait_for_subscription(&broker, "a");
    for part in 0..4 {
        broker.publish("a", "1", &lines(part * 1000..(part + 1) * 1000));
        if part < 3 {
            broker.end();
            broker.run();
        }
    }
    while receiver.lines.lock().unwrap().last() != lines(3999..4000).last() {
        std::thread::sleep(Duration::from_millis(2));
    }
    let (mut found, notes, lost) = receiver.stop();
    assert!(notes.contains("was away for ") && notes.contains("with QoS 1 comes now"), "{notes}");
    let twice = found.len();
    let mut seen = std::collections::HashSet::new();
    found.retain(|line| seen.insert(line.clone()));
    println!("{} lines arrived twice; {notes}", twice - found.len());
    assert!(found == lines(0..4000), "{} lines", found.len());
    assert_eq!(lost, 0);
}

#[test]
fn mosquitto_refuses_and_the_error_says_why() {
    let Some(mut broker) = Mosquitto::start("allow_anonymous true\n") else { return };
    broker.end();
    let (users, rights) = (broker.folder.path().join("users"), broker.folder.path().join("rights"));
    let made =
        Command::new("mosquitto_passwd").args(["-b", "-c"]).arg(&users).args(["ann", "right"]).output();
    assert!(made.unwrap().status.success());
    fs::write(&rights, "user ann\ntopic read open/#\n").unwrap();
    let path = broker.folder.path().join("mosquitto.conf");
    let text = fs::read_to_string(&path).unwrap().replace("allow_anonymous true", "allow_anonymous false");
    fs::write(&path, format!("{text}password_file {}\nacl_file {}\n", users.display(), rights.display()))
        .unwrap();
    broker.run();
    let said = broker.failure("topic = \"open/a\"");
    assert!(said.contains("not authorised; give `user` and `password`"), "{said}");
    let said = broker.failure("topic = \"open/a\"\nuser = \"ann\"\npassword = \"wrong\"");
    assert!(said.contains("refused the connection: ") && said.contains("the user `ann`"), "{said}");
    let file = broker.folder.path().join("password");
    fs::write(&file, "right\nanything\n").unwrap();
    let receiver = Receiver::start(&broker, "open/a", |setup, _| {
        (setup.user, setup.password) = (Some("ann".into()), Some(MqttPassword::File(file.clone())));
    });
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(receiver.stop().1, "");
}

#[test]
fn the_last_will_is_published_after_a_failure_only() {
    let Some(broker) = Mosquitto::start("") else { return };
    broker.subscribe("#");
    let more = "topic = \"a\"\nwill_topic = \"state\"\nwill = \"offline\"\nqos = 1";
    broker.sink("mqtt.sink", more, Feed::messages(["one".to_string()]), OnError::Stop).unwrap();
    let failed = publisher(&broker, lines(0..1000), true).wait();
    assert!(failed.err().unwrap().to_string().contains("on purpose"));
    let found = broker.all_kept("#");
    assert_eq!(found.first().map(String::as_str), Some("a one"));
    assert_eq!(found.iter().filter(|line| *line == "state offline").count(), 1, "{found:?}");
}
