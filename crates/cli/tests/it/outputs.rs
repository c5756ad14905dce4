//! Data on stdout, messages on stderr, and output files.

use super::harness::{Place, wait};
use onbeat::Record;
use std::fs;
use std::process::Stdio;

#[test]
fn json_is_the_record() {
    let place = Place::new();
    let answer = place.onbeat(&["run", "count.toml", "--format", "json", "--quiet"]);
    let record = Record::from_json(&answer.stdout).expect("a record");
    assert_eq!((record.name.as_str(), record.edges[0].received), ("count", 5));
    let written = fs::read_to_string(place.path("out/count.record.json")).expect("the record");
    assert_eq!(Record::from_json(&written).expect("a record"), record);
    assert!(record.threads.iter().any(|thread| thread.name == "onbeat-signal"), "{:?}", record.threads);
}

#[test]
fn a_limit_is_in_the_record() {
    let answer = Place::new().onbeat(&["run", "late.toml", "--format", "json", "--max-misses", "0"]);
    let record = Record::from_json(&answer.stdout).expect("a record");
    assert_eq!((answer.status, record.result.exit_status), (Some(2), 2));
    assert!(record.result.reason.contains("--max-misses"), "{}", record.result.reason);
}

#[test]
fn the_record_may_go_to_stdout() {
    let place = Place::new();
    let answer = place.onbeat(&["run", "count.toml", "--record", "-"]);
    Record::from_json(&answer.stdout).expect("a record and nothing else");
    assert!(answer.stderr.contains("count: ended after"), "{}", answer.stderr);
    assert!(!place.path("out/count.record.json").exists());
    let answer = place.onbeat(&["run", "count.toml", "--record", "-", "--format", "json"]);
    Record::from_json(&answer.stdout).expect("once");
}

#[test]
fn csv_is_tables() {
    let answer = Place::new().onbeat(&["run", "late.toml", "--format", "csv"]);
    let tables: Vec<&str> = answer.stdout.split("\n\n").collect();
    let names: Vec<&str> = tables.iter().filter_map(|table| table.split(',').next()).collect();
    assert_eq!(names, ["run", "operator", "edge", "path", "cause", "worker"]);
    for table in tables {
        let columns = table.lines().map(|line| line.split(',').count());
        assert_eq!(columns.clone().min(), columns.max(), "{table}");
    }
    assert!(answer.stdout.contains("numbers → end,5,"), "{}", answer.stdout);
}

#[test]
fn plans_and_kinds_are_json_too() {
    let place = Place::new();
    let json = |arguments: &[&str]| -> serde_json::Value {
        serde_json::from_str(&place.onbeat(arguments).stdout).expect("JSON")
    };
    assert_eq!(json(&["plan", "count.toml", "--format", "json"])["edges"][0]["to"], "end.in");
    assert_eq!(json(&["operators", "counter", "--format", "json"])["outputs"][0]["message"], "u64");
    assert!(json(&["operators", "--format", "json"]).as_array().is_some_and(|kinds| kinds.len() > 10));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let place = Place::new();
    for (arguments, status) in [
        (&["operators"][..], 0),
        (&["run", "count.toml"], 0),
        (&["run", "late.toml", "--max-misses", "0"], 2),
    ] {
        let mut child = place
            .command(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the command");
        drop(child.stdout.take());
        assert_eq!(wait(&mut child), Some(status), "{arguments:?}");
    }
}

#[test]
fn a_full_disk_under_stdout_is_an_error() {
    let place = Place::new();
    for arguments in [
        &["--help"][..],
        &["run", "--help"],
        &["help", "plan"],
        &["--version"],
        &["operators"],
        &["operators", "counter", "--format", "markdown"],
        &["schema"],
        &["completions", "zsh"],
        &["man"],
        &["check", "count.toml"],
        &["plan", "count.toml"],
        &["plan", "count.toml", "--dot"],
        &["run", "count.toml"],
        &["run", "count.toml", "--format", "json", "-q"],
        &["run", "count.toml", "--record", "-"],
    ] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
        let stderr = fs::File::create(place.path("stderr.txt")).expect("a file");
        let mut child = place.command(arguments).stdout(full).stderr(stderr).spawn().expect("the command");
        assert_eq!(wait(&mut child), Some(1), "{arguments:?}");
        let stderr = fs::read_to_string(place.path("stderr.txt")).expect("a file");
        assert!(stderr.contains("stdout: cannot be written: No space left"), "{arguments:?}: {stderr}");
    }
}

#[test]
fn no_record_takes_the_place_of_data() {
    let place = Place::new();
    let copy = "[[operator]]\nname = \"in\"\nkind = \"text.source\"\npath = \"data\"\n\
        [[operator]]\nname = \"end\"\nkind = \"text.sink\"\npath = \"copy\"\n\
        [[edge]]\nfrom = \"in\"\nto = \"end\"\n";
    fs::write(place.path("copy.toml"), copy).expect("a file");
    std::os::unix::fs::symlink("data", place.path("link")).expect("a link");
    // A record can also be the input of an operator.
    assert_eq!(place.onbeat(&["run", "count.toml", "--record", "data"]).status, Some(0));
    let record = fs::read_to_string(place.path("data")).expect("a record");
    for (data, what) in
        [("some lines", "is not a record"), (record.as_str(), "the record writes it and an operator reads")]
    {
        fs::write(place.path("data"), data).expect("a file");
        fs::remove_file(place.path("hard")).ok();
        fs::hard_link(place.path("data"), place.path("hard")).expect("a link");
        for name in ["data", "./out/../data", "hard", "link"] {
            let answer = place.onbeat(&["run", "copy.toml", "--record", name]);
            assert_eq!(answer.status, Some(1), "{name}: {answer:?}");
            assert!(answer.stderr.contains(what), "{name}: {}", answer.stderr);
            assert_eq!(fs::read_to_string(place.path("data")).expect("the data"), data, "{name}");
        }
    }
    // A sink's file, from an earlier run, and an empty one.
    fs::write(place.path("data"), "some lines").expect("a file");
    assert_eq!(place.onbeat(&["run", "copy.toml", "-q"]).status, Some(0));
    assert_eq!(place.onbeat(&["run", "copy.toml", "-q", "--record", "out/copy"]).status, Some(1));
    assert_eq!(fs::read_to_string(place.path("out/copy")).expect("the copy"), "some lines\n");
    fs::write(place.path("empty"), "").expect("a file");
    assert_eq!(place.onbeat(&["run", "copy.toml", "-q", "--record", "empty"]).status, Some(0));
}

#[test]
fn the_record_that_cannot_be_written_is_an_error_after_the_table() {
    let place = Place::new();
    let answer = place.onbeat(&["run", "count.toml", "--record", "/dev/full"]);
    assert_eq!(answer.status, Some(1));
    assert!(answer.stdout.contains("count: ended after"), "{}", answer.stdout);
    assert!(answer.stderr.contains("record /dev/full"), "{}", answer.stderr);
}

#[test]
fn nothing_is_left_of_a_run_that_did_not_begin() {
    let place = Place::new();
    let answer = place.onbeat(&["run", "count.toml", "--set", "output=a/b/c", "--record", "no/x.json"]);
    assert_eq!(answer.status, Some(1));
    assert!(!place.path("a").exists());
}

#[test]
fn a_mistake_shows_its_line() {
    let place = Place::new();
    fs::write(place.path("bad.toml"), "name = \"bad\"\ncapasity = 4\n").expect("a file");
    let answer = place.onbeat(&["run", "bad.toml"]);
    assert_eq!(answer.status, Some(1));
    assert!(answer.stderr.starts_with("bad.toml:2:1: unknown key `capasity`"), "{}", answer.stderr);
    assert!(answer.stderr.contains("    2 | capasity = 4\n      | ^^^^^^^^\n"), "{}", answer.stderr);
    assert!(!answer.stderr.contains('\u{1b}'));
    assert!(!place.path("out").exists());
}

/// Manual pages, each with what belongs to it, and completions that their shells would read.
#[test]
fn the_files_of_an_installation_are_where_programs_look_for_them() {
    let place = Place::new();
    let answer = place.onbeat(&["man", "--prefix", "new/prefix"]);
    assert_eq!((answer.status, answer.stderr.as_str()), (Some(0), ""));
    let text = |name: &str| {
        let name = format!("new/prefix/share/{name}");
        assert!(answer.stdout.lines().any(|line| line == name), "{name}: {}", answer.stdout);
        fs::read_to_string(place.path(&name)).expect("a file there")
    };
    for (page, parts) in [
        ("onbeat", &[".TH onbeat 1", "COMMAND: BENCH OVERHEAD", "\n.SH EXAMPLES\n", "EXIT STATUS"][..]),
        ("onbeat-run", &[".TH onbeat-run 1", "max\\-misses", "EXIT STATUS"]),
        ("onbeat-noise", &[".TH onbeat-noise 1", "\n.SH COMMANDS\n", "COMMAND: TOP", "\n.SH EXAMPLES\n"]),
    ] {
        let found = text(&format!("man/man1/{page}.1"));
        for part in parts {
            assert!(found.contains(part), "{page}: no {part:?} in {found}");
        }
    }
    assert!(text("bash-completion/completions/onbeat").contains("complete -F _onbeat"));
    assert!(text("zsh/site-functions/_onbeat").starts_with("#compdef onbeat\n"));
    assert!(text("fish/vendor_completions.d/onbeat.fish").contains("complete -c onbeat"));
    // A second time, and where no folder can be made.
    assert_eq!(place.onbeat(&["man", "--prefix", "new/prefix"]).stdout, answer.stdout);
    let answer = place.onbeat(&["man", "--prefix", "count.toml"]);
    assert_eq!(answer.status, Some(1));
    assert!(answer.stderr.contains("count.toml/share/man/man1: cannot be created"), "{}", answer.stderr);
    assert!(answer.stderr.contains("--prefix ~/.local"), "{}", answer.stderr);
}
