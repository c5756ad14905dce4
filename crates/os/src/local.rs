//! Sockets with a name in the file system (`unix(7)`), for those who may open that name.

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

/// The longest name of a socket, in bytes: `sun_path` less the ending zero.
pub const PATH_MAX_BYTES: usize = 107;

/// Connections that may wait to be taken.
const BACKLOG: i32 = 16;

/// The other end of a connection, as the kernel noted it when that was made, or when the listener was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Its process; 0 for one that this process cannot see, in another container.
    pub pid: i32,
    /// Its effective user.
    pub uid: u32,
}

/// The effective user of this process (`geteuid(2)`).
#[must_use]
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Makes a socket that only its owner may connect to (mode 0600, from its first moment on). It does not wait in `accept`.
///
/// # Errors
/// `AddrInUse` when there is something of this name; `InvalidFilename` when that is longer than [`PATH_MAX_BYTES`]; else what
/// `bind(2)` says.
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
    // Linux makes the file with the mode of the socket, less the umask: so it is never open to others.
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    rustix::net::bind(&socket, &address)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// Connects to a socket. Where more wait for that than its owner lets, it tries again until `patience` is over. The stream
/// waits in reads and writes.
///
/// # Errors
/// `ConnectionRefused` where nobody listens, `TimedOut` when patience is over, else what `connect(2)` says.
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

/// Who is at the other end (`SO_PEERCRED`).
///
/// # Errors
/// What `getsockopt(2)` says.
pub fn peer(stream: impl AsFd) -> io::Result<Peer> {
    // Not rustix's: it has no value for the pid 0, which stands for a process outside of our namespace.
    let mut found = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut bytes = size_of::<libc::ucred>() as libc::socklen_t;
    let fd = stream.as_fd().as_raw_fd();
    // SAFETY: the descriptor is open while `stream` is borrowed, and the kernel writes at most `bytes` to `found`, which is plain
    // data of that size.
    let status = unsafe {
        libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, (&raw mut found).cast(), &raw mut bytes)
    };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Peer { pid: found.pid, uid: found.uid })
}

/// Keeps others who ask for the same away from a folder while it is there (`flock(2)`).
#[derive(Debug)]
#[must_use]
pub struct FolderLock {
    _folder: OwnedFd,
}

/// Locks a folder. `None` where that is not possible, or somebody else keeps it for longer than `patience`.
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

    /// To wait in `connect` would be to wait for ever.
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
