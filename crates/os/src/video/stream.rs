//! Frames from a device: the driver's buffers, mapped, lent to the driver and taken back.

use super::abi::{self, BufferRequest, BufferState, Zeroed, switch, update};
use super::{VideoDevice, VideoError};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::slice;

/// A buffer of the driver in the memory of this process.
#[derive(Debug)]
struct BufferMapping {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory is of the process, not of a thread, and only its owner reads or unmaps it.
unsafe impl Send for BufferMapping {}

impl BufferMapping {
    fn new(device: &VideoDevice, buffer: &BufferState) -> Result<Self, VideoError> {
        let (bytes, flags) = (buffer.bytes as usize, MapFlags::SHARED);
        // SAFETY: a new mapping at a place of the kernel's choice changes no memory that is in use.
        let base =
            unsafe { mmap(ptr::null_mut(), bytes, ProtFlags::READ, flags, device, buffer.offset.into()) }?;
        let base = NonNull::new(base.cast()).ok_or(Errno::NOMEM)?;
        Ok(BufferMapping { base, bytes })
    }
}

impl Drop for BufferMapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's alone, and slices of it borrow the stream that owns it.
        let _unmapped = unsafe { munmap(self.base.as_ptr().cast::<c_void>(), self.bytes) };
    }
}

/// A device that captures. Dropped, it stops, and others can use the device.
#[derive(Debug)]
pub struct VideoStream {
    buffers: Vec<BufferMapping>,
    device: VideoDevice,
}

impl VideoStream {
    /// Requests this many buffers from the driver, which can give more or fewer, lends it all, and starts to
    /// capture with the settings of the device.
    ///
    /// # Errors
    /// [`VideoError::Busy`] if another program captures; otherwise what the driver reports.
    pub fn start(device: VideoDevice, buffers: u32) -> Result<Self, VideoError> {
        let (kind, memory) = (abi::CAPTURE, abi::MAPPED);
        let mut request = BufferRequest { count: buffers, kind, memory, ..BufferRequest::ZERO };
        update::<{ abi::REQBUFS }, _>(device.as_fd(), &mut request)?;
        let mut stream = VideoStream { buffers: Vec::new(), device };
        for index in 0..request.count {
            let mut buffer = BufferState { index, kind, memory, ..BufferState::ZERO };
            update::<{ abi::QUERYBUF }, _>(stream.as_fd(), &mut buffer)?;
            stream.buffers.push(BufferMapping::new(&stream.device, &buffer)?);
        }
        (0..request.count).try_for_each(|index| stream.lend(index))?;
        switch::<{ abi::STREAMON }>(stream.as_fd())?;
        Ok(stream)
    }

    /// Number of buffers.
    #[must_use]
    pub fn buffers(&self) -> usize {
        self.buffers.len()
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &VideoDevice {
        &self.device
    }

    /// Lends a buffer to the driver.
    fn lend(&self, index: u32) -> Result<(), Errno> {
        let mut buffer = BufferState { index, kind: abi::CAPTURE, memory: abi::MAPPED, ..BufferState::ZERO };
        update::<{ abi::QBUF }, _>(self.as_fd(), &mut buffer)
    }

    /// Takes the oldest frame that is complete.
    ///
    /// # Errors
    /// `WouldBlock` if there is none; an error for which [`is_gone`](VideoStream::is_gone) holds if the
    /// device was unplugged; otherwise what the driver reports.
    pub fn take(&self) -> io::Result<TakenFrame<'_>> {
        let (kind, memory) = (abi::CAPTURE, abi::MAPPED);
        let mut buffer = BufferState { kind, memory, ..BufferState::ZERO };
        update::<{ abi::DQBUF }, _>(self.as_fd(), &mut buffer)?;
        let Some(mapping) = self.buffers.get(buffer.index as usize) else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the driver names a buffer that it has not",
            ));
        };
        let used = (buffer.used_bytes as usize).min(mapping.bytes);
        // SAFETY: the mapping has at least this many bytes and lives as long as the stream, which the frame
        // borrows. The driver writes only to buffers that are lent to it: this one is when the frame is
        // dropped. That is the contract of `VIDIOC_DQBUF`; a driver that breaks it can break the kernel, too.
        let bytes = unsafe { slice::from_raw_parts(mapping.base.as_ptr(), used) };
        Ok(TakenFrame { bytes, buffer, stream: self })
    }

    /// Whether the error says that the device was unplugged.
    #[must_use]
    pub fn is_gone(error: &io::Error) -> bool {
        matches!(Errno::from_io_error(error), Some(Errno::NODEV | Errno::NXIO))
    }
}

impl AsFd for VideoStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

impl Drop for VideoStream {
    fn drop(&mut self) {
        // A device that is away has stopped already.
        let _stopped = switch::<{ abi::STREAMOFF }>(self.as_fd());
        // Drivers change no input while there are buffers.
        self.buffers.clear();
        let (kind, memory) = (abi::CAPTURE, abi::MAPPED);
        let mut none = BufferRequest { count: 0, kind, memory, ..BufferRequest::ZERO };
        let _freed = update::<{ abi::REQBUFS }, _>(self.as_fd(), &mut none);
    }
}

/// A frame in a buffer of the driver, which gets the buffer back when the frame is dropped.
#[derive(Debug)]
pub struct TakenFrame<'s> {
    bytes: &'s [u8],
    buffer: BufferState,
    stream: &'s VideoStream,
}

impl TakenFrame<'_> {
    /// Number of the frame, as the driver counts: it also counts frames that it could not store. It starts
    /// over after `u32::MAX`.
    #[must_use]
    pub fn sequence(&self) -> u32 {
        self.buffer.sequence
    }

    /// The driver's time of the frame, on `CLOCK_MONOTONIC`; `None` if it is on another clock.
    #[must_use]
    pub fn monotonic_ns(&self) -> Option<u64> {
        let time = |seconds: i64, microseconds: i64| {
            let whole = u64::try_from(seconds).ok()?.checked_mul(1_000_000_000)?;
            whole.checked_add(u64::try_from(microseconds).ok()?.checked_mul(1000)?)
        };
        let is_known = self.buffer.flags & abi::CLOCK_MASK == abi::CLOCK_MONOTONIC;
        time(self.buffer.seconds, self.buffer.microseconds).filter(|ns| is_known && *ns > 0)
    }

    /// Whether the time is that of the start of the exposure, and not that of the frame's end.
    #[must_use]
    pub fn is_timed_at_start(&self) -> bool {
        self.buffer.flags & abi::MOMENT_MASK == abi::START_OF_EXPOSURE
    }

    /// Whether the driver says that the content is damaged.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.buffer.flags & abi::DAMAGED != 0
    }
}

impl Deref for TakenFrame<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

impl Drop for TakenFrame<'_> {
    fn drop(&mut self) {
        // If that fails, the next call to take a frame fails, too: the device is away.
        let _lent = self.stream.lend(self.buffer.index);
    }
}
