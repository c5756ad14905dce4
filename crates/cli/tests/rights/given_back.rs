//! Settings are restored after a run, and also after `kill -9`.

use super::harness::{Place, until, wait};
use super::{alone, may};
use std::fs;
use std::io::Read;
use std::path::Path;

const ENDLESS: &str = r#"
name = "endless"
scheduler = "custom"
lock_memory = true
dma_latency = "3 us"
[[pool]]
name = "radio"
policy = "f:20"
operators = ["silence"]
[[operator]]
name = "silence"
kind = "null.source"
rate = "800 kHz"
pace = "real"
size = 800
[[operator]]
name = "end"
kind = "null.sink"
[[edge]]
from = "silence"
to = "end"
"#;

/// Returns the kernel's current DMA latency limit, in microseconds.
fn latency_us() -> Option<i32> {
    let mut bytes = [0; 4];
    fs::File::open("/dev/cpu_dma_latency").ok()?.read_exact(&mut bytes).ok()?;
    Some(i32::from_ne_bytes(bytes))
}

#[test]
fn nothing_outlives_a_run_however_it_ends() {
    let _alone = alone();
    if !may(&["f:20"]) {
        return;
    }
    let place = Place::new();
    fs::write(place.path("pools.toml"), ENDLESS).expect("a file");
    let before = latency_us();
    if before.is_none() {
        eprintln!("skipped: the part about /dev/cpu_dma_latency, which cannot be read here");
    }
    for signal in ["-INT", "-KILL"] {
        let mut child = place.start(&["run", "pools.toml", "--strict"]);
        let tasks = Path::new("/proc").join(child.id().to_string()).join("task");
        let is_up = || {
            let tasks = fs::read_dir(&tasks).ok()?;
            let stat = |task: fs::DirEntry| fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            let mut stats = tasks.filter_map(Result::ok).map(stat);
            stats
                .any(|stat| stat.contains("(radio)") && stat.split_whitespace().nth_back(12).is_some())
                .then_some(())
        };
        until("the worker is there", is_up).expect("it begins");
        let held = || (before.is_none() || latency_us() <= Some(3)).then_some(());
        until("the latency is held", held).expect("it is");
        let killed = std::process::Command::new("kill").args([signal, &child.id().to_string()]).status();
        assert!(killed.is_ok_and(|status| status.success()));
        let status = wait(&mut child);
        assert_eq!(status, if signal == "-INT" { Some(0) } else { None });
        assert!(!tasks.exists(), "no thread outlives it");
        assert_eq!(latency_us(), before, "after {signal}");
    }
}
