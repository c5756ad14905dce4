//! A program in the middle of a chain.

use super::super::patience::{is_over, usual_ns};
use super::super::wire::WireCodec;
use super::command::ExecCommand;
use super::positions::PositionStamps;
use super::program::{Program, ProgramRead};
use crate::format::{FileSample, SampleFormat};
use onbeat_runtime::{Chunk, Context, Ending, Error, Input, Operator, Output, Ports, Step};

#[doc = include_str!("../../about/exec.md")]
pub struct Exec<T: FileSample> {
    /// Samples for the program's stdin.
    pub input: Input<Chunk<T>>,
    /// Samples from its stdout.
    pub out: Output<Chunk<T>>,
    command: ExecCommand,
    wire_in: WireCodec<T>,
    wire_out: WireCodec<T>,
    patience_ns: u64,
    /// Sample rate of the input once it is known, and that of the output if it differs; in hertz.
    in_hz: Option<f64>,
    out_hz: f64,
    program: Option<Program>,
    positions: PositionStamps,
    bytes: Vec<u8>,
    /// Bytes of an incomplete sample.
    rest: usize,
    sent: u64,
    tags: u64,
    has_given_up: bool,
}

impl<T: FileSample> Exec<T> {
    /// Sends samples through a program, in these formats; `None` is 32-bit floating point.
    ///
    /// # Errors
    /// When a format is of the other sample type.
    pub fn new(
        command: ExecCommand,
        format: Option<SampleFormat>,
        out_format: Option<SampleFormat>,
    ) -> Result<Self, Error> {
        Ok(Exec {
            input: Input::default(),
            out: Output::default(),
            command,
            wire_in: WireCodec::new(format)?,
            wire_out: WireCodec::new(out_format)?,
            patience_ns: usual_ns(),
            in_hz: None,
            out_hz: 0.0,
            program: None,
            positions: PositionStamps::new(),
            bytes: Vec::new(),
            rest: 0,
            sent: 0,
            tags: 0,
            has_given_up: false,
        })
    }

    /// Sets the sample rate of the output in hertz; 0 is that of the input.
    pub fn sample_rate(mut self, rate_hz: f64) -> Self {
        self.out_hz = rate_hz;
        self
    }

    /// Sets how long the program may be quiet while it is waited for, in nanoseconds.
    pub fn patience(mut self, time_ns: u64) -> Self {
        self.patience_ns = time_ns;
        self
    }

    /// Sample rate of the output in hertz.
    fn rate_out_hz(&self) -> f64 {
        if self.out_hz > 0.0 { self.out_hz } else { self.in_hz.unwrap_or(0.0) }
    }

    fn check_rate(&mut self, rate_hz: f64) -> Result<(), Error> {
        match self.in_hz {
            Some(known_hz) if known_hz == rate_hz => Ok(()),
            Some(known_hz) => Err(Error::new(format!(
                "the sample rate of its input changed from {known_hz} Hz to {rate_hz} Hz, and the program cannot \
                 know: resample before merging streams"
            ))),
            None => {
                self.in_hz = Some(rate_hz);
                self.positions.rates(rate_hz, self.rate_out_hz());
                Ok(())
            }
        }
    }

    /// Passes input on. Returns whether anything moved.
    fn feed(&mut self, program: &mut Program, cx: &mut Context) -> Result<bool, Error> {
        if !program.takes() {
            return Ok(false);
        }
        let mut moved = false;
        if program.pending() == 0 {
            if let Some(chunk) = self.input.pop(cx) {
                self.check_rate(chunk.rate_hz())?;
                self.positions.add(chunk.len(), cx.stamp());
                self.tags += chunk.tags().len() as u64;
                self.wire_in.pack(&chunk, &mut program.bytes);
                moved = true;
            } else if self.input.is_ended(cx) {
                program.end_input();
                return Ok(true);
            }
        }
        Ok(program.write()? || moved)
    }

    /// Sends what has come from the program, up to a chunk. Returns whether anything has.
    fn receive(
        &mut self,
        program: &mut Program,
        mut chunk: Chunk<T>,
        cx: &mut Context,
    ) -> Result<bool, Error> {
        let size = self.wire_out.bytes();
        self.bytes.resize(chunk.capacity() * size, 0);
        let ProgramRead::Bytes(count) = program.read(&mut self.bytes[self.rest..])? else {
            return Ok(false);
        };
        let have = self.rest + count;
        let whole = have / size;
        if whole > 0 {
            chunk.truncate(whole);
            let samples = chunk.edit_unique().expect("a new chunk is not shared");
            self.wire_out.unpack(&self.bytes[..whole * size], samples);
            self.bytes.copy_within(whole * size..have, 0);
            let rate_hz = self.rate_out_hz();
            let info = chunk.info_mut();
            (info.start, info.rate_hz) = (self.sent, rate_hz);
            cx.set_stamp(self.positions.stamp(self.sent));
            self.sent += whole as u64;
            self.out.push(cx, chunk)?;
        }
        self.rest = have - whole * size;
        Ok(true)
    }

    /// Concludes a program that has ended.
    fn conclude(&mut self, program: &mut Program, cx: &mut Context) -> Result<Step, Error> {
        program.conclude(cx)?;
        cx.lose(self.rest as u64, "bytes", "the program's output ended in the middle of a sample");
        self.rest = 0;
        if self.sent == 0 && self.in_hz.is_some() {
            cx.note(format!("{} sent no samples", program.name()));
        }
        Ok(Step::Done)
    }

    /// After a stop of the run, the program has not ended in time.
    fn give_up(&mut self, program: &mut Program, cx: &mut Context) -> Step {
        lose_program(program, cx);
        self.has_given_up = true;
        self.discard(cx)
    }

    /// Counts input as lost until it ends.
    fn discard(&mut self, cx: &mut Context) -> Step {
        discard(&mut self.input, cx)
    }
}

/// Kills a program that did not end after a stop of the run, and counts that as a loss.
pub(super) fn lose_program(program: &mut Program, cx: &mut Context) {
    program.kill();
    cx.lose(program.drop_pending() as u64, "bytes", "the program did not take them within `patience`");
    let reason = "did not end within `patience` after the stop and were killed with what they held";
    cx.lose(1, "programs", reason);
    program.hang_up();
}

/// Counts input as lost until it ends.
pub(super) fn discard<T: FileSample>(input: &mut Input<Chunk<T>>, cx: &mut Context) -> Step {
    while let Some(chunk) = input.pop(cx) {
        cx.lose(chunk.len() as u64, "samples", "the program was killed before they came");
    }
    if input.is_ended(cx) { Step::Done } else { Step::Wait }
}

/// Notes tags that came with samples for a program.
pub(super) fn note_tags(tags: u64, cx: &mut Context) {
    if tags > 0 {
        cx.note(format!("{tags} tags were not passed on: a program takes samples only"));
    }
}

impl<T: FileSample> Operator for Exec<T> {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        p.output("out", &mut self.out).fresh();
    }

    fn check(&self) -> Result<(), Error> {
        self.command.check()
    }

    fn rate_behind(&mut self, rate_hz: f64) -> Result<Option<f64>, Error> {
        Ok(Some(if self.out_hz > 0.0 { self.out_hz } else { rate_hz }))
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.program = Some(Program::start(&self.command, (true, true), self.patience_ns, cx)?);
        self.positions.restart(self.sent);
        (self.rest, self.has_given_up) = (0, false);
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.has_given_up {
            return Ok(self.discard(cx));
        }
        let Some(mut program) = self.program.take() else { return Ok(Step::Done) };
        let step = self.exchange(&mut program, cx);
        self.program = Some(program);
        step
    }

    fn restart(&mut self, cx: &mut Context) -> Result<(), Error> {
        let held = self.positions.held(self.sent);
        cx.lose(held, "samples", "were inside the program when it failed");
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
        self.wire_in.sum_up(cx);
        note_tags(std::mem::take(&mut self.tags), cx);
        Ok(())
    }
}

impl<T: FileSample> Exec<T> {
    fn exchange(&mut self, program: &mut Program, cx: &mut Context) -> Result<Step, Error> {
        if is_over(cx, self.patience_ns) {
            return Ok(self.give_up(program, cx));
        }
        let mut moved = self.feed(program, cx)?;
        let Some(chunk) = self.out.chunk(cx) else { return Ok(Step::Again) };
        moved |= self.receive(program, chunk, cx)?;
        if moved {
            return Ok(Step::Again);
        }
        if program.has_ended()? {
            return self.conclude(program, cx);
        }
        match program.wait(false, cx)? {
            Some(step) => Ok(step),
            None if is_over(cx, self.patience_ns) => Ok(self.give_up(program, cx)),
            None => Err(program.too_quiet()),
        }
    }
}
