//! Signals of frames as values.

use super::frame::CanFrame;
use super::layout::{BitsMeaning, ByteOrder};
use super::place::{PlaceParameters, SignalPlace};
use onbeat_runtime::{Context, Ending, Error, Input, Operator, Output, Step, operator};
use std::path::PathBuf;

// Units and reasons of losses.
const FRAMES: &str = "frames";
const SHORT: &str = "shorter than the signal's place in the frame";
const NOT_FINITE: &str = "not finite: a frame has no bits for them";
/// Data bytes of a frame if nothing is said.
const USUAL_BYTES: u8 = 8;

#[doc = include_str!("../../about/can_signal.md")]
#[derive(Operator)]
#[operator(
    name = "can.signal",
    summary = "decodes a signal of CAN frames to values",
    about = include_str!("../../about/can_signal.md"),
    prepare = Self::prepare,
)]
pub struct CanSignal {
    /// Frames of any identifiers.
    input: Input<CanFrame>,
    /// One value for each frame that has the signal.
    out: Output<f64>,
    /// A DBC file that says where the signal is. Without it, the other parameters do.
    #[parameter(input)]
    dbc: Option<PathBuf>,
    /// The signal in the DBC file: `"Message.Signal"`.
    #[parameter]
    signal: Option<String>,
    /// Identifier of the frames that have the signal; `0x123` is hexadecimal.
    #[parameter(max = 536_870_911, example = 291)]
    id: Option<u32>,
    /// Whether the identifier has 29 bits. Without it: if it is above 0x7FF.
    #[parameter]
    extended: Option<bool>,
    /// First bit: the lowest one of a signal with the low byte first, otherwise the highest one.
    #[parameter(example = 0)]
    start_bit: Option<u16>,
    /// Number of bits, 1 to 64.
    #[parameter(example = 16)]
    length: Option<u8>,
    /// `little`: low byte first (`@1` in a DBC file). `big`: high byte first (`@0`).
    #[parameter(default)]
    byte_order: ByteOrder,
    /// Meaning of the bits: `unsigned`, `signed` (two's complement) or `float`.
    #[parameter(default)]
    number: BitsMeaning,
    /// Physical value of one step of the number.
    #[parameter(default = 1.0)]
    factor: f64,
    /// Physical value of the number 0.
    #[parameter(default = 0.0)]
    offset: f64,
    place: SignalPlace,
}

impl CanSignal {
    fn given(&self) -> PlaceParameters<'_> {
        PlaceParameters {
            file: self.dbc.as_deref().zip(self.signal.as_deref()),
            is_half: self.dbc.is_some() != self.signal.is_some(),
            id: self.id,
            extended: self.extended,
            start_bit: self.start_bit,
            length: self.length,
            form: (self.byte_order, self.number),
            scale: (self.factor, self.offset),
        }
    }

    fn prepare(&mut self) -> Result<(), Error> {
        if let Some(place) = self.given().check()? {
            self.place = place;
        }
        Ok(())
    }
}

#[operator]
impl Operator for CanSignal {
    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        if let Some(place) = self.given().of_file()? {
            self.place = place;
        }
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let Some(frame) = self.input.pop(cx) else { return Ok(Step::Wait) };
        if self.place.is_in(&frame) {
            match self.place.decode(frame.data()) {
                Some(value) => self.out.push(cx, value)?,
                None => cx.lose(1, FRAMES, SHORT),
            }
        }
        Ok(Step::Wait)
    }
}

#[doc = include_str!("../../about/can_signal.md")]
#[derive(Operator)]
#[operator(
    name = "can.frame",
    summary = "encodes values as a signal of CAN frames",
    about = include_str!("../../about/can_signal.md"),
    prepare = Self::prepare,
)]
pub struct CanFrameMaker {
    /// Values.
    input: Input<f64>,
    /// One frame for each value.
    out: Output<CanFrame>,
    /// A DBC file that says where the signal is, and how long its frames are. Without it, the other
    /// parameters do.
    #[parameter(input)]
    dbc: Option<PathBuf>,
    /// The signal in the DBC file: `"Message.Signal"`.
    #[parameter]
    signal: Option<String>,
    /// Identifier of the frames; `0x123` is hexadecimal.
    #[parameter(max = 536_870_911, example = 291)]
    id: Option<u32>,
    /// Whether the identifier has 29 bits. Without it: if it is above 0x7FF.
    #[parameter]
    extended: Option<bool>,
    /// Data bytes of the frames: 0 to 8, or a length of CAN FD with `fd`. Without it: those of the DBC
    /// file, or 8.
    #[parameter]
    bytes: Option<u8>,
    /// Whether the frames are of CAN FD. Without it: if the DBC file gives them more than 8 bytes.
    #[parameter]
    fd: Option<bool>,
    /// First bit: the lowest one of a signal with the low byte first, otherwise the highest one.
    #[parameter(example = 0)]
    start_bit: Option<u16>,
    /// Number of bits, 1 to 64.
    #[parameter(example = 16)]
    length: Option<u8>,
    /// `little`: low byte first (`@1` in a DBC file). `big`: high byte first (`@0`).
    #[parameter(default)]
    byte_order: ByteOrder,
    /// Meaning of the bits: `unsigned`, `signed` (two's complement) or `float`.
    #[parameter(default)]
    number: BitsMeaning,
    /// Physical value of one step of the number.
    #[parameter(default = 1.0)]
    factor: f64,
    /// Physical value of the number 0.
    #[parameter(default = 0.0)]
    offset: f64,
    place: SignalPlace,
    clipped: u64,
}

impl CanFrameMaker {
    fn given(&self) -> PlaceParameters<'_> {
        PlaceParameters {
            file: self.dbc.as_deref().zip(self.signal.as_deref()),
            is_half: self.dbc.is_some() != self.signal.is_some(),
            id: self.id,
            extended: self.extended,
            start_bit: self.start_bit,
            length: self.length,
            form: (self.byte_order, self.number),
            scale: (self.factor, self.offset),
        }
    }

    fn prepare(&mut self) -> Result<(), Error> {
        self.given().check()?.map_or(Ok(()), |place| self.use_place(place))
    }

    fn use_place(&mut self, place: SignalPlace) -> Result<(), Error> {
        self.place = place;
        let needed = place.least_bytes();
        if needed > self.length() {
            return Err(Error::new(format!(
                "`bytes` is {}: the signal needs {needed} or more",
                self.length()
            )));
        }
        self.frame(&[0; 64][..self.length().min(64)]).map(drop)
    }

    fn length(&self) -> usize {
        self.bytes.or(self.place.bytes).unwrap_or(USUAL_BYTES).into()
    }

    fn frame(&self, data: &[u8]) -> Result<CanFrame, Error> {
        let SignalPlace { id, extended, bytes, .. } = self.place;
        let frame = if self.fd.unwrap_or(bytes.is_some_and(|bytes| bytes > USUAL_BYTES)) {
            CanFrame::fd(id, extended, 0, data)
        } else {
            CanFrame::classic(id, extended, data)
        };
        frame.filter(|_| data.len() == self.length()).ok_or_else(|| {
            Error::new(format!(
                "`bytes` is {}: classical CAN has 0 to 8, CAN FD (`fd = true`) also 12, 16, 20, 24, 32, 48 and 64",
                self.length()
            ))
        })
    }
}

#[operator]
impl Operator for CanFrameMaker {
    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        self.given().of_file()?.map_or(Ok(()), |place| self.use_place(place))
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let Some(value) = self.input.pop(cx) else { return Ok(Step::Wait) };
        if !value.is_finite() {
            cx.lose(1, "values", NOT_FINITE);
            return Ok(Step::Wait);
        }
        let mut data = [0; 64];
        let data = &mut data[..self.length()];
        self.clipped += u64::from(self.place.encode(value, data));
        let frame = self.frame(data)?;
        self.out.push(cx, frame)?;
        Ok(Step::Wait)
    }

    fn stop(&mut self, cx: &mut Context, _: Ending) -> Result<(), Error> {
        if self.clipped > 0 {
            cx.note(format!("{} values were beyond the range of the signal and were clipped", self.clipped));
        }
        self.clipped = 0;
        Ok(())
    }
}
