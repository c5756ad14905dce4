//! Live view of a run: full-screen on a terminal, else line by line.

use crate::documents;
use crate::error::CommandError;
use crate::screen::{Screen, UserInput};
use crate::stderr::to_stderr;
use crate::views::live::{ViewState, plain, render};
use onbeat::{RunHandle, RunState, RunStatus};
use ratatui::crossterm::event::KeyCode;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub const THREAD_NAME: &str = "onbeat-top";

/// Interval between two updates.
const EVERY: Duration = Duration::from_secs(1);
/// Longest wait for a key, and delay until the end of the run is noticed.
const POLL: Duration = Duration::from_millis(100);

/// Live view of a run. Rates come from two consecutive states.
pub struct LiveRun {
    screen: Option<Screen>,
    state: ViewState,
    last: Option<RunStatus>,
    now: Option<RunStatus>,
}

impl LiveRun {
    /// Takes the terminal, if there is one and stdout is not used for data.
    pub fn new(stdout_is_taken: bool) -> Result<Self, CommandError> {
        let screen = (Screen::is_there() && !stdout_is_taken).then(Screen::take).transpose()?;
        Ok(LiveRun { screen, state: ViewState::default(), last: None, now: None })
    }

    /// Draws the next state. Without a terminal, passes the text to `say`.
    pub fn draw(
        &mut self,
        status: RunStatus,
        say: impl FnOnce(&str) -> Result<(), CommandError>,
    ) -> Result<(), CommandError> {
        self.last = self.now.replace(status);
        if self.screen.is_some() { self.draw_again() } else { say(&plain(&self.view())) }
    }

    fn view(&self) -> documents::LiveView {
        self.now
            .as_ref()
            .map_or_else(documents::LiveView::default, |now| documents::top(self.last.as_ref(), now))
    }

    fn draw_again(&mut self) -> Result<(), CommandError> {
        let view = self.view();
        let state = &mut self.state;
        self.screen.as_mut().map_or(Ok(()), |screen| screen.draw(|frame| render(frame, &view, state)))
    }

    /// Waits for the next update and handles keys. Returns whether the view continues.
    pub fn wait(&mut self, is_over: impl Fn() -> bool) -> Result<bool, CommandError> {
        let end = Instant::now() + EVERY;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if is_over() {
                return Ok(false);
            }
            if left.is_zero() {
                return Ok(true);
            }
            let Some(screen) = &mut self.screen else {
                std::thread::sleep(left.min(POLL));
                continue;
            };
            match screen.input(left.min(POLL)) {
                Some(UserInput::Key(KeyCode::Char('q'))) => return Ok(false),
                Some(UserInput::Key(key)) if self.state.key(key) => self.draw_again()?,
                Some(UserInput::Resized) => self.draw_again()?,
                _ => {}
            }
        }
    }
}

/// Live view of a run in this process, on its own thread.
pub struct Top(Option<(Sender<()>, JoinHandle<()>)>);

impl Top {
    /// Starts the view. The key `q` ends the run. If stdout is taken, the view is text on stderr.
    pub fn start(handle: RunHandle, stdout_is_taken: bool) -> Result<Self, CommandError> {
        let live = LiveRun::new(stdout_is_taken)?;
        let (end, ended) = mpsc::channel();
        let thread = onbeat_os::thread::spawn(THREAD_NAME, move || {
            if let Err(failure) = watch(live, &handle, &ended) {
                to_stderr(&format!("--top: {}\n", failure.message()));
            }
        });
        let thread =
            thread.map_err(|error| CommandError::new(format!("--top: cannot start a thread: {error}")))?;
        Ok(Top(Some((end, thread))))
    }
}

/// Restores the terminal.
impl Drop for Top {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.0.take() {
            drop(end);
            let _panicked = thread.join();
        }
    }
}

fn watch(mut live: LiveRun, handle: &RunHandle, ended: &Receiver<()>) -> Result<(), CommandError> {
    let is_over = || ended.try_recv() == Err(TryRecvError::Disconnected);
    loop {
        let status = handle.status();
        let has_ended = status.state == RunState::Ended;
        live.draw(status, |text| {
            to_stderr(text);
            Ok(())
        })?;
        if !live.wait(is_over)? {
            if !is_over() && !has_ended {
                handle.stop();
                // The screen is free again while sinks wait for their readers.
                drop(live);
                to_stderr("onbeat: stopping: finishing messages in flight; press Ctrl-C to abort\n");
            }
            return Ok(());
        }
    }
}
