//! Command lines and their answers.

use crate::harness::Place;

/// One line per behaviour: title; arguments; exit status; parts of stdout; parts of stderr.
pub type Case =
    (&'static str, &'static [&'static str], i32, &'static [&'static str], &'static [&'static str]);

const CASES: &[Case] = &[
    ("help", &["--help"], 0, &["EXAMPLES", "operators", "EXIT STATUS"], &[]),
    ("help of run", &["run", "--help"], 0, &["--max-misses", "NAME.record.json"], &[]),
    ("version", &["-V"], 0, &["onbeat 0."], &[]),
    ("nothing", &[], 1, &[], &["Usage: onbeat"]),
    ("a flag that is none", &["run", "--speed"], 1, &[], &["--speed"]),
    ("a command that is none", &["fly"], 1, &[], &["fly"]),
    (
        "a run",
        &["run", "count.toml"],
        0,
        &[
            "count: ended after",
            "numbers → end",
            "numbers.out → end.in",
            "files in out, record in out/count.record.json",
        ],
        &[],
    ),
    ("a run without talk", &["run", "count.toml", "-q"], 0, &[], &[]),
    ("a setting", &["run", "count.toml", "--set", "numbers.count=7", "--format", "csv"], 0, &[",7,"], &[]),
    (
        "a setting of the output",
        &["run", "count.toml", "--set", "output=a/b"],
        0,
        &["record in a/b/count"],
        &[],
    ),
    (
        "a duration",
        &["run", "endless.toml", "-d", "50ms"],
        0,
        &["endless: stopped", "the duration was over"],
        &[],
    ),
    (
        "virtual time",
        &["run", "endless.toml", "--clock", "manual", "-d", "10 min", "--set", "silence.rate=8 kHz"],
        0,
        &["10 min 00 s", "x real time"],
        &[],
    ),
    ("no file", &["run", "no.toml"], 1, &[], &["no.toml: cannot be read: No such file"]),
    (
        "a kind that is none",
        &["run", "count.toml", "--set", "numbers.kind=countre"],
        1,
        &[],
        &["--set numbers.kind=countre: there is no operator kind `countre`: did you mean `counter`?"],
    ),
    (
        "an operator that is none",
        &["run", "count.toml", "--set", "number.count=7"],
        1,
        &[],
        &["did you mean `numbers`?"],
    ),
    (
        "an operator without a key",
        &["run", "count.toml", "--set", "numbers=7"],
        1,
        &[],
        &["`numbers` is an operator", "numbers.KEY=VALUE"],
    ),
    (
        "a value of the wrong type",
        &["run", "count.toml", "--set", "numbers.count=many"],
        1,
        &[],
        &["`count` of operator `numbers`: expected a whole number"],
    ),
    (
        "a pace that is none",
        &["run", "count.toml", "--pace", "fats"],
        1,
        &[],
        &["--pace fats: ", "did you mean `fast`?"],
    ),
    (
        "nothing to replicate",
        &["plan", "count.toml", "--scheduler", "replicated", "--workers", "2", "--strict"],
        1,
        &[],
        &["replicated operators: on 2 workers", "no operator says that it has no state"],
    ),
    (
        "a duration that is none",
        &["run", "count.toml", "-d", "long"],
        1,
        &[],
        &["--duration long: ", "is not a time"],
    ),
    (
        "an operator that cannot start",
        &["run", "no_file.toml"],
        1,
        &["failed"],
        &["operator `iq`: cannot start: "],
    ),
    (
        "an output that is a file",
        &["run", "count.toml", "--set", "output=late.toml"],
        1,
        &[],
        &["output folder `late.toml`"],
    ),
    (
        "a record in no folder",
        &["run", "count.toml", "--record", "no/x.json"],
        1,
        &[],
        &["record `no/x.json`: cannot be"],
    ),
    (
        "a record in the place of another file",
        &["run", "count.toml", "--record", "late.toml"],
        1,
        &[],
        &["record `late.toml`: cannot be written: the file exists, is not a record"],
    ),
    ("misses without a limit", &["run", "late.toml"], 0, &["5 messages later than the limit"], &[]),
    ("misses within the limit", &["run", "late.toml", "--max-misses", "5"], 0, &["always-late: ended"], &[]),
    (
        "misses above the limit",
        &["run", "late.toml", "--max-misses", "4"],
        2,
        &["5 misses exceed --max-misses 4"],
        &[],
    ),
    (
        "a plan",
        &["plan", "count.toml"],
        0,
        &[
            "count: scheduler greedy, 1 worker, 2 operators, 1 edge",
            "onbeat-w0  numbers, end",
            "ring",
            "wait",
        ],
        &[],
    ),
    ("a plan without its files", &["plan", "no_file.toml"], 0, &["iq.out → end.in"], &[]),
    (
        "a good pipeline",
        &["check", "count.toml", "--set", "numbers.count=7"],
        0,
        &["count.toml: ok: 2 operators, 1 edge\n"],
        &[],
    ),
    ("a good pipeline without a word", &["check", "count.toml", "-q"], 0, &[], &[]),
    (
        "a pipeline whose file is where you are",
        &["check", "sub/file.toml", "--set", "in.path=count.toml"],
        0,
        &["sub/file.toml: ok"],
        &[],
    ),
    ("a pipeline with a mistake", &["check", "count.toml", "--set", "numbers.cnt=7"], 1, &[], &["`cnt`"]),
    ("completions", &["completions", "bash"], 0, &["_onbeat()", "--max-misses", "--control", "--watch"], &[]),
    (
        "help of ctl",
        &["ctl", "--help"],
        0,
        &["EXAMPLES", "status", "pause", "resume", "set", "stop", "gate", "ring", "fetch"],
        &[],
    ),
    ("ctl without a socket", &["ctl"], 1, &[], &["<SOCKET> <COMMAND>"]),
    ("ctl without an order", &["ctl", "x.ctl"], 1, &[], &["requires a subcommand"]),
    ("an order that is none", &["ctl", "x.ctl", "fly"], 1, &[], &["fly"]),
    (
        "a status in a form that is none",
        &["ctl", "x.ctl", "status", "--format", "xml"],
        1,
        &[],
        &["xml", "human"],
    ),
    ("two operators to pause", &["ctl", "x.ctl", "pause", "a", "b"], 1, &[], &["'b'"]),
    ("set without a setting", &["ctl", "x.ctl", "set"], 1, &[], &["<OPERATOR.PARAMETER=VALUE>"]),
    (
        "a setting without a value",
        &["ctl", "x.ctl", "set", "a.b"],
        1,
        &[],
        &["a.b: the `=` is missing", "OPERATOR.PARAMETER=VALUE"],
    ),
    ("a setting of no operator", &["ctl", "x.ctl", "set", "b=1"], 1, &[], &["b=1: the operator is missing"]),
    (
        "a setting of no parameter",
        &["ctl", "x.ctl", "set", "a.=1"],
        1,
        &[],
        &["a name before or after the `.` is missing"],
    ),
    (
        "a setting of a nameless operator",
        &["ctl", "x.ctl", "set", ".b=1"],
        1,
        &[],
        &["a name before or after"],
    ),
    (
        "a setting to a list",
        &["ctl", "x.ctl", "set", "a.b=[1]"],
        1,
        &[],
        &["true or false, not of type array"],
    ),
    ("a setting to a table", &["ctl", "x.ctl", "set", "a.b={ c = 1 }"], 1, &[], &["not of type table"]),
    ("a setting to a date", &["ctl", "x.ctl", "set", "a.b=2026-01-01"], 1, &[], &["not of type datetime"]),
    ("a setting to no number", &["ctl", "x.ctl", "set", "a.b=nan"], 1, &[], &["NaN is not a finite number"]),
    ("a setting to infinity", &["ctl", "x.ctl", "set", "a.b=-inf"], 1, &[], &["-inf is not a finite number"]),
    ("a sample that is none", &["ctl", "x.ctl", "set", "a.b=1", "--at", "soon"], 1, &[], &["soon", "--at"]),
    ("a sample before the first", &["ctl", "x.ctl", "set", "a.b=1", "--at", "-1"], 1, &[], &["-1", "--at"]),
    ("a gate half open", &["ctl", "x.ctl", "gate", "door", "ajar"], 1, &[], &["ajar", "open, close"]),
    ("a gate and nothing", &["ctl", "x.ctl", "gate", "door"], 1, &[], &["<POSITION>"]),
    ("ring without an event", &["ctl", "x.ctl", "ring"], 1, &[], &["<EVENT>"]),
    ("fetch without a file", &["ctl", "x.ctl", "fetch", "view"], 1, &[], &["<FILE>"]),
    (
        "a socket that is not there",
        &["ctl", "x.ctl", "status"],
        1,
        &[],
        &["control socket `x.ctl`: no such socket", "--control SOCKET"],
    ),
    ("a socket in a folder that is not there", &["ctl", "no/x.ctl", "stop"], 1, &[], &["no such socket"]),
    (
        "a socket that is a file",
        &["ctl", "count.toml", "status"],
        1,
        &[],
        &["control socket `count.toml`: it is a file, not a socket"],
    ),
    ("a socket that is a folder", &["ctl", ".", "status"], 1, &[], &["it is a folder, not a socket"]),
    ("a socket without a name", &["ctl", "", "status"], 1, &[], &["a value is required for '<SOCKET>'"]),
    (
        "a control socket that is a file",
        &["run", "count.toml", "--control", "late.toml"],
        1,
        &[],
        &["control socket `late.toml`: there is a file of this name, which is left alone"],
    ),
    (
        "a control socket that is a folder",
        &["run", "count.toml", "--control", "sub"],
        1,
        &[],
        &["there is a folder of this name"],
    ),
    (
        "a control socket in no folder",
        &["run", "count.toml", "--control", "no/x.ctl"],
        1,
        &[],
        &["control socket `no/x.ctl`: its folder `no` is not there: make it"],
    ),
    (
        "a control socket without a name",
        &["run", "count.toml", "--control", ""],
        1,
        &[],
        &["--control", "it is empty"],
    ),
    ("a control socket that is a number", &["run", "count.toml", "-q", "--control", "7"], 0, &[], &[]),
    (
        "a control socket that is a number, by mistake",
        &["run", "count.toml", "--set", "control=7"],
        1,
        &[],
        &["--set control=7", "expected a string"],
    ),
    ("a control socket by --set", &["run", "count.toml", "-q", "--set", "control=out/x.ctl"], 0, &[], &[]),
    (
        "a control socket of a check",
        &["check", "count.toml", "--control", "out/"],
        1,
        &[],
        &["--control out/", "it is a folder"],
    ),
    ("a report without a record", &["report"], 1, &[], &["<RECORD>"]),
    (
        "a report of a file that is not a record",
        &["report", "count.toml"],
        1,
        &[],
        &["record `count.toml`: cannot be read: not JSON"],
    ),
    (
        "a report of nothing",
        &["report", "no.json"],
        1,
        &[],
        &["record `no.json`: cannot be read: No such file"],
    ),
    (
        "a report in the place of its record",
        &["report", "count.toml", "-o", "./count.toml"],
        1,
        &[],
        &["report `./count.toml`: it is one of the records and would be overwritten"],
    ),
    (
        "a report in no folder",
        &["report", "count.toml", "-o", "no/x.html"],
        1,
        &[],
        &["report `no/x.html`: cannot be written"],
    ),
    (
        "too many records",
        &["report", "1", "2", "3", "4", "5", "6", "7", "8", "9"],
        1,
        &[],
        &["9 records: at most 8 can be compared"],
    ),
    ("a report in a form that is none", &["report", "x", "--format", "pdf"], 1, &[], &["pdf", "markdown"]),
    ("completions for a shell that is none", &["completions", "dash"], 1, &[], &["dash"]),
    (
        "the manual page",
        &["man"],
        0,
        &[
            ".TH onbeat",
            "COMMAND: RUN",
            "COMMAND: BENCH OVERHEAD",
            "COMMAND: CTL STATUS",
            "max\\-misses",
            "\n.SH \"EXIT STATUS\"\n",
            "\n.SH EXAMPLES\n",
        ],
        &[],
    ),
    ("the schema", &["schema"], 0, &["\"$schema\"", "\"fir.decimate\""], &[]),
    ("all kinds", &["operators"], 0, &["counter", "wav.sink"], &[]),
    ("one kind", &["operators", "counter"], 0, &["port", "u64", "parameter", "count", "[[operator]]"], &[]),
    (
        "a kind for a book",
        &["operators", "counter", "--format", "markdown"],
        0,
        &[
            "### `counter`",
            "| `counter` |  | `out`: numbers |",
            "| `start` | whole number | `0` | The first number. |",
        ],
        &[],
    ),
    ("a kind that is near", &["operators", "countr"], 1, &[], &["`countr`: did you mean `counter`?"]),
];

/// Pipeline in another folder than the current one.
const FILE: &str = r#"
[[operator]]
name = "in"
kind = "text.source"
path = "no"
[[operator]]
name = "out"
kind = "text.sink"
path = "out"
[[edge]]
from = "in"
to = "out"
"#;

#[test]
fn what_is_typed_is_answered() {
    try_all(CASES);
}

/// Types all of them, each in a place of its own.
pub fn try_all(cases: &[Case]) {
    let mut wrong = Vec::new();
    for (title, arguments, status, stdout, stderr) in cases {
        let place = Place::new();
        std::fs::create_dir(place.path("sub")).expect("a folder");
        std::fs::write(place.path("sub/file.toml"), FILE).expect("a file");
        let answer = place.onbeat(arguments);
        let said = |all: &str, parts: &[&str]| parts.iter().all(|part| all.contains(part));
        // Without expected parts, stderr must be empty.
        let quiet = !stderr.is_empty() || answer.stderr.is_empty();
        if answer.status != Some(*status)
            || !said(&answer.stdout, stdout)
            || !said(&answer.stderr, stderr)
            || !quiet
        {
            wrong.push(format!("{title}: {answer:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
