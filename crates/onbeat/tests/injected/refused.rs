//! Rights that are not there, or not any more.

use crate::alone;
use crate::pipeline::{BEATS, Injector, Log, PERIOD_NS, busy, every, graph, options, run, run_with};
use crate::score::{Expected, score};
use onbeat::trace::CauseClass;
use onbeat_noise::ProcEvidence;
use onbeat_os::clock::monotonic_ns;
use onbeat_os::tracefs::Tracefs;
use std::fs;
use std::time::Duration;

/// Without tracepoints a cause has a class and no name, and as many microseconds.
#[test]
fn counts_of_proc_tell_the_class() {
    alone(|| {
        let log = Log::default();
        let noted = log.clone();
        // A thread that has ended has no counts any more: of the last 20 ms of a run nothing is known.
        let until_ns = monotonic_ns() + (BEATS - 30) * PERIOD_NS;
        let injector = Injector::start("injector", 1, "f:50", move || {
            every(33_000_000);
            if monotonic_ns() < until_ns {
                noted.note(|| busy(3_000_000));
            }
        });
        let refused = ProcEvidence::new("it is a test", "run as root");
        let (record, start_ns) = run_with(graph(1_000_000, |_| ()), &options("f:20"), |_| Box::new(refused));
        drop(injector);
        let explained = record.explained.as_ref().expect("it was looked for");
        assert_eq!((explained.source.as_str(), explained.fix.as_deref()), ("proc", Some("run as root")));
        let expected = Expected { class: CauseClass::RunQueueWait, name: "" };
        score("counts of proc", &record, start_ns, &log.all(), expected).is_good();
    });
}

/// Somebody switches our trace instance off: the run goes on, and its record says from what on nothing more
/// is known.
#[test]
fn tracing_that_is_switched_off_meanwhile_is_said() {
    alone(|| {
        let Ok(tracefs) = Tracefs::find() else {
            eprintln!("skipped: no tracefs");
            return;
        };
        let instances = tracefs.root().join("instances");
        let ours = format!("{}", std::process::id());
        let meddler = onbeat_os::thread::spawn("meddler", move || {
            std::thread::sleep(Duration::from_millis(700));
            let folders = fs::read_dir(&instances).into_iter().flatten().flatten();
            let ours = folders.filter(|folder| folder.file_name().to_string_lossy().contains(&ours));
            ours.filter(|folder| fs::write(folder.path().join("tracing_on"), "0").is_ok()).count()
        });
        let late = |number| {
            if number % 8 == 7 {
                busy(2_000_000);
            }
        };
        let (record, _) = run(graph(1_000_000, late), &options("f:20"));
        let count = meddler.expect("a thread").join().expect("no panic");
        let explained = record.explained.as_ref().expect("it was looked for");
        if explained.source != "ftrace" || count == 0 {
            eprintln!("skipped: no trace instance of ours: {}", explained.source);
            return;
        }
        assert!(record.misses.iter().all(|miss| miss.verdict.is_some()), "each has a sentence anyway");
        let why = explained.why.as_deref().unwrap_or("");
        assert!(why.contains("stopped writing tracepoints") && why.contains("switched off"), "{explained:?}");
    });
}
