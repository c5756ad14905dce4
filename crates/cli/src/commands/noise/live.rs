//! Display during a measurement: a full-screen view or a progress line.

use super::actions;
use super::trace::{self, Traced};
use crate::arguments::OutputFormat;
use crate::arguments::noise::SessionArguments;
use crate::documents::{self, LiveView};
use crate::error::CommandError;
use crate::interrupt::CtrlC;
use crate::progress::StatusLine;
use crate::screen::{Screen, UserInput};
use crate::views::live::{ViewState, render};
use onbeat::trace::KernelEvent;
use onbeat_noise::extra::Extra;
use ratatui::crossterm::event::KeyCode;
use std::time::Duration;

/// Interval between two updates.
const EVERY_NS: u64 = 1_000_000_000;

/// Display of a measurement, with its Ctrl-C handler and additional events.
pub struct LiveMeasurement<'s> {
    name: &'static str,
    session: &'s SessionArguments,
    ctrl_c: CtrlC,
    line: StatusLine,
    is_talking: bool,
    screen: Option<Screen>,
    state: ViewState,
    drawn_ns: Option<u64>,
    is_ended: bool,
    extra: Option<Extra>,
    failure: Option<CommandError>,
}

impl<'s> LiveMeasurement<'s> {
    pub fn new(
        name: &'static str,
        session: &'s SessionArguments,
        has_screen: bool,
        abort: fn() -> !,
    ) -> Result<Self, CommandError> {
        let is_live =
            has_screen && Screen::is_there() && session.format == OutputFormat::Human && !session.quiet;
        // The handler comes first: Ctrl-C must restore the terminal and the trace.
        let ctrl_c = CtrlC::listen(abort);
        let extra = trace::extra(session)?;
        Ok(LiveMeasurement {
            name,
            session,
            ctrl_c,
            line: StatusLine::new(name),
            is_talking: !session.quiet && !is_live,
            screen: is_live.then(Screen::take).transpose()?,
            state: ViewState::default(),
            drawn_ns: None,
            is_ended: false,
            extra,
            failure: None,
        })
    }

    /// Updates the display if it is due, or after a key. Does not wait.
    pub fn at(&mut self, elapsed_ns: u64, view: &dyn Fn() -> LiveView) {
        let is_due = self.drawn_ns.is_none_or(|drawn_ns| elapsed_ns >= drawn_ns + EVERY_NS);
        let Some(screen) = &mut self.screen else {
            if is_due && self.is_talking {
                self.drawn_ns = Some(elapsed_ns);
                self.line.draw(&documents::elapsed(elapsed_ns, self.session.duration));
            }
            return;
        };
        let mut needs_drawing = is_due;
        while let Some(input) = screen.input(Duration::ZERO) {
            match input {
                UserInput::Key(KeyCode::Char('q')) => self.is_ended = true,
                UserInput::Key(key) => needs_drawing |= self.state.key(key),
                UserInput::Resized => needs_drawing = true,
            }
        }
        if needs_drawing && !self.is_ended {
            self.drawn_ns = Some(elapsed_ns);
            let (view, state) = (view(), &mut self.state);
            let drawn = screen.draw(|frame| render(frame, &view, state));
            self.failure = self.failure.take().or(drawn.err());
        }
    }

    /// Runs the actions at a limit, if the measurement continues.
    pub fn hit(&mut self, events: &[KernelEvent]) {
        let more = self.more();
        let done = more.and_then(|more| {
            let (session, usual) = (self.session, self.name);
            actions::at_limit(&Traced { session, usual, events, record: None, lines: &[], more: &more })
        });
        self.failure = self.failure.take().or(done.err());
    }

    /// Returns the lines of additional events.
    fn more(&self) -> Result<Vec<(u64, String)>, CommandError> {
        let lines = self.extra.as_ref().map_or(Ok(Vec::new()), Extra::lines);
        lines.map_err(|error| CommandError::new(error.to_string()))
    }

    pub fn is_stopped(&self) -> bool {
        self.ctrl_c.is_asked() || self.failure.is_some() || self.is_ended
    }

    /// Clears the line, restores the terminal and returns the lines of additional events.
    pub fn end(&mut self) -> Result<Vec<(u64, String)>, CommandError> {
        self.line.clear();
        self.screen = None;
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        if let Some(extra) = &self.extra {
            extra.stop().map_err(|error| CommandError::new(error.to_string()))?;
            trace::write_counted(self.session, extra)?;
        }
        self.more()
    }
}
