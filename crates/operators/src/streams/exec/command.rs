//! The command of another program.

use onbeat_os::latency::set_timer_slack_ns;
use onbeat_os::policy::{Policy, PolicyFlags};
use onbeat_runtime::{Context, Error};
use rustix::fs::{Access, access};
use rustix::io::Errno;
use std::io::{self, ErrorKind};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;

/// Timer slack with which programs usually start.
const USUAL_SLACK_NS: u64 = 50_000;

/// A program and its arguments, and the folder to run it in.
#[derive(Debug, Clone)]
pub struct ExecCommand {
    words: Vec<String>,
    folder: PathBuf,
}

impl ExecCommand {
    /// The first word is the program: a name that is searched in `PATH`, or a path.
    ///
    /// # Errors
    /// When there is no program, or a word has a zero byte.
    pub fn new(words: Vec<String>) -> Result<Self, Error> {
        if words.first().is_none_or(String::is_empty) {
            return Err(Error::new(
                "`command` names no program: give it and its arguments, such as `[\"sox\", \"--version\"]`",
            ));
        }
        if words.iter().any(|word| word.contains('\0')) {
            return Err(Error::new("`command` has a word with a zero byte: leave it out"));
        }
        Ok(ExecCommand { words, folder: PathBuf::new() })
    }

    /// Sets the folder to run it in, where relative paths in the command begin.
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = folder.into();
        self
    }

    /// The program's name in messages.
    pub(super) fn name(&self) -> String {
        let name: String = self.words[0].chars().take(60).flat_map(char::escape_debug).collect();
        format!("`{name}`")
    }

    /// Whether the program can be found and executed.
    pub(super) fn check(&self) -> Result<(), Error> {
        let program = Path::new(&self.words[0]);
        let can_run = |path: &Path| path.is_file() && access(path, Access::EXEC_OK).is_ok();
        if self.words[0].contains('/') {
            let path = self.folder.join(program);
            let error = if !path.exists() {
                Errno::NOENT
            } else if !can_run(&path) {
                Errno::ACCESS
            } else {
                return Ok(());
            };
            return Err(self.cannot_start(error.into()));
        }
        let folders = std::env::var_os("PATH").unwrap_or_default();
        if std::env::split_paths(&folders).any(|folder| can_run(&folder.join(program))) {
            return Ok(());
        }
        Err(self.cannot_start(Errno::NOENT.into()))
    }

    /// Starts the program. Its stderr is a pipe; stdin and stdout are pipes or nothing.
    ///
    /// The thread that starts it is not the worker, whose cores, policy, niceness and timer slack it would
    /// inherit. It is in a process group of its own: Ctrl-C in the terminal stops the run, which then ends
    /// the program.
    pub(super) fn start(&self, stdin: bool, stdout: bool, cx: &Context) -> Result<Child, Error> {
        let pipe = |is_used| if is_used { Stdio::piped() } else { Stdio::null() };
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]).stdin(pipe(stdin)).stdout(pipe(stdout)).stderr(Stdio::piped());
        command.process_group(0);
        if !self.folder.as_os_str().is_empty() {
            // The output folder may not be there yet.
            std::fs::create_dir_all(&self.folder).map_err(|error| self.cannot_start(error))?;
            command.current_dir(&self.folder);
        }
        let (done, started) = channel();
        let thread = cx.spawn_beside("onbeat-exec", move || {
            // If the kernel refuses, it keeps what it has.
            let _kept = Policy::Other(0).set(PolicyFlags::default());
            let _kept = set_timer_slack_ns(USUAL_SLACK_NS);
            let _gone = done.send(command.spawn());
        });
        let joined = thread.map(std::thread::JoinHandle::join);
        let child = started.recv().unwrap_or_else(|_| Err(ErrorKind::Other.into()));
        match joined {
            Ok(_) => child.map_err(|error| self.cannot_start(error)),
            Err(error) => Err(self.cannot_start(error)),
        }
    }

    fn cannot_start(&self, error: io::Error) -> Error {
        let fix = match error.kind() {
            ErrorKind::NotFound => ": install it, or give its path in `command`",
            ErrorKind::PermissionDenied => ": is it a program, and executable (`chmod +x`)?",
            _ => "",
        };
        Error::with_source(format!("cannot start {}{fix}", self.name()), error)
    }
}
