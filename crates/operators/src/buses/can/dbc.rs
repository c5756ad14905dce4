//! Signals of DBC files.

use super::frame::MOST_STANDARD;
use super::layout::{BitsMeaning, ByteOrder, SignalLayout};
use super::place::SignalPlace;
use can_dbc::{Dbc, Message, MessageId, MultiplexIndicator, Signal, SignalExtendedValueType, ValueType};
use onbeat_runtime::Error;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Largest file.
const MOST: u64 = 64 << 20;
/// Names that an error lists.
const SHOWN: usize = 8;

/// Finds a signal, `Message.Signal`, in a file.
pub(super) fn read(path: &Path, name: &str) -> Result<SignalPlace, Error> {
    let wrong = |text: String| Error::new(format!("{}: {text}", path.display()));
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| wrong(error.to_string()))?;
    file.take(MOST + 1).read_to_end(&mut bytes).map_err(|error| wrong(error.to_string()))?;
    if bytes.len() as u64 > MOST {
        return Err(wrong("has more than 64 MiB, which a DBC file has not".to_string()));
    }
    // Names and numbers are ASCII; units and comments, in whatever encoding, are not used.
    let text = String::from_utf8_lossy(&bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let dbc = Dbc::try_from(text).map_err(|error| wrong(reason(&error.to_string())))?;
    find(&dbc, name).map_err(wrong)
}

/// What the parser reports, in one line: where, and what was expected.
fn reason(report: &str) -> String {
    let lines = report.lines().map(str::trim);
    let parts: Vec<&str> = lines.filter(|line| line.starts_with("-->") || line.starts_with('=')).collect();
    let text = if parts.is_empty() { report.to_string() } else { parts.join(" ") };
    let text: String = text.chars().take(200).collect();
    format!("not a DBC file, or damaged: {}", text.trim_start_matches("--> "))
}

fn find(dbc: &Dbc, name: &str) -> Result<SignalPlace, String> {
    let Some((message_name, signal_name)) = name.split_once('.') else {
        return Err(format!("`signal` is `{name}`: give the message and the signal, such as `Engine.Speed`"));
    };
    let message = dbc.messages.iter().find(|message| message.name == message_name).ok_or_else(|| {
        let names = dbc.messages.iter().map(|message| message.name.as_str());
        format!("has no message `{message_name}`; {}", listed("messages", names))
    })?;
    let signal = message.signals.iter().find(|signal| signal.name == signal_name).ok_or_else(|| {
        let names = message.signals.iter().map(|signal| signal.name.as_str());
        format!("message `{message_name}` has no signal `{signal_name}`; {}", listed("signals", names))
    })?;
    let (id, extended) = match message.id {
        MessageId::Standard(id) => (id.into(), false),
        MessageId::Extended(id) => (id, true),
    };
    if !extended && id > MOST_STANDARD {
        return Err(format!("message `{message_name}` has the identifier {id:#x}, which is above 0x7ff"));
    }
    let too_large = || format!("message `{message_name}` has {} bytes: a frame has up to 64", message.size);
    let bytes = u8::try_from(message.size).ok().filter(|bytes| *bytes <= 64).ok_or_else(too_large)?;
    let layout = layout(dbc, message, signal)?;
    if layout.bytes() > usize::from(bytes) {
        return Err(format!("signal `{name}` goes beyond the {bytes} bytes of its message"));
    }
    Ok(SignalPlace { id, extended, layout, bytes: Some(bytes), only: multiplexed(dbc, message, signal)? })
}

fn layout(dbc: &Dbc, message: &Message, signal: &Signal) -> Result<SignalLayout, String> {
    let order = match signal.byte_order {
        can_dbc::ByteOrder::LittleEndian => ByteOrder::Little,
        can_dbc::ByteOrder::BigEndian => ByteOrder::Big,
    };
    let meaning = match (dbc.extended_value_type_for_signal(message.id, &signal.name), signal.value_type) {
        (Some(SignalExtendedValueType::IEEEfloat32Bit | SignalExtendedValueType::IEEEdouble64bit), _) => {
            BitsMeaning::Float
        }
        (_, ValueType::Signed) => BitsMeaning::Signed,
        (_, ValueType::Unsigned) => BitsMeaning::Unsigned,
    };
    // What is too large for these types is too large for a frame, too.
    let start = u16::try_from(signal.start_bit).unwrap_or(u16::MAX);
    let length = u8::try_from(signal.size).unwrap_or(u8::MAX);
    SignalLayout::new(start, length, order, meaning, signal.factor, signal.offset)
        .map_err(|error| format!("signal `{}.{}`: {error}", message.name, signal.name))
}

/// The multiplexor of a signal, and its number in the frames that have the signal.
fn multiplexed(dbc: &Dbc, message: &Message, signal: &Signal) -> Result<Option<(SignalLayout, f64)>, String> {
    let (message_name, name) = (&message.name, &signal.name);
    let number = match signal.multiplexer_indicator {
        MultiplexIndicator::Plain | MultiplexIndicator::Multiplexor => return Ok(None),
        MultiplexIndicator::MultiplexedSignal(number) => number,
        MultiplexIndicator::MultiplexorAndMultiplexedSignal(number) => number,
    };
    let multiplexors: Vec<&Signal> = message.signals.iter().filter(|other| is_multiplexor(other)).collect();
    let is_listed = dbc.extended_multiplex.iter().any(|one| one.message_id == message.id && &one.signal_name == name);
    match multiplexors[..] {
        [multiplexor] if !is_listed => {
            let plain = Signal { factor: 1.0, offset: 0.0, value_type: ValueType::Unsigned, ..multiplexor.clone() };
            Ok(Some((layout(dbc, message, &plain)?, number as f64)))
        }
        [] => Err(format!("signal `{message_name}.{name}` is multiplexed, and its message has no multiplexor")),
        _ => Err(format!(
            "signal `{message_name}.{name}` is multiplexed in several levels or for several numbers, which is not \
             supported: give `id`, `start_bit` and `length` instead, for frames that all have it"
        )),
    }
}

fn is_multiplexor(signal: &Signal) -> bool {
    matches!(
        signal.multiplexer_indicator,
        MultiplexIndicator::Multiplexor | MultiplexIndicator::MultiplexorAndMultiplexedSignal(_)
    )
}

fn listed<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = names.collect();
    if names.is_empty() {
        return format!("it has no {what}");
    }
    let left = names.len().saturating_sub(SHOWN);
    names.truncate(SHOWN);
    let more = if left > 0 { format!(", and {left} more") } else { String::new() };
    format!("{what} there: {}{more}", names.join(", "))
}
