//! What the ends say of themselves, and whether they fit.

use super::{Meeting, NoSession};
use crate::frame::{LinkHello, LinkRefusal, PROTOCOL, Place};
use std::io::{self, ErrorKind};

impl Meeting {
    /// The hello of this end.
    pub(super) fn hello(&self, is_data: bool, session: u64, place: Place) -> LinkHello {
        LinkHello {
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION").to_string(),
            link: self.settings.name.clone(),
            node: node(),
            role: self.identity.role,
            is_data,
            instance: self.identity.instance,
            session,
            message: self.identity.message.to_string(),
            place: Place { window: self.settings.window, ..place },
        }
    }

    /// Checks that the other end fits.
    pub(super) fn check(&self, other: &LinkHello) -> Result<(), LinkRefusal> {
        let link = &self.settings.name;
        let never = |why: String| Err(LinkRefusal { why, may_retry: false });
        if other.protocol != PROTOCOL {
            return never(format!(
                "link `{link}`: {} runs onbeat {} (protocol {}) and {} runs onbeat {} (protocol {PROTOCOL}): \
                 install the same version",
                other.node,
                other.version,
                other.protocol,
                node(),
                env!("CARGO_PKG_VERSION"),
            ));
        }
        if other.role == self.identity.role {
            let kind = other.role.kind();
            return never(format!("link `{link}`: both ends are a `{kind}`: one must be the other kind"));
        }
        if other.message != self.identity.message {
            let (theirs, ours) = (&other.message, self.identity.message);
            return never(format!(
                "link `{link}`: {} has messages of type {theirs}, {} has {ours}: use kinds of the same type",
                other.node,
                node()
            ));
        }
        Ok(())
    }

    /// A connection that could not be proved or broke off. If a certificate is wrong, no other try will be
    /// better; but a stranger cannot end a run that has met the right one.
    pub(super) fn unproved(&self, error: &io::Error) -> NoSession {
        let has_met = self.state().round_trips.is_some();
        if error.kind() == ErrorKind::PermissionDenied && !has_met {
            let (link, address) = (&self.settings.name, self.settings.peer.address());
            return NoSession::Ever(format!("link `{link}`: {address}: {error}"));
        }
        NoSession::Yet(error.to_string())
    }
}

/// Host name and process.
fn node() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}:{}", host.trim(), std::process::id())
}
