//! Messages that are late because of the way.

use crate::relay::Relay;
use crate::{ends, run_both};
use onbeat_link::{LinkPeer, LinkSink, LinkSource};
use onbeat_runtime::{Context, Error, Graph, Operator, Output, Ports, Step};
use onbeat_trace::CauseClass;
use std::time::Duration;

/// Sends a number every 10 ms.
struct Ticks {
    out: Output<u64>,
    sent: u64,
}

const PERIOD_NS: u64 = 10_000_000;
const TICKS: u64 = 150;

impl Operator for Ticks {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.sent == TICKS {
            return Ok(Step::Done);
        }
        let due_ns = cx.start_ns() + (self.sent + 1) * PERIOD_NS;
        if cx.now_ns() < due_ns {
            return Ok(cx.until(due_ns));
        }
        cx.set_time(self.sent * PERIOD_NS, Some(due_ns));
        self.out.push(cx, self.sent)?;
        self.sent += 1;
        Ok(Step::Again)
    }
}

#[test]
fn a_slow_way_is_called_the_network_and_measured() {
    let (mut sink, source) = ends("slow");
    let relay = Relay::to(source.peer.address());
    sink.peer = LinkPeer::Connect(relay.address.clone());
    let mut one = Graph::new("producer");
    let ticks = one.add("ticks", Ticks { out: Output::default(), sent: 0 });
    let to = one.add("to", LinkSink::<u64>::new(sink));
    one.connect(ticks, |s| &s.out, to, |s| &s.input);
    let mut other = Graph::new("consumer");
    let from = other.add("from", LinkSource::<u64>::new(source));
    let end = other.sink("end", |_: u64| ());
    other.connect(from, |s| &s.out, end, |s| &s.input);
    other.path("from", "end", Some(2_000_000));
    // The clocks are known before the way becomes slow.
    let slow = relay.clone();
    onbeat_os::thread::spawn("slow", move || {
        for _ in 0..5 {
            std::thread::sleep(Duration::from_millis(150));
            slow.delay(Duration::from_millis(6));
            std::thread::sleep(Duration::from_millis(100));
            slow.delay(Duration::ZERO);
        }
    })
    .unwrap();
    let (one, other) = run_both(one, other);
    one.unwrap();
    let record = other.unwrap();
    let uncertainty_ns = record.links[0].uncertainty_ns.unwrap();
    let verdicts: Vec<_> = record.misses.iter().filter_map(|miss| miss.verdict.as_ref()).collect();
    assert!(verdicts.len() >= 20, "{}", verdicts.len());
    let mut ways: Vec<u64> = Vec::new();
    for verdict in &verdicts {
        let main = verdict.parts.iter().max_by_key(|part| part.late_ns).unwrap();
        if main.class == CauseClass::Network {
            assert_eq!(main.name, "slow");
            ways.push(main.took_ns);
        }
    }
    assert!(ways.len() * 10 >= verdicts.len() * 9, "{} of {verdicts:#?}", ways.len());
    ways.sort_unstable();
    let (found_ns, mut delays) = (ways[ways.len() / 2], relay.delays());
    delays.sort_unstable();
    let truth_ns = delays[delays.len() / 2].as_nanos() as u64;
    assert!(found_ns.abs_diff(truth_ns) <= (truth_ns / 5).max(uncertainty_ns), "{found_ns} {truth_ns}");
}
