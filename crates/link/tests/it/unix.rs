//! Links over Unix sockets.

use crate::messages::chunks_arrive;
use crate::{consumer, producer, watchdog};
use onbeat_link::{LinkPeer, LinkSettings};
use onbeat_runtime::Options;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::time::Duration;

/// Settings of both ends: the producer calls a socket in this folder.
fn local_ends(name: &str, folder: &Path) -> (LinkSettings, LinkSettings) {
    let address = format!("unix:{}", folder.join("link.sock").display());
    let sink = LinkSettings::new(name, LinkPeer::Connect(address.clone()));
    (sink, LinkSettings::new(name, LinkPeer::Listen(address)))
}

#[test]
fn messages_arrive_and_the_socket_goes_away() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("link.sock");
    let (sink, source) = local_ends("numbers", folder.path());
    let (graph, found) = consumer::<u64>(source);
    let run = graph.start(&Options::default()).unwrap();
    let dog = watchdog();
    while !socket.exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let file = std::fs::symlink_metadata(&socket).unwrap();
    assert!(file.file_type().is_socket() && file.mode() & 0o777 == 0o600);
    let record = producer((0..5_000_u64).collect(), sink).run(&Options::default()).unwrap();
    let other = run.wait().unwrap();
    drop(dog);
    assert!(found.lock().unwrap().iter().copied().eq(0..5_000));
    let peer = record.links[0].peer.clone().unwrap();
    assert!(peer.contains(&format!("at process {}", std::process::id())), "{peer}");
    assert_eq!(other.links[0].messages, 5_000);
    // The door looks now and then whether anybody still listens.
    let begin = std::time::Instant::now();
    while socket.exists() && begin.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(!socket.exists());
}

#[test]
fn chunks_of_all_sizes_arrive() {
    for quantum in [256, 16 << 10, 1 << 20] {
        let folder = tempfile::tempdir().unwrap();
        chunks_arrive(local_ends("chunks", folder.path()), quantum);
    }
}

#[test]
fn mistakes_are_said() {
    let folder = tempfile::tempdir().unwrap();
    let (mut sink, source) = local_ends("wrong", folder.path());
    // A file of this name is left alone.
    std::fs::write(folder.path().join("link.sock"), "mine").unwrap();
    let error = consumer::<u64>(source).0.run(&Options::default()).unwrap_err().to_string();
    assert!(
        error.contains("cannot listen on unix:") && error.contains("there is a file of this name"),
        "{error}"
    );
    assert_eq!(std::fs::read_to_string(folder.path().join("link.sock")).unwrap(), "mine");
    // Nobody listens.
    sink.peer = LinkPeer::Connect(format!("unix:{}", folder.path().join("none.sock").display()));
    sink.patience_ns = 50_000_000;
    let error = producer(vec![1_u64], sink).run(&Options::default()).unwrap_err().to_string();
    assert!(error.contains("cannot reach the `link.source` at unix:"), "{error}");
    let (sink, _) = local_ends("long", Path::new("/very/long").join("x".repeat(200)).as_path());
    let error = producer(vec![1_u64], sink).run(&Options::default()).unwrap_err().to_string();
    assert!(error.contains("the name of a socket has at most 107"), "{error}");
}
