//! A process that is stopped: this test's own program, started once more.

use crate::alone;
use crate::pipeline::{BEATS, PERIOD_NS, graph, options, run};
use crate::score::{Expected, score};
use onbeat::Record;
use onbeat::trace::CauseClass;
use onbeat_os::clock::{monotonic_ns, sleep_until};
use rustix::process::{Pid, Signal, kill_process};
use std::process::{Command, Stdio};

/// Where the child writes its record.
const CHILD: &str = "ONBEAT_INJECTED_CHILD";

/// In the child: the pipeline itself. Elsewhere nothing.
#[test]
fn child() {
    let Ok(path) = std::env::var(CHILD) else { return };
    let (mut record, start_ns) = run(graph(1_000_000, |_| ()), &options("f:20"));
    record.started_unix_ns = start_ns;
    record.write(path).expect("a file");
}

#[test]
fn a_process_that_is_stopped() {
    alone(|| {
        let path = std::env::temp_dir().join(format!("onbeat-stopped-{}.json", std::process::id()));
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "stopped::child", "--nocapture"])
            .env(CHILD, &path)
            .stdout(Stdio::null())
            .spawn()
            .expect("a child");
        let pid = Pid::from_child(&child);
        let mut truth = Vec::new();
        let end_ns = monotonic_ns() + (BEATS - 50) * PERIOD_NS;
        while monotonic_ns() < end_ns {
            sleep_until(monotonic_ns() + 77_000_000);
            let begin_ns = monotonic_ns();
            kill_process(pid, Signal::STOP).expect("a child that is there");
            sleep_until(begin_ns + 20_000_000);
            kill_process(pid, Signal::CONT).expect("a child that is there");
            truth.push(begin_ns..monotonic_ns());
        }
        assert!(child.wait().expect("its end").success());
        let record =
            Record::from_json(&std::fs::read_to_string(&path).expect("its record")).expect("a record");
        let _ = std::fs::remove_file(path);
        let expected = Expected { class: CauseClass::Stopped, name: "" };
        score("a stop", &record, record.started_unix_ns, &truth, expected).is_good();
    });
}
