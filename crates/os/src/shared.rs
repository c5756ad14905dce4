//! Memory that processes of one machine share, and how a process gets a file from another one.

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Most files that come with one read.
const FILES: usize = 4;

/// Makes a file in memory that has `bytes` bytes for good: nobody can make it shorter or longer.
///
/// # Errors
/// What the kernel reports.
pub fn memory_file(name: &str, bytes: usize) -> io::Result<OwnedFd> {
    let file = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&file, bytes as u64)?;
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(file)
}

/// Returns the bytes of a file that another process has made with [`memory_file`].
///
/// # Errors
/// `InvalidData` if it could get shorter: an access to memory behind its end would end this process.
pub fn sealed_bytes(file: impl AsFd) -> io::Result<u64> {
    let seals = fcntl_get_seals(&file).unwrap_or(SealFlags::empty());
    if !seals.contains(SealFlags::SHRINK | SealFlags::GROW) {
        let text = "the file that came is not sealed against a change of its size";
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok(rustix::fs::fstat(&file)?.st_size as u64)
}

/// Writes to a Unix socket, and sends a file along. Returns the bytes written; the file goes with the first.
///
/// # Errors
/// What `sendmsg(2)` reports.
pub fn send_with_file(socket: impl AsFd, bytes: &[u8], file: BorrowedFd<'_>) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = [file];
    let fits = control.push(SendAncillaryMessage::ScmRights(&files));
    debug_assert!(fits);
    let sent = sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(sent)
}

/// Reads from a Unix socket, and adds the files that come along. Without room for them they are closed.
///
/// # Errors
/// What `recvmsg(2)` reports.
pub fn receive_with_files(
    socket: impl AsFd,
    bytes: &mut [u8],
    files: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let read = loop {
        match recvmsg(&socket, &mut [IoSliceMut::new(bytes)], &mut control, flags) {
            Err(Errno::INTR) => {}
            read => break read?,
        }
    };
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(found) = message {
            files.extend(found.take(FILES));
        }
    }
    Ok(read.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::unix::fs::FileExt;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_file_comes_with_the_bytes() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let file = memory_file("test", 4096).unwrap();
        assert_eq!(send_with_file(&ours, b"with", file.as_fd()).unwrap(), 4);
        (&ours).write_all(b", without").unwrap();
        let (mut bytes, mut files) = ([0; 64], Vec::new());
        let mut read = receive_with_files(&theirs, &mut bytes, &mut files).unwrap();
        while read < 13 {
            read += receive_with_files(&theirs, &mut bytes[read..], &mut files).unwrap();
        }
        assert_eq!((&bytes[..read], files.len()), (&b"with, without"[..], 1));
        let (mine, yours) = (File::from(file), File::from(files.remove(0)));
        assert_eq!(sealed_bytes(&yours).unwrap(), 4096);
        mine.write_at(b"shared", 100).unwrap();
        let mut found = [0; 6];
        yours.read_at(&mut found, 100).unwrap();
        assert_eq!(&found, b"shared");
        assert!(yours.set_len(0).is_err() && yours.set_len(8192).is_err());
    }

    #[test]
    fn a_file_that_could_get_shorter_is_refused() {
        let file = tempfile_without_seals();
        assert!(sealed_bytes(&file).unwrap_err().to_string().contains("not sealed"));
        // A read to which no file belongs, and the end of the stream.
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        drop(ours);
        assert_eq!(theirs.read(&mut [0; 1]).unwrap(), 0);
        assert_eq!(receive_with_files(&theirs, &mut [0; 1], &mut Vec::new()).unwrap(), 0);
    }

    fn tempfile_without_seals() -> OwnedFd {
        memfd_create("plain", MemfdFlags::CLOEXEC).unwrap()
    }
}
