//! Pipelines that write their data to stdout, or read it from stdin.

use super::harness::{Place, wait};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::process::Stdio;

const COPY: &str = r#"
[[operator]]
name = "in"
kind = "text.source"
path = "-"
[[operator]]
name = "out"
kind = "text.sink"
path = "-"
[[edge]]
from = "in"
to = "out"
"#;

const SAMPLES: &str = r#"
[[operator]]
name = "in"
kind = "stdin.source"
format = "ri16_le"
[[operator]]
name = "out"
kind = "stdout.sink"
format = "ri16_le"
[[edge]]
from = "in"
to = "out"
"#;

/// Endless pipeline, as fast as its reader.
const FLOOD: &str = r#"
[[operator]]
name = "in"
kind = "null.source"
[[operator]]
name = "out"
kind = "stdout.sink"
[[edge]]
from = "in"
to = "out"
"#;

fn place() -> Place {
    let place = Place::new();
    for (name, text) in [("copy.toml", COPY), ("samples.toml", SAMPLES), ("flood.toml", FLOOD)] {
        fs::write(place.path(name), text).expect("a file");
    }
    place
}

#[test]
fn lines_pass_and_the_table_goes_to_stderr() {
    let place = place();
    fs::write(place.path("input.txt"), "one\ntwo\n\nlast").expect("a file");
    let mut child = place
        .command(&["run", "copy.toml"])
        .stdin(File::open(place.path("input.txt")).expect("the file"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command");
    assert_eq!(wait(&mut child), Some(0));
    let (mut stdout, mut stderr) = (String::new(), String::new());
    child.stdout.take().expect("a pipe").read_to_string(&mut stdout).expect("text");
    child.stderr.take().expect("a pipe").read_to_string(&mut stderr).expect("text");
    assert_eq!(stdout, "one\ntwo\n\nlast\n");
    assert!(stderr.contains("copy: ended after"), "{stderr}");
}

#[test]
fn samples_pass_through_pipes() {
    let place = place();
    let mut child = place
        .command(&["run", "samples.toml", "-q"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command");
    let bytes: Vec<u8> = (0..=255u8).cycle().take(300_000).collect();
    let (mut stdin, mut stdout) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
    let mut received = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Cut in the middle of samples, and more than a pipe holds.
            bytes.chunks(7777).for_each(|piece| stdin.write_all(piece).expect("it reads"));
            drop(stdin);
        });
        stdout.read_to_end(&mut received).expect("it writes");
    });
    assert_eq!(wait(&mut child), Some(0));
    assert!(received == bytes, "{} bytes", received.len());
}

#[test]
fn a_reader_that_goes_away_ends_the_run() {
    let place = place();
    let mut child = place
        .command(&["run", "flood.toml"])
        .stdout(Stdio::piped())
        .stderr(File::create(place.path("stderr.txt")).expect("a file"))
        .spawn()
        .expect("the command");
    let mut stdout = child.stdout.take().expect("a pipe");
    stdout.read_exact(&mut [0; 1000]).expect("samples");
    drop(stdout);
    assert_eq!(wait(&mut child), Some(0));
    let stderr = fs::read_to_string(place.path("stderr.txt")).expect("a file");
    assert!(stderr.contains("the reader of stdout has closed it"), "{stderr}");
}

#[test]
fn a_full_pipe_holds_the_run_but_not_its_end() {
    let place = place();
    let mut child = place
        .command(&["run", "flood.toml", "-d", "200ms", "-q"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command");
    // Starts reading only long after the run should have ended.
    std::thread::sleep(std::time::Duration::from_millis(400));
    assert!(child.try_wait().expect("a child").is_none(), "messages in flight are not lost");
    let mut rest = Vec::new();
    child.stdout.take().expect("a pipe").read_to_end(&mut rest).expect("samples");
    assert_eq!(wait(&mut child), Some(0));
    assert!(rest.len() > 64 << 10);
}

#[test]
fn a_full_disk_is_an_error() {
    let place = place();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    let mut child = place
        .command(&["run", "flood.toml"])
        .stdout(full)
        .stderr(Stdio::null())
        .spawn()
        .expect("the command");
    assert_eq!(wait(&mut child), Some(1));
}

#[test]
fn stdout_has_one_writer() {
    let place = place();
    let too = "[[operator]]\nname = \"too\"\nkind = \"text.sink\"\npath = \"-\"\n";
    let two = format!("{COPY}{too}[[edge]]\nfrom = \"in\"\nto = \"too\"\n");
    fs::write(place.path("two.toml"), two).expect("a file");
    let answer = place.onbeat(&["run", "two.toml"]);
    assert_eq!(answer.status, Some(1));
    assert!(answer.stderr.contains("operators `out` and `too` both write to stdout"), "{}", answer.stderr);
    let answer = place.onbeat(&["run", "copy.toml", "--record", "-"]);
    assert_eq!(answer.status, Some(1));
    assert!(answer.stderr.contains("--record -: an operator"), "{}", answer.stderr);
    assert!(!place.path("out").exists());
}
