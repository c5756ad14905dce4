//! Limits that the user states: late messages, and the number of messages in flight.

use crate::watchdog::watched;
use crate::ways::ways;
use onbeat_runtime::{
    ClockKind, Context, Error, Graph, InFlightLimit, Input, OnMiss, Operator, Options, Output, Overrun, Pace,
    Pacer, PathLimits, Ports, Scheduler, Step, Ticker, WhenFull,
};
use onbeat_trace::Record;
use onbeat_trace::record::Outcome;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const MESSAGES: u32 = 500;

/// `numbers → double → end`.
fn chain(limits: PathLimits) -> Graph {
    let mut graph = Graph::new("limited");
    let mut left = MESSAGES + 1;
    let numbers = graph.source("numbers", move || {
        left -= 1;
        (left > 0).then_some(left)
    });
    let double = graph.map("double", |n: u32| 2 * n);
    let end = graph.sink("end", |_: u32| ());
    graph.connect(numbers, |s| &s.out, double, |d| &d.input).capacity(64);
    graph.connect(double, |d| &d.out, end, |e| &e.input).capacity(64);
    graph.limit("numbers", "end", limits);
    graph
}

fn in_flight(limit: InFlightLimit) -> PathLimits {
    PathLimits { max_in_flight: Some(limit), ..PathLimits::default() }
}

#[test]
fn no_more_messages_are_under_way_than_a_path_may_have() {
    watched(120, || {
        for (way, options) in ways() {
            for most in [1, 3] {
                let record = chain(in_flight(InFlightLimit::Messages(most))).run(&options).unwrap();
                let path = &record.paths[0];
                assert_eq!(record.edges[1].received, u64::from(MESSAGES), "{way}");
                assert!((1..=most).contains(&path.in_flight_most.unwrap()), "{way}: {path:?}");
                assert_eq!(path.latency.count, u64::from(MESSAGES), "{way}: each of them is followed");
                assert_eq!(record.result.exit_status, 0, "{way}");
            }
        }
    });
}

/// Ticks once per millisecond, whatever happens.
struct Beat {
    out: Output<u64>,
    ticker: Ticker,
    ticks: u64,
}

impl Beat {
    fn new(ticks: u64, overrun: Overrun) -> Self {
        Beat { out: Output::default(), ticker: Ticker::new(1_000_000, overrun).unwrap(), ticks }
    }
}

impl Operator for Beat {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.ticker.number() >= self.ticks {
            return Ok(Step::Done);
        }
        if let Some(wait) = self.ticker.wait(cx)? {
            return Ok(wait);
        }
        let number = self.ticker.number();
        self.out.push(cx, number)?;
        self.ticker.next(cx);
        Ok(Step::Again)
    }
}

#[test]
fn no_more_time_is_under_way_than_a_path_may_have() {
    watched(60, || {
        let mut graph = Graph::new("limited");
        let beat = graph.add("beat", Beat::new(60, Overrun::CatchUp));
        let end = graph.sink("end", |_: u64| std::thread::sleep(Duration::from_millis(3)));
        graph.connect(beat, |b| &b.out, end, |e| &e.input).capacity(60);
        graph.limit("beat", "end", in_flight(InFlightLimit::Time(2_000_000)));
        let options = Options { scheduler: Scheduler::Pinned, workers: Some(2), ..Options::default() };
        let record = graph.run(&options).unwrap();
        assert_eq!(record.edges[0].received, 60);
        // Ticks are a millisecond apart: messages in flight span two of them, and the one that is sent then.
        assert!(record.paths[0].in_flight_most.unwrap() <= 4, "{:?}", record.paths[0]);
    });
}

#[test]
fn a_miss_ends_the_run_where_that_is_wanted() {
    watched(60, || {
        for (way, options) in ways() {
            if options.clock == ClockKind::Manual {
                continue;
            }
            for is_path in [false, true] {
                let mut graph = Graph::new("late");
                let ones = graph.source("ones", || Some(1u8));
                let end = graph.sink("end", |_: u8| std::thread::sleep(Duration::from_micros(100)));
                graph.connect(ones, |s| &s.out, end, |e| &e.input);
                if is_path {
                    let limits = PathLimits {
                        max_latency_ns: Some(1),
                        on_miss: OnMiss::Stop,
                        ..PathLimits::default()
                    };
                    graph.limit("ones", "end", limits);
                } else {
                    graph.deadline(end, 1);
                    graph.on_miss(end, OnMiss::Stop);
                }
                let record = graph.run(&options).unwrap();
                let result = &record.result;
                assert_eq!((result.outcome, result.exit_status), (Outcome::Stopped, 2), "{way}");
                assert!(result.reason.contains("which ends the run"), "{way}: {}", result.reason);
                assert!(record.misses_total >= 1, "{way}");
            }
        }
    });
}

/// Notes by how much it was late.
struct Careful {
    input: Input<u64>,
    told: Arc<Mutex<Vec<u64>>>,
}

impl Operator for Careful {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        self.input.pop(cx);
        Ok(Step::Wait)
    }
    fn degrade(&mut self, late_ns: u64) {
        self.told.lock().unwrap().push(late_ns);
    }
}

fn careful(on_miss: OnMiss) -> (Record, Vec<u64>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let mut graph = Graph::new("careful");
    let beat = graph.add("beat", Beat::new(20, Overrun::Skip));
    let end = graph.add("end", Careful { input: Input::default(), told: Arc::clone(&told) });
    graph.connect(beat, |b| &b.out, end, |e| &e.input);
    graph.deadline(end, 1);
    graph.on_miss(end, on_miss);
    let record = graph.run(&Options::default()).unwrap();
    let told = told.lock().unwrap().clone();
    (record, told)
}

#[test]
fn an_operator_is_told_to_do_less() {
    watched(60, || {
        let (record, told) = careful(OnMiss::Degrade);
        let late: Vec<u64> = record.misses.iter().map(|miss| miss.late_ns).collect();
        assert!(!late.is_empty());
        assert_eq!(told, late);
        assert!(careful(OnMiss::Record).1.is_empty());
    });
}

#[test]
fn a_source_leaves_out_a_tick_for_each_miss() {
    watched(60, || {
        let (record, _) = careful(OnMiss::Skip);
        let sent = record.edges[0].received;
        // Every message is late, and the one behind it is left out: half of them, or fewer where the machine
        // was busy.
        assert!(sent <= 10 && sent == record.misses_total, "{sent} sent, {} late", record.misses_total);
        let note = record.notes.iter().find(|note| note.contains("left out")).expect("it is said");
        assert!(note.starts_with("beat: left out ") && note.contains("on_miss"), "{note}");
    });
}

/// Without a state: it may be there several times.
#[derive(Default)]
struct Double {
    input: Input<u32>,
    out: Output<u32>,
}

impl Operator for Double {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(x) = self.input.pop(cx) {
            self.out.push(cx, 2 * x)?;
        }
        Ok(Step::Wait)
    }
    fn replica(&self) -> Option<Box<dyn Operator>> {
        Some(Box::<Double>::default())
    }
}

#[test]
fn what_cannot_be_kept_is_refused() {
    let limits = in_flight(InFlightLimit::Messages(2));
    let refusal = |graph: &Graph, options: &Options| graph.plan(options).unwrap_err().to_string();
    let plain = Options::default();

    let replicated = Options { scheduler: Scheduler::Replicated, workers: Some(2), ..plain.clone() };
    let mut graph = Graph::new("copies");
    let mut left = 10u32;
    let numbers = graph.source("numbers", move || {
        left -= 1;
        (left > 0).then_some(left)
    });
    let double = graph.add("double", Double::default());
    let end = graph.sink("end", |_: u32| ());
    graph.connect(numbers, |s| &s.out, double, |d| &d.input);
    graph.connect(double, |d| &d.out, end, |e| &e.input);
    graph.limit("numbers", "end", limits);
    let text = refusal(&graph, &replicated);
    assert!(
        text.contains("`max_in_flight` of the path from `numbers` to `end`") && text.contains("replicated"),
        "{text}"
    );

    let mut graph = Graph::new("drops");
    let ones = graph.source("ones", || Some(1u8));
    let end = graph.sink("end", |_: u8| ());
    graph.connect(ones, |s| &s.out, end, |e| &e.input).when_full(WhenFull::DropOldest);
    graph.limit("ones", "end", limits);
    let text = refusal(&graph, &plain);
    assert!(text.contains("drops messages") && text.contains("ones.out → end.in"), "{text}");

    let mut graph = chain(PathLimits { on_miss: OnMiss::Degrade, ..PathLimits::default() });
    assert!(refusal(&graph, &plain).contains("an operator can"), "{}", refusal(&graph, &plain));
    graph = chain(limits);
    assert!(graph.plan(&plain).unwrap().to_string().contains("numbers → end, at most 2 messages in flight"));
}

/// Sends numbers that are due at a fixed rate, all of them, however late.
struct Paced {
    out: Output<u64>,
    sent: u64,
}

impl Operator for Paced {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let pacer = Pacer::new(1000.0, Pace::Real);
        if let Some(wait) = pacer.wait(cx, self.sent, self.sent) {
            return Ok(wait);
        }
        self.out.push(cx, self.sent)?;
        self.sent += 1;
        Ok(if self.sent == 100 { Step::Done } else { Step::Again })
    }
}

#[test]
fn a_message_of_a_paced_source_counts_from_when_its_path_has_room() {
    watched(60, || {
        let mut graph = Graph::new("paced");
        let paced = graph.add("paced", Paced { out: Output::default(), sent: 0 });
        let end = graph.sink("end", |_: u64| std::thread::sleep(Duration::from_millis(3)));
        graph.connect(paced, |b| &b.out, end, |e| &e.input).capacity(64);
        graph.limit("paced", "end", in_flight(InFlightLimit::Messages(3)));
        let options = Options { scheduler: Scheduler::Pinned, workers: Some(2), ..Options::default() };
        let record = graph.run(&options).unwrap();
        let path = &record.paths[0];
        assert_eq!((record.edges[0].received, path.in_flight_most), (100, Some(3)));
        assert!(path.in_flight_mean.unwrap() <= 3.0, "{path:?}");
        // The sink takes 3 ms for each, and one comes per millisecond: the last is let go at least 190 ms
        // after it was due, and is not late for that.
        assert!(path.held_back_ns >= 180_000_000, "{}", path.held_back_ns);
        assert!(path.latency.max_ns + path.held_back_ns >= 200_000_000, "{:?}", path.latency);
        let note = "paced → end: `max_in_flight` held messages back, up to ";
        assert!(record.notes.iter().any(|text| text.starts_with(note)), "{:?}", record.notes);
    });
}
