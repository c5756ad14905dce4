//! Settings are put back, also those of a process that was killed.

use onbeat_os::knob::Knobs;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let place = std::env::temp_dir().join(format!("onbeat-knob-{}-{name}", std::process::id()));
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join("a"), "1\n").unwrap();
        fs::write(place.join("b"), "two\n").unwrap();
        Place(place)
    }
    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap().trim().to_owned()
    }
    fn journals(&self) -> usize {
        fs::read_dir(self.0.join("j")).map_or(0, Iterator::count)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

#[test]
fn what_was_changed_is_put_back() {
    let place = Place::new("back");
    let mut knobs = Knobs::at(&place.0.join("j")).unwrap();
    knobs.set(&place.0.join("a"), "5").unwrap();
    knobs.set(&place.0.join("a"), "6").unwrap();
    knobs.set(&place.0.join("b"), "two").unwrap();
    knobs.make_folder(&place.0.join("instance")).unwrap();
    assert_eq!((place.read("a"), place.journals()), ("6".into(), 1));
    let other = Knobs::at(&place.0.join("j")).unwrap();
    assert!(other.cleaned().is_empty() && place.read("a") == "6", "the living are left alone");
    drop(other);
    drop(knobs);
    assert_eq!((place.read("a"), place.read("b"), place.journals()), ("1".into(), "two".into(), 0));
    assert!(!place.0.join("instance").exists());
}

#[test]
fn what_a_killed_process_left_is_put_back_by_the_next() {
    let place = Place::new("killed");
    fs::create_dir(place.0.join("j")).unwrap();
    fs::create_dir(place.0.join("instance")).unwrap();
    // A process that is gone for certain.
    let mut child = Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    let at = |name: &str| place.0.join(name).display().to_string();
    let journal = format!(
        "{} 1\nset\t{}\t1\t9\nset\t{}\ttwo\tthree\nset\t/nowhere/x\t1\t2\nfolder\t{}\nhalf a li",
        child.id(),
        at("a"),
        at("b"),
        at("instance")
    );
    fs::write(place.0.join("j/1.0.knobs"), journal).unwrap();
    fs::write(place.0.join("a"), "9\n").unwrap();
    fs::write(place.0.join("b"), "changed by somebody else\n").unwrap();
    let knobs = Knobs::at(&place.0.join("j")).unwrap();
    assert_eq!((place.read("a"), place.read("b")), ("1".into(), "changed by somebody else".into()));
    assert!(!place.0.join("instance").exists());
    assert_eq!(knobs.cleaned().len(), 2, "{:?}", knobs.cleaned());
    drop(knobs);
    assert_eq!(place.journals(), 0);
}

#[test]
fn what_cannot_be_set_is_named() {
    let place = Place::new("named");
    let mut knobs = Knobs::at(&place.0.join("j")).unwrap();
    let error = knobs.set(&place.0.join("none"), "7").unwrap_err().to_string();
    assert!(error.contains("none: cannot be set to `7`: No such file"), "{error}");
    let error = knobs.set(&place.0.join("a"), "7\n8").unwrap_err().to_string();
    assert!(error.contains("one line"), "{error}");
    let error = knobs.make_folder(&place.0).unwrap_err().to_string();
    assert!(error.contains("cannot be made: File exists"), "{error}");
    drop(knobs);
    assert_eq!(place.read("a"), "1");
}

#[test]
fn a_folder_that_cannot_be_taken_away_yet_stays_in_the_journal() {
    let place = Place::new("busy");
    let (file_system, away, journals) = (place.0.join("mounted"), place.0.join("away"), place.0.join("j"));
    fs::create_dir(&file_system).unwrap();
    let folder = file_system.join("instance");
    let mut knobs = Knobs::at(&journals).unwrap();
    knobs.set(&place.0.join("a"), "5").unwrap();
    knobs.make_folder(&folder).unwrap();
    fs::write(folder.join("used"), "").unwrap();
    drop(knobs);
    assert_eq!((place.read("a"), place.journals()), ("1".into(), 1), "a value is put back once");
    // Its process dies.
    let mut child = Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    let journal = fs::read_dir(&journals).unwrap().next().unwrap().unwrap().path();
    let text = fs::read_to_string(&journal).unwrap();
    let (_, changes) = text.split_once('\n').unwrap();
    assert_eq!(changes, format!("folder\t{}\n", folder.display()));
    fs::write(&journal, format!("{} 1\n{changes}", child.id())).unwrap();
    // Still in use; then not mounted; then free.
    drop(Knobs::at(&journals).unwrap());
    fs::remove_file(folder.join("used")).unwrap();
    fs::rename(&file_system, &away).unwrap();
    drop(Knobs::at(&journals).unwrap());
    assert_eq!(place.journals(), 1);
    fs::rename(&away, &file_system).unwrap();
    let knobs = Knobs::at(&journals).unwrap();
    assert_eq!(knobs.cleaned(), [format!("{} is gone", folder.display())]);
    drop(knobs);
    assert!(!folder.exists() && place.journals() == 0);
}
