//! Properties of every operator that writes a file: the file is complete or absent, and an error names the
//! file that cannot be written.
#![forbid(unsafe_code)]

use crate::harness::{SmallDisk, files};
use num_complex::Complex;
use onbeat_operators::registry;
use onbeat_runtime::testing::{Feed, Trial};
use onbeat_runtime::{Ending, Kind, Registry};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

const RATE_HZ: f64 = 8e3;

/// Kinds that have an input and a path, except for `fir.taps`, which reads a file.
fn writers(registry: &Registry) -> Vec<&Kind> {
    let has_path =
        |kind: &Kind| serde_json::to_value(kind.schema()).unwrap()["properties"].get("path").is_some();
    let writes = |kind: &&Kind| !kind.name().starts_with("fir.taps") && has_path(kind);
    let all: Vec<_> = registry.kinds().filter(|kind| !kind.ports().0.is_empty()).filter(writes).collect();
    assert!(all.len() > 12, "{}", all.len());
    all
}

/// This many samples, numbers or lines, all different.
fn feed(kind: &Kind, count: usize) -> Feed {
    let noise = |n: usize| ((n * 2_654_435_761) % 65_537) as f32 / 65_537.0 - 0.5;
    match kind.ports().0[0].message.as_str() {
        // An axis, like that of spectra.
        "Chunk<f32>" if kind.name() == "waterfall.sink" => {
            let row = |n: usize| ([1000, 0, 0], (n..n + 1000).map(noise).collect());
            Feed::frames((0..count / 1000).map(row)).rate(RATE_HZ)
        }
        "Chunk<f32>" => Feed::samples((0..count).map(noise)).rate(RATE_HZ).cut(&[1000]),
        "Chunk<Complex<f32>>" => {
            Feed::samples((0..count).map(|n| Complex::new(noise(n), noise(n + 1)))).rate(RATE_HZ).cut(&[1000])
        }
        "Chunk<u8>" if ["png.sink.bytes", "y4m.sink"].contains(&kind.name()) => {
            let frame = |n: usize| (n * count..n * count + count / 4).map(|n| (noise(n) * 255.0) as i8 as u8);
            let frames = (0..4).map(|n| ([count as u32 / 100, 25, 0], frame(n).collect()));
            Feed::frames(frames).rate(RATE_HZ).quantum(count)
        }
        "Chunk<u8>" => Feed::samples((0..count).map(|n| (n * 37 % 251) as u8)).rate(RATE_HZ).cut(&[1000]),
        "f64" => Feed::messages((0..count).map(|n| f64::from(noise(n)))).every(125_000),
        "text" | "String" => Feed::messages((0..count).map(|n| format!("line {n}"))).every(125_000),
        other => panic!("{} takes {other}: say here what to feed it with", kind.name()),
    }
}

/// A trial in which it writes this file.
fn trial(kind: &Kind, path: &Path, feed: Feed) -> Trial {
    let kept: Vec<&str> = kind.example().lines().filter(|line| !line.starts_with("path")).collect();
    let often = if kind.name() == "tap" { "every = 0.001" } else { "" };
    // A JSON string is also a TOML string, whatever its contents.
    let path = serde_json::to_string(path).unwrap();
    let parameters = format!("path = {path}\n{}\n{often}", kept.join("\n"));
    Trial::kind(&registry(), kind.name(), &parameters).feed("in", feed)
}

/// Names of the files created for this path, sorted.
fn made(kind: &Kind, path: &Path) -> Vec<String> {
    let name = path.file_name().unwrap().to_str().unwrap();
    if kind.name().starts_with("sigmf.") {
        return vec![format!("{name}.sigmf-data"), format!("{name}.sigmf-meta")];
    }
    vec![name.to_string()]
}

#[test]
fn a_file_is_there_when_the_stream_has_ended() {
    for kind in writers(&registry()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/file");
        trial(kind, &path, feed(kind, 20_000)).run();
        assert_eq!(files(path.parent().unwrap()), made(kind, &path), "{}", kind.name());
    }
}

#[test]
fn a_run_that_is_stopped_keeps_what_came() {
    for kind in writers(&registry()) {
        if !kind.ports().0[0].message.starts_with("Chunk") {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let seen = trial(kind, &path, feed(kind, 20_000).paced()).stop_after(1_000_000_000).run();
        assert_eq!(seen.ending(), Some(Ending::Stopped), "{}", kind.name());
        assert_eq!(files(folder.path()), made(kind, &path), "{}", kind.name());
    }
}

#[test]
fn a_run_that_fails_leaves_what_was_there() {
    for kind in writers(&registry()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let names = made(kind, &path);
        names.iter().for_each(|name| fs::write(folder.path().join(name), "before").unwrap());
        let said = trial(kind, &path, feed(kind, 20_000).then_fail("on purpose")).failure();
        assert!(said.contains("on purpose"), "{}: {said}", kind.name());
        // Data from before the failure are kept under a temporary name.
        let mut left = files(folder.path());
        left.retain(|name| !name.ends_with(".part"));
        assert_eq!(left, names, "{}", kind.name());
        for name in names {
            assert_eq!(fs::read(folder.path().join(&name)).unwrap(), b"before", "{}: {name}", kind.name());
        }
    }
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn what_cannot_be_written_is_an_error_before_the_run() {
    for kind in writers(&registry()) {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        // A recording has its own endings.
        let last = made(kind, Path::new("x")).pop().unwrap().split_off(1);
        let named = |name: &str| at(&format!("{name}{last}"));
        fs::write(at("file"), "").unwrap();
        fs::create_dir(named("folder")).unwrap();
        fifo(&named("pipe"));
        symlink("/dev/null", named("device")).unwrap();
        fifo(&at(&format!("waits{last}.part")));
        fs::write(at("else"), "of somebody else").unwrap();
        symlink("else", at(&format!("link{last}.part"))).unwrap();
        let before = files(folder.path());
        for (path, expected) in [
            (at("file/x"), "cannot create"),
            (at("folder"), "the existing entry is not a regular file"),
            (at("pipe"), "the existing entry is not a regular file"),
            (at("device"), "the existing entry is not a regular file"),
            (at("waits"), "cannot create"),
            (at("link"), "cannot create"),
            (at("nul\0"), "cannot create"),
            (at(&"x".repeat(300)), "File name too long"),
            (Path::new("/proc/x").to_path_buf(), "cannot create /proc/x"),
        ] {
            let said = trial(kind, &path, feed(kind, 100)).failure();
            let name = kind.name();
            assert!(said.starts_with("cannot start: ") && said.contains(expected), "{name}: {said}");
            assert!(said.contains(&path.display().to_string()), "{name} names no file: {said}");
            assert_eq!(files(folder.path()), before, "{name}");
        }
        assert_eq!(fs::read(at("else")).unwrap(), b"of somebody else", "{}", kind.name());
    }
}

#[test]
#[allow(clippy::disallowed_macros, reason = "a test that is skipped says so")]
fn a_full_disk_is_an_error() {
    let disk = match SmallDisk::mount(64) {
        Ok(disk) => disk,
        Err(why) => return eprintln!("skipped: cannot mount a small disk: {why}"),
    };
    for kind in writers(&registry()) {
        let path = disk.0.path().join("file");
        let said = trial(kind, &path, feed(kind, 400_000)).failure();
        assert!(said.contains("No space left on device"), "{}: {said}", kind.name());
        assert!(said.contains(&path.display().to_string()), "{} names no file: {said}", kind.name());
        for name in files(disk.0.path()) {
            assert!(name.ends_with(".part"), "{}: {name}", kind.name());
            fs::remove_file(disk.0.path().join(name)).unwrap();
        }
    }
}
