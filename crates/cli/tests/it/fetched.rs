//! `onbeat ctl SOCKET fetch`: what operators hand out.

use super::ctl::Running;
use super::harness::{Place, until};
use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};

/// A film of one frame, again and again, and a tap at its end.
const VIEW: &str = r#"
name = "steered"
[[operator]]
name = "film"
kind = "y4m.source"
path = "film.y4m"
repeat = 0
[[operator]]
name = "view"
kind = "tap.image"
[[edge]]
from = "film"
to = "view"
"#;

#[test]
fn the_latest_frame_is_saved() {
    let place = Place::new();
    let film = b"YUV4MPEG2 W2 H2 F100:1 Cmono\nFRAME\n\x10\x40\x80\xeb";
    fs::write(place.path("film.y4m"), film).expect("a file");
    let running = Running::of(place, VIEW);
    let saved = || (running.ctl(&["fetch", "view", "view.png"]).status == Some(0)).then_some(());
    until("a frame is there", saved).expect("it comes");
    let answer = running.ctl(&["fetch", "view", "view.png"]);
    assert!(
        answer.stdout.starts_with("view.png: ") && answer.stdout.ends_with(" bytes, image/png\n"),
        "{answer:?}"
    );
    let png = fs::read(running.place.path("view.png")).expect("a file");
    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
    // Links are followed, and what is not a file stays what it is.
    let path = |name| running.place.path(name);
    fs::write(path("target"), "before").expect("a file");
    symlink(path("target"), path("link")).expect("a link");
    fs::create_dir(path("folder")).expect("a folder");
    let answer = running.ctl(&["fetch", "view", "link"]);
    assert!(answer.status == Some(0) && fs::read(path("target")).expect("a file") == png, "{answer:?}");
    let answer = running.ctl(&["fetch", "view", "folder"]);
    assert!(answer.status == Some(1) && answer.stderr.contains("cannot write folder"), "{answer:?}");
    let answer = running.ctl(&["fetch", "view", "/dev/null"]);
    assert!(answer.status == Some(0) && answer.stdout.is_empty(), "{answer:?}");
    let kind = fs::metadata("/dev/null").expect("it is there").file_type();
    assert!(kind.is_char_device());
    let names =
        || fs::read_dir(path(".")).expect("a folder").map(|entry| entry.expect("an entry").file_name());
    assert!(
        names().all(|name| !name.to_string_lossy().contains(".tmp")),
        "{:?}",
        names().collect::<Vec<_>>()
    );
    for (arguments, text) in [
        (["fetch", "film", "x.png"], "operator `film`: there is nothing to fetch from it"),
        (["fetch", "veiw", "x.png"], "there is no operator `veiw`: did you mean `view`?"),
        (["fetch", "view", "no/folder/x.png"], "cannot write no/folder/x.png"),
    ] {
        let answer = running.ctl(&arguments);
        assert!(answer.status == Some(1) && answer.stderr.contains(text), "{answer:?}");
    }
    assert!(!running.place.path("x.png").exists());
    running.end();
}
