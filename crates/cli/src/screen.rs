//! A full-screen view on the terminal, and its keys.
//!
//! Dropping the [`Screen`], a panic, and the first or second Ctrl-C or `SIGTERM` restore the terminal. Ctrl-C
//! stays a signal and goes to [`CtrlC`](crate::interrupt::CtrlC). Messages on stderr wait until the terminal
//! is restored.

use crate::error::CommandError;
use crate::stderr::{self, may_colour};
use onbeat_os::terminal::{KeyMode, Keys, Waited};
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen};
use ratatui::style::Style;
use ratatui::{Frame, Terminal};
use std::io::{self, IsTerminal, Stdout};
use std::mem::ManuallyDrop;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// State to restore, while a view has the terminal.
static LEASE: Mutex<Option<Lease>> = Mutex::new(None);

struct Lease {
    /// `None` without a keyboard, when only stdout is a terminal.
    _keys: Option<KeyMode>,
}

/// The terminal in full-screen mode, until this is dropped.
pub struct Screen {
    terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
    /// `None` without a keyboard, or after it was closed.
    keys: Option<Keys>,
}

/// Input of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserInput {
    Key(KeyCode),
    /// The terminal has another size, and the view must be drawn again.
    Resized,
}

impl Screen {
    /// Whether a full-screen view is possible: stdout is a terminal other than `dumb`.
    pub fn is_there() -> bool {
        io::stdout().is_terminal() && std::env::var_os("TERM").is_some_and(|term| term != "dumb")
    }

    /// Clears the terminal and takes it over. Without a keyboard the view works, but has no keys.
    pub fn take() -> Result<Self, CommandError> {
        let mode = KeyMode::take().ok();
        let keys = mode.as_ref().and_then(|mode| mode.keys().ok());
        if let Ok(mut lease) = LEASE.lock() {
            *lease = Some(Lease { _keys: mode });
            stderr::hold();
        }
        let shown = execute!(io::stdout(), EnterAlternateScreen);
        let terminal = shown.and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())));
        let terminal = terminal.map_err(|error| {
            restore();
            cannot(&error)
        })?;
        Ok(Screen { terminal: ManuallyDrop::new(terminal), keys })
    }

    /// Draws the whole view. Parts that `render` does not draw are empty.
    pub fn draw(&mut self, render: impl FnOnce(&mut Frame<'_>)) -> Result<(), CommandError> {
        self.terminal.draw(render).map(|_| ()).map_err(|error| cannot(&error))
    }

    /// Waits for input for the time `within`, and returns the first one. Reports a closed terminal once, as
    /// the key `q`.
    pub fn input(&mut self, within: Duration) -> Option<UserInput> {
        let end = Instant::now() + within;
        while let Some(keys) = &self.keys {
            // Crossterm never returns from a terminal that was closed. So it is called only while there is
            // one, and never waits.
            let waited = keys.wait(end.saturating_duration_since(Instant::now()));
            if waited == Waited::Gone {
                self.keys = None;
                return Some(UserInput::Key(KeyCode::Char('q')));
            }
            match event::poll(Duration::ZERO) {
                Ok(true) => match event::read() {
                    Ok(Event::Key(KeyEvent { code, kind: KeyEventKind::Press, .. })) => {
                        return Some(UserInput::Key(code));
                    }
                    Ok(Event::Resize(..)) => return Some(UserInput::Resized),
                    Ok(_) => {}
                    Err(_) => self.keys = None,
                },
                Ok(false) if Instant::now() >= end => return None,
                Ok(false) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.keys = None,
            }
        }
        std::thread::sleep(end.saturating_duration_since(Instant::now()));
        None
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // The terminal of ratatui is never dropped. If the terminal was closed, its drop would report that on
        // stderr, which is closed too, and panic. Its buffers live until the process ends: there is no second
        // screen.
        restore();
    }
}

/// Style of a table's header.
pub fn head_style() -> Style {
    if may_colour(true) { Style::new().bold() } else { Style::new() }
}

/// Restores the terminal if a view has it. Any thread can call this, also just before the process ends early.
pub fn restore() {
    // A thread that panics while it holds the lock is already restoring it.
    let lease = LEASE.try_lock().ok().and_then(|mut lease| lease.take());
    if let Some(Lease { _keys }) = lease {
        // A terminal that was closed needs nothing.
        let _gone = execute!(io::stdout(), LeaveAlternateScreen, Show);
        drop(_keys);
        stderr::release();
    }
}

fn cannot(error: &io::Error) -> CommandError {
    CommandError::new(format!("cannot draw on the terminal: {error}"))
        .help("redirect the output to a file or a pipe, e.g. `| cat`")
}
