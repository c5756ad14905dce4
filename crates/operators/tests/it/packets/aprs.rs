//! Positions of APRS. The numbers are those of aprslib 0.7.2 (`aprslib.parse("N0CALL>TO:INFO")`), with its
//! kilometres per hour and metres in knots and feet; that of the item is from the example of the APRS
//! Protocol Reference 1.0.1.

use super::signals::{PLAIN, frame, levels, pause};
use super::{Value, received};

/// Address, information, latitude, longitude, symbol, comment.
type Report = (&'static str, &'static str, f64, f64, &'static str, &'static str);

const REPORTS: [Report; 14] = [
    ("APRS", "!4903.50N/07201.75W-Test 001234", 49.058_333, -72.029_167, "/-", "Test 001234"),
    ("APRS", "=4903.50N/07201.75W#PHG5132 /A=001234 hill", 49.058_333, -72.029_167, "/#", "PHG5132  hill"),
    ("APRS", "/092345z4903.50N/07201.75W>Test1234", 49.058_333, -72.029_167, "/>", "Test1234"),
    ("APRS", "@092345/4903.50S/07201.75E>088/036 going", -49.058_333, 72.029_167, "/>", "going"),
    ("APRS", "!49  .  N/072  .  W-", 49.5, -72.5, "/-", ""),
    ("APRS", "=/5L!!<*e7>7P[ comment", 49.5, -72.750_004, "/>", "comment"),
    ("APRS", "=/5L!!<*e7>{?! range", 49.5, -72.750_004, "/>", "range"),
    ("APRS", "@092345z/5L!!<*e7>S]Q alt", 49.5, -72.750_004, "/>", "alt"),
    ("APRS", "!I0-X;T_Wv&{-Aigate", 60.052_010, 24.504_507, "I&", "igate"),
    ("S32U6T", "`(_fn\"Oj/hello", 33.427_333, -12.129, "/j", "hello"),
    ("S32U6T", "`(_f\"$+>/`\"4T}Comment_0", 33.427_333, -12.129, "/>", "Comment_0"),
    ("T7PWWQ", "'|*4l \u{1c}-/]\"3r}=", 47.1285, -6.237_333, "/-", "="),
    ("APRS", ";LEADER   *092345z4903.50N/07201.75W>088/036", 49.058_333, -72.029_167, "/>", ""),
    ("APRS", ")AID #2!4903.50N/07201.75WA first", 49.058_333, -72.029_167, "/A", "first"),
];

/// Lines of these reports.
fn reports(reports: &[(&str, &str)]) -> Vec<Value> {
    let signal = |(to, info): &(&str, &str)| {
        PLAIN.tones(&levels(&frame(&[to, "N0CALL"], &[b"\x03\xf0", info.as_bytes()].concat())))
    };
    let found = received("afsk.decode", pause(&reports.iter().map(signal).collect::<Vec<_>>()), 22_050.0);
    assert_eq!(found.len(), reports.len());
    found
}

#[test]
fn positions_are_those_of_another_program() {
    let found = reports(&REPORTS.map(|(to, info, ..)| (to, info)));
    for (line, (_, info, latitude, longitude, symbol, comment)) in found.iter().zip(REPORTS) {
        let near = |name: &str, expected: f64| {
            let value = line[name].as_f64().unwrap_or_else(|| panic!("{info}: {line}"));
            assert!((value - expected).abs() < 1e-6, "{info}: {line}");
        };
        near("latitude_deg", latitude);
        near("longitude_deg", longitude);
        assert_eq!((&line["symbol"], &line["comment"]), (&symbol.into(), &comment.into()), "{info}");
    }
    let number = |at: usize, name: &str| found[at][name].as_f64().unwrap_or(f64::NAN);
    assert_eq!(number(1, "altitude_ft"), 1234.0);
    assert_eq!((number(3, "course_deg"), number(3, "speed_kt")), (88.0, 36.0));
    assert_eq!(number(4, "ambiguity"), 4.0);
    // 67.1017 km/h and 3049.378 m.
    assert_eq!((number(5, "course_deg"), number(5, "speed_kt")), (88.0, 36.23));
    assert_eq!(number(7, "altitude_ft"), 10_004.5);
    // 37.04 km/h, 61 m.
    assert_eq!((number(9, "course_deg"), number(9, "speed_kt")), (251.0, 20.0));
    assert_eq!(number(10, "altitude_ft"), 200.0);
    assert_eq!((&found[12]["object"], &found[13]["object"]), (&"LEADER".into(), &"AID #2".into()));
}

#[test]
fn what_is_no_position_has_none() {
    let found = reports(&[
        ("APRS", ">status"),
        ("APRS", "!9103.50N/07201.75W-"),
        ("APRS", "!4960.50N/07201.75W-"),
        ("APRS", "!4903.50X/07201.75W-"),
        ("APRS", "!4903.50N/0720"),
        ("APRS", "=/5L!!<*e7"),
        ("APRS", "@0923"),
        ("APRS", "`(_fn\"Oj/"),
        ("S32U6T", "`(_f"),
        ("APRS", ";short"),
        ("APRS", ")"),
        ("APRS", "!"),
    ]);
    for line in found {
        assert!(line.get("latitude_deg").is_none(), "{line}");
    }
}
