//! A build without TLS: nobody has an identity.

use crate::socket::LinkSocket;
use crate::stream::LinkStream;
use onbeat_runtime::Error;
use std::io::{self, IoSlice};
use std::path::Path;

fn refused<T>(what: &str, folder: &Path) -> Result<T, Error> {
    Err(Error::new(format!(
        "{what} `{}`: this build cannot encrypt: build onbeat with `--features tls`",
        folder.display()
    )))
}

/// The name of a node, its proof, and whom it trusts: of a build with the Cargo feature `tls` only.
#[derive(Debug)]
pub enum NoIdentity {}

impl NoIdentity {
    /// Reads the three files.
    ///
    /// # Errors
    /// Always: this build cannot encrypt.
    pub fn load(folder: &Path) -> Result<Self, Error> {
        refused("identity", folder)
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        match *self {}
    }

    /// What its owner should know.
    pub fn notes(&self) -> Vec<String> {
        match *self {}
    }

    pub(crate) fn call(&self, _: LinkSocket, _: &str) -> io::Result<LinkStream> {
        match *self {}
    }

    pub(crate) fn answer(&self, _: LinkSocket) -> io::Result<LinkStream> {
        match *self {}
    }
}

/// Makes identities: in a build with the Cargo feature `tls` only.
#[derive(Debug)]
pub enum NoAuthority {}

impl NoAuthority {
    /// Reads the authority, or makes a new one.
    ///
    /// # Errors
    /// Always: this build cannot encrypt.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        refused("authority in", folder)
    }

    /// Makes the identity of a node.
    ///
    /// # Errors
    /// Never: there is no authority.
    pub fn sign(&self, _: &str, _: i32, _: &Path) -> Result<(), Error> {
        match *self {}
    }
}

/// The encryption of a connection.
#[derive(Debug)]
pub(crate) enum NoEncryption {}

impl NoEncryption {
    pub fn proved<'n>(&self, _: &'n [String]) -> Result<&'n str, Error> {
        match *self {}
    }

    pub fn read(&mut self, _: &mut LinkSocket, _: &mut [u8]) -> io::Result<usize> {
        match *self {}
    }

    pub fn write(&mut self, _: &mut LinkSocket, _: &[IoSlice<'_>]) -> io::Result<usize> {
        match *self {}
    }

    pub fn push(&mut self, _: &mut LinkSocket) -> io::Result<()> {
        match *self {}
    }

    pub fn end(&mut self, _: &mut LinkSocket) -> io::Result<()> {
        match *self {}
    }
}
