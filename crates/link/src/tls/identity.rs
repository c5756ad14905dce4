//! Identities, and connections that they encrypt.

use super::{AUTHORITY, CERTIFICATE, KEY};
use crate::socket::LinkSocket;
use crate::stream::LinkStream;
use onbeat_runtime::Error as RunError;
use rustls::client::{Resumption, verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{NoServerSessionStorage, ParsedCertificate, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, Connection, Error, RootCertStore,
    ServerConfig, ServerConnection,
};
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A certificate that ends within these days is said.
const WARN_DAYS: [u64; 2] = [1, 14];
const DAY_S: u64 = 86_400;

/// The name of a node, its proof, and whom it trusts: see the [module](super).
#[derive(Debug)]
pub struct NodeIdentity {
    folder: PathBuf,
    own: CertificateDer<'static>,
    between: Vec<CertificateDer<'static>>,
    roots: Arc<RootCertStore>,
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl NodeIdentity {
    /// Reads the three files.
    ///
    /// # Errors
    /// If one cannot be read, others may read the key, the key is not that of the certificate, or the
    /// certificate is not signed by the authority, or not valid now.
    pub fn load(folder: &Path) -> Result<Self, RunError> {
        let wrong = |name: &str, error: &dyn std::fmt::Display| {
            RunError::new(format!("identity `{}`: {error}", folder.join(name).display()))
        };
        let mut roots = RootCertStore::empty();
        for authority in certificates(&folder.join(AUTHORITY)).map_err(|error| wrong(AUTHORITY, &error))? {
            roots.add(authority).map_err(|error| wrong(AUTHORITY, &error))?;
        }
        let chain = certificates(&folder.join(CERTIFICATE)).map_err(|error| wrong(CERTIFICATE, &error))?;
        let key = private_key(&folder.join(KEY)).map_err(|error| wrong(KEY, &error))?;
        let (roots, provider) = (Arc::new(roots), Arc::new(default_provider()));
        let tls = |error: Error| wrong(CERTIFICATE, &error);
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider))
            .build()
            .map_err(|error| wrong(AUTHORITY, &error))?;
        let mut client = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&TLS13])
            .map_err(tls)?
            .with_root_certificates(Arc::clone(&roots))
            .with_client_auth_cert(chain.clone(), key.clone_key())
            .map_err(tls)?;
        let mut server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(tls)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain.clone(), key)
            .map_err(tls)?;
        // Every connection proves again who is there: a certificate may have ended since.
        client.resumption = Resumption::disabled();
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        let mut chain = chain.into_iter();
        let Some(own) = chain.next() else { return Err(wrong(CERTIFICATE, &"has no certificate")) };
        let identity = NodeIdentity {
            folder: folder.to_path_buf(),
            own,
            between: chain.collect(),
            roots,
            client: Arc::new(client),
            server: Arc::new(server),
        };
        match identity.valid_in(0) {
            Ok(()) => Ok(identity),
            Err(error) => Err(wrong(CERTIFICATE, &said(&error, "this certificate"))),
        }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What its owner should know: the certificate ends soon.
    pub fn notes(&self) -> Vec<String> {
        let soon = WARN_DAYS.into_iter().find(|days| self.valid_in(days * DAY_S).is_err());
        let file = self.folder.join(CERTIFICATE);
        let note = |days: u64| {
            format!(
                "the certificate `{}` ends within {days} {}: renew it, or no connection can begin then",
                file.display(),
                if days == 1 { "day" } else { "days" }
            )
        };
        soon.map(note).into_iter().collect()
    }

    fn valid_in(&self, after_s: u64) -> Result<(), Error> {
        let at_s = UnixTime::now().as_secs() + after_s;
        verify_server_cert_signed_by_trust_anchor(
            &ParsedCertificate::try_from(&self.own)?,
            &self.roots,
            &self.between,
            UnixTime::since_unix_epoch(Duration::from_secs(at_s)),
            default_provider().signature_verification_algorithms.all,
        )
    }

    /// Calls: both ends prove who they are.
    pub(crate) fn call(&self, mut socket: LinkSocket, peer: &str) -> io::Result<LinkStream> {
        let name = ServerName::try_from(peer.to_string()).map_err(|_| {
            io::Error::new(ErrorKind::InvalidInput, format!("{peer:?} cannot name a node in a certificate"))
        })?;
        let connection = ClientConnection::new(Arc::clone(&self.client), name).map_err(io::Error::other)?;
        let mut encryption =
            Encryption { connection: connection.into(), other: format!("the certificate of `{peer}`") };
        while encryption.connection.is_handshaking() {
            encryption.push(&mut socket)?;
            if !encryption.connection.is_handshaking() {
                break;
            }
            let closed =
                |kind| io::Error::new(kind, "it closed the connection: its side may have no `identity`");
            match encryption.pull(&mut socket) {
                Ok(0) => return Err(closed(ErrorKind::UnexpectedEof)),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Err(closed(error.kind())),
                Err(error) => return Err(error),
                Ok(_) => {}
            }
        }
        encryption.push(&mut socket)?;
        Ok(LinkStream::encrypted(socket, encryption))
    }

    pub(crate) fn answer(&self, socket: LinkSocket) -> io::Result<LinkStream> {
        let connection = ServerConnection::new(Arc::clone(&self.server)).map_err(io::Error::other)?;
        let other = "the caller's certificate".to_string();
        Ok(LinkStream::encrypted(socket, Encryption { connection: connection.into(), other }))
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, rustls::pki_types::pem::Error> {
    let found: Vec<_> = CertificateDer::pem_file_iter(path)?.collect::<Result<_, _>>()?;
    if found.is_empty() { Err(rustls::pki_types::pem::Error::NoItemsFound) } else { Ok(found) }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let mode = std::fs::metadata(path).map_err(|error| error.to_string())?.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(format!(
            "others may read or change this key (mode {mode:03o}): chmod 600 {}",
            path.display()
        ));
    }
    PrivateKeyDer::from_pem_file(path).map_err(|error| error.to_string())
}

/// The encryption of a connection.
#[derive(Debug)]
pub(crate) struct Encryption {
    connection: Connection,
    /// Whose certificate is checked, for errors.
    other: String,
}

impl Encryption {
    /// Which of these names the other end has proved.
    pub fn proved<'n>(&self, names: &'n [String]) -> Result<&'n str, RunError> {
        let chain = self.connection.peer_certificates().unwrap_or_default();
        let Some(Ok(certificate)) = chain.first().map(ParsedCertificate::try_from) else {
            return Err(RunError::new("the caller has no certificate"));
        };
        let mut presented = Vec::new();
        for name in names {
            let Ok(server) = ServerName::try_from(name.as_str()) else { continue };
            match verify_server_name(&certificate, &server) {
                Ok(()) => return Ok(name),
                Err(Error::InvalidCertificate(CertificateError::NotValidForNameContext {
                    presented: found,
                    ..
                })) => presented = found,
                Err(_) => {}
            }
        }
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        Err(RunError::new(format!(
            "the caller's certificate is of {}, and only {} may call",
            shown(&presented),
            names.join(", ")
        )))
    }

    pub fn read(&mut self, socket: &mut LinkSocket, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.connection.reader().read(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // A connection that breaks off is a cut; the end of a stream has a frame of its own.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                done => return done,
            }
            match self.push(socket) {
                Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
                _ => {}
            }
            if self.pull(socket)? == 0 && self.connection.is_handshaking() {
                return Ok(0);
            }
        }
    }

    /// Takes bytes of all parts together, as many as there is room for.
    pub fn write(&mut self, socket: &mut LinkSocket, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.push(socket)?;
        let count = self.connection.writer().write_vectored(parts)?;
        match self.push(socket) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            _ => Ok(count),
        }
    }

    /// Writes what is encrypted.
    pub fn push(&mut self, socket: &mut LinkSocket) -> io::Result<()> {
        while self.connection.wants_write() {
            match self.connection.write_tls(socket) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads what is encrypted. Returns the number of its bytes.
    fn pull(&mut self, socket: &mut LinkSocket) -> io::Result<usize> {
        let count = self.connection.read_tls(socket)?;
        if let Err(error) = self.connection.process_new_packets() {
            // The other end may be gone.
            let _gone = self.push(socket);
            let kind = match error {
                Error::InvalidCertificate(_) | Error::NoCertificatesPresented | Error::AlertReceived(_) => {
                    ErrorKind::PermissionDenied
                }
                _ => ErrorKind::InvalidData,
            };
            return Err(io::Error::new(kind, said(&error, &self.other)));
        }
        Ok(count)
    }

    /// Says that no more will be written.
    pub fn end(&mut self, socket: &mut LinkSocket) -> io::Result<()> {
        self.connection.send_close_notify();
        self.push(socket)
    }
}

fn shown(names: &[String]) -> String {
    // "DnsName("radio")", as the library shows them.
    let name = |text: &String| text.split('"').nth(1).unwrap_or(text).to_string();
    match names {
        [] => "nobody".to_string(),
        names => names.iter().map(|text| format!("`{}`", name(text))).collect::<Vec<_>>().join(", "),
    }
}

/// An error in words for the one who can fix it. `certificate` says whose was checked.
fn said(error: &Error, certificate: &str) -> String {
    match error {
        Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => {
            format!(
                "{certificate} is not signed by the authority in `{AUTHORITY}`: both ends need the same one"
            )
        }
        Error::InvalidCertificate(CertificateError::ExpiredContext { time, not_after }) => {
            let days = time.as_secs().saturating_sub(not_after.as_secs()) / DAY_S;
            format!("{certificate} expired {days} days ago: renew it")
        }
        Error::InvalidCertificate(CertificateError::Expired) => {
            format!("{certificate} has expired: renew it")
        }
        Error::InvalidCertificate(
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. },
        ) => {
            format!("{certificate} is not valid yet: a clock is wrong")
        }
        Error::InvalidCertificate(CertificateError::NotValidForNameContext { presented, .. }) => {
            format!("{certificate} is of another node: it is of {}", shown(presented))
        }
        Error::NoCertificatesPresented => "the caller has no certificate: give it an `identity`".to_string(),
        Error::AlertReceived(AlertDescription::UnknownCA | AlertDescription::DecryptError) => {
            "the other end does not accept this end's certificate: its authority is another one".to_string()
        }
        Error::AlertReceived(AlertDescription::CertificateExpired) => {
            "the other end does not accept this end's certificate: it has expired by the clock there"
                .to_string()
        }
        Error::AlertReceived(alert) => format!("the other end broke off: {alert:?}"),
        Error::InvalidMessage(_) => "what came is not TLS: the other end may have no `identity`".to_string(),
        error => error.to_string(),
    }
}
