//! `onbeat bench saxpy`, so short that its figures mean nothing.

use super::harness::Place;
use serde_json::Value;
use std::fs;

const TINY: [&str; 11] =
    ["bench", "saxpy", "--rounds", "2", "--seconds", "0.004", "--cores", "1", "--quantum", "4KiB", "--mode"];

fn tiny<'a>(more: &[&'a str]) -> Vec<&'a str> {
    TINY.into_iter().chain(more.iter().copied()).collect()
}

#[test]
fn people_get_tables_and_a_plot() {
    let place = Place::new();
    let answer = place.onbeat(&tiny(&["greedy,event", "--kernels", "1-2", "--plot", "s.svg"]));
    assert_eq!((answer.status, &*answer.stderr), (Some(0), ""), "{answer:?}");
    for part in
        ["saxpy: source, M times", "Gsamples/s", "out of place", "chain.n1.m2.q4k", "plot written to s.svg"]
    {
        assert!(answer.stdout.contains(part), "{part}: {}", answer.stdout);
    }
    let svg = fs::read_to_string(place.path("s.svg")).expect("a plot");
    assert!(svg.starts_with("<svg ") && svg.contains("fair: N/M"), "{svg}");
}

#[test]
fn programs_get_json() {
    let answer = Place::new().onbeat(&tiny(&[
        "greedy",
        "--kernels",
        "2",
        "--in-place",
        "--operator",
        "own",
        "--format",
        "json",
    ]));
    assert_eq!(answer.status, Some(0), "{answer:?}");
    let found: Value = serde_json::from_str(&answer.stdout).expect("JSON");
    assert_eq!(
        (&found["bench"], &found["parameters"]["kernels"]),
        (&"saxpy".into(), &serde_json::json!([2]))
    );
    let name = "saxpy.greedy.n1.m2.q4k.in_place.own";
    for (what, unit) in [("rate", "Gsamples/s"), ("share", "%"), ("of_bare", "%")] {
        let figure = &found["figures"][format!("{name}.{what}")];
        assert!(
            figure["value"].is_f64() && figure["unit"] == unit && figure["runs"] == 2,
            "{what}: {figure}"
        );
    }
    assert!(found["figures"]["bare.kernel.q4k.in_place.rate"]["value"].is_f64());
}

/// Script with the interface of `peers/saxpy.sh`.
const PEERS: &str = r#"
case "$1" in
list)
    echo '{"peer": "one", "version": "1.2", "variant": "default", "how": "as it comes", "in_place": true, "quantum": 4096, "cores": [1]}'
    echo '{"peer": "two", "version": "3", "variant": "best", "how": "tuned", "in_place": false, "quantum": 8192, "cores": [1, 2]}'
    echo '{"peer": "three", "missing": "it is in no registry"}'
    echo 'nonsense'
    ;;
run)
    [ "$4 $5 $6" = "1 2 0.2" ] || exit 9
    [ "$2 $3" = "one default" ] && echo '{"rate": 2e6}' && exit
    echo "it has no such variant" >&2
    exit 3
    ;;
esac
"#;

#[test]
fn peers_run_the_same_chains_in_turn() {
    let place = Place::new();
    fs::create_dir(place.path("others")).expect("a folder");
    fs::write(place.path("others/saxpy.sh"), PEERS).expect("a file");
    let answer = place.onbeat(&tiny(&["greedy", "--kernels", "2", "--peers=others", "--format", "json"]));
    assert_eq!((answer.status, &*answer.stderr), (Some(0), ""), "{answer:?}");
    let found: Value = serde_json::from_str(&answer.stdout).expect("JSON");
    assert_eq!(found["figures"]["peer.one.default.n1.m2.rate"]["value"], 0.002);
    assert!(found["figures"]["peer.one.default.n1.m2.share"]["value"].is_f64());
    assert!(found["figures"]["saxpy.greedy.n1.m2.q4k.in_place.times_best_peer"]["value"].is_f64());
    assert!(found["figures"]["peer.two.best.n1.m2.rate"].is_null());
    let notes = found["notes"].to_string();
    for part in [
        "three: not available: it is in no registry",
        "unexpected output `nonsense`",
        "two.best.n1.m2: it has no such variant",
    ] {
        assert!(notes.contains(part), "{part}: {notes}");
    }
    assert_eq!(found["parameters"]["peers"][1]["how"], "tuned");
}

#[test]
fn what_cannot_be_is_refused() {
    let place = Place::new();
    for (arguments, parts) in [
        (&["--cores", "0"][..], &["'0' for '--cores", "0 is too small"][..]),
        (&["--cores", "2-1"], &["`2-1` is not a number or range"]),
        (&["--cores", "900"], &["cores: 900 are needed, but there are"]),
        (&["--kernels", "x"], &["'x' for '--kernels", "1-4 or 1,2,8"]),
        (&["--kernels", "5000"], &["kernels: at most 1000"]),
        (&["--quantum", "16 parsecs"], &["`16 parsecs` is not a size"]),
        (&["--quantum", "5"], &["quantum: 5 bytes: it must be a multiple of 4"]),
        (&["--mode", "gredy"], &["'gredy' for '--mode", "'greedy'"]),
        (&["--mode", "pinned", "--cores", "1"], &["nothing can be measured", "pinned needs"]),
        (&["--operator", "mine"], &["'mine' for '--operator", "own"]),
        (&["--seconds", "0"], &["seconds: 0: it must be from 0.001 to 60"]),
        (&["--seconds", "-1"], &["seconds: -1: it must be from 0.001 to 60"]),
        (&["--rounds", "0"], &["'0' for '--rounds"]),
        (&["--on", "8191"], &["on: core 8191 is not available to this process"]),
        (&["--idle", "nap"], &["`nap` is not an idle setting"]),
        (&["--peers=nowhere"], &["nowhere/saxpy.sh does not exist", "--peers=DIR"]),
        (&["--plot", "o.png"], &["plots are written as SVG"]),
    ] {
        let mut all = vec!["bench", "saxpy"];
        all.extend(arguments);
        let answer = place.onbeat(&all);
        assert_eq!((answer.status, &*answer.stdout), (Some(1), ""), "{arguments:?}: {answer:?}");
        for part in parts {
            assert!(answer.stderr.contains(part), "{arguments:?}: {part}: {}", answer.stderr);
        }
    }
}
