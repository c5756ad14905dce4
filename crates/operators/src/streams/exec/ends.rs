//! Programs at the ends of a chain.

use super::super::patience::{is_over, usual_ns};
use super::super::pipe::stamp_at;
use super::super::wire::WireCodec;
use super::between::{discard, lose_program, note_tags};
use super::command::ExecCommand;
use super::program::{Program, ProgramRead};
use crate::format::{FileSample, SampleFormat};
use onbeat_runtime::{Chunk, Context, Ending, Error, Input, Operator, Output, Ports, Step};

/// Receives samples from the stdout of another program, until that ends. Its stdin is empty.
///
/// A chunk holds the samples that had come, and is due when they were read. If the exit status of the program
/// is not 0, the run fails, and the message has the last lines of its stderr. Bytes after the last complete
/// sample are lost. At a stop of the run, the program gets SIGTERM, and SIGKILL after `patience`; what waits
/// in its pipe then is lost.
pub struct ExecSource<T: FileSample> {
    /// The samples.
    pub out: Output<Chunk<T>>,
    command: ExecCommand,
    wire: WireCodec<T>,
    rate_hz: f64,
    patience_ns: u64,
    program: Option<Program>,
    bytes: Vec<u8>,
    /// Bytes of an incomplete sample.
    rest: usize,
    sent: u64,
}

impl<T: FileSample> ExecSource<T> {
    /// Receives samples in a format, at a rate in hertz (0: no rate).
    ///
    /// # Errors
    /// When the format is of the other sample type.
    pub fn new(command: ExecCommand, format: Option<SampleFormat>, rate_hz: f64) -> Result<Self, Error> {
        Ok(ExecSource {
            out: Output::default(),
            command,
            wire: WireCodec::new(format)?,
            rate_hz,
            patience_ns: usual_ns(),
            program: None,
            bytes: Vec::new(),
            rest: 0,
            sent: 0,
        })
    }

    /// Sets how long the program may go on after it has closed its stdout, or after a stop of the run.
    pub fn patience(mut self, time_ns: u64) -> Self {
        self.patience_ns = time_ns;
        self
    }
}

impl<T: FileSample> Operator for ExecSource<T> {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out).fresh();
    }

    fn check(&self) -> Result<(), Error> {
        self.command.check()
    }

    fn sample_rate(&self) -> Option<f64> {
        (self.rate_hz > 0.0).then_some(self.rate_hz)
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.program = Some(Program::start(&self.command, (false, true), self.patience_ns, cx)?);
        self.rest = 0;
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let Some(program) = &mut self.program else { return Ok(Step::Done) };
        let Some(mut chunk) = self.out.chunk(cx) else { return Ok(Step::Wait) };
        let size = self.wire.bytes();
        self.bytes.resize(chunk.capacity() * size, 0);
        if let ProgramRead::Bytes(count) = program.read(&mut self.bytes[self.rest..])? {
            let have = self.rest + count;
            let whole = have / size;
            self.rest = have - whole * size;
            if whole > 0 {
                chunk.truncate(whole);
                let samples = chunk.edit_unique().expect("a new chunk is not shared");
                self.wire.unpack(&self.bytes[..whole * size], samples);
                self.bytes.copy_within(whole * size..have, 0);
                let now_ns = cx.now_ns();
                stamp_at(now_ns, &mut chunk, (&mut self.sent, self.rate_hz), cx);
                self.out.push(cx, chunk)?;
            }
            return Ok(Step::Again);
        }
        if program.has_ended()? {
            program.conclude(cx)?;
            let rest = std::mem::take(&mut self.rest) as u64;
            cx.lose(rest, "bytes", "the program's output ended in the middle of a sample");
            return Ok(Step::Done);
        }
        match program.wait(true, cx)? {
            Some(step) => Ok(step),
            None => Err(program.too_quiet()),
        }
    }

    fn finished(&mut self) {
        if let Some(program) = &mut self.program {
            // What nobody takes is not lost.
            program.hang_up();
        }
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        let Some(program) = self.program.take() else { return Ok(()) };
        if ending != Ending::Ended {
            let unread = program.unread() + self.rest as u64;
            cx.lose(unread, "bytes", "waited in the pipe of the program when the run ended");
        }
        program.stop(ending);
        Ok(())
    }
}

/// Sends samples to the stdin of another program. Its stdout is discarded.
///
/// While the program takes nothing, the operator's input edge fills. After the end of the input, its stdin is
/// closed, and the run waits for its end. If its exit status is not 0, the run fails, and the message has the
/// last lines of its stderr. A program that closes its stdin and ends with status 0 needs no more: that is
/// noted, and not an error.
pub struct ExecSink<T: FileSample> {
    /// The samples.
    pub input: Input<Chunk<T>>,
    command: ExecCommand,
    wire: WireCodec<T>,
    patience_ns: u64,
    program: Option<Program>,
    tags: u64,
    has_given_up: bool,
}

impl<T: FileSample> ExecSink<T> {
    /// Sends samples in a format.
    ///
    /// # Errors
    /// When the format is of the other sample type.
    pub fn new(command: ExecCommand, format: Option<SampleFormat>) -> Result<Self, Error> {
        Ok(ExecSink {
            input: Input::default(),
            command,
            wire: WireCodec::new(format)?,
            patience_ns: usual_ns(),
            program: None,
            tags: 0,
            has_given_up: false,
        })
    }

    /// Sets how long the program may take nothing while it is waited for, in nanoseconds.
    pub fn patience(mut self, time_ns: u64) -> Self {
        self.patience_ns = time_ns;
        self
    }
}

impl<T: FileSample> Operator for ExecSink<T> {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }

    fn check(&self) -> Result<(), Error> {
        self.command.check()
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.program = Some(Program::start(&self.command, (true, false), self.patience_ns, cx)?);
        self.has_given_up = false;
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.has_given_up {
            return Ok(discard(&mut self.input, cx));
        }
        let Some(program) = &mut self.program else { return Ok(Step::Done) };
        let is_late = is_over(cx, self.patience_ns);
        let mut moved = false;
        if program.takes() && program.pending() == 0 {
            if let Some(chunk) = self.input.pop(cx) {
                self.tags += chunk.tags().len() as u64;
                self.wire.pack(&chunk, &mut program.bytes);
                moved = true;
            } else if self.input.is_ended(cx) {
                program.end_input();
                moved = true;
            }
        }
        if program.write()? || moved {
            return Ok(Step::Again);
        }
        if program.has_ended()? {
            program.conclude(cx)?;
            return Ok(Step::Done);
        }
        let step = if is_late { None } else { program.wait(false, cx)? };
        match step {
            Some(step) => Ok(step),
            None if is_over(cx, self.patience_ns) => {
                lose_program(program, cx);
                self.has_given_up = true;
                Ok(discard(&mut self.input, cx))
            }
            None => Err(program.too_quiet()),
        }
    }

    fn restart(&mut self, cx: &mut Context) -> Result<(), Error> {
        if let Some(program) = &mut self.program {
            let pending = program.drop_pending() as u64;
            cx.lose(pending, "bytes", "were on their way to the program when it failed");
        }
        self.stop(cx, Ending::Failed)?;
        self.start(cx)
    }

    fn finished(&mut self) {
        if let Some(program) = &mut self.program {
            program.hang_up();
        }
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        if let Some(program) = self.program.take() {
            program.stop(ending);
        }
        self.wire.sum_up(cx);
        note_tags(std::mem::take(&mut self.tags), cx);
        Ok(())
    }
}
