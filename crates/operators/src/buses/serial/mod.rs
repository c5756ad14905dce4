//! Serial ports: samples, lines and bytes in both directions.
//!
//! | module | contents |
//! |---|---|
//! | `line` | a port from its opening to its end, also over times without the device |
//! | `shared` | one port for an operator that reads and one that writes |
//! | `source`, `sink` | the operators |

mod line;
mod shared;
mod sink;
mod source;

pub use line::SerialSetup;
pub use onbeat_os::serial::SerialSettings;
pub use sink::{LineEnd, SerialByteSink, SerialSampleSink, SerialTextSink};
pub use source::{SerialByteSource, SerialSampleSource, SerialTextSource};

use crate::check;
use crate::format::SampleFormat;
use crate::streams::{rate, time_ns, usual};
use onbeat_os::serial::{FlowControl, SerialParity};
use onbeat_runtime::{Bytes, Error, Folders, Hertz, Kind, Registry, Seconds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Limits of `baud`: the lowest rate of any driver, and more than the fastest USB converters have.
const BAUDS: (u32, u32) = (50, 50_000_000);
/// Limits of `longest` in bytes.
const LONGEST: (f64, f64) = (1.0, 16e6);

/// Parity bit of each character.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ParityParameter {
    #[default]
    None,
    Even,
    Odd,
}

/// How the receiver stops the sender.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum FlowParameter {
    #[default]
    None,
    RtsCts,
    XonXoff,
}

fn usual_baud() -> u32 {
    SerialSettings::default().baud
}

fn eight() -> u8 {
    8
}

fn one() -> u8 {
    1
}

fn usual_longest() -> Bytes {
    Bytes(65_536.0)
}

/// Parameters of a kind: those of the port, and some more.
macro_rules! port_parameters {
    ($(#[$doc:meta])* $name:ident { $($(#[$more:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        struct $name {
            /// The serial port, such as `/dev/ttyUSB0`, or a name of `/dev/serial/by-id`, which stays the
            /// same.
            port: PathBuf,
            /// Bits per second on the line.
            #[serde(default = "usual_baud")]
            baud: u32,
            /// Data bits per character, 5 to 8.
            #[serde(default = "eight")]
            data_bits: u8,
            /// Parity bit of each character: `none`, `even` or `odd`.
            #[serde(default)]
            parity: ParityParameter,
            /// Stop bits of each character, 1 or 2.
            #[serde(default = "one")]
            stop_bits: u8,
            /// How the receiver stops the sender while it has no room: `none`, `rts_cts` (two more wires) or
            /// `xon_xoff` (the bytes 0x11 and 0x13 are then no data).
            #[serde(default)]
            flow: FlowParameter,
            /// With `on_error = "restart"`: how long to wait for a device that went away. Sinks also wait
            /// this long at the end while the device takes nothing.
            #[serde(default = "usual")]
            patience: Seconds,
            $($(#[$more])* $field: $type,)*
        }

        impl $name {
            fn setup(&self, folders: &Folders) -> Result<SerialSetup, Error> {
                let parity = match self.parity {
                    ParityParameter::None => SerialParity::None,
                    ParityParameter::Even => SerialParity::Even,
                    ParityParameter::Odd => SerialParity::Odd,
                };
                let flow = match self.flow {
                    FlowParameter::None => FlowControl::None,
                    FlowParameter::RtsCts => FlowControl::RtsCts,
                    FlowParameter::XonXoff => FlowControl::XonXoff,
                };
                let (baud, data_bits, stop_bits) = (self.baud, self.data_bits, self.stop_bits);
                let settings = SerialSettings { baud, data_bits, parity, stop_bits, flow };
                check::file_name("port", &self.port, "/dev/ttyUSB0")?;
                setup(folders.input(&self.port), settings, self.patience)
            }
        }
    };
}

fn setup(path: PathBuf, settings: SerialSettings, patience: Seconds) -> Result<SerialSetup, Error> {
    let SerialSettings { baud, data_bits, stop_bits, .. } = settings;
    let (low, high) = BAUDS;
    let usual = "the device's manual says its rate";
    check::within("baud", f64::from(baud), f64::from(low), f64::from(high), usual)?;
    check::within("data_bits", f64::from(data_bits), 5.0, 8.0, "8 is usual")?;
    check::within("stop_bits", f64::from(stop_bits), 1.0, 2.0, "1 is usual")?;
    Ok(SerialSetup { path, settings, patience_ns: time_ns("patience", patience)? })
}

port_parameters! {
    /// Samples from a serial port.
    SerialSourceParameters {
        /// Sample format; without it, 32-bit floating point.
        #[serde(default)]
        format: Option<SampleFormat>,
        /// Samples per second; without it there is no source time.
        #[serde(default)]
        sample_rate: Option<Hertz>,
    }
}

port_parameters! {
    /// Lines from a serial port.
    SerialTextSourceParameters {
        /// Longest line in bytes. Longer lines are lost and counted.
        #[serde(default = "usual_longest")]
        longest: Bytes,
        /// Lines to leave out each time that the port is opened. The first one is often cut: with 1, a number
        /// in it cannot be wrong.
        #[serde(default)]
        skip: u64,
    }
}

port_parameters! {
    /// Bytes from or to a serial port.
    SerialByteParameters {}
}

port_parameters! {
    /// Samples to a serial port.
    SerialSinkParameters {
        /// Sample format; without it, 32-bit floating point.
        #[serde(default)]
        format: Option<SampleFormat>,
    }
}

port_parameters! {
    /// Lines to a serial port.
    SerialTextSinkParameters {
        /// Characters after each line: `lf`, `crlf` or `cr`.
        #[serde(default)]
        line_end: LineEnd,
    }
}

fn source(p: &SerialSourceParameters, folders: &Folders) -> Result<SerialSampleSource, Error> {
    SerialSampleSource::new(p.setup(folders)?, p.format, rate(p.sample_rate)?)
}

fn text_source(p: &SerialTextSourceParameters, folders: &Folders) -> Result<SerialTextSource, Error> {
    let (low, high) = LONGEST;
    check::within("longest", p.longest.0, low, high, "64 KiB is usual")?;
    Ok(SerialTextSource::new(p.setup(folders)?, p.longest.0 as usize).skip(p.skip))
}

fn sink(p: &SerialSinkParameters, folders: &Folders) -> Result<SerialSampleSink, Error> {
    SerialSampleSink::new(p.setup(folders)?, p.format)
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    let about = include_str!("../../about/serial.md");
    let mut add = |kind: Kind| registry.add(kind.about(about));
    let example = "port = \"/dev/ttyUSB0\"\nformat = \"ri16_le\"\nsample_rate = \"1 kHz\"";
    add(Kind::new("serial.source", "receives samples from a serial port", example, source));
    let example = "port = \"/dev/ttyACM0\"\nbaud = 9600";
    add(Kind::new("serial.source.text", "receives lines from a serial port", example, text_source));
    let text = "receives bytes from a serial port";
    add(Kind::new("serial.source.bytes", text, example, |p: &SerialByteParameters, folders| {
        Ok(SerialByteSource::new(p.setup(folders)?))
    }));
    let example = "port = \"/dev/ttyUSB0\"\nformat = \"ru8\"";
    add(Kind::new("serial.sink", "sends samples to a serial port", example, sink));
    let example = "port = \"/dev/ttyACM0\"\nline_end = \"crlf\"";
    let text = "sends lines to a serial port";
    add(Kind::new("serial.sink.text", text, example, |p: &SerialTextSinkParameters, folders| {
        Ok(SerialTextSink::new(p.setup(folders)?, p.line_end))
    }));
    let example = "port = \"/dev/ttyACM0\"";
    let text = "sends bytes to a serial port";
    add(Kind::new("serial.sink.bytes", text, example, |p: &SerialByteParameters, folders| {
        Ok(SerialByteSink::new(p.setup(folders)?))
    }));
}
