//! Makes identities, for those who have no certificates of their own.

use super::{AUTHORITY, CERTIFICATE, KEY};
use onbeat_os::clock::realtime_unix_ns;
use onbeat_runtime::Error;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

/// How long an authority is valid.
const AUTHORITY_DAYS: i32 = 3650;
/// Clocks of nodes may be behind by this time.
const BEHIND_S: u64 = 3600;

/// Signs for the nodes of a plant. Its own files are in a folder too: `authority.pem`, and `key.pem`, which
/// belongs on no node.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

impl Authority {
    /// Reads the authority, or makes a new one if the folder has none.
    ///
    /// # Errors
    /// If files cannot be read or written, or are of something else.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let (key, certificate) = (folder.join(KEY), folder.join(AUTHORITY));
        if !key.exists() {
            let pair = KeyPair::generate().map_err(|error| cannot(folder, &error))?;
            let made =
                parameters(AUTHORITY_DAYS).self_signed(&pair).map_err(|error| cannot(folder, &error))?;
            make_folder(folder)?;
            write(&key, &pair.serialize_pem(), 0o600)?;
            write(&certificate, &made.pem(), 0o644)?;
        }
        let read = |path: &Path| std::fs::read_to_string(path).map_err(|error| cannot(path, &error));
        let pair = KeyPair::from_pem(&read(&key)?).map_err(|error| cannot(&key, &error))?;
        let issuer = Issuer::new(parameters(AUTHORITY_DAYS), pair);
        Ok(Authority { issuer, certificate: read(&certificate)? })
    }

    /// Makes the identity of the node `name`, valid for `days` from now on, in a new folder.
    ///
    /// # Errors
    /// If the name cannot be one of a node, or there are files already.
    pub fn sign(&self, name: &str, days: i32, folder: &Path) -> Result<(), Error> {
        let mut parameters = parameters(days);
        parameters.is_ca = IsCa::ExplicitNoCa;
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        parameters.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        parameters.distinguished_name.push(DnType::CommonName, name);
        let san = CertificateParams::new([name.to_string()]).map_err(|error| cannot(folder, &error))?;
        parameters.subject_alt_names = san.subject_alt_names;
        let pair = KeyPair::generate().map_err(|error| cannot(folder, &error))?;
        let made = parameters.signed_by(&pair, &self.issuer).map_err(|error| cannot(folder, &error))?;
        make_folder(folder)?;
        write(&folder.join(KEY), &pair.serialize_pem(), 0o600)?;
        write(&folder.join(CERTIFICATE), &made.pem(), 0o644)?;
        write(&folder.join(AUTHORITY), &self.certificate, 0o644)
    }
}

/// What both kinds of certificates have in common.
fn parameters(days: i32) -> CertificateParams {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = rcgen::DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, "onbeat authority");
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let now_s = realtime_unix_ns() / 1_000_000_000;
    let end_s = now_s.saturating_add_signed(i64::from(days) * 86_400);
    let at = |unix_s: u64| date_time_ymd(1970, 1, 1) + Duration::from_secs(unix_s);
    parameters.not_before = at(now_s.min(end_s).saturating_sub(BEHIND_S));
    parameters.not_after = at(end_s);
    parameters
}

fn make_folder(folder: &Path) -> Result<(), Error> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| cannot(folder, &error))
}

/// Writes a new file: an old one is never replaced.
fn write(path: &Path, text: &str, mode: u32) -> Result<(), Error> {
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    file.and_then(|mut file: File| file.write_all(text.as_bytes())).map_err(|error| cannot(path, &error))
}

fn cannot(path: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::new(format!("identity `{}`: {error}", path.display()))
}
