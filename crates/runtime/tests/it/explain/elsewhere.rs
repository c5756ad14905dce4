//! Causes that another node's record knows.

use onbeat_runtime::explain::{NodeRun, name_causes_elsewhere};
use onbeat_runtime::{Graph, Options};
use onbeat_trace::cause::{Cause, Part, Verdict};
use onbeat_trace::record::{LinkRecord, Miss, MissKind};
use onbeat_trace::{CauseClass, Summary};

fn part(class: CauseClass, name: &str, origin: Option<u64>, late_ns: u64) -> Part {
    Part {
        class,
        name: name.into(),
        operator: Some("tune".into()),
        core: Some(1),
        detail: None,
        origin,
        took_ns: late_ns,
        late_ns,
    }
}

fn miss(name: &str, sequence: u64, parts: Vec<Part>) -> Miss {
    let late_ns = parts.iter().map(|part| part.late_ns).sum();
    let verdict = Some(Verdict { sentence: "?".into(), parts });
    let (time_ns, kind) = (5_000_000, MissKind::Path);
    Miss { time_ns, kind, name: name.into(), sequence, value_ns: late_ns, limit_ns: 0, late_ns, verdict }
}

/// The link's end that sends, or the one that receives.
fn end(name: &str, receives: bool) -> LinkRecord {
    LinkRecord {
        name: name.into(),
        operator: name.into(),
        transit: receives.then(Summary::default),
        ..LinkRecord::default()
    }
}

fn run(node: &str, links: Vec<LinkRecord>, misses: Vec<Miss>) -> NodeRun {
    let mut graph = Graph::new(node);
    let source = graph.source("n", || None::<u64>);
    let end = graph.sink("end", |_: u64| ());
    graph.connect(source, |s| &s.out, end, |s| &s.input);
    let mut record = graph.run(&Options::default()).unwrap();
    (record.links, record.misses) = (links, misses);
    for part in record.misses.iter().flat_map(|miss| &miss.verdict.as_ref().unwrap().parts) {
        match record.causes.iter_mut().find(|cause| (cause.class, &cause.name) == (part.class, &part.name)) {
            Some(cause) => (cause.misses, cause.lost_ns) = (cause.misses + 1, cause.lost_ns + part.late_ns),
            None => record.causes.push(Cause {
                class: part.class,
                name: part.name.clone(),
                misses: 1,
                lost_ns: part.late_ns,
                finding: None,
            }),
        }
    }
    NodeRun { node: node.into(), record }
}

/// `radio` is kept off its core, `desk` gets its messages late, and so does `wall` behind it.
fn chain() -> Vec<NodeRun> {
    let thief = || part(CauseClass::Preempted, "thief", None, 900_000);
    let other = |origin| part(CauseClass::OtherNode, "vm:12", Some(origin), 800_000);
    let radio = vec![miss("iq → a→b", 8, vec![thief()]), miss("iq → x→y", 9, vec![thief()])];
    let desk = vec![
        miss("a→b → b→c", 3, vec![other(8)]),
        miss("a→b → b→c", 4, vec![other(9)]),
        miss("b → b→c", 8, vec![thief()]),
    ];
    let wall = vec![miss("b→c → end", 0, vec![other(3), part(CauseClass::Network, "b→c", None, 10)])];
    vec![
        run("wall", vec![end("b→c", true)], wall),
        run("radio", vec![end("a→b", false), end("x→y", false)], radio),
        run("desk", vec![end("a→b", true), end("b→c", false)], desk),
    ]
}

#[test]
fn a_verdict_names_the_cause_on_the_node_where_it_was() {
    let mut runs = chain();
    assert_eq!(name_causes_elsewhere(&mut runs), 2);
    let [wall, radio, desk] = &runs[..] else { panic!("three nodes") };
    let verdict = |run: &NodeRun, at: usize| run.record.misses[at].verdict.clone().unwrap();
    let text = "message 3 of a→b → b→c was 800 µs late: it left radio 800 µs after it was due there (tune was kept \
                off core 1 for 900 µs by thief)";
    assert_eq!(verdict(desk, 0).sentence, text);
    assert_eq!(verdict(desk, 0).parts[0].name, "radio, preempted: thief");
    // The radio knows nothing of message 9 on this link, and nothing is guessed.
    assert_eq!((verdict(desk, 1).sentence.as_str(), verdict(desk, 1).parts[0].name.as_str()), ("?", "vm:12"));
    // Two links away.
    assert!(
        verdict(wall, 0).sentence.contains("it left radio 800 µs after"),
        "{}",
        verdict(wall, 0).sentence
    );
    let causes = |run: &NodeRun| -> Vec<(CauseClass, String, u64, u64)> {
        run.record.causes.iter().map(|c| (c.class, c.name.clone(), c.misses, c.lost_ns)).collect()
    };
    let named = (CauseClass::OtherNode, "radio, preempted: thief".to_string(), 1, 800_000);
    assert!(causes(desk).contains(&named), "{:?}", causes(desk));
    assert!(
        causes(desk).contains(&(CauseClass::OtherNode, "vm:12".into(), 1, 800_000)),
        "{:?}",
        causes(desk)
    );
    assert_eq!(causes(wall)[0], named);
    assert_eq!(causes(radio), vec![(CauseClass::Preempted, "thief".into(), 2, 1_800_000)]);
}

#[test]
fn a_consumer_hears_what_was_dropped_before_the_link() {
    let mut runs = chain();
    runs[1].record.links[0].dropped_before = Some(7);
    name_causes_elsewhere(&mut runs);
    let before = |run: usize, link: usize| runs[run].record.links[link].dropped_before;
    assert_eq!((before(2, 0), before(2, 1), before(0, 0)), (Some(7), None, None));
}
