//! Files as other programs write them.

use super::{Csv, bits};
use onbeat_runtime::testing::cuts;

/// `x = numpy.arange(6)`, `df = pandas.DataFrame({"t": x / 360, "ecg": numpy.sin(x * 0.7) * 1e-3,
/// "resp": numpy.cos(x) * 1e6})`, `df.to_csv(index=False)`, with NumPy 2.4 and pandas 3.1.
const PANDAS: &str = "t,ecg,resp
0.0,0.0,1000000.0
0.002777777777777778,0.000644217687237691,540302.3058681397
0.005555555555555556,0.00098544972998846,-416146.8365471424
0.008333333333333333,0.000863209366648874,-989992.4966004454
0.011111111111111112,0.0003349881501559051,-653643.6208636119
0.013888888888888888,-0.00035078322768961984,283662.1854632262
";
/// The same with `sep=";", decimal=","`.
const COMMAS: &str = "t;ecg;resp
0,0;0,0;1000000,0
0,002777777777777778;0,000644217687237691;540302,3058681397
0,005555555555555556;0,00098544972998846;-416146,8365471424
0,008333333333333333;0,000863209366648874;-989992,4966004454
0,011111111111111112;0,0003349881501559051;-653643,6208636119
0,013888888888888888;-0,00035078322768961984;283662,1854632262
";
/// `numpy.savetxt(path, df.to_numpy(), delimiter=",", header="t,ecg,resp")`
const SAVETXT: &str = "# t,ecg,resp
0.000000000000000000e+00,0.000000000000000000e+00,1.000000000000000000e+06
2.777777777777777884e-03,6.442176872376910056e-04,5.403023058681397233e+05
5.555555555555555768e-03,9.854497299884600915e-04,-4.161468365471424186e+05
8.333333333333333218e-03,8.632093666488740036e-04,-9.899924966004453599e+05
1.111111111111111154e-02,3.349881501559051102e-04,-6.536436208636119263e+05
1.388888888888888812e-02,-3.507832276896198360e-04,2.836621854632262257e+05
";
/// `df.ecg.to_numpy(dtype=numpy.float32).view(numpy.uint32)`, and the same of `resp`.
const ECG: [u32; 6] = [0, 0x3a28_e0b8, 0x3a81_2a35, 0x3a62_4900, 0x39af_a159, 0xb9b7_e954];
const RESP: [u32; 6] = [0x4974_2400, 0x4903_e8e5, 0xc8cb_325b, 0xc971_b288, 0xc91f_94ba, 0x488a_81c6];

#[test]
fn files_of_pandas_and_numpy_give_their_numbers() {
    for (text, parameters) in [
        (PANDAS, "columns = [\"ecg\", \"resp\"]\ntime = \"t\""),
        (PANDAS, "columns = [\"2\", \" resp \"]\ntime = \"1\"\nheader = true"),
        (COMMAS, "columns = [\"ecg\", \"resp\"]\ntime = \"t\"\ndelimiter = \";\"\ndecimal = \",\""),
        (SAVETXT, "columns = [\"2\", \"3\"]\ntime = \"1\"\ncomment = \"#\""),
        (&PANDAS.replace('\n', "\r\n"), "columns = [\"ecg\", \"resp\"]\ntime = \"t\""),
        (&PANDAS.replace(',', "\t"), "columns = [\"ecg\", \"resp\"]\ntime = \"t\"\ndelimiter = \"\\t\""),
        (&format!("\u{feff}{PANDAS}"), "columns = [\"ecg\", \"resp\"]\ntime = \"t\""),
        (PANDAS.trim_end(), "columns = [\"ecg\", \"resp\"]\ntime = \"t\""),
    ] {
        let csv = Csv::new(text);
        let seen = cuts(|| csv.trial("csv.source", parameters));
        assert_eq!(bits(&seen.samples("out0")), ECG, "{parameters}");
        assert_eq!(bits(&seen.samples("out1")), RESP, "{parameters}");
        assert_eq!((seen.rate_hz("out0"), seen.rate_hz("out1")), (360.0, 360.0));
        assert!(seen.notes().is_empty(), "{:?}", seen.notes());
    }
}

#[test]
fn quotes_hold_delimiters_and_lines() {
    let csv = Csv::new("\"a, b\",\"note \"\"1\"\"\n of it\"\n1,\"x\ny\"\n\" 2.5 \",\"3\"\n");
    let seen = csv.play("columns = [\"a, b\"]");
    assert_eq!(seen.samples::<f32>("out"), [1.0, 2.5]);
    // The line of a row is where it begins.
    let said = csv.refused("columns = [\"2\"]");
    assert!(said.contains("line 3: the field of column `2` has a line break"), "{said}");
}

#[test]
fn a_header_is_told_by_its_words() {
    for (text, parameters, expected) in [
        ("1,2\n3,4\n", "", vec![2.0, 4.0]),
        ("a,b\n3,4\n", "", vec![4.0]),
        // A date is not a number, but its row has one.
        ("12:00,2\n12:01,4\n", "", vec![2.0, 4.0]),
        ("nan,inf\n3,4\n", "", vec![4.0]),
        ("1,2\n3,4\n", "header = true", vec![4.0]),
        ("# x\n\n1,2\n# y\n3,4\n\n", "comment = \"#\"", vec![2.0, 4.0]),
    ] {
        let seen = Csv::new(text).play(&format!("columns = [\"2\"]\n{parameters}"));
        assert_eq!(seen.samples::<f32>("out"), expected, "{text:?}");
    }
    // A column called `2` is not the second one.
    let seen = Csv::new("2,x\n5,6\n").play("columns = [\"2\"]\nheader = true");
    assert_eq!(seen.samples::<f32>("out"), [5.0]);
}

#[test]
fn missing_numbers_are_counted_with_their_lines() {
    let text = "x,y\n1,1\n,1\n3,1\nn/a,1\n 5 ,1\n\"\",1\ninf,1\n1e39,1\n";
    let csv = Csv::new(text);
    let seen = csv.play("columns = [\"x\"]");
    let [inf, nan] = [f32::INFINITY, f32::NAN];
    assert_eq!(bits(&seen.samples("out")), bits(&[1.0, nan, 3.0, nan, 5.0, nan, inf, inf]));
    assert_eq!(
        seen.notes(),
        [
            "column `x`: 2 fields were empty and were sent as NaN, the first in line 3",
            "column `x`: 1 fields were not numbers and were sent as NaN, the first `n/a` in line 5",
            "column `x`: 2 numbers were not finite and were sent unchanged",
        ]
    );
    let seen = csv.play("columns = [\"x\"]\nmissing = \"hold\"");
    assert_eq!(seen.samples::<f32>("out"), [1.0, 1.0, 3.0, 3.0, 5.0, 5.0, inf, inf]);
    let said = csv.refused("columns = [\"x\"]\nmissing = \"stop\"");
    assert!(said.contains("line 3: the field of column `x` is empty, which is not a number"), "{said}");
}

#[test]
fn a_rate_is_found_in_rounded_times() {
    for (rate_hz, places, expected_hz) in
        [(360.0, 3, 360.0), (250.0, 3, 250.0), (1000.0 / 3.0, 9, 1000.0 / 3.0), (48000.0, 9, 48000.0)]
    {
        let rows = (0..5000).map(|k| format!("{:.places$},{k}\n", 1e3 + f64::from(k) / rate_hz));
        let csv = Csv::new(rows.collect::<String>());
        let seen = csv.play("columns = [\"2\"]\ntime = \"1\"");
        assert!((seen.rate_hz("out") / expected_hz - 1.0).abs() < 1e-9, "{}", seen.rate_hz("out"));
        assert_eq!(seen.samples::<f32>("out").len(), 5000);
        assert!(seen.notes().is_empty(), "{:?}", seen.notes());
    }
    let csv = Csv::new("ms,x\n1000,1\n1004,2\n1008,3\n");
    let seen = csv.play("columns = [\"x\"]\ntime = \"ms\"\ntime_unit = \"ms\"");
    assert_eq!((seen.rate_hz("out"), seen.samples::<f32>("out")), (250.0, vec![1.0, 2.0, 3.0]));
}

#[test]
fn irregular_times_are_noted_or_refused() {
    let csv = |times: &[f64]| Csv::new(times.iter().map(|t| format!("{t:e},1\n")).collect::<String>());
    let with = |more: &str| format!("columns = [\"2\"]\ntime = \"1\"\n{more}");
    let seen = csv(&[0.0, 0.1, 0.22, 0.3, 0.4]).play(&with(""));
    assert_eq!(seen.rate_hz("out"), 10.0);
    assert!(seen.notes()[0].contains("up to 20 % of a sample period") && seen.notes()[0].contains("line 3"));
    for (times, more, expected) in [
        (
            &[0.0, 0.1, 0.22, 0.3, 0.4][..],
            "jitter = 0.15",
            "line 3: its time is 0.22 s, which is 0.200 sample",
        ),
        (&[0.0, 0.1, 0.2, 1.3, 1.4, 1.5, 1.6, 1.7], "", "line 4: its time is 1.1"),
        (&[0.0, 0.1, 0.05, 0.3], "", "line 3: its time is -0.05 s after"),
        (&[0.0, 0.0, 0.0], "", "is 0 s after"),
        (&[0.0], "", "at least 2 are needed"),
        (&[0.0, 0.1, 0.2, 0.3], "sample_rate = 11", "line 4: its time is 0.3 s, which is 0.300"),
    ] {
        let more = if more.contains("rate") { "sample_rate = 11\njitter = 0.25" } else { more };
        let said = csv(times).refused(&with(more));
        assert!(said.contains(expected), "{times:?}: {said}");
    }
    let said = Csv::new("0,1\n,2\n").refused(&with(""));
    assert!(
        said.contains("line 2: the field of column `1` is empty") && said.contains("needs a time"),
        "{said}"
    );
}

#[test]
fn it_repeats_and_keeps_time() {
    let csv = Csv::new("x\n1\n2\n3\n");
    let seen = csv.play("columns = [\"x\"]\nrepeat = 3\nsample_rate = 10");
    assert_eq!(seen.samples::<f32>("out"), [1.0, 2.0, 3.0].repeat(3));
    let seen = csv.play("columns = [\"x\"]\ntime = \"x\"\nrepeat = 2");
    assert_eq!((seen.rate_hz("out"), seen.samples::<f32>("out").len()), (1.0, 6));
    // In virtual time: a chunk comes when its last sample is due.
    let real = |quantum| {
        let trial = csv.trial("csv.source", "columns = [\"x\"]\nrepeat = 0\nsample_rate = 10");
        trial.quantum(quantum).stop_after(1_000_000_000).options(|options| options.pace = None).run()
    };
    let pieces = real(16).pieces("out");
    assert_eq!((pieces[0].length, pieces[1].time_ns), (4, 400_000_000));
    assert_eq!(pieces[1].at_ns - pieces[0].at_ns, 400_000_000);
}

#[test]
fn a_pipe_is_read_as_rows_come() {
    let csv = Csv::new("");
    let pipe = csv.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let writer = pipe.clone();
    let thread = onbeat_os::thread::spawn("writer", move || {
        use std::io::Write;
        let mut pipe = std::fs::OpenOptions::new().write(true).open(writer).unwrap();
        for piece in ["\u{feff}x,y\r", "\n1,", "2\r\n3,4", "\n5,6\n", "7,8"] {
            pipe.write_all(piece.as_bytes()).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    });
    let seen = super::trial("csv.source", &pipe, "columns = [\"y\"]\nsample_rate = 0.5\ntime = \"x\"").run();
    thread.unwrap().join().unwrap();
    assert_eq!(seen.samples::<f32>("out"), [2.0, 4.0, 6.0, 8.0]);
}
