//! `onbeat bench jobs`, so short that its figures mean nothing.

use super::harness::Place;
use serde_json::Value;
use std::fs;

const TINY: [&str; 8] = ["bench", "jobs", "--rounds", "1", "--seconds", "1", "--cores", "1"];

fn tiny<'a>(more: &[&'a str]) -> Vec<&'a str> {
    TINY.into_iter().chain(more.iter().copied()).collect()
}

#[test]
fn people_get_a_table_and_a_plot() {
    let place = Place::new();
    let answer = place.onbeat(&tiny(&["--jobs", "fm,adsb", "--plot", "j.svg"]));
    assert_eq!((answer.status, &*answer.stderr), (Some(0), ""), "{answer:?}");
    for part in [
        "jobs: from file to file",
        "Msamples/s",
        "onbeat greedy",
        "bare",
        "yes",
        "adsb: left out: it needs a capture",
        "plot written to j.svg",
    ] {
        assert!(answer.stdout.contains(part), "{part}: {}", answer.stdout);
    }
    let svg = fs::read_to_string(place.path("j.svg")).expect("a plot");
    assert!(svg.starts_with("<svg ") && svg.contains("onbeat greedy"), "{svg}");
}

/// Script with the interface of `peers/jobs.sh`.
const PEERS: &str = r#"
case "$1" in
list)
    echo '{"peer": "one", "version": "1.2", "variant": "default", "how": "as it comes", "jobs": ["spectrum"], "cores": [1]}'
    echo '{"peer": "two", "version": "3", "variant": "best", "how": "tuned", "jobs": ["spectrum", "fm"], "cores": [1, 2]}'
    echo '{"peer": "three", "missing": "it is in no registry", "jobs": ["spectrum"]}'
    echo '{"peer": "four", "missing": "it is in no registry", "jobs": ["fm"]}'
    echo 'nonsense'
    ;;
run)
    [ "$4" = spectrum ] && [ -s "$5/input" ] || exit 9
    cp "$5/onbeat/result" "$6"
    [ "$2 $3" = "one default" ] && echo '{"samples": 256000, "seconds": 0.256}' && exit
    echo '{"samples": 1000, "seconds": 0.001}'
    ;;
esac
"#;

#[test]
fn peers_do_the_same_jobs_in_turn() {
    let place = Place::new();
    fs::create_dir(place.path("others")).expect("a folder");
    fs::write(place.path("others/jobs.sh"), PEERS).expect("a file");
    let answer = place.onbeat(&tiny(&["--jobs", "spectrum", "--peers=others", "--format", "json"]));
    assert_eq!((answer.status, &*answer.stderr), (Some(0), ""), "{answer:?}");
    let found: Value = serde_json::from_str(&answer.stdout).expect("JSON");
    let figure = |name: &str| &found["figures"][format!("spectrum.{name}")];
    assert_eq!(figure("peer.one.default.n1.rate")["value"], 1.0);
    assert_eq!(figure("peer.one.default.n1.quality"), figure("onbeat.greedy.n1.quality"));
    assert!(figure("onbeat.greedy.n1.times_best_peer")["value"].is_f64());
    assert!(figure("peer.two.best.n1.rate").is_null());
    let notes = found["notes"].to_string();
    for part in [
        "three: left out: it is in no registry",
        "unexpected output `nonsense`",
        "spectrum.peer.two.best.n1: it processed 1000 of 256000 samples",
    ] {
        assert!(notes.contains(part), "{part}: {notes}");
    }
    assert!(!notes.contains("four"), "{notes}");
    assert_eq!(found["parameters"]["peers"][1]["how"], "tuned");
}

#[test]
fn impossible_arguments_are_refused() {
    let place = Place::new();
    for (arguments, parts) in [
        (&["--jobs", "radio"][..], &["'radio' for '--jobs", "spectrum"][..]),
        (&["--cores", "0"], &["'0' for '--cores", "0 is too small"]),
        (&["--seconds", "0"], &["seconds: 0: it is the length of the input signal and must be from 1"]),
        (&["--rounds", "0"], &["'0' for '--rounds"]),
        (&["--on", "8191", "--cores", "1"], &["on: core 8191 is not available to this process"]),
        (&["--jobs", "adsb", "--cores", "1"], &["nothing can be measured", "--adsb FILE"]),
        (&["--jobs", "adsb", "--cores", "1", "--adsb", "no.bin"], &["adsb: left out: no.bin: No such file"]),
        (&["--peers=nowhere"], &["nowhere/jobs.sh does not exist", "--peers=DIR"]),
        (&["--plot", "o.png"], &["plots are written as SVG"]),
    ] {
        let mut all = vec!["bench", "jobs"];
        all.extend(arguments);
        let answer = place.onbeat(&all);
        assert_eq!((answer.status, &*answer.stdout), (Some(1), ""), "{arguments:?}: {answer:?}");
        for part in parts {
            assert!(answer.stderr.contains(part), "{arguments:?}: {part}: {}", answer.stderr);
        }
    }
}
