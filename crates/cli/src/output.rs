//! Where things are written to: the streams, the output folder, the record.

use crate::failure::Failure;
use crate::screen;
use onbeat::Record;
use std::fs;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

/// Whether a stream may be coloured.
pub fn may_colour(is_terminal: bool) -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    is_terminal && !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Data. When nobody reads it any more, that is the reader's choice and no error.
pub fn to_stdout(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).or_else(|error| unless_unread(&error))
}

fn unless_unread(error: &io::Error) -> Result<(), Failure> {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(()),
        _ => Err(Failure::new(format!("stdout: cannot be written: {error}"))),
    }
}

/// Stdout, for something that is shown again and again.
pub struct Screen {
    is_terminal: bool,
    is_first: bool,
    is_gone: bool,
}

impl Screen {
    pub fn new() -> Self {
        Screen { is_terminal: io::stdout().is_terminal(), is_first: true, is_gone: false }
    }

    /// Whether nobody reads it any more.
    pub fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// On a terminal in the place of what was there, as far as there is room; elsewhere below it.
    pub fn draw(&mut self, text: &str) -> Result<(), Failure> {
        let begin = if self.is_first { "\x1b[2J" } else { "" };
        let text = match terminal_size::terminal_size().filter(|_| self.is_terminal) {
            Some((_, terminal_size::Height(height))) => {
                let lines: Vec<&str> = text.lines().collect();
                let room = usize::from(height).max(2) - 1;
                let mut shown = lines.iter().take(room).map(ToString::to_string).collect::<Vec<_>>();
                if lines.len() > room {
                    shown.truncate(room - 1);
                    shown.push(format!("... {} more lines", lines.len() - shown.len()));
                }
                // No line is taken away before the next one is there: it does not flicker.
                let lines: String = shown.iter().map(|line| format!("{line}\x1b[K\n")).collect();
                format!("{begin}\x1b[H{lines}\x1b[J")
            }
            None if self.is_first => text.to_string(),
            None => format!("\n{text}"),
        };
        self.add(&text)
    }

    /// Below what was there.
    pub fn add(&mut self, text: &str) -> Result<(), Failure> {
        self.is_first = false;
        let mut stdout = io::stdout().lock();
        let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
        self.is_gone = written.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe);
        written.or_else(|error| unless_unread(&error))
    }
}

/// Talk. If it cannot be written there is nobody to tell. While a screen is drawn it waits for the end of it.
pub fn to_stderr(text: &str) {
    if screen::keep(text) {
        return;
    }
    let _lost = io::stderr().lock().write_all(text.as_bytes());
}

/// Where a run writes to, looked at before it begins.
pub struct Places {
    /// The pipeline's folder.
    pub output: PathBuf,
    pub record: RecordTo,
    /// Folders that were made for it, from the outside.
    made: Vec<PathBuf>,
}

pub enum RecordTo {
    Stdout,
    File(PathBuf),
}

impl Places {
    /// Makes the output folder and sees that files can be made there and where the record is to be.
    pub fn prepare(output: &Path, record: Option<&Path>, name: &str) -> Result<Self, Failure> {
        let missing =
            output.ancestors().take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists());
        let mut made: Vec<PathBuf> = missing.map(Path::to_path_buf).collect();
        made.reverse();
        let record_to = match record {
            Some(path) if path == Path::new("-") => RecordTo::Stdout,
            Some(path) => RecordTo::File(path.to_path_buf()),
            None => RecordTo::File(output.join(format!("{name}.record.json"))),
        };
        let places = Places { output: output.to_path_buf(), record: record_to, made };
        places.check().inspect_err(|_| places.give_back())?;
        Ok(places)
    }

    fn check(&self) -> Result<(), Failure> {
        const FIX: &str = "choose another folder: `output` in the file, or --set output=DIR";
        let shown = self.output.display();
        fs::create_dir_all(&self.output).map_err(|error| {
            Failure::new(format!("output folder `{shown}`: cannot be made: {error}")).help(FIX)
        })?;
        try_to_write(&self.output).map_err(|error| {
            Failure::new(format!("output folder `{shown}`: cannot be written: {error}")).help(FIX)
        })?;
        let RecordTo::File(path) = &self.record else { return Ok(()) };
        let cannot = |error: &dyn std::fmt::Display| {
            Failure::new(format!("record `{}`: cannot be written: {error}", path.display()))
                .help("choose another file with --record PATH, or --record - for stdout")
        };
        let is_full = fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0);
        if is_full && !is_record(path) {
            return Err(cannot(&"there is a file that is no record, and it would be lost"));
        }
        can_be_written(path).map_err(|error| cannot(&error))
    }

    /// Takes away the folders that were made, if nothing is in them.
    pub fn give_back(&self) {
        for folder in self.made.iter().rev() {
            // Not empty, or gone: both are well.
            let _left = fs::remove_dir(folder);
        }
    }
}

/// Whether a file begins as records do. What cannot be read is none, and neither is what has no end.
fn is_record(path: &Path) -> bool {
    let mut begin = Vec::new();
    if !fs::metadata(path).is_ok_and(|found| found.is_file()) {
        return false;
    }
    let read = fs::File::open(path).and_then(|file| file.take(200).read_to_end(&mut begin));
    read.is_ok() && String::from_utf8_lossy(&begin).contains("\"onbeat.record\"")
}

impl RecordTo {
    /// Says where it went, if that is a file.
    pub fn write(&self, record: &Record) -> Result<Option<PathBuf>, Failure> {
        match self {
            RecordTo::Stdout => to_stdout(&record.to_json_pretty()).map(|()| None),
            RecordTo::File(path) => match record.write(path) {
                Ok(()) => Ok(Some(path.clone())),
                Err(error) => Err(Failure::new(format!("record {error}"))
                    .help("choose another file with --record PATH, or --record - for stdout")),
            },
        }
    }
}

/// The same, for what is no record and must not take the place of one.
pub fn can_be_replaced(path: &Path) -> io::Result<()> {
    if is_record(path) {
        return Err(io::Error::other("there is the record of a run, and it would be lost"));
    }
    can_be_written(path)
}

/// Whether a file can be written there, without leaving one.
pub fn can_be_written(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(io::Error::other("it is a folder")),
        // A pipe or a device: it is written to as it is.
        Ok(found) if !found.is_file() => Ok(()),
        _ => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            try_to_write(folder.unwrap_or(Path::new(".")))
        }
    }
}

/// Makes a file there and takes it away again: the only test that counts quotas, read-only mounts and all.
fn try_to_write(folder: &Path) -> io::Result<()> {
    let path = folder.join(format!(".onbeat.{}.tmp", std::process::id()));
    fs::File::create(&path)?;
    fs::remove_file(&path)
}
