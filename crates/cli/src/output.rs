//! Output of a command: stdout, the output folder, the record.

use crate::arguments::RunArguments;
use crate::error::CommandError;
use onbeat::{Pipeline, Record};
use std::fs;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Writes data to stdout. A reader that closed the pipe is not an error.
pub fn to_stdout(text: &str) -> Result<(), CommandError> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).or_else(|error| unless_unread(&error))
}

/// Whether stdout and stderr are the same terminal, file or pipe.
pub fn is_one_place() -> bool {
    let place = |stream: BorrowedFd<'_>| {
        let found = fs::File::from(stream.try_clone_to_owned().ok()?).metadata().ok()?;
        Some((found.dev(), found.ino()))
    };
    let [out, err] = [place(io::stdout().as_fd()), place(io::stderr().as_fd())];
    out.is_some() && out == err
}

fn unless_unread(error: &io::Error) -> Result<(), CommandError> {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(()),
        _ => Err(CommandError::new(format!("stdout: cannot be written: {error}"))),
    }
}

/// Stdout, for a text that is printed repeatedly.
pub struct RepeatedText {
    is_terminal: bool,
    is_first: bool,
    is_gone: bool,
}

impl RepeatedText {
    pub fn new() -> Self {
        RepeatedText { is_terminal: io::stdout().is_terminal(), is_first: true, is_gone: false }
    }

    /// Whether the reader closed the pipe.
    pub fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// Prints a text: on a terminal over the previous one, as far as it fits; elsewhere below it.
    pub fn draw(&mut self, text: &str) -> Result<(), CommandError> {
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
                // Each line is overwritten instead of cleared first, which avoids flicker.
                let lines: String = shown.iter().map(|line| format!("{line}\x1b[K\n")).collect();
                format!("{begin}\x1b[H{lines}\x1b[J")
            }
            None if self.is_first => text.to_string(),
            None => format!("\n{text}"),
        };
        self.add(&text)
    }

    /// Prints a text below the previous one.
    pub fn add(&mut self, text: &str) -> Result<(), CommandError> {
        self.is_first = false;
        let mut stdout = io::stdout().lock();
        let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
        self.is_gone = written.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe);
        written.or_else(|error| unless_unread(&error))
    }
}

/// Output folder and record of a run, checked before the run starts.
pub struct OutputPaths {
    /// The pipeline's output folder.
    pub output: PathBuf,
    pub record: RecordTo,
    /// Folders that were created for it, the outermost first.
    made: Vec<PathBuf>,
}

pub enum RecordTo {
    Stdout,
    File(PathBuf),
    /// `--no-record`.
    Nowhere,
}

const FIX: &str = "choose another folder: `output` in the file, or --set output=DIR";

impl OutputPaths {
    /// Creates the output folder, and checks that files can be created there and at the record's path.
    /// Without a record, only the sinks know whether they need the folder.
    pub fn prepare(output: &Path, record: RecordTo) -> Result<Self, CommandError> {
        let missing =
            output.ancestors().take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists());
        let mut made: Vec<PathBuf> = missing.map(Path::to_path_buf).collect();
        made.reverse();
        let paths = OutputPaths { output: output.to_path_buf(), record, made };
        paths.check().inspect_err(|_| paths.remove_empty())?;
        Ok(paths)
    }

    /// Checks that the output folder could be created, without creating it.
    ///
    /// # Errors
    /// If a run could not write there.
    pub fn look(output: &Path) -> Result<(), CommandError> {
        let there = output.ancestors().find(|folder| folder.exists() || folder.as_os_str().is_empty());
        let there = there.filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let looked =
            if there.is_dir() { try_to_write(there) } else { Err(io::ErrorKind::NotADirectory.into()) };
        looked.map_err(|error| {
            let text = format!(
                "output folder `{}`: cannot be written: {}: {error}",
                output.display(),
                there.display()
            );
            CommandError::new(text).help(FIX)
        })
    }

    fn check(&self) -> Result<(), CommandError> {
        let shown = self.output.display();
        if matches!(self.record, RecordTo::Nowhere) {
            let _left_to_the_sinks = fs::create_dir_all(&self.output);
            return Ok(());
        }
        fs::create_dir_all(&self.output).map_err(|error| {
            CommandError::new(format!("output folder `{shown}`: cannot be created: {error}")).help(FIX)
        })?;
        try_to_write(&self.output).map_err(|error| {
            CommandError::new(format!("output folder `{shown}`: cannot be written: {error}")).help(FIX)
        })?;
        let RecordTo::File(path) = &self.record else { return Ok(()) };
        let cannot = |error: &dyn std::fmt::Display| {
            CommandError::new(format!("record `{}`: cannot be written: {error}", path.display()))
                .help("choose another file with --record PATH, --record - for stdout, or --no-record")
        };
        let is_full = fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0);
        if is_full && !is_record(path) {
            return Err(cannot(&"the file exists, is not a record and would be overwritten"));
        }
        can_be_written(path).map_err(|error| cannot(&error))
    }

    /// Removes the folders that were created, if they are empty.
    pub fn remove_empty(&self) {
        for folder in self.made.iter().rev() {
            // Fails if the folder is not empty or no longer there: both are fine.
            let _left = fs::remove_dir(folder);
        }
    }
}

/// Whether a file starts like a record. Unreadable files and devices do not count.
fn is_record(path: &Path) -> bool {
    let mut begin = Vec::new();
    if !fs::metadata(path).is_ok_and(|found| found.is_file()) {
        return false;
    }
    let read = fs::File::open(path).and_then(|file| file.take(200).read_to_end(&mut begin));
    read.is_ok() && String::from_utf8_lossy(&begin).contains("\"onbeat.record\"")
}

impl RecordTo {
    /// Place of the record of a run with these arguments.
    pub fn of(arguments: &RunArguments, pipeline: &Pipeline) -> Self {
        match arguments.record.as_deref() {
            _ if arguments.no_record => RecordTo::Nowhere,
            Some(path) if path == Path::new("-") => RecordTo::Stdout,
            Some(path) => RecordTo::File(path.to_path_buf()),
            None => RecordTo::File(pipeline.output.join(format!("{}.record.json", pipeline.name()))),
        }
    }

    /// Writes the record. Returns its path, unless it went to stdout or nowhere.
    pub fn write(&self, record: &Record) -> Result<Option<PathBuf>, CommandError> {
        match self {
            RecordTo::Nowhere => Ok(None),
            RecordTo::Stdout => to_stdout(&record.to_json_pretty()).map(|()| None),
            RecordTo::File(path) => match record.write(path) {
                Ok(()) => Ok(Some(path.clone())),
                Err(error) => Err(CommandError::new(format!("record {error}"))
                    .help("choose another file with --record PATH, or --record - for stdout")),
            },
        }
    }
}

/// Checks that a file can be written at a path without overwriting a record.
pub fn can_be_replaced(path: &Path) -> io::Result<()> {
    if is_record(path) {
        return Err(io::Error::other("the file is the record of a run and would be overwritten"));
    }
    can_be_written(path)
}

/// Checks that a file can be written at a path, without creating it.
pub fn can_be_written(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(io::Error::other("it is a folder")),
        // A pipe or a device is written to directly.
        Ok(found) if !found.is_file() => Ok(()),
        _ => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            try_to_write(folder.unwrap_or(Path::new(".")))
        }
    }
}

/// Creates a file in a folder and removes it: only this test covers quotas and read-only mounts.
fn try_to_write(folder: &Path) -> io::Result<()> {
    let path = folder.join(format!(".onbeat.{}.tmp", std::process::id()));
    fs::File::create(&path)?;
    fs::remove_file(&path)
}
