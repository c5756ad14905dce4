//! A whole terminal that is drawn again and again, in the place of what was there, and its keys.
//!
//! Whatever ends the process gives the terminal back: dropping the [`Screen`], a panic, Ctrl-C and `SIGTERM` (the second of them, too).
//! Ctrl-C stays a signal and goes to [`Interrupts`](crate::interrupt::Interrupts); what is said on stderr meanwhile is kept, and said
//! afterwards.

use crate::failure::Failure;
use crate::output::{may_colour, to_stderr};
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

/// What is to be given back, while a terminal is ours.
static TAKEN: Mutex<Option<Taken>> = Mutex::new(None);

struct Taken {
    /// None where there are no keys: only stdout is a terminal.
    _keys: Option<KeyMode>,
    /// What was said meanwhile.
    talk: String,
}

/// The terminal, until it is dropped.
pub struct Screen {
    terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
    /// None where there are none, or none any more.
    keys: Option<Keys>,
}

/// What somebody has done at the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    Key(KeyCode),
    /// It has another size: it is to be drawn again.
    Resized,
}

impl Screen {
    /// Whether there is one: stdout is a terminal that can more than lines.
    pub fn is_there() -> bool {
        io::stdout().is_terminal() && std::env::var_os("TERM").is_some_and(|term| term != "dumb")
    }

    /// Shows an empty one. Without a terminal to read from it is drawn all the same, and has no keys.
    pub fn take() -> Result<Self, Failure> {
        let mode = KeyMode::take().ok();
        let keys = mode.as_ref().and_then(|mode| mode.keys().ok());
        if let Ok(mut taken) = TAKEN.lock() {
            *taken = Some(Taken { _keys: mode, talk: String::new() });
        }
        let shown = execute!(io::stdout(), EnterAlternateScreen);
        let terminal = shown.and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())));
        let terminal = terminal.map_err(|error| {
            give_back();
            cannot(&error)
        })?;
        Ok(Screen { terminal: ManuallyDrop::new(terminal), keys })
    }

    /// Draws it all; what is not drawn is empty.
    pub fn draw(&mut self, render: impl FnOnce(&mut Frame<'_>)) -> Result<(), Failure> {
        self.terminal.draw(render).map(|_| ()).map_err(|error| cannot(&error))
    }

    /// What is done within so long, if anything is; the rest of the time is slept. Of a terminal that was closed it says `q`, once.
    pub fn input(&mut self, within: Duration) -> Option<Input> {
        let end = Instant::now() + within;
        while let Some(keys) = &self.keys {
            // Crossterm never comes back from a terminal that is gone, so it is asked only while there is one, and never waits.
            let waited = keys.wait(end.saturating_duration_since(Instant::now()));
            if waited == Waited::Gone {
                self.keys = None;
                return Some(Input::Key(KeyCode::Char('q')));
            }
            match event::poll(Duration::ZERO) {
                Ok(true) => match event::read() {
                    Ok(Event::Key(KeyEvent { code, kind: KeyEventKind::Press, .. })) => {
                        return Some(Input::Key(code));
                    }
                    Ok(Event::Resize(..)) => return Some(Input::Resized),
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
        // What ratatui drops it says on stderr where the terminal is gone, and stderr is gone with it, which it takes for a reason to
        // panic. Its buffers go with the process: nobody takes a second screen.
        give_back();
    }
}

/// What a head is shown in.
pub fn head_style() -> Style {
    if may_colour(true) { Style::new().bold() } else { Style::new() }
}

/// Gives the terminal back if it is ours. For whoever ends the process early, too, on any thread.
pub fn give_back() {
    // Whoever panics with the lock in hand is giving back already.
    let taken = TAKEN.try_lock().ok().and_then(|mut taken| taken.take());
    if let Some(Taken { _keys, talk }) = taken {
        // A terminal that is gone needs nothing.
        let _gone = execute!(io::stdout(), LeaveAlternateScreen, Show);
        drop(_keys);
        to_stderr(&talk);
    }
}

/// Takes in what would be said on stderr, if a screen is there.
pub fn keep(text: &str) -> bool {
    // Talk that draws itself again and again is for a line, not for later.
    let is_line = text.starts_with('\r');
    let mut taken = TAKEN.lock().ok();
    let taken = taken.as_mut().and_then(|taken| taken.as_mut());
    taken.map(|taken| taken.talk.push_str(if is_line { "" } else { text })).is_some()
}

fn cannot(error: &io::Error) -> Failure {
    Failure::new(format!("the terminal cannot be drawn on: {error}"))
        .help("write to a file or a pipe: `| cat`")
}
