//! `onbeat ctl SOCKET fetch`: what operators hand out.

use super::ctl::Running;
use super::harness::{Place, until};
use std::fs;

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
    assert!(!running.place.path("view.png.part").exists());
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
