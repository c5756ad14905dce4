//! Formulas give what Python gives, for any cut of the stream, and wrong ones are refused at their place.
#![forbid(unsafe_code)]

use crate::slices::Dice;
use onbeat_operators::registry;
use onbeat_runtime::testing::{Feed, Seen, Trial, cuts};

/// Values for a = 1.7 and b = -0.6, from Python with NumPy: `-a**2`, `numpy.fmod(7, 3) + numpy.fmod(-7, 3)`,
/// `numpy.clip(a, -1, 1)`, and so on.
const REFERENCE: [(&str, f64); 21] = [
    ("2 * a + b", 2.8),
    ("-a ^ 2", -2.8899999999999997),
    ("2 ^ 3 ^ 2", 512.0),
    ("2 ^ -a", 0.3077861033362291),
    ("a - b - 1", 1.2999999999999998),
    ("a / b * 3", -8.5),
    ("(a + b) * (a - b)", 2.53),
    ("7 % 3 + -7 % 3", 0.0),
    ("sin(a) * cos(b) + tan(a / 3)", 1.4547320446114727),
    ("exp(-a) + log(a) + ln(a)", 1.2439400261770754),
    ("log2(a) * log10(a)", 0.17641665657693856),
    ("sqrt(a) + cbrt(b) + hypot(a, b)", 2.2631834534707753),
    ("atan2(b, a) + asin(b) + acos(b) + atan(a)", 2.2705759718769425),
    ("sinh(b) + cosh(b) * tanh(a)", 0.47224133588005823),
    ("floor(b) + 10 * ceil(b) + 100 * trunc(a) + 1000 * round(2.5)", 2099.0),
    ("abs(b) + sign(b) + pow(a, 3)", 4.512999999999999),
    ("min(a, b, 0) + max(a, max(b, 2), 1)", 1.4),
    ("clamp(a, -1, 1) + clamp(b, 0, 1)", 1.0),
    ("if(a > b, 10, 20) + if(a < b && b < 0, 1, 2)", 12.0),
    ("a >= 1.7 && !(b == 0) || 0", 1.0),
    ("1e-3 + .5 + 2.E1", 20.501),
];

fn value(formula: &str, a: f64, b: f64) -> f64 {
    let parameters = format!("formula = \"{formula}\"\ninputs = 2");
    let trial = Trial::kind(&registry(), "expression.value", &parameters);
    trial.feed("a", Feed::messages([a])).feed("b", Feed::messages([b])).run().messages::<f64>("out")[0]
}

#[test]
fn formulas_are_those_of_python() {
    for (formula, expected) in REFERENCE {
        let found = value(formula, 1.7, -0.6);
        assert!(
            (found - expected).abs() <= 4.0 * f64::EPSILON * expected.abs(),
            "{formula}: {found}, {expected}"
        );
    }
    for formula in ["sqrt(-1)", "min(a, 1)", "max(1, a)", "clamp(a, 0, 1)", "a + 1", "0 / 0"] {
        assert!(value(formula, f64::NAN, 0.0).is_nan(), "{formula}");
    }
    assert_eq!(value("isnan(a) + if(a, 10, 20) + (a == a)", f64::NAN, 0.0), 21.0);
    assert_eq!(value("1 / 0", 0.0, 0.0), f64::INFINITY);
}

fn samples(formula: &str, streams: &[&[f32]]) -> Trial {
    let trial = Trial::kind(&registry(), "expression", &format!("formula = \"{formula}\""));
    let feed = |samples: &[f32]| Feed::samples(samples.to_vec()).rate(48.0);
    trial.feed("a", feed(streams[0])).feed_all(&streams[1..])
}

trait FeedAll {
    fn feed_all(self, more: &[&[f32]]) -> Self;
}

impl FeedAll for Trial {
    fn feed_all(self, more: &[&[f32]]) -> Self {
        more.iter()
            .zip(["b", "c", "d"])
            .fold(self, |trial, (samples, name)| trial.feed(name, Feed::samples(samples.to_vec()).rate(48.0)))
    }
}

#[test]
fn samples_are_computed_at_their_place() {
    let (a, b): (Vec<f32>, Vec<f32>) = (Dice::new(1).values(3000), Dice::new(2).values(3000));
    let seen = cuts(|| samples("if(a < 0, -a, a) * 2 + b", &[&a, &b]));
    let expected = |(a, b): (&f32, &f32)| (f64::from(*a).abs() * 2.0 + f64::from(*b)) as f32;
    assert_eq!(seen.samples::<f32>("out"), a.iter().zip(&b).map(expected).collect::<Vec<_>>());
    assert_eq!(seen.rate_hz("out"), 48.0);
    let seen = cuts(|| samples("n + 0.5 * (t * rate == n) + 0 * a", &[&a]));
    assert_eq!(seen.samples::<f32>("out"), (0..3000).map(|n| n as f32 + 0.5).collect::<Vec<_>>());
    // From the sample on at which it changes.
    let seen = cuts(|| samples("a", &[&a]).set("formula", "-a", Some(1001)));
    let expected = |n: usize| if n < 1001 { a[n] } else { -a[n] };
    assert_eq!(seen.samples::<f32>("out"), (0..3000).map(expected).collect::<Vec<_>>());
    let failure = samples("a", &[&a]).set("formula", "a + b", None).failure();
    assert!(failure.contains("`formula` has the input `b`, but there are 1 inputs"), "{failure}");
    let plain = || Feed::samples(a.clone());
    let trial = |formula| Trial::kind(&registry(), "expression", &format!("formula = \"{formula}\""));
    assert!(trial("a * t").feed("a", plain()).failure().contains("needs a sample rate"));
    assert_eq!(trial("a * n").feed("a", plain()).run().samples::<f32>("out")[2], a[2] * 2.0);
}

#[test]
fn a_wrong_formula_is_refused_at_its_place() {
    for (formula, expected) in [
        ("", "`formula` ends after character 0: a number, a name or `(` must come here"),
        ("a +", "`formula` ends after character 3: a number"),
        ("2 * (a + b", "`formula` ends after character 10: a `)` is missing"),
        ("a + b)", "`formula`, character 6, \\\")\\\": there is no `(` for this"),
        ("2 a", "character 3, \\\"a\\\": an operator such as `+`"),
        ("a, b", "character 2, \\\", b\\\": a comma belongs"),
        ("a = 2", "character 3, \\\"= 2\\\": compare with `==`"),
        ("a ? 1 : 2", "character 3, \\\"? 1 : 2\\\": write `if(condition, then, else)`"),
        ("ä + x", "character 1, \\\"ä + x\\\": this sign has no meaning here"),
        (
            "a + nosuch(2)",
            "character 5, \\\"nosuch(2)\\\": unknown name; there are the variables t, n, rate, a, b",
        ),
        ("sin a", "character 5, \\\"a\\\": `sin` is a function: a `(` must come here"),
        ("sin()", "character 1, \\\"sin()\\\": `sin` has 0 arguments: it needs 1"),
        ("sin(a, b)", "character 6, \\\", b)\\\": `)` must come here, in the arguments of `sin`"),
        ("min(a)", "`min` has 1 arguments: it needs 2"),
        ("min(a b)", "character 7, \\\"b)\\\": `,` or `)` must come here"),
        ("if(a, b)", "`if` has 2 arguments: it needs 3"),
        ("a < b < 2", "character 7, \\\"< 2\\\": comparisons cannot follow each other"),
        ("1.2.3", "character 4, \\\".3\\\": an operator"),
        (".", "not a number"),
        ("1e999", "the number is too large"),
    ] {
        let error = registry().operator("expression", &format!("formula = {formula:?}")).err();
        let error = error.unwrap_or_else(|| panic!("{formula} is accepted")).to_string();
        assert!(error.contains(&expected.replace("\\\"", "\"")), "{formula}: {error}");
    }
    let error = registry().operator("expression.value", "formula = \"a + c\"\ninputs = 2").err().unwrap();
    assert!(error.to_string().contains("character 5, \"c\": unknown name"), "{error}");
    let error = registry().operator("expression", "formula = \"a\"\ninputs = 9").err().unwrap();
    assert!(error.to_string().contains("`inputs` is 9: it must be from 1 to 8"), "{error}");
}

#[test]
fn hostile_formulas_are_refused() {
    let million = 1_000_000;
    for (formula, expected) in [
        ("(".repeat(million), "`formula` has 1000000 bytes"),
        ("(".repeat(9_000), "it is nested more than 100 deep"),
        ("-".repeat(9_000), "it is nested more than 100 deep"),
        ("a^".repeat(4_000), "it is nested more than 100 deep"),
        ("sin(".repeat(2_000), "it is nested more than 100 deep"),
        (format!("{}a", "9".repeat(9_000)), "the number is too large"),
        ("x".repeat(9_000), "unknown name"),
    ] {
        let error = registry().operator("expression", &format!("formula = {formula:?}")).err().unwrap();
        let text = error.to_string();
        assert!(text.contains(expected) && text.len() < 1_000, "{text:.300}");
    }
    let sum = vec!["a"; 4_000].join(" + ")[..9_997].to_string();
    let long = Trial::kind(&registry(), "expression", &format!("formula = {sum:?}"));
    let out = long.feed("a", Feed::samples([1.0f32; 100])).run().samples::<f32>("out");
    assert_eq!(out, [2_500.0; 100]);
}

fn two(others: &str, a: Feed, b: Feed) -> Seen {
    let parameters = format!("formula = \"a + b\"\nothers = \"{others}\"");
    Trial::kind(&registry(), "expression.value", &parameters).feed("a", a).feed("b", b).run()
}

#[test]
fn values_belong_together_by_their_time() {
    let (a, b) = (
        || Feed::messages([10.0, 20.0, 30.0, 40.0, 50.0]).every(100),
        || Feed::messages([1.0, 2.0]).every(250),
    );
    let seen = two("held", a(), b());
    assert_eq!(seen.messages::<f64>("out"), [11.0, 21.0, 31.0, 42.0, 52.0]);
    let times: Vec<u64> = seen.pieces("out").iter().map(|piece| piece.time_ns).collect();
    assert_eq!(times, [0, 100, 200, 300, 400]);
    let none: [f64; 0] = [];
    let seen = two("held", a(), Feed::messages(none));
    assert!(seen.messages::<f64>("out").is_empty());
    assert_eq!(
        seen.notes(),
        ["5 values of `a` came before the first one of another input, and were left out"]
    );
    let seen = two("latest", a(), Feed::messages([1.0]));
    assert_eq!(seen.messages::<f64>("out").last(), Some(&51.0));
    let one = Trial::kind(&registry(), "expression.value", "formula = \"a * n + 1e9 * t\"");
    let seen = one.feed("a", a()).run();
    assert_eq!(seen.messages::<f64>("out"), [0.0, 120.0, 260.0, 420.0, 600.0]);
}
