//! What users of other tools type.

use super::harness::Place;
use super::typed::{Case, try_all};
use std::io::Write;
use std::process::Stdio;

const CASES: &[Case] = &[
    (
        "a pipeline whose file is missing",
        &["check", "no_file.toml"],
        1,
        &[],
        &["operator `iq`: cannot open not-there.sigmf-meta: No such file", "help: relative paths start"],
    ),
    (
        "a run whose file is missing",
        &["run", "no_file.toml"],
        1,
        &[],
        &["cannot open not-there.sigmf-meta: No such file", "help: relative paths start"],
    ),
    (
        "a gate that nobody can open",
        &["check", "gate.toml"],
        1,
        &[],
        &["gate `go` is closed at the start, and nobody can open it", "--control"],
    ),
    (
        "an output folder that cannot be made",
        &["check", "count.toml", "--set", "output=count.toml/out"],
        1,
        &[],
        &["output folder `count.toml/out`: cannot be written: count.toml: ", "--set output=DIR"],
    ),
    ("an output folder to be made", &["check", "count.toml", "--set", "output=a/b/c"], 0, &["ok"], &[]),
    ("a length in two units", &["run", "count.toml", "-q", "-d", "1h30m"], 0, &[], &[]),
    ("cores of the cpuset", &["plan", "count.toml", "--cores", "cpuset:0"], 0, &[], &[]),
    (
        "too many cores of the cpuset",
        &["plan", "count.toml", "--cores", "cpuset:5000"],
        1,
        &[],
        &["whose places are 0 to"],
    ),
];

#[test]
fn habits_are_answered() {
    try_all(CASES);
}

/// Lines of the manual pages of rtla 7.2, with a short duration and CPUs that any machine has.
const RTLA: &[Case] = &[
    (
        "top is the usual",
        &["noise", "-d", "0.2s", "-c", "0", "-q"],
        0,
        &["Operating System Noise", "  0 #"],
        &[],
    ),
    (
        "rtla osnoise hist -P F:1 -c 0-11 -r 900000 -d 10M -b 10 -E 25",
        &["noise", "hist", "-P", "F:1", "-c", "0", "-r", "900000", "-d", "1S", "-b", "10", "-E", "25", "-q"],
        0,
        &["Index", "count:"],
        &[],
    ),
    (
        "rtla osnoise top -s 30 -T 1 -t",
        &["noise", "top", "-c", "0", "-s", "30", "-T", "1", "-t", "-d", "20s", "-q"],
        2,
        &["stopped: CPU 0: one gap was"],
        &[],
    ),
    (
        "rtla osnoise top -a",
        &["noise", "top", "-c", "0", "-a", "1ns", "-d", "20s", "-q"],
        2,
        &["stopped: CPU 0"],
        &[],
    ),
    (
        "rtla timerlat hist -d 10m -c 0-4 -P d:100us:1ms -p 1000 --no-aa",
        &["timerlat", "hist", "-d", "0.2s", "-c", "0", "-P", "d:100us:1ms", "-p", "1000", "--no-aa", "-q"],
        0,
        &["Usr-000", "count:"],
        &[],
    ),
    (
        "rtla timerlat top -a 40 -c 1-23 -q",
        &["timerlat", "top", "-a", "1ns", "-c", "0", "-q"],
        2,
        &["hit stop, analyzing it"],
        &[],
    ),
    (
        "rtla timerlat top --aa-only 40",
        &["timerlat", "--aa-only", "1ns", "-c", "0", "-q"],
        2,
        &["timerlat hit stop"],
        &[],
    ),
    (
        "rtla timerlat hist --dma-latency 0 -A 500 --deepest-idle-state, and the last of two counts",
        &[
            "timerlat", "hist", "-p", "5000", "-p", "1000", "-A", "500", "-A", "100", "-d", "0.2s", "-c",
            "0", "-q",
        ],
        0,
        &["count:"],
        &[],
    ),
    (
        "7.2 takes an option back",
        &["timerlat", "top", "-T", "1ns", "--no-thread", "-n", "--no-nano", "-d", "0.2s", "-c", "0", "-q"],
        0,
        &["Timer Latency (us)"],
        &[],
    ),
    (
        "7.2 takes an option without back",
        &["timerlat", "hist", "--no-header", "--header", "-d", "0.2s", "-c", "0", "-q"],
        0,
        &["# Duration"],
        &[],
    ),
    (
        "rtla timerlat top --bpf-action",
        &["timerlat", "top", "--bpf-action", "x.o"],
        1,
        &[],
        &["--bpf-action is not available", "--on-threshold shell"],
    ),
    (
        "rtla timerlat top --on-threshold trace,file=... --on-end",
        &[
            "timerlat",
            "top",
            "-c",
            "0",
            "-T",
            "1ns",
            "--on-threshold",
            "trace,file=x.txt",
            "--on-threshold",
            "shell,command=echo hit",
            "--on-end",
            "shell,command=echo end",
            "-q",
        ],
        2,
        &["hit stop"],
        &["hit\nend\n"],
    ),
];

#[test]
fn users_of_rtla_are_answered() {
    try_all(RTLA);
}

/// Lines of the manual page of cyclictest, of its users' scripts and reports.
const CYCLICTEST: &[Case] = &[
    (
        "seapath: cyclictest -S -m -p95 -i250 -h400 -q",
        &["cyclictest", "-S", "-m", "-p95", "-i250", "-h400", "-q", "-l", "200"],
        0,
        &["# Histogram\n000000 0", "\n000399 ", "# Max Latencies: 0", "# Histogram Overflows: "],
        &[],
    ),
    (
        "cyclictest -t1 -p 80 -i 10000 -n -l 10000",
        &["cyclictest", "-t1", "-p", "80", "-i", "10000", "-n", "-l", "20", "-q"],
        0,
        &["T: 0 (", " P:80 I:10000 C:     20 Min:"],
        &[],
    ),
    (
        "cyclictest --mlockall --smp --priority=80 --interval=200 --distance=0",
        &[
            "cyclictest",
            "--mlockall",
            "--smp",
            "--priority=80",
            "--interval=200",
            "--distance=0",
            "-l99",
            "-q",
        ],
        0,
        &["T: 0 (", "C:     99 "],
        &[],
    ),
    (
        "cyclictest -l100000000 -m -Sp90 -i200 -h400 -q >output",
        &["cyclictest", "-l100", "-m", "-Sp90", "-i200", "-h400", "-q"],
        0,
        &["# Total: 000000"],
        &[],
    ),
    (
        "cyclictest -a 0 -t 1 --policy=rr -p 3 -D 1 -N",
        &["cyclictest", "-a", "0", "-t", "1", "--policy=rr", "-p", "3", "-D", "0.2", "-N", "-q"],
        0,
        &["P: 3 I:1000", "Min:"],
        &[],
    ),
    (
        "cyclictest -b 100 --tracemark",
        &["cyclictest", "-a0", "-t1", "-p", "90", "-b", "1", "--tracemark", "-q"],
        2,
        &["T: 0 (", "hit stop, analyzing it", "Thread latency"],
        &[],
    ),
    (
        "cyclictest --json=FILE --histfile=FILE",
        &["cyclictest", "-a0", "-H5", "-l50", "-q", "--json=x.json", "--histfile=h.txt", "--laptop"],
        0,
        &[],
        &[],
    ),
    ("cyclictest -c 1", &["cyclictest", "-c", "1"], 1, &[], &["-c 1 is not available", "CLOCK_MONOTONIC"]),
    ("cyclictest -v", &["cyclictest", "-qv"], 1, &[], &["-v, --verbose is not available", "-h US"]),
    (
        "cyclictest -t 5000",
        &["cyclictest", "-t", "5000"],
        1,
        &[],
        &["-t 5000: onbeat has one thread on each CPU, and the CPUs are 0"],
    ),
    ("cyclictest --smi", &["cyclictest", "--smi"], 1, &[], &["`onbeat noise hw` measures what they take"]),
    ("cyclictest -d 500", &["cyclictest", "-t", "-d", "500"], 1, &[], &["-d 500 is not available", "-d 0"]),
    (
        "cyclictest --policy=fifo without a priority",
        &["cyclictest", "--policy=fifo"],
        1,
        &[],
        &["--policy=fifo needs a priority", "-p 1 to -p 99"],
    ),
];

#[test]
fn users_of_cyclictest_are_answered() {
    try_all(CYCLICTEST);
}

#[test]
fn results_of_cyclictest_go_to_files() {
    let place = Place::new();
    let files = ["--json", "x.json", "--histfile", "h.txt"];
    let asked = ["cyclictest", "-a0", "-t1", "-H", "5000", "-l", "50", "-q"];
    let answer = place.onbeat(&[&asked[..], &files].concat());
    assert_eq!((answer.status, answer.stdout.as_str()), (Some(0), ""), "{answer:?}");
    let text = std::fs::read_to_string(place.path("x.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let thread = &json["thread"]["0"];
    assert_eq!((&json["num_threads"], &thread["cycles"], &thread["cpu"]), (&1.into(), &50.into(), &0.into()));
    let counts = thread["histogram"].as_object().unwrap().values();
    let inside = counts.map(|count| count.as_u64().unwrap()).sum::<u64>();
    let histogram = std::fs::read_to_string(place.path("h.txt")).unwrap();
    let rows = histogram.lines().filter(|line| !line.starts_with('#'));
    let of_rows = |place: usize| -> u64 {
        let number = |row: &str| row.split_whitespace().nth(place).unwrap().parse::<u64>().unwrap();
        rows.clone().map(number).sum()
    };
    // One thread: its column, and the same in that of all.
    assert_eq!((of_rows(1), of_rows(2)), (inside, inside));
    assert_eq!(rows.clone().count(), 5000);
    assert!(histogram.contains(&format!("# Total: {inside:09} {inside:09}\n")), "{histogram}");
}

#[test]
fn a_pipeline_comes_from_stdin() {
    let place = Place::new();
    let text = std::fs::read_to_string(place.path("count.toml")).unwrap();
    let mut run = place.command(&["run", "-", "--format", "csv"]);
    let mut child = run.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let answer = child.wait_with_output().unwrap();
    assert!(
        answer.status.success() && String::from_utf8_lossy(&answer.stdout).contains("numbers"),
        "{answer:?}"
    );
}

/// A pipeline of a receiver of aircraft, without what its recording does not say.
const NAMED: &str = "[[operator]]\nname = \"iq\"\nkind = \"iq.source\"\npath = \"g001_433.92M_1024k.cu8\"\npace = \"fast\"\n\
    [[operator]]\nname = \"frames\"\nkind = \"mode_s.demod.complex\"\n[[operator]]\nname = \"end\"\nkind = \"mode_s.null\"\n\
    [[edge]]\nfrom = \"iq\"\nto = \"frames\"\n[[edge]]\nfrom = \"frames\"\nto = \"end\"\n";

#[test]
fn a_recording_s_name_and_content_are_looked_at() {
    let place = Place::new();
    std::fs::write(place.path("named.toml"), NAMED).unwrap();
    std::fs::write(place.path("g001_433.92M_1024k.cu8"), vec![127; 400_000]).unwrap();
    std::fs::write(place.path("page.cu8"), "<!DOCTYPE html>\n<html><body>Not found</body></html>\n").unwrap();
    let answer = |more: &[&str]| place.onbeat(&[&["check", "named.toml"], more].concat());
    let lacks = answer(&[]);
    let proposal = "its name says: format = \"cu8\", sample_rate = 1024000";
    assert!(lacks.status == Some(1) && lacks.stderr.contains(proposal), "{lacks:?}");
    // The rate of the file is followed to the operator that cannot work at it.
    let settings = ["--set", "iq.format=cu8", "--set", "iq.sample_rate=2.4 MHz"];
    let wrong = answer(&settings);
    assert!(
        wrong.stderr.contains("iq: `sample_rate` is 2400000 Hz, and the name of the file says 1024000 Hz")
    );
    let text =
        "operator `frames`: the sample rate of its input is 2400000 Hz, but it works only at 2000000 Hz";
    assert!(wrong.status == Some(1) && wrong.stderr.contains(text), "{wrong:?}");
    let settings = ["--set", "iq.format=cu8", "--set", "iq.sample_rate=2 MHz"];
    let page = answer(&[&settings[..], &["--set", "iq.path=page.cu8"]].concat());
    let text = "warning: iq: page.cu8 begins with the text `<!DOCTYPE html>`";
    assert!(page.status == Some(0) && page.stderr.contains(text), "{page:?}");
    let strict = answer(&[&settings[..], &["--strict"]].concat());
    assert!(strict.status == Some(1) && strict.stderr.starts_with("strict: iq: `sample_rate`"), "{strict:?}");
    // A run without a frame says what may be wrong.
    let run = place.onbeat(&[&["run", "named.toml", "--no-record"][..], &settings].concat());
    assert_eq!(run.status, Some(0), "{run:?}");
    assert!(
        run.stdout.contains("note: frames: no frame in 0.10 s of samples: their mean magnitude is"),
        "{run:?}"
    );
    assert!(!place.path("out").exists(), "no record, no sink: no folder");
}

/// Two microphones of two rates, the second one over the network.
const MIXED: &str = r#"
operator = [
    { name = "left", kind = "tone.source", frequency = "1 kHz", sample_rate = "48 kHz", duration = "1 s" },
    { name = "right", kind = "udp.source", bind = "127.0.0.1:9", sample_rate = "44.1 kHz" },
    { name = "both", kind = "add" },
    { name = "end", kind = "null.sink" },
]
edge = [
    { from = "left", to = "both.a" },
    { from = "right", to = "both.b" },
    { from = "both", to = "end" },
]
"#;

#[test]
fn inputs_of_two_rates_are_refused_before_the_run() {
    let place = Place::new();
    std::fs::write(place.path("mixed.toml"), MIXED).unwrap();
    let wrong = place.onbeat(&["run", "mixed.toml"]);
    assert!(wrong.stderr.contains("mixed.toml:5:14"), "{wrong:?}");
    let text = "operator `both`: the samples of `left` have a rate of 48000 Hz, and those of `right` of 44100 Hz: all of \
                its inputs must have the same rate; resample one of them";
    assert!(wrong.status == Some(1) && wrong.stderr.contains(text), "{wrong:?}");
    let right = place.onbeat(&["check", "mixed.toml", "--set", "right.sample_rate=48 kHz"]);
    assert_eq!(right.status, Some(0), "{right:?}");
}

#[test]
fn a_wrong_type_on_an_edge_names_what_converts() {
    let place = Place::new();
    let text = MIXED.replace("\"udp.source\"", "\"udp.source.complex\"");
    std::fs::write(place.path("mixed.toml"), text).unwrap();
    let wrong = place.onbeat(&["check", "mixed.toml"]);
    assert!(wrong.status == Some(1) && wrong.stderr.contains("help: these do: "), "{wrong:?}");
    assert!(wrong.stderr.contains("`real`") && wrong.stderr.contains("`magnitude`"), "{wrong:?}");
}

#[test]
fn a_wrong_type_that_nothing_converts_names_the_sinks_for_it() {
    let place = Place::new();
    let text = "name = \"t\"\n[[operator]]\nname = \"a\"\nkind = \"timer\"\nperiod = \"1 ms\"\n\
                [[operator]]\nname = \"b\"\nkind = \"null.sink\"\n[[edge]]\nfrom = \"a\"\nto = \"b\"\n";
    std::fs::write(place.path("t.toml"), text).unwrap();
    let wrong = place.onbeat(&["check", "t.toml"]);
    assert!(wrong.stderr.contains("; sinks that take u64: `count.sink`"), "{wrong:?}");
}

/// The setpoints end in the controller, whose commands answer the ticks.
#[test]
fn a_path_whose_messages_end_on_the_way_is_not_listed() {
    let place = Place::new();
    let text = "name = \"t\"\noutput = \".\"\n\
                [[operator]]\nname = \"set\"\nkind = \"csv.source.value\"\npath = \"set.csv\"\ntime = \"t\"\ncolumns = [\"x\"]\n\
                [[operator]]\nname = \"tick\"\nkind = \"timer\"\nperiod = \"1 ms\"\ncount = 9\n\
                [[operator]]\nname = \"pid\"\nkind = \"pid\"\nsetpoint = 0\nkp = 1\n\
                [[operator]]\nname = \"end\"\nkind = \"value.sink\"\npath = \"end.csv\"\n\
                [[edge]]\nfrom = \"set\"\nto = \"pid.setpoint\"\n[[edge]]\nfrom = \"tick\"\nto = \"pid.tick\"\n\
                [[edge]]\nfrom = \"pid\"\nto = \"pid.measured\"\ninitial = 0.0\n[[edge]]\nfrom = \"pid\"\nto = \"end\"\n";
    std::fs::write(place.path("t.toml"), text).unwrap();
    std::fs::write(place.path("set.csv"), "t,x\n0,1\n").unwrap();
    let run = place.onbeat(&["run", "t.toml"]);
    assert!(run.status == Some(0) && run.stdout.contains("\ntick → end "), "{run:?}");
    assert!(!run.stdout.contains("\nset → end "), "{run:?}");
}
