//! A trace instance of our own: the kernel's ring of every core, read as pages of raw bytes.
//!
//! The same tracepoints as those of [`perf`](crate::perf), for a third of the price, but with more rights and with something that
//! has to be taken away again: the instance is a folder in tracefs. [`Knobs`] takes it away, also after a process that was killed;
//! until then the kernel itself stops writing and frees the rings as soon as the process is gone (`disable_on_free`).

use crate::knob::Knobs;
use crate::poll;
use crate::tracefs::{Pages, Tracefs};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A trace instance that writes the tracepoints that it was told of, on some cores.
///
/// [`drain`](Self::drain) gives pages as [`Pages`] describes them. Times are in nanoseconds on `CLOCK_MONOTONIC`. Nobody is woken for
/// what is written: whoever reads comes by from time to time. What is not read in time is overwritten, and the next page says so.
#[derive(Debug)]
pub struct Instance {
    folder: PathBuf,
    pages: Pages,
    rings: Vec<File>,
    /// Closed with the process: the kernel then frees the rings and writes no more.
    _free: Option<File>,
    page: Vec<u8>,
    cleaned: Vec<String>,
    /// Dropped last: it takes the folder away, which nobody must use then.
    _knobs: Knobs,
}

/// What came of making an instance.
#[derive(Debug)]
pub struct Made {
    /// The instance, switched off.
    pub instance: Instance,
    /// Tracepoints that the kernel refuses, by their place in the list, with its reason.
    pub refused: Vec<(usize, io::Error)>,
}

impl Instance {
    /// An instance for these tracepoints (group and name each) on these cores, with rings of about `bytes` each.
    ///
    /// # Errors
    /// Where it cannot be made: without root, on a kernel without instances, or where the journal of what has to be taken away
    /// cannot be written. The message names the file.
    pub fn open(
        tracefs: &Tracefs,
        tracepoints: &[(&str, &str)],
        cpus: &[usize],
        bytes: usize,
    ) -> io::Result<Made> {
        let pages = tracefs.pages()?;
        let mut knobs = Knobs::new()?;
        let folder = make(tracefs, &mut knobs)?;
        write(&folder.join("tracing_on"), "0")?;
        write(&folder.join("trace_clock"), "mono")?;
        // Names of threads come with each switch; to keep a table of them would cost as much as the rest.
        write(&folder.join("trace_options"), "norecord-cmd")?;
        write(&folder.join("trace_options"), "overwrite")?;
        write(&folder.join("tracing_cpumask"), &mask(cpus))?;
        // An instance comes with rings for all cores.
        write(&folder.join("buffer_size_kb"), "4")?;
        for cpu in cpus {
            let size = folder.join(format!("per_cpu/cpu{cpu}/buffer_size_kb"));
            write(&size, &(bytes / 1024).max(64).to_string())?;
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
        Ok(Made { instance, refused })
    }

    /// How its pages are made up.
    #[must_use]
    pub fn pages(&self) -> &Pages {
        &self.pages
    }

    /// What killed processes had left and is put back now, a line each.
    #[must_use]
    pub fn cleaned(&self) -> &[String] {
        &self.cleaned
    }

    /// Its folder in tracefs.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Of one tracepoint (group and name) only those records are written that a filter lets through, in the kernel's own language:
    /// `prev_pid == 5 || next_pid == 5`.
    ///
    /// # Errors
    /// What the kernel says of it.
    pub fn filter(&self, (group, name): (&str, &str), filter: &str) -> io::Result<()> {
        write(&self.folder.join("events").join(group).join(name).join("filter"), filter)
    }

    /// Writes records from now on. No core is interrupted for it.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn enable(&self) -> io::Result<()> {
        write(&self.folder.join("tracing_on"), "1")
    }

    /// Writes none from now on. No core is interrupted for it.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn disable(&self) -> io::Result<()> {
        write(&self.folder.join("tracing_on"), "0")
    }

    /// Whether the kernel writes records, as it was told to: others may have switched it off, or have taken away the right to ask.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn is_enabled(&self) -> io::Result<bool> {
        let text = fs::read_to_string(self.folder.join("tracing_on"))?;
        Ok(text.trim_end() != "0")
    }

    /// Appends the pages of the ring at this place of the list of cores to `into`, makes room for new ones, and says how many bytes
    /// that were.
    pub fn drain(&mut self, at: usize, into: &mut Vec<u8>) -> usize {
        let before = into.len();
        // A page that is not full yet comes, too. It does not wait: an error says that there is nothing more for now. What is written
        // meanwhile is for the next time, so that it comes to an end on a core that is busy with nothing else.
        for _ in 0..MOST_PAGES {
            match self.rings[at].read(&mut self.page) {
                Ok(length) if length == self.page.len() => into.extend_from_slice(&self.page),
                _ => break,
            }
        }
        into.len() - before
    }
}

/// Of one reading: 64 MiB.
const MOST_PAGES: usize = 1 << 14;

/// A folder of that process; it may have several.
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

/// As the kernel takes it: hexadecimal words of 32 bits, the highest first.
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
