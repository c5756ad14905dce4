//! Which files are in use is known by the files themselves, not by numbers that other files get later.

use onbeat_runtime::FileUse;
use std::fs;
use std::path::PathBuf;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("onbeat-files-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }
    /// A file of this name with a few bytes.
    fn file(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, name).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// Many file systems give the inode number of a deleted file to the next new file.
#[test]
fn a_new_file_is_not_taken_for_a_deleted_one_that_is_in_use() {
    let folder = Folder::new("new");
    for round in 0..50 {
        let target = folder.file("target");
        let replacing = FileUse::replacing(&target, "operator `sink`").unwrap();
        // As the sink does at its end, or somebody else meanwhile.
        match round % 2 {
            0 => fs::remove_file(&target).unwrap(),
            _ => fs::rename(folder.file("target.part"), &target).unwrap(),
        }
        let other = folder.file(&format!("other-{round}"));
        drop(FileUse::reading(&other, "operator `source`").unwrap());
        assert!(!replacing.is_contested());
        let error = FileUse::reading(&target, "operator `source`").unwrap_err().to_string();
        assert!(error.contains("operator `sink` writes it"), "{error}");
    }
}

#[test]
fn a_file_in_use_is_known_by_its_other_names() {
    let folder = Folder::new("names");
    let (first, link, moved) = (folder.file("first"), folder.0.join("link"), folder.0.join("moved"));
    let reading = FileUse::reading(&first, "operator `source`").unwrap();
    fs::hard_link(&first, &link).unwrap();
    fs::rename(&first, &moved).unwrap();
    for name in [&first, &link, &moved] {
        let error = FileUse::replacing(name, "operator `sink`").unwrap_err().to_string();
        assert!(error.contains("operator `source` reads it"), "{error}");
    }
    drop(reading);
    assert!(FileUse::replacing(&moved, "operator `sink`").is_ok());
}
