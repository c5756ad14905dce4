//! Listening sockets with a file. Processes come and go, some by SIGKILL, and none takes the place of another
//! that is alive.

use crate::door::Listener;
use crate::local;
use std::fs::{self, FileType, Metadata};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

/// How long is waited for another run that looks at the same folder. It guards against two that start at the
/// same moment, and nothing else: where it cannot be had, it goes without.
const LOCK: Duration = Duration::from_secs(2);

/// How long somebody who listens there has to take us.
const KNOCK: Duration = Duration::from_millis(500);

/// A socket that listens, and its file (mode 0600), which goes away with it. See [`local::listen`].
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    listener: UnixListener,
    /// Device and inode: somebody may have put another file there.
    file: Option<(u64, u64)>,
    /// Set when the file was removed: another one may have its inode since.
    is_gone: OnceLock<()>,
}

impl SocketFile {
    /// Makes the socket. Replaces one that a killed process has left behind.
    ///
    /// # Errors
    /// Says why it cannot be had: something else has the name, or another process listens there.
    pub fn take(path: &Path) -> Result<Self, String> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let _lock = local::lock_folder(folder, LOCK);
        let mut made = local::listen(path);
        if made.as_ref().is_err_and(|error| error.kind() == ErrorKind::AddrInUse) {
            clear(path)?;
            made = local::listen(path);
        }
        let listener = made.map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                format!("its folder `{}` is not there: make it, or choose another name", folder.display())
            }
            _ => format!("cannot be made: {error}"),
        })?;
        let file = fs::symlink_metadata(path).ok().map(|found| identity(&found));
        Ok(SocketFile { path: path.to_path_buf(), listener, file, is_gone: OnceLock::new() })
    }

    /// Its name, as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl AsFd for SocketFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Listener for SocketFile {
    type Stream = UnixStream;

    fn accept(&self) -> io::Result<UnixStream> {
        Listener::accept(&self.listener)
    }
}

impl SocketFile {
    /// Removes the file, if it is still the one of this socket. Nobody new can connect.
    pub fn remove(&self) {
        if self.is_gone.set(()).is_err() {
            return;
        }
        let is_ours = |found: Metadata| self.file == Some(identity(&found));
        if fs::symlink_metadata(&self.path).is_ok_and(is_ours) {
            // If it cannot be taken away any more, the next run replaces it.
            let _left = fs::remove_file(&self.path);
        }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        self.remove();
    }
}

fn identity(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

/// Takes away a socket that nobody listens to.
fn clear(path: &Path) -> Result<(), String> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        // Its owner has just taken it away.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            return Err(format!("there is something of this name that cannot be looked at: {error}"));
        }
    };
    if !found.file_type().is_socket() {
        let what = kind(found.file_type());
        return Err(format!("there is {what} of this name, which is left alone: choose another name"));
    }
    let who = match local::connect(path, KNOCK) {
        Ok(stream) => match local::peer(&stream) {
            Ok(peer) if peer.pid > 0 => format!("process {}", peer.pid),
            _ => "somebody".to_string(),
        },
        Err(error) if error.kind() == ErrorKind::TimedOut => "somebody, who does not answer,".to_string(),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            return match fs::remove_file(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(format!(
                    "a socket is left there that nobody serves, and it cannot be replaced: {error}"
                )),
                _ => Ok(()),
            };
        }
        Err(error) => {
            return Err(format!("there is a socket of user {} already: {error}", found.uid()));
        }
    };
    Err(format!("{who} serves it already: choose another name, or end that process"))
}

fn kind(file: FileType) -> &'static str {
    match () {
        () if file.is_file() => "a file",
        () if file.is_dir() => "a folder",
        () if file.is_symlink() => "a symbolic link",
        () if file.is_fifo() => "a pipe",
        () => "a device",
    }
}
