//! Splits a stream into channels.

use crate::dsp::FilterBank;
use num_complex::Complex;
use onbeat_runtime::{Chunk, Context, Error, Input, Operator, Output, Ports, Stamp, Step};

/// Splits a band into channels of equal width with a [`FilterBank`].
///
/// A chunk sent has rows of one sample for each channel, with the shape `[rows, channels, 0]`. It has as many
/// rows as are complete and as fit the quantum of its edge. There is one row for every `channels` input
/// samples, so the sample rate stays the same. `N` input samples give `ceil(N / channels)` rows, and row `m`
/// belongs to the instant of input sample `m · channels`. Tags are not passed on.
pub struct Channelizer {
    /// Samples in.
    pub input: Input<Chunk<Complex<f32>>>,
    /// Rows of channels.
    pub out: Output<Chunk<Complex<f32>>>,
    bank: FilterBank,
    held: Option<(Chunk<Complex<f32>>, usize)>,
    rate_hz: Option<f64>,
    stamp: Stamp,
    received: u64,
    /// Rows sent.
    rows: u64,
    finished: bool,
}

impl Channelizer {
    /// Splits with this filter bank.
    pub fn new(bank: FilterBank) -> Self {
        Channelizer {
            input: Input::default(),
            out: Output::default(),
            bank,
            held: None,
            rate_hz: None,
            stamp: Stamp::default(),
            received: 0,
            rows: 0,
            finished: false,
        }
    }

    /// Takes samples of the current chunk.
    fn take(&mut self) {
        let Some((chunk, used)) = &mut self.held else { return };
        *used += self.bank.take(&chunk[*used..]);
        if *used == chunk.len() {
            self.held = None;
        }
    }

    /// Takes zeros after the end of the stream. Returns whether rows are left.
    fn take_zeros(&mut self) -> bool {
        if !self.finished {
            self.finished = true;
            self.stamp = self.stamp.without_due();
        }
        self.left() > 0 && self.bank.take(&[Complex::default(); 64]) > 0
    }

    /// Number of rows that belong to samples of the stream and are not sent yet.
    fn left(&self) -> u64 {
        self.received.div_ceil(self.bank.channels() as u64) - self.rows
    }

    /// Sends the rows that are ready. Returns whether there was a chunk for them.
    fn send(&mut self, cx: &mut Context) -> Result<bool, Error> {
        let Some(mut chunk) = self.out.chunk(cx) else { return Ok(false) };
        let channels = self.bank.channels();
        if channels > chunk.capacity() {
            return Err(Error::new(format!(
                "`channels` is {channels}: a row has that many samples, and the quantum of its edge has \
                 room for {}; give the edge from `out` `quantum = {}` or more, or use fewer channels",
                chunk.capacity(),
                channels * size_of::<Complex<f32>>()
            )));
        }
        let output = chunk.edit_unique().expect("a new chunk is not shared");
        let most = (self.left() as usize).saturating_mul(channels).min(output.len());
        let rows = self.bank.compute(&mut output[..most]);
        chunk.truncate(rows * channels);
        let info = chunk.info_mut();
        info.start = self.rows * channels as u64;
        info.rate_hz = self.rate_hz.unwrap_or(0.0);
        info.shape = [rows as u32, channels as u32, 0];
        self.rows += rows as u64;
        cx.set_stamp(self.stamp);
        self.out.push(cx, chunk)?;
        Ok(true)
    }

    fn check_rate(&mut self, rate_hz: f64) -> Result<(), Error> {
        let known_hz = *self.rate_hz.get_or_insert(rate_hz);
        if known_hz == rate_hz {
            return Ok(());
        }
        Err(Error::new(format!(
            "the sample rate of its input changed from {known_hz} Hz to {rate_hz} Hz, but channels need a \
             single rate; resample before merging streams"
        )))
    }
}

impl Operator for Channelizer {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        p.output("out", &mut self.out).fresh();
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        loop {
            if self.bank.ready() > 0 && self.left() > 0 {
                if self.out.room(cx) == 0 {
                    return Ok(Step::Again);
                }
                if !self.send(cx)? {
                    return Ok(Step::Wait);
                }
            } else if self.held.is_some() {
                self.take();
            } else if let Some(chunk) = self.input.pop(cx) {
                self.check_rate(chunk.rate_hz())?;
                self.stamp = cx.stamp();
                self.received += chunk.len() as u64;
                self.held = (!chunk.is_empty()).then_some((chunk, 0));
            } else if !self.input.is_ended(cx) {
                return Ok(Step::Wait);
            } else if !self.take_zeros() {
                return Ok(Step::Done);
            }
        }
    }

    fn restart(&mut self, _: &mut Context) -> Result<(), Error> {
        // The stream continues with the next row.
        self.bank.reset();
        (self.held, self.rate_hz) = (None, None);
        self.received = self.rows * self.bank.channels() as u64;
        Ok(())
    }
}
