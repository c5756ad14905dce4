//! The page of a run: complete, well formed, and deaf to what is in the record.

use onbeat_report::page::{LabelledRun, Tone, csv, json, markdown, page, verdict};
use onbeat_trace::cause::{Cause, CauseClass, Explained, Part};
use onbeat_trace::record::{SlowMessage, SlowStep};
use onbeat_trace::{Record, Verdict};
use proptest::prelude::*;

/// A control loop of four seconds, as `onbeat run` wrote it.
fn record() -> Record {
    Record::from_json(include_str!("record.json")).expect("a record")
}

fn page_of(record: &Record) -> String {
    page(&[LabelledRun { label: "run.json", record }])
}

/// Everything between `<main>` and its end, read as XML: each element is closed where it must be.
fn main_of(html: &str) -> roxmltree::Document<'_> {
    let begin = html.find("<main>").expect("a page");
    let end = html.find("</main>").expect("an end") + "</main>".len();
    roxmltree::Document::parse(&html[begin..end]).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_page_has_all_of_a_run() {
    let record = record();
    let html = page_of(&record);
    let document = main_of(&html);
    let text: String = document.descendants().filter_map(|node| node.text()).collect::<Vec<_>>().join(" ");
    for part in [
        "Latency",
        "Periods",
        "Execution",
        "The graph",
        "The plan",
        "Requested and obtained",
        "The host",
        "The configuration",
    ] {
        assert!(text.contains(part), "{part}");
    }
    assert!(text.contains(&verdict(&record).sentence));
    for operator in &record.operators {
        assert!(text.contains(&operator.name), "{}", operator.name);
    }
    assert!(document.descendants().filter(|node| node.has_tag_name("svg")).count() > 10);
    for absent in ["NaN", "inf", "No periods were recorded", "without histograms"] {
        assert!(!text.contains(absent), "{absent}");
    }
}

#[test]
fn a_page_needs_nothing_from_elsewhere() {
    let html = page_of(&record());
    for foreign in [
        "<script",
        "http:",
        "https:",
        "//cdn",
        "@import",
        "url(",
        " src=",
        "javascript:",
        "onload",
        "onerror",
    ] {
        assert!(!html.contains(foreign), "{foreign}");
    }
    assert!(html.contains("default-src 'none'"));
}

#[test]
fn what_a_record_lacks_is_said() {
    let mut record = record();
    for path in &mut record.paths {
        (path.latencies_by_time, path.course, path.regularity) = (None, None, None);
    }
    record.operators.iter_mut().for_each(|operator| operator.steps_by_time = None);
    record.obtained.clear();
    let html = page_of(&record);
    main_of(&html);
    for said in [
        "These records have no histograms and series",
        "No periods were recorded",
        "No histograms of steps",
        "No settings were requested",
    ] {
        assert!(html.contains(said), "{said}");
    }
    (record.paths, record.operators, record.edges) = (Vec::new(), Vec::new(), Vec::new());
    let html = page_of(&record);
    main_of(&html);
    assert!(html.contains("No path was measured") && html.contains("has no operators"));
}

#[test]
fn verdicts_say_what_weighs_most() {
    let mut record = record();
    let limit = |record: &mut Record, ns| {
        record.paths.iter_mut().for_each(|path| path.max_latency_ns = ns);
        record.operators.iter_mut().for_each(|operator| operator.deadline_ns = None);
    };
    limit(&mut record, None);
    (record.misses_total, record.result.lost) = (0, 0);
    assert_eq!(verdict(&record).tone, Tone::Plain);
    limit(&mut record, Some(1_000_000_000));
    assert_eq!(verdict(&record).tone, Tone::Good);
    record.misses_total = 3;
    assert!(verdict(&record).sentence.starts_with("3 of "), "{:?}", verdict(&record));
    record.result.lost = 2;
    assert_eq!(verdict(&record).sentence, "2 messages lost unexpectedly");
}

#[test]
fn causes_are_shown_with_their_fixes() {
    let mut record = record();
    assert!(record.misses.len() > 2 && page_of(&record).contains("Causes were not determined"));
    let part = |late_ns| Part {
        class: CauseClass::Preempted,
        name: "kworker/1:2".into(),
        operator: Some("motor".into()),
        core: Some(1),
        detail: None,
        origin: None,
        took_ns: late_ns,
        late_ns,
    };
    for miss in record.misses.iter_mut().skip(1) {
        let sentence = format!("message {} was kept off core 1 by kworker/1:2", miss.sequence);
        miss.verdict = Some(Verdict { sentence, parts: vec![part(miss.late_ns)] });
    }
    let cause = |number: u64| Cause {
        class: CauseClass::Preempted,
        name: if number == 0 { "kworker/1:2".into() } else { format!("other-{number}") },
        misses: 1,
        lost_ns: 1_000_000 - number,
        finding: Some("work-queues".into()),
    };
    record.causes = (0..12).map(cause).collect();
    record.explained = Some(Explained {
        source: "proc".into(),
        why: Some("tracepoints may not be read".into()),
        fix: Some("sudo setcap cap_perfmon+ep".into()),
        exact: Vec::new(),
        sampled: vec!["tick".into()],
        misses: record.misses_total,
        left_out: 1,
        spans: 10,
        unread: 0,
        lost: 3,
    });
    let html = page_of(&record);
    main_of(&html);
    for part in [
        "preempted: kworker/1:2",
        "onbeat doctor: work-queues",
        "4 more causes",
        "was kept off core 1 by kworker/1:2",
        "not analysed",
        "Source of kernel events: proc. Reason: tracepoints may not be read. Fix: sudo setcap",
        "1 miss not analysed",
        "3 kernel records lost",
    ] {
        assert!(html.contains(part), "{part}");
    }
}

/// Returns a message with three steps and waits between them.
fn slow(operator: &str, begin_ns: i64, step_ns: u64) -> SlowMessage {
    let step = |number: i64| SlowStep {
        operator: format!("{operator}{number}"),
        begin_ns: begin_ns.saturating_mul(number),
        step_ns,
    };
    let steps: Vec<SlowStep> = (1..=3).map(step).collect();
    SlowMessage { sequence: 41, time_ns: 2_000_000_000, latency_ns: step_ns.saturating_mul(9), steps }
}

#[test]
fn the_slowest_messages_are_drawn_and_told() {
    let mut record = record();
    assert!(page_of(&record).contains("No steps of messages were recorded"));
    let path = record.paths.first_mut().expect("a path");
    path.max_latency_ns = Some(5_000_000);
    path.slowest = vec![slow("op-", 2_000_000, 1_000_000), slow("op-", -500_000, 400_000)];
    let html = page_of(&record);
    let document = main_of(&html);
    for part in [
        "waited 2\u{202f}ms, op-1 1\u{202f}ms, waited 1\u{202f}ms, op-2 1\u{202f}ms",
        "op-1 400\u{202f}µs, op-2 400\u{202f}µs",
        "op-3: 1\u{202f}ms, from 6\u{202f}ms",
        "limit 5\u{202f}ms",
    ] {
        assert!(html.contains(part), "{part}");
    }
    let about = |node: &roxmltree::Node<'_, '_>| {
        node.attribute("aria-label").is_some_and(|about| about.starts_with("the slowest messages from"))
    };
    let charts: Vec<_> = document.descendants().filter(about).collect();
    assert_eq!(charts.len(), 2, "one for wide and one for narrow screens");
    assert!(!html.contains("closer: the slowest"), "its steps are large enough");
    for chart in charts {
        let of = |class: &str| {
            let is_it = |node: &roxmltree::Node<'_, '_>| {
                node.attribute("class").is_some_and(|classes| classes.split(' ').next() == Some(class))
            };
            chart.descendants().filter(is_it).count()
        };
        assert_eq!((of("bar"), of("wait"), of("limit")), (6, 2, 1));
    }
    // After a long wait, short steps are drawn again without it.
    let path = record.paths.first_mut().expect("a path");
    path.slowest.truncate(1);
    let message = &mut path.slowest[0];
    message.latency_ns = 100_000_000;
    message.steps.iter_mut().for_each(|step| step.begin_ns += 90_000_000);
    let html = page_of(&record);
    main_of(&html);
    assert_eq!(html.matches("closer: the slowest messages from").count(), 2);
    assert!(html.contains("ms from the first step"));
}

#[test]
fn several_runs_are_beside_each_other() {
    let (one, mut two) = (record(), record());
    two.machine.kernel = Some("another".to_string());
    two.operators.remove(0);
    let runs =
        [LabelledRun { label: "one.json", record: &one }, LabelledRun { label: "two.json", record: &two }];
    let html = page(&runs);
    main_of(&html);
    assert!(html.contains("one.json") && html.contains("two.json") && html.contains("differs"));
    let lines = csv(&runs);
    let mut lines = lines.lines();
    assert_eq!(lines.next(), Some("figure,unit,one.json,two.json"));
    assert!(lines.all(|line| line.matches(',').count() == 3));
    let document: serde_json::Value = serde_json::from_str(&json(&runs)).unwrap();
    assert_eq!(document["runs"][1]["record"], "two.json");
    assert_eq!(document["runs"][0]["figures"]["run.misses"]["value"], one.misses_total as f64);
    let table = markdown(&runs);
    let columns = |line: &str| line.replace("\\|", "").matches('|').count();
    assert!(table.lines().filter(|line| line.starts_with('|')).all(|line| columns(line) == 4), "{table}");
}

const HOSTILE: &[&str] = &[
    "</style></title><script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onload='alert(1)",
    "-->]]>&lt;&amp;&#60;",
    "\u{202e}evil\u{0}\u{1b}[2J\r\n",
    "<svg/onload=alert(1)>.<b>.x",
    "",
    "very-long-name-very-long-name-very-long-name-very-long-name-very-long-name-very-long-name",
];

/// Returns a record with this text in all of its texts.
fn poisoned(text: &str) -> Record {
    let mut record = record();
    let new = || text.to_string();
    record.name = new();
    (record.machine.cpu_model, record.machine.kernel) = (Some(new()), Some(new()));
    record.machine.kernel_parameters = Some(vec![new()]);
    (record.build.version, record.build.target) = (new(), new());
    record.result.reason = new();
    record.notes = vec![new()];
    record.config = serde_json::json!({ text: text });
    for operator in &mut record.operators {
        operator.name = format!("{}{text}", operator.name);
        (operator.kind, operator.worker) = (new(), new());
    }
    for path in &mut record.paths {
        (path.from, path.to) = (new(), new());
        path.slowest = (0..12).map(|_| slow(text, 1_000_000, 300_000)).collect();
    }
    for edge in &mut record.edges {
        (edge.from, edge.to) = (format!("{text}.out"), new());
    }
    for thread in &mut record.threads {
        (thread.name, thread.purpose, thread.policy) = (new(), new(), Some(new()));
    }
    for one in &mut record.obtained {
        (one.what, one.asked, one.reason) = (new(), new(), Some(new()));
    }
    for miss in &mut record.misses {
        miss.name = new();
    }
    record
}

#[test]
fn hostile_names_are_text() {
    for text in HOSTILE {
        let record = poisoned(text);
        let html = page(&[
            LabelledRun { label: text, record: &record },
            LabelledRun { label: text, record: &record },
        ]);
        let document = main_of(&html);
        let known = [
            "main",
            "header",
            "footer",
            "h1",
            "h2",
            "h3",
            "p",
            "div",
            "span",
            "b",
            "i",
            "figure",
            "figcaption",
            "svg",
            "g",
            "line",
            "path",
            "rect",
            "text",
            "title",
            "table",
            "thead",
            "tbody",
            "tr",
            "th",
            "td",
            "small",
            "ol",
            "li",
            "details",
            "summary",
            "pre",
        ];
        for node in document.descendants().filter(roxmltree::Node::is_element) {
            assert!(known.contains(&node.tag_name().name()), "{text}: <{}>", node.tag_name().name());
            assert!(node.attributes().all(|attribute| !attribute.name().starts_with("on")), "{text}");
        }
        let head = &html[..html.find("<style>").unwrap()];
        assert!(!head.contains("<script") && head.matches("</title>").count() == 1, "{head}");
        assert!(!html.contains('\u{202e}') && !html.contains('\u{1b}'));
        assert!(!markdown(&[LabelledRun { label: text, record: &record }]).contains("<script"));
        let _: serde_json::Value =
            serde_json::from_str(&json(&[LabelledRun { label: text, record: &record }])).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(40) })]

    /// Whatever the numbers and names are: a page that can be read, and no place that is no number.
    #[test]
    fn any_record_makes_a_page(
        text in "\\PC{0,12}",
        bounds in proptest::collection::vec(any::<u64>(), 0..6),
        counts in proptest::collection::vec(any::<u64>(), 0..6),
        share in any::<f64>(),
        slot_ns in any::<u64>(),
        begin_ns in any::<i64>(),
        step_ns in any::<u64>(),
    ) {
        let mut record = poisoned(&text);
        for path in &mut record.paths {
            path.latencies_by_time = Some(onbeat_trace::Buckets { up_to_ns: bounds.clone(), count: counts.clone() });
            path.course = Some(onbeat_trace::CourseRecord {
                slot_ns, count: counts.clone(), min_ns: bounds.clone(), mean_ns: bounds.clone(), max_ns: bounds.clone(),
            });
            path.slowest = vec![slow(&text, begin_ns, step_ns)];
            if let Some(regularity) = &mut path.regularity {
                regularity.period_ns = slot_ns;
            }
        }
        record.operators.iter_mut().for_each(|operator| operator.share = share);
        record.result.duration_ns = slot_ns;
        let html = page_of(&record);
        main_of(&html);
        prop_assert!(!html.contains("NaN"), "a number that is none");
    }
}
