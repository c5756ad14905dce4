//! Commands to the server, and what it says of its receiver.

use super::protocol::{ServerHeader, TunerCommand};
use super::tuners::{Tuner, decibels};
use super::{RtlTcpSource, is_nothing};
use num_complex::Complex;
use onbeat_runtime::{Chunk, Context, Error, Tag};
use std::io::{ErrorKind, Write};

/// Bytes of commands that may wait for the server.
const WAITING: usize = 1024;

impl RtlTcpSource {
    /// Notes the tuner and its gains, unless they are the same as before.
    pub(super) fn describe(&mut self, header: ServerHeader, cx: &mut Context) {
        if self.described.replace(header) == Some(header) {
            return;
        }
        let ServerHeader { tuner, gains } = header;
        let text = match (header.known(), Tuner::of(tuner)) {
            (Some(tuner), _) => format!("the tuner is {}, with gains of {} dB", tuner.name, tuner.list()),
            (None, Some(tuner)) => format!(
                "the server says that the tuner is {}, but with {gains} gains instead of {}: gains are sent as \
                 they are",
                tuner.name,
                tuner.gains.len()
            ),
            (None, None) => {
                format!(
                    "the tuner, number {tuner} with {gains} gains, is not known: gains are sent as they are"
                )
            }
        };
        cx.note(text);
        self.note_rounding(cx);
    }

    /// Returns the gain to request, in tenths of a decibel; `None` for an automatic one.
    fn tenths(&self) -> Option<i32> {
        let tenths = self.gain.tenths()?;
        let known = self.receiver.as_ref().and_then(ServerHeader::known);
        Some(known.map_or(tenths, |tuner| tuner.nearest(tenths)))
    }

    /// Notes the gain that is used, if it is not the one that was asked for.
    fn note_rounding(&self, cx: &mut Context) {
        if let (Some(asked), Some(used)) = (self.gain.tenths(), self.tenths())
            && asked != used
        {
            cx.note(format!("`gain` is {} dB: the tuner has {} dB", decibels(asked), decibels(used)));
        }
    }

    /// Whether the server takes further commands.
    ///
    /// # Errors
    /// If too many wait.
    pub(super) fn check_room(&self) -> Result<(), Error> {
        if self.commands.len() < WAITING {
            return Ok(());
        }
        let count = self.commands.len() / 5;
        Err(Error::new(format!("{} has not taken the last {count} commands: wait for it", self.address)))
    }

    /// Prepares the commands of a new connection.
    pub(super) fn command_all(&mut self) {
        self.push(TunerCommand::SampleRate, self.rate_hz() as u32);
        for name in ["ppm", "frequency", "gain", "agc", "bias_tee"] {
            self.push_of(name);
        }
    }

    /// Prepares the command for a parameter that has changed.
    pub(super) fn command(&mut self, name: &str, cx: &mut Context) {
        self.push_of(name);
        match name {
            "frequency" => self.tags_frequency = true,
            "gain" => self.note_rounding(cx),
            _ => {}
        }
    }

    /// Prepares the commands for a parameter, if it has a value.
    fn push_of(&mut self, name: &str) {
        let switch = |is_on: bool| u32::from(is_on);
        let (command, value) = match name {
            "frequency" => (TunerCommand::Frequency, Some(self.frequency.0.round() as u32)),
            "gain" => {
                let tenths = self.tenths();
                self.push(TunerCommand::GainMode, u32::from(tenths.is_some()));
                (TunerCommand::Gain, tenths.map(i32::cast_unsigned))
            }
            "ppm" => (TunerCommand::Correction, self.ppm.map(i32::cast_unsigned)),
            "agc" => (TunerCommand::Agc, self.agc.map(switch)),
            "bias_tee" => (TunerCommand::BiasTee, self.bias_tee.map(switch)),
            _ => return,
        };
        if let Some(value) = value {
            self.push(command, value);
        }
    }

    fn push(&mut self, command: TunerCommand, value: u32) {
        self.commands.extend_from_slice(&command.bytes(value));
    }

    /// Writes commands, as far as the server takes them. The rest follows in a later step.
    ///
    /// # Errors
    /// If the connection is broken.
    pub(super) fn send_commands(&mut self, cx: &mut Context) -> Result<(), Error> {
        while !self.commands.is_empty() {
            let Some(stream) = self.line.as_mut().and_then(|line| line.stream.as_mut()) else { break };
            match stream.write(&self.commands) {
                Ok(count) => drop(self.commands.drain(..count)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_nothing(&error) => break,
                Err(error) => return Err(self.closed(Some(error), cx)),
            }
        }
        Ok(())
    }

    /// Marks the first sample of a chunk with the frequency.
    pub(super) fn tag_frequency(&self, chunk: &mut Chunk<Complex<f32>>) {
        let value = self.frequency.0.round().into();
        chunk.info_mut().tags.push(Tag { offset: 0, key: "core:frequency".into(), value });
    }
}
