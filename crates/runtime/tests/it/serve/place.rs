//! The socket's file.

use super::{Client, Folder, endless, goes_on};
use crate::watchdog::watched;
use onbeat_runtime::ControlSocket;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::process::Command;

#[test]
fn it_is_there_for_its_owner_and_goes_away() {
    let folder = Folder::new();
    let path = folder.path("ctl");
    let socket = ControlSocket::bind(&path).unwrap();
    let found = fs::symlink_metadata(&path).unwrap();
    assert!(found.file_type().is_socket());
    assert_eq!((found.mode() & 0o7777, found.uid()), (0o600, onbeat_os::local::user()));
    assert_eq!(socket.path(), path);
    drop(socket);
    assert!(!path.exists());
}

#[test]
fn what_a_killed_run_left_is_replaced() {
    watched(60, || {
        let folder = Folder::new();
        let path = folder.path("ctl");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let run = endless(&path);
        assert!(Client::new(&path).ask(r#""command":"hello""#).contains("endless"));
        run.stop();
        run.wait().unwrap();
        assert!(!path.exists());
    });
}

#[test]
fn one_that_is_served_is_left_to_who_serves_it() {
    watched(60, || {
        let folder = Folder::new();
        let path = folder.path("ctl");
        let run = endless(&path);
        let error = ControlSocket::bind(&path).unwrap_err().to_string();
        let who = format!("process {} serves it already", std::process::id());
        assert!(
            error.contains(&who) && error.contains(&format!("`onbeat ctl {} stop`", path.display())),
            "{error}"
        );
        goes_on(&run);
        assert!(Client::new(&path).ask(r#""command":"hello""#).contains("\"ok\":true"));
        run.stop();
        run.wait().unwrap();
        // Somebody who listens and takes nobody.
        let listener = UnixListener::bind(&path).unwrap();
        let mut waiting = Vec::new();
        while let Ok(stream) = onbeat_os::local::connect(&path, std::time::Duration::ZERO) {
            waiting.push(stream);
        }
        let error = ControlSocket::bind(&path).unwrap_err().to_string();
        assert!(error.contains("somebody, who does not answer, serves it already"), "{error}");
        drop(listener);
    });
}

#[test]
fn what_is_no_socket_is_left_alone() {
    watched(60, || {
        let folder = Folder::new();
        fs::write(folder.path("file"), "some lines").unwrap();
        fs::create_dir(folder.path("folder")).unwrap();
        std::os::unix::fs::symlink("file", folder.path("link")).unwrap();
        std::os::unix::fs::symlink("nowhere", folder.path("dangling")).unwrap();
        assert!(Command::new("mkfifo").arg(folder.path("pipe")).status().unwrap().success());
        let datagram = UnixDatagram::bind(folder.path("datagram")).unwrap();
        let long = "x".repeat(108);
        for (name, part) in [
            ("file", "there is a file of this name, which is left alone: choose another name"),
            ("folder", "there is a folder of this name"),
            ("link", "there is a symbolic link of this name"),
            ("dangling", "there is a symbolic link of this name"),
            ("pipe", "there is a pipe of this name"),
            ("datagram", "there is a socket of user"),
            ("no/ctl", "is not there: make it, or choose another name"),
            ("file/ctl", "cannot be made: Not a directory"),
            (long.as_str(), "and the name of a socket has at most 107"),
            ("a\0b", "its name holds a zero byte"),
        ] {
            let error = ControlSocket::bind(folder.path(name)).unwrap_err().to_string();
            assert!(error.starts_with("control socket `") && error.contains(part), "{name}: {error}");
        }
        assert!(ControlSocket::bind("").unwrap_err().to_string().contains("it has no name"));
        assert_eq!(fs::read_to_string(folder.path("file")).unwrap(), "some lines");
        assert_eq!(fs::read_dir(folder.path("")).unwrap().count(), 6, "nothing came, nothing went");
        drop(datagram);
    });
}

#[test]
#[expect(clippy::disallowed_macros, reason = "a test that is skipped says so")]
fn a_folder_that_may_not_be_written_is_an_error() {
    if onbeat_os::local::user() == 0 {
        eprintln!("skipped: root may write everywhere");
        return;
    }
    let folder = Folder::new();
    fs::set_permissions(folder.path(""), fs::Permissions::from_mode(0o500)).unwrap();
    let error = ControlSocket::bind(folder.path("ctl")).unwrap_err().to_string();
    assert!(error.contains("cannot be made: Permission denied"), "{error}");
}

#[test]
fn what_somebody_put_in_its_place_stays() {
    let folder = Folder::new();
    let path = folder.path("ctl");
    let socket = ControlSocket::bind(&path).unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(&path, "mine").unwrap();
    drop(socket);
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    // And a socket that was moved away is nobody's to take.
    let socket = ControlSocket::bind(folder.path("first")).unwrap();
    fs::rename(folder.path("first"), folder.path("second")).unwrap();
    drop(socket);
    assert!(folder.path("second").exists());
}

/// Of several that find a socket that nobody serves, one replaces it, and the others find that one served.
#[test]
fn of_many_at_the_same_moment_one_gets_it() {
    watched(120, || {
        let folder = Folder::new();
        for round in 0..20 {
            let path = folder.path(&format!("ctl{round}"));
            drop(UnixListener::bind(&path).unwrap());
            let start = std::sync::Barrier::new(6);
            let got: Vec<_> = std::thread::scope(|scope| {
                let one = || {
                    start.wait();
                    ControlSocket::bind(&path)
                };
                let threads: Vec<_> = (0..6).map(|_| scope.spawn(one)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert_eq!(got.iter().filter(|socket| socket.is_ok()).count(), 1, "{got:#?}");
            drop(got);
            assert!(!path.exists());
        }
    });
}
