//! A trace instance of this process: the kernel's ring of every core, read as pages of raw bytes.
//!
//! It records the same tracepoints as [`perf`](crate::perf) at a third of the cost, but needs more rights and
//! must be removed: the instance is a folder in tracefs. [`Knobs`] removes it, even after a process that was
//! killed. Until then, the kernel stops writing and frees the rings as soon as the process is gone
//! (`disable_on_free`).

use crate::knob::Knobs;
use crate::poll;
use crate::tracefs::{Pages, Tracefs};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A trace instance that records some tracepoints on some cores.
///
/// [`drain`](Self::drain) returns pages as [`Pages`] describes them. Times are in nanoseconds on
/// `CLOCK_MONOTONIC`. No thread is woken for a record: the reader polls from time to time. Unread records are
/// overwritten, and the next page says so.
#[derive(Debug)]
pub struct Instance {
    folder: PathBuf,
    pages: Pages,
    rings: Vec<File>,
    /// Closed with the process: the kernel then frees the rings and stops writing.
    _free: Option<File>,
    page: Vec<u8>,
    cleaned: Vec<String>,
    /// Dropped last: it removes the folder, which must be unused by then.
    _knobs: Knobs,
}

/// An opened instance.
#[derive(Debug)]
pub struct OpenInstance {
    /// The instance, switched off.
    pub instance: Instance,
    /// Tracepoints that the kernel refuses, by their place in the list, with the reason.
    pub refused: Vec<(usize, io::Error)>,
}

impl Instance {
    /// Opens an instance for these tracepoints (group and name each) on these cores, each with a ring of
    /// about the size that `bytes` gives for it.
    ///
    /// # Errors
    /// If it cannot be made: without root, on a kernel without instances, or if the journal of changes cannot
    /// be written. The message names the file.
    pub fn open(
        tracefs: &Tracefs,
        tracepoints: &[(&str, &str)],
        cpus: &[usize],
        bytes: impl Fn(usize) -> usize,
    ) -> io::Result<OpenInstance> {
        let pages = tracefs.pages()?;
        let mut knobs = Knobs::new()?;
        let folder = make(tracefs, &mut knobs)?;
        write(&folder.join("tracing_on"), "0")?;
        write(&folder.join("trace_clock"), "mono")?;
        // Thread names come with each switch; a table of them would cost as much as the rest.
        write(&folder.join("trace_options"), "norecord-cmd")?;
        write(&folder.join("trace_options"), "overwrite")?;
        write(&folder.join("tracing_cpumask"), &mask(cpus))?;
        // A new instance has rings for all cores.
        write(&folder.join("buffer_size_kb"), "4")?;
        for cpu in cpus {
            let size = folder.join(format!("per_cpu/cpu{cpu}/buffer_size_kb"));
            write(&size, &(bytes(*cpu) / 1024).max(64).to_string())?;
        }
        // Some kernels have no such file in instances.
        let free = File::open(folder.join("free_buffer")).ok();
        let free = free.filter(|_| write(&folder.join("trace_options"), "disable_on_free").is_ok());
        let ring = |cpu: &usize| {
            let path = folder.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
            poll::open(&path).map(File::from).map_err(|error| named(&path, &error))
        };
        let rings = cpus.iter().map(ring).collect::<io::Result<Vec<File>>>()?;
        let mut refused = Vec::new();
        for (at, (group, name)) in tracepoints.iter().enumerate() {
            let enable = folder.join("events").join(group).join(name).join("enable");
            if let Err(error) = write(&enable, "1") {
                refused.push((at, error));
            }
        }
        let cleaned = knobs.cleaned().to_vec();
        let page = vec![0; pages.page_bytes];
        let instance = Instance { folder, pages, rings, _free: free, page, cleaned, _knobs: knobs };
        Ok(OpenInstance { instance, refused })
    }

    /// Format of the pages.
    #[must_use]
    pub fn pages(&self) -> &Pages {
        &self.pages
    }

    /// State that killed processes had left and that was restored, one line each.
    #[must_use]
    pub fn cleaned(&self) -> &[String] {
        &self.cleaned
    }

    /// Its folder in tracefs.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Limits a tracepoint (group and name) to the records that pass a filter in the kernel's filter
    /// language: `prev_pid == 5 || next_pid == 5`.
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn filter(&self, (group, name): (&str, &str), filter: &str) -> io::Result<()> {
        write(&self.folder.join("events").join(group).join(name).join("filter"), filter)
    }

    /// Starts writing records. This interrupts no core.
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn enable(&self) -> io::Result<()> {
        write(&self.folder.join("tracing_on"), "1")
    }

    /// Stops writing records. This interrupts no core.
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn disable(&self) -> io::Result<()> {
        write(&self.folder.join("tracing_on"), "0")
    }

    /// Whether the kernel still writes records: another program may have switched it off, or have removed the
    /// right to ask.
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn is_enabled(&self) -> io::Result<bool> {
        let text = fs::read_to_string(self.folder.join("tracing_on"))?;
        Ok(text.trim_end() != "0")
    }

    /// Appends the pages of one ring to `into` and frees their room in the ring. Returns the number of bytes.
    /// `at` is the place in the list of cores.
    pub fn drain(&mut self, at: usize, into: &mut Vec<u8>) -> usize {
        let before = into.len();
        // A page that is not full is read as well. The file does not block: an error means that there is
        // nothing more now. Records written meanwhile are left for the next call, so that this one ends even
        // on a busy core.
        for _ in 0..MOST_PAGES {
            match self.rings[at].read(&mut self.page) {
                Ok(length) if length == self.page.len() => into.extend_from_slice(&self.page),
                _ => break,
            }
        }
        into.len() - before
    }
}

/// Limit of one call: 64 MiB.
const MOST_PAGES: usize = 1 << 14;

/// Makes a folder for this process, which may have several.
fn make(tracefs: &Tracefs, knobs: &mut Knobs) -> io::Result<PathBuf> {
    let pid = std::process::id();
    let mut number = 0;
    loop {
        let folder = tracefs.root().join("instances").join(format!("onbeat-{pid}-{number}"));
        match knobs.make_folder(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 1000 => number += 1,
            made => return made.map(|()| folder),
        }
    }
}

/// Formats a mask for the kernel: hexadecimal words of 32 bits, the highest first.
fn mask(cpus: &[usize]) -> String {
    let set = |word: usize, cpu: &&usize| **cpu / 32 == word;
    let words = cpus.iter().max().map_or(0, |most| most / 32);
    let bits = |word| cpus.iter().filter(|cpu| set(word, cpu)).fold(0u32, |bits, cpu| bits | 1 << (cpu % 32));
    let words: Vec<String> = (0..=words).rev().map(|word| format!("{:08x}", bits(word))).collect();
    words.join(",")
}

fn write(path: &Path, value: &str) -> io::Result<()> {
    fs::write(path, value).map_err(|error| named(path, &error))
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_words_of_32_bits() {
        for (cpus, expected) in [
            (&[][..], "00000000"),
            (&[0, 1], "00000003"),
            (&[31], "80000000"),
            (&[32, 0], "00000001,00000001"),
            (&[64], "00000001,00000000,00000000"),
        ] {
            assert_eq!(mask(cpus), expected);
        }
    }
}
