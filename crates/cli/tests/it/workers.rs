//! Placement of workers from the command line.

use super::harness::Place;

fn record(place: &Place, name: &str) -> serde_json::Value {
    let text = std::fs::read_to_string(place.path(&format!("out/{name}.record.json"))).expect("a record");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn a_plan_can_be_drawn() {
    let place = Place::new();
    let answer = place.onbeat(&["plan", "count.toml", "--scheduler", "pinned", "--workers", "2", "--dot"]);
    assert_eq!(answer.status, Some(0), "{answer:?}");
    for part in ["digraph \"count\" {", "subgraph cluster_1 {", "o0 -> o1", "spsc ring", "style=bold"] {
        assert!(answer.stdout.contains(part), "{part}: {}", answer.stdout);
    }
    assert_eq!(answer.stdout.matches('{').count(), answer.stdout.matches('}').count());
}

#[test]
fn workers_and_all_other_threads_go_where_they_are_told() {
    let place = Place::new();
    let allowed = onbeat_os::CoreSet::allowed().expect("the cores of this process");
    let Some(core) = allowed.iter().last().map(|core| core.to_string()) else { return };
    let first = allowed.iter().next().unwrap_or(0).to_string();
    let answer = place.onbeat(&["run", "count.toml", "--cores", &core, "-H", &first]);
    assert_eq!(answer.status, Some(0), "{answer:?}");
    let record = record(&place, "count");
    let granted: Vec<String> = record["obtained"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|setting| format!("{} {} {}", setting["what"], setting["asked"], setting["obtained"]))
        .collect();
    assert_eq!(
        granted,
        [
            format!("\"cores of onbeat-w0\" \"{core}\" \"{core}\""),
            format!("\"house-keeping cores\" \"{first}\" \"{first}\"")
        ]
    );
}

#[test]
fn what_cannot_be_is_refused() {
    let place = Place::new();
    for (arguments, parts) in [
        (["--cores", "9999"], ["there is no core 9999", "--cores"]),
        (["--cores", "3-1"], ["3-1", "--cores"]),
        (["--cores", "-1"], ["-1", "--cores"]),
        (["--workers", "0"], ["`workers` is 0", "--workers"]),
        (["--workers", "two"], ["two", "--workers"]),
        (["--idle", "sleep"], ["`sleep` is not an idle setting", "--idle"]),
        (["--idle", "spin:never"], ["`never` is not a time to spin for", "--idle"]),
        (["-H", "9999"], ["there is no core 9999", "house"]),
        (["--costs", "no.json"], ["no.json", "cannot be read"]),
    ] {
        let mut all = vec!["run", "count.toml", "--scheduler", "pinned"];
        all.extend(arguments);
        let answer = place.onbeat(&all);
        assert_eq!(answer.status, Some(1), "{arguments:?}: {answer:?}");
        for part in parts {
            assert!(answer.stderr.contains(part), "{arguments:?}: {part}: {}", answer.stderr);
        }
        assert!(!place.path("out").exists(), "{arguments:?} left something behind");
    }
}

#[test]
fn operators_are_shared_out_by_what_they_cost() {
    let place = Place::new();
    assert_eq!(place.onbeat(&["run", "count.toml"]).status, Some(0));
    let costs = "out/count.record.json";
    let plan = ["plan", "count.toml", "--scheduler", "pinned", "--workers", "2", "--costs", costs];
    let answer = place.onbeat(&plan);
    assert_eq!(answer.status, Some(0), "{answer:?}");
    let answer = place.onbeat(&["plan", "late.toml", "--scheduler", "pinned", "--costs", "count.toml"]);
    assert_eq!(answer.status, Some(1), "{answer:?}");
    assert!(answer.stderr.contains("count.toml"), "{}", answer.stderr);
}

/// Pipeline with ticks, work at each, and a limit of one second.
const TICKS: &str = "name = 'ticks'\n[[operator]]\nname = 'tick'\nkind = 'timer'\nperiod = '5 ms'\ncount = 60\n\
    [[operator]]\nname = 'work'\nkind = 'load.count'\nbusy = '100 us'\n\
    [[operator]]\nname = 'end'\nkind = 'count.sink'\n\
    [[edge]]\nfrom = 'tick.out'\nto = 'work.in'\n[[edge]]\nfrom = 'work.out'\nto = 'end.in'\n\
    [[path]]\nfrom = 'tick'\nto = 'end'\nmax_latency = '1 s'\n";

#[test]
fn a_plan_says_how_late_messages_may_be() {
    let place = Place::new();
    std::fs::write(place.path("ticks.toml"), TICKS).expect("a file");
    let run = ["run", "ticks.toml", "--record", "ticks.json"];
    let answer = place.onbeat(&run);
    assert_eq!(answer.status, Some(0), "{answer:?}");
    let record: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(place.path("ticks.json")).expect("a record"))
            .expect("JSON");
    let path = &record["paths"][0];
    let (most, worst) = (path["latency"]["max_ns"].as_u64(), path["worst_ns"].as_u64());
    // By the clock of the same run: no message took longer, and each step may be the longest.
    let longest =
        record["operators"].as_array().map(|all| all.iter().map(|of| of["step"]["max_ns"].as_u64()));
    let longest: Option<u64> = longest.and_then(Iterator::sum);
    assert!(worst >= most && worst >= longest && longest > Some(100_000), "{path}");
    let plan = ["plan", "ticks.toml", "--costs", "ticks.json", "--strict"];
    let answer = place.onbeat(&plan);
    assert!(answer.status == Some(0) && answer.stdout.contains("at worst ms"), "{answer:?}");
    // Ten times as often as its work takes time; no period at all.
    for (setting, status, said) in [
        ("tick.period=\"10 us\"", Some(1), "onbeat-w0 is not admitted: its operators need"),
        ("pace=\"fast\"", Some(0), "no bound for tick → end: `tick` keeps no time"),
    ] {
        let answer = place.onbeat(&[&plan[..], &["--set", setting]].concat());
        let all = format!("{}{}", answer.stdout, answer.stderr);
        assert!(answer.status == status && all.contains(said), "{setting}: {answer:?}");
    }
    // A limit that no wake-up keeps.
    std::fs::write(place.path("hurry.toml"), TICKS.replace("1 s", "1 ns")).expect("a file");
    let answer = place.onbeat(&["plan", "hurry.toml", "--costs", "ticks.json", "--strict"]);
    assert!(answer.status == Some(1) && answer.stderr.contains("and its limit is"), "{answer:?}");
    std::fs::write(place.path("noise.json"), r#"{"no": "record"}"#).expect("a file");
    let answer = place.onbeat(&[&plan[..], &["--noise", "noise.json"]].concat());
    assert!(answer.status == Some(1) && answer.stderr.contains("--noise noise.json"), "{answer:?}");
}
