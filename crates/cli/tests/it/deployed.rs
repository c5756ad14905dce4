//! Pipelines on several nodes: `onbeat node` and `onbeat deploy`, over the loopback.

use super::harness::{Answer, Place, until, wait};
use onbeat::Record;
use onbeat::testing::free_address;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;

pub fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// A node in its own folder, until it is dropped.
pub struct NodeProcess {
    pub place: Place,
    pub child: Child,
    pub address: String,
}

impl NodeProcess {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    pub fn start_with(more: &[&str]) -> Self {
        let place = Place::new();
        let address = free_address().to_string();
        let folder = examples();
        let folder = folder.to_str().unwrap();
        let child = place.start(&[&["node", "--listen", &address, "--folder", folder], more].concat());
        NodeProcess { place, child, address }.heard()
    }

    /// Waits until it listens.
    pub fn heard(self) -> Self {
        let said = self.place.path("stderr.txt");
        let heard = || fs::read_to_string(&said).ok()?.contains("listening").then_some(());
        until("the node listens", heard).unwrap();
        self
    }
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

/// A deployment file; the last node has the rest.
pub fn hosts(nodes: &[NodeProcess], operators: &[&[&str]], links: &str) -> String {
    let mut text = format!("[link]\n{links}\n");
    for (number, node) in nodes.iter().enumerate() {
        let free = free_address();
        let which =
            operators.get(number).map_or("rest = true".to_string(), |names| format!("operators = {names:?}"));
        text += &format!("[node.n{number}]\nendpoint = \"{}\"\nlinks = \"{free}\"\n{which}\n", node.address);
    }
    text
}

pub fn deploy(place: &Place, pipeline: &Path, hosts: &str, more: &[&str]) -> Answer {
    fs::write(place.path("hosts.toml"), hosts).unwrap();
    place.onbeat(
        &[&["deploy", pipeline.to_str().unwrap(), "hosts.toml", "--records", "records"], more].concat(),
    )
}

#[test]
fn the_receivers_write_the_same_files_on_one_node_and_on_three() {
    for (file, result, more, cuts) in [
        (
            "fm_receiver.toml",
            "fm.wav",
            "pace=fast",
            &[&["iq", "tune", "channel"][..], &["demod", "band"]][..],
        ),
        ("adsb.toml", "out.jsonl", "lines.path=out.jsonl", &[&["iq", "size"], &["frames"]]),
    ] {
        let place = Place::new();
        let pipeline = examples().join(file);
        let alone = place.path("alone");
        let set = format!("output={}", alone.display());
        let answer = place.onbeat(&[
            "run",
            pipeline.to_str().unwrap(),
            "--pace",
            "fast",
            "--quiet",
            "--set",
            &set,
            "--set",
            more,
        ]);
        assert_eq!(answer.status, Some(0), "{answer:?}");
        for count in [2, 3] {
            let nodes: Vec<NodeProcess> = (0..count).map(|_| NodeProcess::start()).collect();
            let spread = place.path("spread");
            let set = format!("output={}", spread.display());
            let mut hosts = hosts(&nodes, &cuts[..count - 1], "");
            if count == 3 {
                // Over sockets of this machine, without copies.
                let socket = format!("links = \"unix:{}", place.path("link").display());
                hosts = hosts.replace("links = \"127.", &socket);
                assert!(hosts.contains("unix:"));
            }
            let answer =
                deploy(&place, &pipeline, &hosts, &["--set", &set, "--set", "pace=fast", "--set", more]);
            assert_eq!(answer.status, Some(0), "{answer:?}");
            assert!(answer.stdout.contains("there and back"), "{}", answer.stdout);
            assert_eq!(
                fs::read(alone.join(result)).unwrap(),
                fs::read(spread.join(result)).unwrap(),
                "{file}"
            );
            let records = fs::read_dir(place.path("records")).unwrap().count();
            assert_eq!(records, count);
            fs::remove_dir_all(place.path("records")).unwrap();
        }
    }
}

/// Starts the FM receiver on two nodes, in real time and for long.
pub fn begin(place: &Place, nodes: &[NodeProcess], links: &str) -> Child {
    fs::write(place.path("hosts.toml"), hosts(nodes, &[&["iq", "tune", "channel"]], links)).unwrap();
    let pipeline = examples().join("fm_receiver.toml");
    let set = format!("output={}", place.path("out").display());
    let pipeline = pipeline.to_str().unwrap();
    let deploy = ["deploy", pipeline, "hosts.toml", "--records", "records", "--set", &set];
    let child = place.start(&[&deploy[..], &["--set", "iq.repeat=1000"]].concat());
    let begun =
        || fs::read_to_string(nodes[1].place.path("stderr.txt")).ok()?.contains("started").then_some(());
    until("the part starts", begun).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    child
}

#[test]
fn a_node_that_is_killed_is_said() {
    let place = Place::new();
    let mut nodes: Vec<NodeProcess> = (0..2).map(|_| NodeProcess::start()).collect();
    let child = begin(&place, &nodes, "on_cut = \"end\"");
    nodes[1].child.kill().unwrap();
    let answer = place.end(child);
    assert_eq!(answer.status, Some(1), "{answer:?}");
    assert!(answer.stderr.contains("node `n1`: ") && answer.stderr.contains("gone"), "{}", answer.stderr);
    assert!(answer.stderr.contains("node `n0`: ") && answer.stderr.contains("was cut"), "{}", answer.stderr);
    drop(nodes);
}

#[test]
fn an_interruption_ends_all_parts_in_order() {
    let place = Place::new();
    let nodes: Vec<NodeProcess> = (0..2).map(|_| NodeProcess::start()).collect();
    let child = begin(&place, &nodes, "");
    let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let answer = place.end(child);
    assert_eq!(answer.status, Some(0), "{answer:?}");
    assert!(place.path("out").join("fm.wav").exists());
}

#[test]
fn mistakes_are_said_before_anything_starts() {
    let place = Place::new();
    let pipeline = examples().join("fm_receiver.toml");
    let try_it = |hosts: &str| deploy(&place, &pipeline, hosts, &[]);
    let refused = |answer: Answer, text: &str| {
        assert_eq!(answer.status, Some(1), "{answer:?}");
        assert!(answer.stderr.contains(text), "{}", answer.stderr);
    };
    refused(
        try_it("[node.a]\nendpoint = \"127.0.0.1:1\"\nrest = true"),
        "node `a`: cannot reach 127.0.0.1:1",
    );
    refused(try_it(""), "missing field `node`");
    refused(try_it("[node.a]\nendpoint = \"here\"\nrest = true"), "it must be a host and a port");
    refused(place.onbeat(&["deploy", "no.toml", "no.toml"]), "pipeline `no.toml`: cannot be read");
    refused(place.onbeat(&["node", "--listen", "0.0.0.0:0"]), "other machines could run pipelines here");
    refused(
        try_it("[node.a]\nendpoint = \"127.0.0.1:7400\"\nrest = true\noptions = { schedular = \"event\" }"),
        "`options` of node `a` has the key `schedular`: it can have scheduler, cores",
    );
    let far = "[node.a]\nendpoint = \"10.0.0.1:7400\"\nrest = true";
    refused(try_it(far), "node `a` at 10.0.0.1:7400 is another machine");
    refused(
        try_it(
            "[node.a]\nendpoint = \"127.0.0.1:7400\"\nrest = true\n[node.b]\nendpoint = \"127.0.0.1:7401\"",
        ),
        "127.0.0.1:7401 is for the links of node `a`, and it is the endpoint of node `b`",
    );
    let answer = deploy(&place, &pipeline, far, &["--print"]);
    assert_eq!(answer.status, Some(0), "{answer:?}");
    assert!(answer.stdout.contains("name = \"fm-receiver.a\""), "{}", answer.stdout);
}

#[test]
fn strangers_do_not_disturb_a_node() {
    use std::io::{Read, Write};
    let mut node = NodeProcess::start();
    for text in ["GET / HTTP/1.1\r\n\r\n", "{\"check\": 1}\n", "\"start\"\n", "\u{0}\u{ff}\n"] {
        let mut stranger = std::net::TcpStream::connect(&node.address).unwrap();
        stranger.write_all(text.as_bytes()).unwrap();
        stranger.shutdown(std::net::Shutdown::Write).unwrap();
        let _answer = stranger.read_to_end(&mut Vec::new());
    }
    assert!(node.child.try_wait().unwrap().is_none());
    let pid = rustix::process::Pid::from_raw(node.child.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(wait(&mut node.child), Some(0));
}

/// A source that is faster than any link.
const FLOOD: &str = r#"
[[operator]]
name = "numbers"
kind = "counter"
count = 20000

[[operator]]
name = "end"
kind = "count.sink"

[[edge]]
from = "numbers"
to = "end"
capacity = 4
"#;

#[test]
fn what_an_edge_drops_is_counted_at_both_ends() {
    for rule in ["wait", "drop_oldest", "drop_newest", "latest"] {
        let place = Place::new();
        fs::write(place.path("flood.toml"), format!("{FLOOD}when_full = \"{rule}\"\n")).unwrap();
        let nodes: Vec<NodeProcess> = (0..2).map(|_| NodeProcess::start()).collect();
        let hosts = hosts(&nodes, &[&["numbers"]], "");
        let answer = deploy(&place, &place.path("flood.toml"), &hosts, &[]);
        assert_eq!(answer.status, Some(0), "{answer:?}");
        let [sent, taken] = ["n0", "n1"].map(|node| {
            let path = place.path("records").join(format!("flood.{node}.record.json"));
            Record::from_json(&fs::read_to_string(path).unwrap()).unwrap()
        });
        let (sent_end, taken_end) = (&sent.links[0], &taken.links[0]);
        let dropped = sent_end.dropped_before.unwrap();
        assert_eq!(taken_end.dropped_before, Some(dropped), "{rule}");
        assert_eq!((sent_end.messages, taken_end.messages), (20_000 - dropped, 20_000 - dropped), "{rule}");
        assert_eq!(taken.edges[0].received, 20_000 - dropped, "{rule}");
        assert_eq!(dropped > 0, rule != "wait", "{rule}: {dropped} dropped");
    }
}

#[test]
fn parts_are_watched_and_changed_from_afar() {
    let place = Place::new();
    let nodes: Vec<NodeProcess> = (0..2).map(|_| NodeProcess::start()).collect();
    let nothing = place.onbeat(&["ctl", &nodes[1].address, "status"]);
    assert!(nothing.stderr.contains("nothing runs at this node"), "{nothing:?}");
    let child = begin(&place, &nodes, "");
    for (at, operators) in [(0, ["iq", "tune"]), (1, ["demod", "audio"])] {
        let status = place.onbeat(&["ctl", &nodes[at].address, "status"]);
        assert_eq!(status.status, Some(0), "{status:?}");
        assert!(operators.iter().all(|name| status.stdout.contains(name)), "{}", status.stdout);
    }
    let name = format!("{}/fm-receiver.n0", nodes[0].address);
    let unknown = place.onbeat(&["ctl", &format!("{}/other", nodes[0].address), "status"]);
    assert!(
        unknown.status == Some(1) && unknown.stderr.contains("`other` does not run here: this node runs `"),
        "{unknown:?}"
    );
    let set = place.onbeat(&["ctl", &name, "set", "tune.shift=\"-40 kHz\""]);
    assert_eq!(set.status, Some(0), "{set:?}");
    let wrong = place.onbeat(&["ctl", &nodes[0].address, "set", "tune.shape=3"]);
    assert!(wrong.status == Some(1) && wrong.stderr.contains("shape"), "{wrong:?}");
    let stop = place.onbeat(&["ctl", &nodes[0].address, "stop", "iq"]);
    assert_eq!(stop.status, Some(0), "{stop:?}");
    let answer = place.end(child);
    assert_eq!(answer.status, Some(0), "{answer:?}");
    let record = fs::read_dir(place.path("records")).unwrap();
    assert_eq!(record.count(), 2);
    let gone = place.onbeat(&["ctl", &nodes[0].address, "status", "--watch"]);
    assert!(gone.stderr.contains("nothing runs"), "{gone:?}");
}
