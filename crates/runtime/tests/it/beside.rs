//! Threads that operators start.

use onbeat_os::policy::Policy;
use onbeat_runtime::{Context, Error, Graph, Operator, Options, Output, Ports, Step};
use std::sync::mpsc::{Sender, channel};

/// Says where a thread beside its worker runs.
struct Asks {
    out: Output<u64>,
    found: Sender<(Vec<usize>, Policy)>,
}

impl Operator for Asks {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        let found = self.found.clone();
        let thread = cx.spawn_beside("beside", move || {
            let cores = onbeat_os::thread::cores().unwrap().iter().collect();
            found.send((cores, Policy::of_this_thread().unwrap().0)).unwrap();
        });
        thread.unwrap().join().unwrap();
        Ok(())
    }

    fn step(&mut self, _: &mut Context) -> Result<Step, Error> {
        Ok(Step::Done)
    }
}

#[test]
fn they_do_not_inherit_the_core_and_the_policy_of_the_worker() {
    let all: Vec<usize> = onbeat_os::thread::cores().unwrap().iter().collect();
    let (first, last) = (all[0], all[all.len() - 1]);
    // Without house-keeping cores, those without a worker, if there are any.
    let free: Vec<usize> = all.iter().copied().filter(|core| all.len() == 1 || *core != last).collect();
    let mut cases = vec![(vec![], free)];
    if first != last {
        cases.push((vec![first], vec![first]));
        cases.push((vec![last], vec![last]));
    }
    for (house_keeping, expected) in cases {
        let (found, answers) = channel();
        let mut graph = Graph::new("beside");
        let asks = graph.add("asks", Asks { out: Output::default(), found });
        let end = graph.sink("end", |_: u64| ());
        graph.connect(asks, |s| &s.out, end, |s| &s.input);
        // Without the right to it, the worker keeps its policy.
        let policy = Some(Policy::Fifo(10));
        let options = Options { cores: vec![last], house_keeping, policy, ..Options::default() };
        graph.run(&options).unwrap();
        assert_eq!(answers.recv().unwrap(), (expected, Policy::Other(0)));
    }
}
