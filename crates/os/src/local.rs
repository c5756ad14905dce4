//! Sockets with a name in the file system (`unix(7)`), for users who may open that name.

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

/// Maximum length of a socket's path, in bytes: `sun_path` without the final zero.
pub const PATH_MAX_BYTES: usize = 107;

/// Connections that can wait to be accepted.
const BACKLOG: i32 = 16;

/// Process at the other end of a connection, as the kernel noted it when the connection or the listener was
/// made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Its process id; 0 for a process in another container, which this process cannot see.
    pub pid: i32,
    /// Its effective user.
    pub uid: u32,
}

/// Effective user of this process (`geteuid(2)`).
#[must_use]
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Makes a socket that only its owner may connect to (mode 0600, from the start). Its `accept` does not
/// block.
///
/// # Errors
/// `AddrInUse` if a file of this name exists; `InvalidFilename` if the path is longer than
/// [`PATH_MAX_BYTES`]; otherwise what `bind(2)` reports.
///
/// ```
/// use onbeat_os::local;
/// use std::time::Duration;
/// let path = std::env::temp_dir().join(format!("onbeat-doc-{}", std::process::id()));
/// let listener = local::listen(&path)?;
/// let client = local::connect(&path, Duration::from_secs(1))?;
/// assert_eq!(local::peer(&client)?.pid, std::process::id() as i32);
/// let (served, _) = listener.accept()?;
/// assert_eq!(local::peer(&served)?.uid, local::user());
/// std::fs::remove_file(&path)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn listen(path: &Path) -> io::Result<UnixListener> {
    let address = address(path)?;
    let socket = socket()?;
    // Linux gives the file the socket's mode, less the umask: so it is never open to others.
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    rustix::net::bind(&socket, &address)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// Connects to a socket. If the listener's backlog is full, it tries again until `patience` is over. Reads
/// and writes of the stream block.
///
/// # Errors
/// `ConnectionRefused` if no process listens, `TimedOut` if `patience` is over, otherwise what `connect(2)`
/// reports.
pub fn connect(path: &Path, patience: Duration) -> io::Result<UnixStream> {
    let address = address(path)?;
    let deadline = Instant::now() + patience;
    loop {
        let socket = socket()?;
        match rustix::net::connect(&socket, &address) {
            Ok(()) => {
                let stream = UnixStream::from(socket);
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            Err(Errno::AGAIN) if Instant::now() >= deadline => return Err(io::ErrorKind::TimedOut.into()),
            Err(Errno::AGAIN) => std::thread::sleep(Duration::from_millis(10)),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Returns the process at the other end (`SO_PEERCRED`).
///
/// # Errors
/// What `getsockopt(2)` reports.
pub fn peer(stream: impl AsFd) -> io::Result<Peer> {
    // rustix has no value for pid 0, which stands for a process outside of this namespace.
    let mut found = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut bytes = size_of::<libc::ucred>() as libc::socklen_t;
    let fd = stream.as_fd().as_raw_fd();
    // SAFETY: the descriptor is open while `stream` is borrowed, and the kernel writes at most `bytes` to
    // `found`, which is plain data of that size.
    let status = unsafe {
        libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, (&raw mut found).cast(), &raw mut bytes)
    };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Peer { pid: found.pid, uid: found.uid })
}

/// Lock on a folder against other lockers (`flock(2)`), until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct FolderLock {
    _folder: OwnedFd,
}

/// Locks a folder. `None` if that is not possible, or another process keeps it locked for longer than
/// `patience`.
pub fn lock_folder(folder: &Path, patience: Duration) -> Option<FolderLock> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(folder, flags, Mode::empty()).ok()?;
    let deadline = Instant::now() + patience;
    loop {
        match rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Some(FolderLock { _folder: folder }),
            Err(Errno::AGAIN | Errno::INTR) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(_) => return None,
        }
    }
}

fn socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}

fn address(path: &Path) -> io::Result<SocketAddrUnix> {
    let name: &OsStr = path.as_os_str();
    if name.is_empty() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it has no name"));
    }
    if name.len() > PATH_MAX_BYTES {
        let bytes = name.len();
        let message =
            format!("its name has {bytes} bytes, and the name of a socket has at most {PATH_MAX_BYTES}");
        return Err(io::Error::new(io::ErrorKind::InvalidFilename, message));
    }
    if name.as_bytes().contains(&0) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "its name holds a zero byte"));
    }
    Ok(SocketAddrUnix::new(path)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;
    use std::path::PathBuf;

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("onbeat-local-{}-{name}", std::process::id()))
    }

    #[test]
    fn only_its_owner_may_connect() {
        let path = path("mode");
        let listener = listen(&path).unwrap();
        let found = std::fs::symlink_metadata(&path).unwrap();
        assert_eq!((found.mode() & 0o7777, found.uid()), (0o600, user()));
        assert_eq!(listen(&path).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(listener);
        let error = connect(&path, Duration::ZERO).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(connect(&path, Duration::ZERO).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    /// Waiting in `connect` would take forever.
    #[test]
    fn a_listener_that_takes_nobody_is_waited_for_in_vain() {
        let path = path("full");
        let listener = listen(&path).unwrap();
        let connect = || connect(&path, Duration::from_millis(20));
        let taken: Vec<_> = std::iter::from_fn(|| connect().ok()).take(1_000).collect();
        assert!(taken.len() < 1_000);
        assert_eq!(connect().unwrap_err().kind(), io::ErrorKind::TimedOut);
        drop(listener);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn names_that_a_socket_cannot_have_are_refused() {
        let long = path(&"x".repeat(200));
        for (path, part) in [
            (Path::new(""), "no name"),
            (Path::new("a\0b"), "a zero byte"),
            (&*long, "the name of a socket has at most 107"),
        ] {
            for error in [listen(path).unwrap_err(), connect(path, Duration::ZERO).unwrap_err()] {
                assert!(error.to_string().contains(part), "{error}");
            }
        }
    }

    #[test]
    fn a_folder_is_locked_by_one() {
        let folder = path("folder");
        std::fs::create_dir(&folder).unwrap();
        let lock = lock_folder(&folder, Duration::ZERO);
        assert!(lock.is_some() && lock_folder(&folder, Duration::ZERO).is_none());
        drop(lock);
        assert!(lock_folder(&folder, Duration::ZERO).is_some());
        std::fs::remove_dir(&folder).unwrap();
        assert!(lock_folder(&folder, Duration::ZERO).is_none());
    }
}
