//! Late messages of one node whose cause is on another one.

use super::harness::{Place, until};
use super::{alone, has_tracefs, may};
use onbeat::Record;
use onbeat::testing::free_address;
use onbeat_os::cores::CoreSet;
use onbeat_os::policy::{Policy, PolicyFlags};
use std::fs;
use std::process::Child;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const PIPELINE: &str = r#"
policy = "f:40"

[[operator]]
name = "ticks"
kind = "timer"
period = "1 ms"
count = 3000

[[operator]]
name = "end"
kind = "count.sink"

[[edge]]
from = "ticks"
to = "end"
capacity = 16

[[path]]
from = "ticks"
to = "end"
max_latency = "1 ms"
"#;

/// A node, killed when dropped.
struct Node(Child);

impl Drop for Node {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _gone = self.0.wait();
    }
}

fn node() -> (Place, Node, String) {
    let place = Place::new();
    let address = free_address().to_string();
    let child = Node(place.start(&["node", "--listen", &address]));
    let heard = || fs::read_to_string(place.path("stderr.txt")).ok()?.contains("listening").then_some(());
    until("the node listens", heard).unwrap();
    (place, child, address)
}

/// A thread that takes a core for 4 ms, 40 times a second, until the sender is dropped. Then it returns how
/// many times a second it was.
fn thief(core: usize) -> (JoinHandle<f64>, Sender<()>) {
    let (sender, over) = channel::<()>();
    let body = move || {
        onbeat_os::thread::set_cores(&CoreSet::from_cores([core]).unwrap()).expect("the core is there");
        Policy::Fifo(80).set(PolicyFlags::default()).expect("it was tried");
        let (mut thefts, first) = (0, Instant::now());
        while over.recv_timeout(Duration::from_millis(21)) == Err(RecvTimeoutError::Timeout) {
            let begin = Instant::now();
            while begin.elapsed() < Duration::from_millis(4) {}
            thefts += 1;
        }
        f64::from(thefts) / first.elapsed().as_secs_f64()
    };
    (onbeat_os::thread::spawn("thief", body).expect("a thread starts"), sender)
}

#[test]
fn a_thief_on_one_node_is_named_on_the_other() {
    let _alone = alone();
    if !may(&["f:80"]) || !has_tracefs() {
        return;
    }
    let cores: Vec<usize> = onbeat_os::thread::cores().unwrap().iter().collect();
    let [first, .., last] = cores[..] else { return eprintln!("skipped: there is one core") };
    let ((_radio, _a, radio), (_desk, _b, desk)) = (node(), node());
    let place = Place::new();
    fs::write(place.path("ticks.toml"), PIPELINE).unwrap();
    let hosts = format!(
        "[node.radio]\nendpoint = \"{radio}\"\nlinks = \"{}\"\noperators = [\"ticks\"]\noptions = {{ cores = [{first}] \
         }}\n[node.desk]\nendpoint = \"{desk}\"\nlinks = \"{}\"\nrest = true\noptions = {{ cores = [{last}] }}\n",
        free_address(),
        free_address()
    );
    fs::write(place.path("hosts.toml"), hosts).unwrap();
    let (thief, is_busy) = thief(first);
    let answer = place.onbeat(&["deploy", "ticks.toml", "hosts.toml", "--records", "records"]);
    drop(is_busy);
    let rate_hz = thief.join().unwrap();
    assert!(matches!(answer.status, Some(0 | 2)), "{answer:#?}");
    let text = fs::read_to_string(place.path("records/ticks.desk.record.json")).unwrap();
    let record = Record::from_json(&text).unwrap();
    // Each theft makes a message late by some milliseconds. So do others, above all the host of a virtual
    // machine: their messages are not counted.
    let late = record.misses.iter().filter(|miss| miss.late_ns > 1_000_000);
    let verdicts: Vec<&str> =
        late.filter_map(|miss| Some(miss.verdict.as_ref()?.sentence.as_str())).collect();
    let thefts = rate_hz * record.result.duration_ns as f64 / 1e9;
    let named =
        verdicts.iter().filter(|text| text.contains("it left radio") && text.contains("by thief")).count();
    let each = named as f64 / thefts;
    assert!(thefts > 50.0 && (0.9..1.1).contains(&each), "{named} for {thefts} thefts of {verdicts:#?}");
    assert!(answer.stdout.contains("radio, preempted: thief"), "{}", answer.stdout);
    println!("{named} of {} verdicts name the thief on the other node, {thefts:.1} thefts", verdicts.len());
}
