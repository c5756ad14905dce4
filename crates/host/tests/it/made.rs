//! Made-up machines: files by their path, some of them unreadable.

use onbeat_host::Tree;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// Content of a made-up file.
#[derive(Debug, Clone)]
pub enum Content {
    Bytes(Vec<u8>),
    Denied,
    /// Readable the first time, gone the next.
    Vanishes(Vec<u8>),
    /// Another kind of error.
    Broken,
}

#[derive(Debug, Clone, Default)]
pub struct Made {
    files: BTreeMap<String, Content>,
    reads: Cell<u64>,
}

impl Made {
    /// `path content` lines: the content begins after the first blank, `\n` in it is a line end.
    pub fn of(text: &str) -> Self {
        let mut made = Made::default();
        made.and(text);
        made
    }

    pub fn and(&mut self, text: &str) -> &mut Self {
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (path, content) = line.split_once(' ').unwrap_or((line, ""));
            for path in several(path) {
                self.set(
                    &path,
                    Content::Bytes((content.replace("\\n", "\n").replace("\\t", "\t") + "\n").into_bytes()),
                );
            }
        }
        self
    }

    pub fn set(&mut self, path: &str, content: Content) -> &mut Self {
        self.files.insert(path.to_owned(), content);
        self
    }

    pub fn without(&mut self, begin: &str) -> &mut Self {
        self.files.retain(|path, _| !path.starts_with(begin));
        self
    }

    pub fn paths(&self) -> Vec<String> {
        self.files.keys().cloned().collect()
    }
}

/// `cpu{0-3}/x` is four files, `{a,b}` two.
fn several(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else { return vec![path.to_owned()] };
    let (list, after) = rest.split_once('}').expect("it ends");
    let mut paths = Vec::new();
    for item in list.split(',') {
        match item.split_once('-').and_then(|(a, b)| Some((a.parse::<u32>().ok()?, b.parse::<u32>().ok()?))) {
            Some((a, b)) => paths.extend((a..=b).map(|n| format!("{before}{n}{after}"))),
            None => paths.push(format!("{before}{item}{after}")),
        }
    }
    paths
}

impl Tree for Made {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        self.reads.set(self.reads.get() + 1);
        match self.files.get(path) {
            Some(Content::Bytes(bytes)) => Ok(bytes.clone()),
            Some(Content::Vanishes(bytes)) if self.reads.get().is_multiple_of(2) => Ok(bytes.clone()),
            Some(Content::Denied) => Err(io::ErrorKind::PermissionDenied.into()),
            Some(Content::Broken) => Err(io::Error::from_raw_os_error(5)),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let begin = format!("{path}/");
        let names: BTreeSet<String> = self
            .files
            .keys()
            .filter_map(|file| Some(file.strip_prefix(&begin)?.split('/').next()?.to_owned()))
            .collect();
        // A path that ends with a slash is an empty folder.
        match names.is_empty() {
            true => Err(io::ErrorKind::NotFound.into()),
            false => Ok(names.into_iter().filter(|name| !name.is_empty()).collect()),
        }
    }
}

/// A thread's line in `/proc`, and its cores.
pub fn thread(pid: u32, name: &str, flags: u64, policy: u32, priority: u32, cores: &str) -> String {
    let zeros = "0 ".repeat(28);
    format!(
        "proc/{pid}/task/{pid}/stat {pid} ({name}) S 2 0 0 0 -1 {flags} {zeros}17 1 {priority} {policy} 0\n\
         proc/{pid}/task/{pid}/status Name:\\t{name}\\nCpus_allowed_list:\\t{cores}\n"
    )
}

pub const KERNEL: u64 = 0x0020_8040;
