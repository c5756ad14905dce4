//! Encryption by TLS 1.3, in which both ends prove their names.
//!
//! An [`NodeIdentity`] is a folder with three files:
//!
//! | file | contents |
//! |---|---|
//! | `authority.pem` | the certificate of the authority that signs for all nodes |
//! | `certificate.pem` | the certificate of this node: its name, signed by the authority |
//! | `key.pem` | the private key for it, which nobody but its owner may read |
//!
//! An [`Authority`] makes them. Without the Cargo feature `tls`, both exist in name only.

#[cfg(feature = "tls")]
mod authority;
#[cfg(feature = "tls")]
mod identity;
#[cfg(not(feature = "tls"))]
mod without;

#[cfg(feature = "tls")]
pub use authority::Authority;
#[cfg(feature = "tls")]
pub(crate) use identity::Encryption;
#[cfg(feature = "tls")]
pub use identity::NodeIdentity;
#[cfg(not(feature = "tls"))]
pub(crate) use without::NoEncryption as Encryption;
#[cfg(not(feature = "tls"))]
pub use without::{NoAuthority as Authority, NoIdentity as NodeIdentity};

/// The files of an identity.
#[cfg(feature = "tls")]
const AUTHORITY: &str = "authority.pem";
#[cfg(feature = "tls")]
const CERTIFICATE: &str = "certificate.pem";
#[cfg(feature = "tls")]
const KEY: &str = "key.pem";
