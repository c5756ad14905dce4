//! Links whose ends prove their names.

use crate::messages::chunks_arrive;
use crate::relay::Relay;
use crate::{consumer, ends, producer, run_both};
use onbeat_link::{Authority, LinkPeer, LinkSecurity, LinkSettings, NodeIdentity, OnCut};
use onbeat_runtime::Options;
use onbeat_trace::Record;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// Identities of `radio`, `desk` and `late`, which has expired, and of `radio` by another authority.
fn identities() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let authority = Authority::open(&at("authority")).unwrap();
    for (name, days) in [("radio", 30), ("desk", 30), ("soon", 7), ("late", -2)] {
        authority.sign(name, days, &at(name)).unwrap();
    }
    Authority::open(&at("other")).unwrap().sign("radio", 30, &at("stranger")).unwrap();
    folder
}

fn proved(folder: &Path, name: &str, peer: &str) -> LinkSecurity {
    let identity = Arc::new(NodeIdentity::load(&folder.join(name)).unwrap());
    LinkSecurity::Proved { identity, peer: peer.to_string() }
}

/// Both ends of a link from `radio` to `desk`.
fn secure_ends(name: &str, folder: &Path) -> (LinkSettings, LinkSettings) {
    let (mut sink, mut source) = ends(name);
    sink.security = proved(folder, "radio", "desk");
    source.security = proved(folder, "desk", "radio");
    (sink, source)
}

/// What a producer hears that calls a consumer called `desk`, whose run goes on.
fn refused(sink: LinkSettings, source: LinkSettings) -> (String, Record) {
    let run = consumer::<u64>(source).0.start(&Options::default()).unwrap();
    let error = producer(vec![1_u64], sink).run(&Options::default()).unwrap_err().to_string();
    run.stop();
    (error, run.wait().unwrap())
}

#[test]
fn messages_of_all_sizes_arrive() {
    let folder = identities();
    let (sink, source) = secure_ends("secret", folder.path());
    let (graph, found) = consumer::<u64>(source);
    let (one, other) = run_both(producer((0..20_000_u64).collect(), sink), graph);
    one.unwrap();
    let record = other.unwrap();
    assert_eq!(record.notes, Vec::<String>::new());
    assert!(found.lock().unwrap().iter().copied().eq(0..20_000));

    for quantum in [256, 1 << 20] {
        chunks_arrive(secure_ends("chunks", folder.path()), quantum);
    }
}

#[test]
fn nothing_can_be_read_on_the_way() {
    let folder = identities();
    let (mut sink, source) = secure_ends("hidden", folder.path());
    let relay = Relay::to(source.peer.address());
    sink.peer = LinkPeer::Connect(relay.address.clone());
    let text = "a sentence that nobody should be able to read".to_string();
    let (graph, found) = consumer::<String>(source);
    let (one, other) = run_both(producer(vec![text.clone(); 3], sink), graph);
    one.unwrap();
    other.unwrap();
    assert_eq!(found.lock().unwrap().len(), 3);
    let seen = relay.seen();
    assert!(seen.len() > 1000, "{} bytes", seen.len());
    for secret in [text.as_bytes(), b"hidden"] {
        assert!(!seen.windows(secret.len()).any(|part| part == secret));
    }
}

#[test]
fn a_cut_loses_and_doubles_nothing() {
    let folder = identities();
    let (mut sink, mut source) = secure_ends("cut", folder.path());
    let relay = Relay::to(source.peer.address());
    sink.peer = LinkPeer::Connect(relay.address.clone());
    (sink.on_cut, source.on_cut) = (OnCut::Hold, OnCut::Hold);
    let (graph, found) = consumer::<u64>(source);
    crate::cuts::meanwhile(&relay, &found, 5, Relay::cut);
    let (one, other) = run_both(crate::cuts::paced(4_000, sink), graph);
    let one = one.unwrap();
    other.unwrap();
    assert!(one.links[0].cuts > 0);
    assert!(found.lock().unwrap().iter().copied().eq(0..4_000));
}

#[test]
fn each_mistake_has_its_own_error() {
    let folder = identities();
    let at = folder.path();
    // Another authority: both sides see it, and the side that calls says so.
    let (mut sink, source) = secure_ends("authority", at);
    sink.security = proved(at, "stranger", "desk");
    let (error, _) = refused(sink, source);
    assert!(error.contains("the certificate of `desk` is not signed by the authority in"), "{error}");
    // Another name than the one that was called.
    let (mut sink, source) = secure_ends("name", at);
    sink.security = proved(at, "radio", "roof");
    let (error, record) = refused(sink, source);
    assert!(error.contains("the certificate of `roof` is of another node: it is of `desk`"), "{error}");
    assert!(record.notes.iter().any(|note| note.contains("was refused")), "{:?}", record.notes);
    // Nobody allows this caller.
    let (mut sink, source) = secure_ends("rule", at);
    sink.security = proved(at, "soon", "desk");
    let (error, record) = refused(sink, source);
    let why = "the caller's certificate is of `soon`, and only `radio` may call (`peer`)";
    assert!(error.contains(why), "{error}");
    assert!(record.notes.iter().any(|note| note.contains(why)), "{:?}", record.notes);
    // What a node can know before anybody calls.
    let wrong = |name: &str| NodeIdentity::load(&at.join(name)).unwrap_err().to_string();
    assert!(
        wrong("late").contains("certificate.pem`: this certificate expired 2 days ago"),
        "{}",
        wrong("late")
    );
    std::fs::copy(at.join("desk/authority.pem"), at.join("stranger/authority.pem")).unwrap();
    assert!(wrong("stranger").contains("is not signed by the authority"), "{}", wrong("stranger"));
    std::fs::copy(at.join("soon/certificate.pem"), at.join("desk/certificate.pem")).unwrap();
    assert!(wrong("desk").contains("keys may not be consistent"), "{}", wrong("desk"));
    std::fs::set_permissions(at.join("radio/key.pem"), PermissionsExt::from_mode(0o640)).unwrap();
    assert!(
        wrong("radio").contains("others may read or change this key (mode 640): chmod 600"),
        "{}",
        wrong("radio")
    );
    assert!(wrong("nobody").contains("authority.pem"), "{}", wrong("nobody"));
}

/// A client that does not look whether its own certificate is still valid.
fn careless_client(folder: &Path) -> rustls::ClientConnection {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(folder.join("authority.pem")).unwrap()).unwrap();
    let own = CertificateDer::from_pem_file(folder.join("certificate.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(folder.join("key.pem")).unwrap();
    let config =
        rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(roots)
            .with_client_auth_cert(vec![own], key)
            .unwrap();
    rustls::ClientConnection::new(Arc::new(config), "desk".try_into().unwrap()).unwrap()
}

#[test]
fn an_expired_caller_is_refused() {
    let folder = identities();
    let at = folder.path();
    let (_, source) = secure_ends("late", at);
    let address = source.peer.address().to_string();
    let run = consumer::<u64>(source).0.start(&Options::default()).unwrap();
    let answer = loop {
        let Ok(socket) = TcpStream::connect(&address) else { continue };
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut call = rustls::StreamOwned::new(careless_client(&at.join("late")), socket);
        break call.read(&mut [0; 16]).unwrap_err().to_string();
    };
    assert!(answer.contains("CertificateExpired"), "{answer}");
    run.stop();
    let notes = run.wait().unwrap().notes;
    assert!(
        notes.iter().any(|note| note.contains("the caller's certificate expired 2 days ago")),
        "{notes:?}"
    );
}

#[test]
fn an_end_that_does_not_encrypt_is_refused() {
    let folder = identities();
    let (mut sink, source) = secure_ends("plain", folder.path());
    sink.patience_ns = 2_000_000_000;
    sink.security = LinkSecurity::Loopback;
    let (error, record) = refused(sink, source);
    assert!(error.contains("this end needs one too"), "{error}");
    let note = "what came is not TLS: the other end may have no `identity`";
    assert!(record.notes.iter().any(|found| found.contains(note)), "{:?}", record.notes);
    // The other way round.
    let (mut sink, mut source) = secure_ends("plain", folder.path());
    source.security = LinkSecurity::Loopback;
    sink.patience_ns = 2_000_000_000;
    let (error, _) = refused(sink, source);
    assert!(error.contains("its side may have no `identity`"), "{error}");
}

#[test]
fn a_certificate_that_ends_soon_is_said() {
    let folder = identities();
    let (_, mut source) = secure_ends("ends", folder.path());
    let (mut sink, _) = ends("ends");
    sink.peer = LinkPeer::Connect(source.peer.address().to_string());
    sink.security = proved(folder.path(), "soon", "desk");
    source.security = proved(folder.path(), "desk", "soon");
    let (one, other) = run_both(producer(vec![1_u64], sink), consumer::<u64>(source).0);
    other.unwrap();
    let notes = one.unwrap().notes;
    assert!(notes.iter().any(|note| note.contains("soon/certificate.pem` ends within 14 days")), "{notes:?}");
}

#[test]
fn strangers_do_no_harm() {
    let folder = identities();
    let (sink, source) = secure_ends("calm", folder.path());
    let address = source.peer.address().to_string();
    let (graph, found) = consumer::<u64>(source);
    let run = graph.start(&Options::default()).unwrap();
    while TcpStream::connect(&address).is_err() {
        std::thread::sleep(Duration::from_millis(1));
    }
    // Garbage, a record that announces 16 KiB and gives none, the beginning of a hello.
    for bytes in [&[0xff_u8; 64][..], &[22, 3, 1, 0x40, 0], &[22, 3, 1, 0, 5, 1, 0, 0, 1, 3]] {
        let mut stranger = TcpStream::connect(&address).unwrap();
        stranger.write_all(bytes).unwrap();
        stranger.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let _closed = stranger.read_to_end(&mut Vec::new());
    }
    let silent: Vec<TcpStream> = (0..200).filter_map(|_| TcpStream::connect(&address).ok()).collect();
    producer((0..1000_u64).collect(), sink).run(&Options::default()).unwrap();
    let notes = run.wait().unwrap().notes;
    drop(silent);
    assert_eq!(found.lock().unwrap().len(), 1000);
    assert!(
        notes.iter().any(|note| note.contains("callers at") && note.contains("were refused")),
        "{notes:?}"
    );
}
