//! What is seen while it is measured: a screen that is drawn again and again, or a line that says how far it is.

use super::actions;
use super::trace::{self, Traced};
use crate::arguments::Format;
use crate::arguments::noise::SessionArguments;
use crate::documents::{self, LiveView};
use crate::failure::Failure;
use crate::interrupt::Interrupts;
use crate::progress::StatusLine;
use crate::screen::{Input, Screen};
use crate::views::live::{Look, render};
use onbeat::trace::KernelEvent;
use onbeat_noise::extra::Extra;
use ratatui::crossterm::event::KeyCode;
use std::time::Duration;

/// From drawing to drawing.
const EVERY_NS: u64 = 1_000_000_000;

pub struct Live<'s> {
    name: &'static str,
    session: &'s SessionArguments,
    interrupts: Interrupts,
    line: StatusLine,
    is_talking: bool,
    screen: Option<Screen>,
    look: Look,
    drawn_ns: Option<u64>,
    is_ended: bool,
    extra: Option<Extra>,
    failure: Option<Failure>,
}

impl<'s> Live<'s> {
    pub fn new(
        name: &'static str,
        session: &'s SessionArguments,
        has_screen: bool,
        abort: fn() -> !,
    ) -> Result<Self, Failure> {
        let is_live = has_screen && Screen::is_there() && session.format == Format::Human && !session.quiet;
        // In this order: what ends the process early is listened for before there is something to give back.
        let interrupts = Interrupts::listen(abort);
        let extra = trace::extra(session)?;
        Ok(Live {
            name,
            session,
            interrupts,
            line: StatusLine::new(name),
            is_talking: !session.quiet && !is_live,
            screen: is_live.then(Screen::take).transpose()?,
            look: Look::default(),
            drawn_ns: None,
            is_ended: false,
            extra,
            failure: None,
        })
    }

    /// Draws it again when it is time, or when somebody wants to see another part of it. Does not wait.
    pub fn at(&mut self, elapsed_ns: u64, view: &dyn Fn() -> LiveView) {
        let is_due = self.drawn_ns.is_none_or(|drawn_ns| elapsed_ns >= drawn_ns + EVERY_NS);
        let Some(screen) = &mut self.screen else {
            if is_due && self.is_talking {
                self.drawn_ns = Some(elapsed_ns);
                self.line.draw(&documents::elapsed(elapsed_ns, self.session.duration));
            }
            return;
        };
        let mut is_to_be_drawn = is_due;
        while let Some(input) = screen.input(Duration::ZERO) {
            match input {
                Input::Key(KeyCode::Char('q')) => self.is_ended = true,
                Input::Key(key) => is_to_be_drawn |= self.look.key(key),
                Input::Resized => is_to_be_drawn = true,
            }
        }
        if is_to_be_drawn && !self.is_ended {
            self.drawn_ns = Some(elapsed_ns);
            let (view, look) = (view(), &mut self.look);
            let drawn = screen.draw(|frame| render(frame, &view, look));
            self.failure = self.failure.take().or(drawn.err());
        }
    }

    /// A limit was hit, and it goes on.
    pub fn hit(&mut self, events: &[KernelEvent]) {
        let more = self.more();
        let done = more.and_then(|more| {
            let (session, usual) = (self.session, self.name);
            actions::at_limit(&Traced { session, usual, events, record: None, lines: &[], more: &more })
        });
        self.failure = self.failure.take().or(done.err());
    }

    /// Lines of further events.
    fn more(&self) -> Result<Vec<(u64, String)>, Failure> {
        let lines = self.extra.as_ref().map_or(Ok(Vec::new()), Extra::lines);
        lines.map_err(|error| Failure::new(error.to_string()))
    }

    pub fn is_stopped(&self) -> bool {
        self.interrupts.is_asked() || self.failure.is_some() || self.is_ended
    }

    /// Takes the line away, and gives the terminal back; the lines of further events.
    pub fn end(&mut self) -> Result<Vec<(u64, String)>, Failure> {
        self.line.clear();
        self.screen = None;
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        if let Some(extra) = &self.extra {
            extra.stop().map_err(|error| Failure::new(error.to_string()))?;
            trace::write_counted(self.session, extra)?;
        }
        self.more()
    }
}
