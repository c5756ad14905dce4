//! Refusals of the file sources, and their messages.

use super::add_kind;
use super::arrays::npy;
use crate::harness::{failure, fast};
use onbeat_operators::registry;
use onbeat_runtime::Graph;
use onbeat_runtime::testing::Trial;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// Parameters of a source of this kind that reads a file.
fn parameters(kind: &str, path: &Path, more: &str) -> String {
    let needed = match kind {
        "iq.source" => "format = \"cu8\"\nsample_rate = \"1 MHz\"",
        "iq.source.real" => "format = \"ri16_le\"\nsample_rate = \"1 MHz\"",
        _ => "",
    };
    format!("path = {path:?}\n{needed}\n{more}")
}

/// Error at the start.
fn refusal(kind: &str, path: &Path, more: &str) -> String {
    let text = Trial::kind(&registry(), kind, &parameters(kind, path, more)).failure();
    assert!(text.starts_with("cannot start: "), "{text}");
    assert!(text.contains(&path.display().to_string()), "no file is named: {text}");
    text
}

#[test]
fn what_is_no_file_is_refused_by_all() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("folder")).unwrap();
    assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    symlink("loop", at("loop")).unwrap();
    symlink("/dev/zero", at("zero")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    fs::write(at("file"), "").unwrap();
    for kind in ["iq.source", "iq.source.real", "wav.source", "npy.source", "npy.source.complex"] {
        for (name, expected) in [
            ("missing", "No such file or directory"),
            ("folder", "it is a folder; give a regular file"),
            ("pipe", "it is a pipe"),
            ("socket", "it is a socket"),
            ("zero", "it is a device"),
            ("loop", "Too many levels of symbolic links"),
            ("file/a", "Not a directory"),
        ] {
            // Samples play from pipes, too; the shape of an array belongs to a whole file.
            if name == "pipe" && !kind.starts_with("npy") {
                continue;
            }
            let text = refusal(kind, &at(name), "");
            assert!(text.contains(expected), "{kind}, {name}: {text}");
        }
    }
}

#[test]
fn files_of_the_wrong_size_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("samples");
    for (bytes, kind, more, expected) in [
        (0, "iq.source", "", "is empty: there are no samples to play"),
        (7, "iq.source", "", "has 7 bytes, which is not a whole number of samples: one of cu8 has 2 bytes"),
        (8, "iq.source", "channels = 3\nchannel = 0", "one of cu8 of 3 channels has 6 bytes"),
        (6, "iq.source", "channels = 3\nchannel = 3", "`channel` is 3: there are 3, counted from 0"),
        (6, "iq.source", "channels = 0\nchannel = 0", "it has 0 channels: there must be from 1 to 1024"),
        (6, "iq.source", "channels = 2000\nchannel = 0", "it has 2000 channels"),
        (6, "iq.source", "offset = 3", "`offset` is 3"),
        (6, "iq.source", "offset = 1\ncount = 3", "`count` is 3: it must be from 1 to 2"),
        (6, "iq.source", "count = 0", "`count` is 0"),
        (5, "iq.source.real", "", "one of ri16_le has 2 bytes"),
    ] {
        fs::write(&path, vec![0; bytes]).unwrap();
        let text = refusal(kind, &path, more);
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn formats_of_the_other_kind_are_refused() {
    for (kind, parameters, expected) in [
        (
            "iq.source",
            "format = \"ru8\"\nsample_rate = 1",
            "its samples are real; use `iq.source.real`, or the format cu8",
        ),
        (
            "iq.source.real",
            "format = \"cf32_le\"\nsample_rate = 1",
            "its samples are complex; use `iq.source`, or the format rf32_le",
        ),
        ("iq.sink", "format = \"ri8\"", "use `iq.sink.real`"),
        ("sigmf.sink.real", "format = \"ci8\"", "use `sigmf.sink`"),
        ("iq.sink", "format = \"cu12_le\"", "unknown variant `cu12_le`"),
        ("iq.source", "format = \"cu8\"\nsample_rate = 0", "`sample_rate` is 0"),
        ("npy.source", "rate = -1", "`rate` is -1"),
        ("png.sink", "min = 2\nmax = 1", "`max` is 1: it must be above `min`, which is 2"),
        ("png.sink", "rows = 0", "`rows` is 0"),
        ("png.sink", "map = \"rainbow\"", "unknown variant `rainbow`"),
    ] {
        let made = registry().operator(kind, &format!("path = \"a\"\n{parameters}"));
        let text = made.err().unwrap_or_else(|| panic!("{kind} takes {parameters}")).to_string();
        assert!(text.contains(expected), "{text}");
    }
}

/// A WAV file that announces one number of bytes and has another.
fn wav(format: u16, channels: u16, bits: u16, said: u32, there: usize) -> Vec<u8> {
    let align = channels * bits.div_ceil(8);
    let mut bytes = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0".to_vec();
    for field in [format, channels] {
        bytes.extend(field.to_le_bytes());
    }
    bytes.extend(8000u32.to_le_bytes());
    bytes.extend((8000 * u32::from(align)).to_le_bytes());
    for field in [align, bits] {
        bytes.extend(field.to_le_bytes());
    }
    bytes.extend(b"data");
    bytes.extend(said.to_le_bytes());
    bytes.resize(bytes.len() + there, 0);
    bytes
}

#[test]
fn bad_wav_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.wav");
    for (bytes, expected) in [
        (vec![], "its WAV header cannot be read"),
        (b"RIFF".to_vec(), "its WAV header cannot be read"),
        (b"what is this, not a WAV file at all".to_vec(), "it is not a WAV file: it begins with `what`"),
        (b"RIFF\x04\0\0\0AVI ".to_vec(), "its type is not `WAVE`"),
        (wav(1, 1, 16, 0, 0)[..36].to_vec(), "there is no `data` chunk"),
        (wav(1, 1, 16, 0, 0), "there is nothing to play"),
        (wav(1, 1, 16, 1, 1), "there is nothing to play"),
        (wav(1, 0, 16, 4, 4), "its header says that it has no channels"),
        (wav(2, 1, 16, 4, 4), "of type 2 with 16 bits in 2 bytes, which is not supported"),
        (wav(3, 1, 24, 8, 8), "of type 3 with 24 bits in 3 bytes"),
        (wav(1, 1, 0, 8, 8), "of type 1 with 0 bits"),
        (
            wav(1, 2, 16, 8, 8),
            "it has 2 channels: choose one with `channel`, from 0 to 1, or play all, each at its own output, \
             with `channels = 2`",
        ),
    ] {
        fs::write(&path, bytes).unwrap();
        let text = refusal("wav.source", &path, "");
        assert!(text.contains(expected), "{text}");
    }
    fs::write(&path, wav(1, 2, 16, 8, 8)).unwrap();
    for (more, expected) in [
        ("channel = 2", "`channel` is 2: there are 2, counted from 0; choose one from 0 to 1"),
        ("channels = 1", "it has 2 channels, but `channels` is 1: correct it"),
        ("channels = 3\nchannel = 0", "it has 2 channels, but `channels` is 3"),
    ] {
        let text = refusal("wav.source", &path, more);
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn bad_arrays_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    let data = [0; 24];
    for (bytes, expected) in [
        (vec![], "its header cannot be read"),
        (b"\x93NUMPY\x01\0\xff\xff".to_vec(), "its header cannot be read"),
        (b"PK\x03\x04 an archive".to_vec(), "it is not an NPY file: create it with `numpy.save`"),
        (b"\x93NUMPY\x04\0\x01\0 ".to_vec(), "its version is 4"),
        (b"\x93NUMPY\x02\0\xff\xff\xff\xff".to_vec(), "has 4294967295 bytes: 65536 is the limit"),
        (
            npy("<f4", "(7,)", &data, 1),
            "its shape [7] needs 28 bytes of samples, but the file has 24: it is truncated",
        ),
        (npy("<f4", "(0, 3)", &[], 1), "has an axis of length 0: there is nothing to play"),
        (npy("<f4", "()", &data, 1), "it is a single number"),
        (npy("<f4", "(1, 1, 1, 1, 6)", &data, 1), "it has 5 axes"),
        (npy("<f4", "(2, 4294967296, 4294967296, 4294967296)", &data, 1), "is too large"),
        (npy("<f4", "(9223372036854775807, 2, 2)", &data, 1), "is too large"),
        (npy("<f4", "(9223372036854775807,)", &data, 1), "is too large"),
        (npy("<c8", "(3,)", &data, 1), "its samples are complex: play it with `npy.source.complex`"),
        (npy("|O", "(3,)", &data, 1), "`|O`, which is not supported"),
    ] {
        fs::write(&path, bytes).unwrap();
        let text = refusal("npy.source", &path, "");
        assert!(text.contains(expected), "{text}");
    }
    fs::write(&path, npy("<f4", "(6,)", &data, 1)).unwrap();
    let text = refusal("npy.source.complex", &path, "");
    assert!(text.contains("its samples are real: play it with `npy.source`"), "{text}");
    let text = refusal("npy.source.bytes", &path, "");
    assert!(text.contains("its samples are not bytes: play it with `npy.source`"), "{text}");
}

#[test]
fn no_run_destroys_its_input() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("samples");
    fs::write(&path, [1; 8]).unwrap();
    let mut graph = Graph::new("eats");
    add_kind(&mut graph, "source", "iq.source", &parameters("iq.source", &path, ""));
    add_kind(&mut graph, "sink", "iq.sink", &format!("path = {path:?}\nformat = \"cu8\""));
    graph.connect_names("source.out", "sink.in");
    assert!(failure(graph, &fast(16 << 10, 4)).contains("give them different files"));
    assert_eq!(fs::read(&path).unwrap(), [1; 8]);
}
