//! Values by time.

use super::{Csv, trial};
use onbeat_runtime::testing::Feed;
use std::fs;

const STEPS: &str = "t,speed,load\n0,1.5,0\n0.25,2.5,1\n0.25,3.5,2\n1.5,-1e300,3\n";

#[test]
fn rows_come_at_their_times() {
    let csv = Csv::new(STEPS);
    let trial = csv.trial("csv.source.value", "columns = [\"speed\", \"load\"]\ntime = \"t\"");
    let seen = trial.options(|options| options.pace = None).run();
    assert_eq!(seen.messages::<f64>("out0"), [1.5, 2.5, 3.5, -1e300]);
    assert_eq!(seen.messages::<f64>("out1"), [0.0, 1.0, 2.0, 3.0]);
    let pieces = seen.pieces("out0");
    let begin_ns = pieces[0].at_ns;
    let times: Vec<_> = pieces.iter().map(|piece| (piece.time_ns, piece.at_ns - begin_ns)).collect();
    let at = |ms: u64| (ms * 1_000_000, ms * 1_000_000);
    assert_eq!(times, [at(0), at(250), at(250), at(1500)]);
}

#[test]
fn times_can_begin_anywhere() {
    let csv = Csv::new("1700000000000;1\n1700000000250;2\n");
    let with = "columns = [\"2\"]\ntime = \"1\"\ntime_unit = \"ms\"\ndelimiter = \";\"";
    let said = csv.trial("csv.source.value", with).failure();
    assert!(
        said.contains("line 1: its time is 1700000000 s") && said.contains("set `relative = true`"),
        "{said}"
    );
    let seen = csv.trial("csv.source.value", &format!("{with}\nrelative = true")).run();
    assert_eq!(seen.pieces("out")[1].time_ns, 250_000_000);
}

#[test]
fn unsorted_and_missing_times_are_refused() {
    for (text, expected) in [
        ("t,x\n1,1\n0.5,2\n", "line 3: its time is 0.5 s, before the 1 s of the row before it"),
        ("t,x\n-1,1\n", "line 2: its time is -1 s, before the 0 s"),
        ("t,x\n0,1\n,2\n", "line 3: the field of column `t` is empty"),
        ("t,x\n0,1\nnan,2\n", "line 3: the field of column `t` is `nan`"),
        ("t,x\n0,1\ninf,2\n", "line 3: the field of column `t` is `inf`"),
        ("t,x\n0,1\n\n1\n", "line 4: it has 1 fields"),
    ] {
        let said = Csv::new(text).trial("csv.source.value", "columns = [\"x\"]\ntime = \"t\"").failure();
        assert!(said.contains(expected), "{text:?}: {said}");
    }
    let seen = Csv::new("t,x\n0,1\n1,\n").trial("csv.source.value", "columns = [\"x\"]\ntime = \"t\"").run();
    assert!(seen.messages::<f64>("out")[1].is_nan());
    assert!(seen.notes()[0].contains("the first in line 3"), "{:?}", seen.notes());
}

#[test]
fn values_are_written_by_time() {
    let csv = Csv::new("");
    let path = csv.path("out.csv");
    for (more, expected) in [
        (
            "",
            "time_s,a,b\n0.000000000,1,10\n0.002000000,2,\n0.003000000,,11\n0.004000000,3,\n0.006000000,,12\n",
        ),
        (
            "hold = true",
            "time_s,a,b\n0.000000000,1,10\n0.002000000,2,10\n0.003000000,2,11\n0.004000000,3,11\n0.006000000,3,12\n",
        ),
    ] {
        for capacity in [1, 4] {
            let with = format!("columns = [\"a\", \"b\"]\n{more}");
            let seen = trial("csv.sink.value", &path, &with)
                .capacity(capacity)
                .feed("in0", Feed::messages([1.0f64, 2.0, 3.0]).every(2_000_000))
                .feed("in1", Feed::messages([10.0f64, 11.0, 12.0]).every(3_000_000))
                .run();
            assert_eq!(fs::read_to_string(&path).unwrap(), expected);
            assert!(seen.notes().is_empty(), "{:?}", seen.notes());
        }
    }
    // The file is read again.
    let seen = trial("csv.source.value", &path, "columns = [\"b\"]\ntime = \"time_s\"").run();
    assert_eq!(seen.messages::<f64>("out"), [10.0, 10.0, 11.0, 11.0, 12.0]);
}

#[test]
fn one_column_keeps_all_bits() {
    let csv = Csv::new("");
    let path = csv.path("out.csv");
    let values = [0.1, 1.0 / 3.0, -5e-324, f64::MAX, 0.0];
    let feed = Feed::messages(values).every(1_000_000_000);
    trial("csv.sink.value", &path, "columns = [\"x\"]").feed("in", feed).run();
    let seen = trial("csv.source.value", &path, "columns = [\"x\"]\ntime = \"time_s\"").run();
    assert_eq!(seen.messages::<f64>("out"), values);
}
