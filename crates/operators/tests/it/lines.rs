//! Lines of text, and chunks as raw bytes.
#![forbid(unsafe_code)]

use onbeat_operators::{FileSink, TextSink, TextSource, registry};
use onbeat_runtime::testing::{Feed, Trial};
use std::fs;

fn lines(texts: &[&str]) -> Feed {
    Feed::messages(texts.iter().map(ToString::to_string).collect::<Vec<_>>())
}

#[test]
fn lines_go_to_a_file_and_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/lines.txt");
    let texts = ["one", "", "zwölf", "{\"n\":4}"];
    Trial::new(TextSink::new(&path)).feed("in", lines(&texts)).run();
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\n\nzwölf\n{\"n\":4}\n");
    assert_eq!(Trial::new(TextSource::new(&path)).run().messages::<String>("out"), texts);
}

#[test]
fn a_run_that_fails_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("lines.txt");
    fs::create_dir(&target).unwrap();
    let text = Trial::new(TextSink::new(&target)).feed("in", lines(&["x"])).failure();
    assert!(text.contains("cannot create"), "{text}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn lines_of_all_kinds_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lines.txt");
    let long = "x".repeat(100_000);
    for (text, expected) in [
        ("", vec![]),
        ("\n", vec![""]),
        ("a\r\nb", vec!["a", "b"]),
        ("a\0b\n\nc\n", vec!["a\0b", "", "c"]),
        (long.as_str(), vec![long.as_str()]),
    ] {
        fs::write(&path, text).unwrap();
        assert_eq!(Trial::new(TextSource::new(&path)).run().messages::<String>("out"), expected);
    }
}

#[test]
fn what_is_no_text_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lines.txt");
    for (bytes, expected) in [
        (vec![b'a', b'\n', 0xff], "line 2 is not valid UTF-8"),
        (vec![b'x'; 3 << 20], "line 1 is longer than 1 MiB"),
    ] {
        fs::write(&path, bytes).unwrap();
        let text = Trial::new(TextSource::new(&path)).failure();
        assert!(text.contains(expected), "{text}");
    }
    for (path, expected) in
        [(folder.path().to_path_buf(), "a folder"), (folder.path().join("no"), "No such file")]
    {
        let text = Trial::new(TextSource::new(path)).failure();
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn chunks_are_written_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bytes");
    Trial::new(FileSink::<u8>::new(&path)).feed("in", Feed::samples(0..=255u8).cut(&[7])).run();
    assert_eq!(fs::read(&path).unwrap(), (0..=255).collect::<Vec<u8>>());
    let parameters = format!("path = {:?}", folder.path().join("floats"));
    Trial::kind(&registry(), "file.sink", &parameters).feed("in", Feed::samples([1.0f32, -2.0])).run();
    assert_eq!(fs::read(folder.path().join("floats")).unwrap(), [0, 0, 128, 63, 0, 0, 0, 192]);
}
