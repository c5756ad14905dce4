//! What a run does, again and again: on the whole terminal, or line by line where there is none.

use crate::documents;
use crate::failure::Failure;
use crate::output::to_stderr;
use crate::screen::{Input, Screen};
use crate::views::live::{Look, plain, render};
use onbeat::{RunHandle, RunState, RunStatus};
use ratatui::crossterm::event::KeyCode;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub const THREAD_NAME: &str = "onbeat-top";

/// From picture to picture.
const EVERY: Duration = Duration::from_secs(1);
/// Longest wait for a key: so soon it is seen that the run has ended.
const LOOK: Duration = Duration::from_millis(100);

/// Pictures of a run, each beside the one before it.
pub struct Live {
    screen: Option<Screen>,
    look: Look,
    last: Option<RunStatus>,
    now: Option<RunStatus>,
}

impl Live {
    /// On a whole terminal if there is one, and nobody else writes to it.
    pub fn new(is_taken: bool) -> Result<Self, Failure> {
        let screen = (Screen::is_there() && !is_taken).then(Screen::take).transpose()?;
        Ok(Live { screen, look: Look::default(), last: None, now: None })
    }

    /// Draws the next picture. Where there is no terminal it is given to `say`.
    pub fn draw(
        &mut self,
        status: RunStatus,
        say: impl FnOnce(&str) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.last = self.now.replace(status);
        if self.screen.is_some() { self.draw_again() } else { say(&plain(&self.view())) }
    }

    fn view(&self) -> documents::LiveView {
        self.now
            .as_ref()
            .map_or_else(documents::LiveView::default, |now| documents::top(self.last.as_ref(), now))
    }

    fn draw_again(&mut self) -> Result<(), Failure> {
        let view = self.view();
        let look = &mut self.look;
        self.screen.as_mut().map_or(Ok(()), |screen| screen.draw(|frame| render(frame, &view, look)))
    }

    /// Waits for the next picture's time, and follows keys. Says whether it goes on.
    pub fn wait(&mut self, is_over: impl Fn() -> bool) -> Result<bool, Failure> {
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
                std::thread::sleep(left.min(LOOK));
                continue;
            };
            match screen.input(left.min(LOOK)) {
                Some(Input::Key(KeyCode::Char('q'))) => return Ok(false),
                Some(Input::Key(key)) if self.look.key(key) => self.draw_again()?,
                Some(Input::Resized) => self.draw_again()?,
                _ => {}
            }
        }
    }
}

/// The live view of a run in this process, on a thread of its own.
pub struct Top(Option<(Sender<()>, JoinHandle<()>)>);

impl Top {
    /// Whoever presses `q` ends the run. Where an operator writes its data to stdout (`is_taken`) it is text on stderr.
    pub fn start(handle: RunHandle, is_taken: bool) -> Result<Self, Failure> {
        let live = Live::new(is_taken)?;
        let (end, ended) = mpsc::channel();
        let thread = onbeat_os::thread::spawn(THREAD_NAME, move || {
            if let Err(failure) = watch(live, &handle, &ended) {
                to_stderr(&format!("--top: {}\n", failure.message()));
            }
        });
        let thread = thread.map_err(|error| Failure::new(format!("--top: no thread: {error}")))?;
        Ok(Top(Some((end, thread))))
    }
}

/// Gives the terminal back.
impl Drop for Top {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.0.take() {
            drop(end);
            let _panicked = thread.join();
        }
    }
}

fn watch(mut live: Live, handle: &RunHandle, ended: &Receiver<()>) -> Result<(), Failure> {
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
            }
            return Ok(());
        }
    }
}
