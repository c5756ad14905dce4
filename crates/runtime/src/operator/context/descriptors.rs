//! Steps that wait for a descriptor.

use super::Context;
use crate::base::error::Error;
use crate::base::quiescence::NEVER;
use crate::operator::Step;
use onbeat_os::poll::Interest;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Under the manual clock: real time, and virtual time, from one look at a descriptor to the next.
const REAL: Duration = Duration::from_micros(50);
const VIRTUAL_NS: u64 = 1_000_000;

impl Context {
    /// Waits for data in a socket, pipe or device. Return the result from the step: the operator is stepped
    /// again when a read would not block, or when a message comes. The worker sleeps meanwhile, or does other
    /// work: then it looks every 50 µs, and a spinning one at every eighth poll. End of file and errors count
    /// as data.
    ///
    /// A step may also come without data, so read without blocking. A regular file is always ready. A step
    /// waits for one descriptor: if it asks several times, the last call counts. A descriptor is waited for
    /// by one operator, in one direction; clone it (`try_clone`) for another one.
    ///
    /// Under the manual clock, where nothing outside the run keeps virtual time, the operator is stepped
    /// every millisecond of virtual time, at intervals of at least 50 µs. A source that never waits keeps
    /// virtual time, and so this operator, where it is.
    ///
    /// ```
    /// use onbeat_runtime::{Context, Error, Output, Step};
    /// use std::io::ErrorKind;
    /// use std::net::UdpSocket;
    ///
    /// /// A step that sends the length of each datagram.
    /// fn step(socket: &UdpSocket, out: &mut Output<u64>, cx: &mut Context) -> Result<Step, Error> {
    ///     match socket.recv(&mut [0; 2048]) {
    ///         Ok(length) => out.push(cx, length as u64).map(|()| Step::Again),
    ///         Err(error) if error.kind() == ErrorKind::WouldBlock => cx.readable(socket),
    ///         Err(error) => Err(Error::with_source("cannot receive", error)),
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// If the kernel cannot wait for the descriptor, or the process has too many open files.
    pub fn readable(&mut self, file: &impl AsFd) -> Result<Step, Error> {
        self.ready(file.as_fd(), Interest::Read, NEVER)
    }

    /// As [`readable`](Context::readable), but only until `time_ns` on the run's clock.
    ///
    /// # Errors
    /// As for [`readable`](Context::readable).
    pub fn readable_until(&mut self, file: &impl AsFd, time_ns: u64) -> Result<Step, Error> {
        self.ready(file.as_fd(), Interest::Read, time_ns)
    }

    /// As [`readable`](Context::readable), but waits until a write would not block.
    ///
    /// # Errors
    /// As for [`readable`](Context::readable).
    pub fn writable(&mut self, file: &impl AsFd) -> Result<Step, Error> {
        self.ready(file.as_fd(), Interest::Write, NEVER)
    }

    /// As [`writable`](Context::writable), but only until `time_ns` on the run's clock.
    ///
    /// # Errors
    /// As for [`readable`](Context::readable).
    pub fn writable_until(&mut self, file: &impl AsFd, time_ns: u64) -> Result<Step, Error> {
        self.ready(file.as_fd(), Interest::Write, time_ns)
    }

    /// Returns the time on the run's clock that is a real time away: a wait until then takes that long, also
    /// if the clock runs slower or faster. Virtual time counts as real time here.
    pub fn in_real_ns(&self, time_ns: u64) -> u64 {
        let real = self.clock.of_real(self.clock.real_ns().saturating_add(time_ns));
        real.unwrap_or_else(|| self.now_ns().saturating_add(time_ns))
    }

    /// Waits a real time for a change outside the run that no descriptor tells of. Use [`readable`] or
    /// [`writable`] where they can tell.
    ///
    /// [`readable`]: Context::readable
    /// [`writable`]: Context::writable
    pub fn look_again_in(&mut self, time_ns: u64) -> Step {
        if self.clock.is_real() {
            return self.until(self.in_real_ns(time_ns));
        }
        std::thread::sleep(REAL);
        let again_ns = self.now_ns() + VIRTUAL_NS;
        self.until(again_ns)
    }

    /// Converts a time stamp of the kernel, in nanoseconds since 1970 on CLOCK_REALTIME, to the run's clock:
    /// the due time of what has come from outside. Not before the start of the run, and not later than now.
    /// Under the manual clock, it is now.
    pub fn time_of_unix_ns(&self, unix_ns: u64) -> u64 {
        let age_ns = onbeat_os::clock::realtime_unix_ns().saturating_sub(unix_ns);
        self.clock.ago(age_ns).max(self.start_ns)
    }

    /// Converts a time on the run's clock to `CLOCK_MONOTONIC`. `None` under the manual clock.
    pub fn to_monotonic_ns(&self, time_ns: u64) -> Option<u64> {
        self.clock.is_real().then(|| self.clock.to_real(time_ns))
    }

    /// Converts a time on `CLOCK_MONOTONIC` to the run's clock. `None` under the manual clock.
    pub fn from_monotonic_ns(&self, monotonic_ns: u64) -> Option<u64> {
        self.clock.of_real(monotonic_ns)
    }

    fn ready(&mut self, fd: BorrowedFd<'_>, what: Interest, time_ns: u64) -> Result<Step, Error> {
        let real = self.clock.is_real();
        match &self.waiting.descriptors {
            Some((descriptors, part)) if real => {
                let armed = descriptors.arm(*part, self.current, fd, what);
                let is_armed =
                    armed.map_err(|error| Error::with_source("cannot wait for its file or socket", error))?;
                if !is_armed {
                    return Ok(Step::Again);
                }
                self.waiting.is_armed = true;
                Ok(self.until(time_ns))
            }
            _ => {
                std::thread::sleep(REAL);
                let again_ns = self.now_ns() + VIRTUAL_NS;
                Ok(self.until(again_ns.min(time_ns)))
            }
        }
    }
}
