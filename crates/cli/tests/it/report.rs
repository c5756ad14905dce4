//! `onbeat report`, from records of runs that were just made.

use super::harness::Place;
use std::fs;

#[test]
fn a_run_and_its_report() {
    let place = Place::new();
    for (record, setting) in [("one.json", "numbers.count=5"), ("two.json", "numbers.count=50")] {
        let answer = place.onbeat(&["run", "late.toml", "-q", "--record", record, "--set", setting]);
        assert_eq!(answer.status, Some(0), "{answer:?}");
    }
    let answer = place.onbeat(&["report", "one.json", "two.json", "-o", "report.html"]);
    assert_eq!(
        (answer.status, answer.stdout.as_str(), answer.stderr.as_str()),
        (Some(0), "", ""),
        "{answer:?}"
    );
    let page = fs::read_to_string(place.path("report.html")).expect("a page");
    for part in ["<!doctype html>", "one.json", "two.json", "50 of 50 limits were missed", "numbers → end"]
    {
        assert!(page.contains(part), "{part}");
    }
    let csv = place.onbeat(&["report", "one.json", "two.json", "--format", "csv"]).stdout;
    assert!(csv.contains("\nrun.misses,count,5,50\n"), "{csv}");
    let json = place.onbeat(&["report", "one.json", "--format", "json", "-o", "-"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["runs"][0]["figures"]["run.misses"]["value"], 5.0);
    let markdown = place.onbeat(&["report", "one.json", "--format", "markdown"]).stdout;
    assert!(markdown.starts_with("## one.json: 5 of 5 limits were missed"), "{markdown}");
    // Overwritten, since it is not a record.
    let answer = place.onbeat(&["report", "one.json", "-o", "report.html"]);
    assert_eq!(answer.status, Some(0), "{answer:?}");
}
