//! Operators that wait until a file can be read.

use super::{Condition, Readiness, View, Waker};
use crate::base::error::Error;
use crate::base::helper::Helper;
use onbeat_os::poll::{Poll, is_readable};
use onbeat_trace::record::ThreadRecord;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Its thread's name.
const NAME: &str = "onbeat-events";

/// The files that operators of a run wait for, and the thread that waits for them.
#[derive(Debug)]
pub(crate) struct FileWatcher {
    poll: Poll,
    /// By token. Written before the first step only.
    wakers: Mutex<Vec<Waker>>,
}

/// A watcher at work.
#[derive(Debug)]
pub(crate) struct FileWatch {
    watcher: Arc<FileWatcher>,
    thread: JoinHandle<ThreadRecord>,
}

impl FileWatcher {
    pub fn new() -> io::Result<Arc<Self>> {
        Ok(Arc::new(FileWatcher { poll: Poll::new()?, wakers: Mutex::new(Vec::new()) }))
    }

    fn register(&self, waker: &Waker) -> u64 {
        let mut wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
        wakers.push(waker.clone());
        wakers.len() as u64 - 1
    }

    /// Starts the thread, on the house-keeping cores if there are any.
    pub fn start(self: Arc<Self>, house_keeping: &[usize]) -> io::Result<FileWatch> {
        let house_keeping = house_keeping.to_vec();
        let helper = Helper { name: NAME, purpose: "waits for files that operators read", house_keeping };
        let watcher = Arc::clone(&self);
        let thread = helper.start(move || watcher.watch())?;
        Ok(FileWatch { watcher: self, thread })
    }

    fn watch(&self) {
        let wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut ready = Vec::with_capacity(wakers.len());
        // After an error the thread ends, and all operators poll for themselves.
        while let Ok(true) = self.poll.wait(&mut ready) {
            for &token in &ready {
                if let Some(waker) = wakers.get(token as usize) {
                    waker.wake();
                }
            }
        }
    }
}

impl FileWatch {
    /// Ends the thread.
    pub fn end(self) -> Option<ThreadRecord> {
        self.watcher.poll.end().ok()?;
        self.thread.join().ok()
    }
}

/// The condition.
pub(super) struct ReadableCondition {
    pub file: Arc<OwnedFd>,
    pub watcher: Option<Arc<FileWatcher>>,
    pub token: u64,
}

impl Condition for ReadableCondition {
    fn check(&mut self, view: &View<'_>) -> Result<Readiness, Error> {
        let wrong = |error| Error::new(format!("cannot wait for the file of its condition: {error}"));
        if view.is_stopping() || is_readable(self.file.as_fd()).map_err(wrong)? {
            return Ok(Readiness::Holds);
        }
        if let Some(watcher) = &self.watcher {
            watcher.poll.arm(self.file.as_fd(), self.token).map_err(wrong)?;
        }
        Ok(Readiness::Waits)
    }

    fn describe(&self) -> String {
        "its file to become readable".to_string()
    }

    fn attach(&mut self, waker: &Waker) {
        if let Some(watcher) = &self.watcher {
            self.token = watcher.register(waker);
        }
    }

    fn is_outside(&self) -> bool {
        true
    }
}
