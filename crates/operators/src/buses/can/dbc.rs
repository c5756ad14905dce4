//! Signals of DBC files.

use super::frame::{MOST_EXTENDED, MOST_STANDARD};
use super::layout::{BitsMeaning, ByteOrder, SignalLayout};
use super::place::SignalPlace;
use onbeat_os::can::EXTENDED_FLAG;
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
        return Err(wrong("has more than 64 MiB: a DBC file is smaller".to_string()));
    }
    // Names and numbers are ASCII; units and comments, in whatever encoding, are not used.
    let text = String::from_utf8_lossy(&bytes);
    find(&parse(&text).map_err(wrong)?, name).map_err(wrong)
}

/// A message with its signals.
#[derive(Debug, Default)]
struct ListedMessage<'a> {
    id: u32,
    name: &'a str,
    bytes: u64,
    signals: Vec<ListedSignal<'a>>,
}

#[derive(Debug, Clone)]
struct ListedSignal<'a> {
    name: &'a str,
    is_multiplexor: bool,
    /// The multiplexor's number in the frames that have it.
    multiplexed: Option<u64>,
    /// Whether `SG_MUL_VAL_` says more of the frames that have it.
    is_extended: bool,
    start: u64,
    length: u64,
    order: ByteOrder,
    meaning: BitsMeaning,
    factor: f64,
    offset: f64,
}

/// Reads messages and signals. All other statements are passed over.
fn parse(text: &str) -> Result<Vec<ListedMessage<'_>>, String> {
    let mut messages: Vec<ListedMessage<'_>> = Vec::new();
    let mut cursor = Cursor { rest: text.strip_prefix('\u{feff}').unwrap_or(text) };
    let mut is_dbc = false;
    loop {
        cursor.rest = cursor.rest.trim_start();
        if cursor.rest.is_empty() {
            break;
        }
        let at = cursor;
        let mut statement = cursor;
        let wrong = |what: &str| {
            let line = text[..text.len() - at.rest.len()].matches('\n').count() + 1;
            let shown: String = at.rest.lines().next().unwrap_or_default().trim().chars().take(80).collect();
            format!("line {line}: not {what} of a DBC file: `{shown}`")
        };
        let word = statement.word();
        is_dbc |= matches!(word, Some("VERSION" | "NS_" | "BS_" | "BU_" | "BO_"));
        match word {
            Some("BO_") => messages.push(statement.message().ok_or_else(|| wrong("a message"))?),
            Some("SG_") => {
                let message = messages.last_mut().ok_or_else(|| wrong("a signal of a message"))?;
                message.signals.push(statement.signal().ok_or_else(|| wrong("a signal"))?);
            }
            // Names of statements stand alone in a list at the beginning.
            Some(word @ ("SIG_VALTYPE_" | "SG_MUL_VAL_")) => {
                if let Some(signal) = statement.named(&mut messages) {
                    let is_float = word == "SIG_VALTYPE_" && statement.float_type();
                    signal.is_extended |= word == "SG_MUL_VAL_";
                    signal.meaning = if is_float { BitsMeaning::Float } else { signal.meaning };
                }
            }
            _ => {}
        }
        cursor.skip_line();
    }
    if is_dbc { Ok(messages) } else { Err("not a DBC file: it has no `VERSION`, `BU_` or `BO_`".to_string()) }
}

/// The rest of a file.
#[derive(Clone, Copy)]
struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    /// Goes behind the end of the line, which is not one within a text in quotes.
    fn skip_line(&mut self) {
        let mut is_quoted = false;
        let end = self.rest.find(|c: char| {
            is_quoted ^= c == '"';
            c == '\n' && !is_quoted
        });
        self.rest = end.map_or("", |end| &self.rest[end + 1..]);
    }

    fn take(&mut self, is_part: impl Fn(char) -> bool) -> Option<&'a str> {
        let rest = self.rest.trim_start();
        let end = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
        self.rest = &rest[end..];
        (end > 0).then_some(&rest[..end])
    }

    fn word(&mut self) -> Option<&'a str> {
        self.take(|c| c.is_ascii_alphanumeric() || c == '_')
    }

    fn mark(&mut self, mark: char) -> Option<()> {
        self.rest = self.rest.trim_start().strip_prefix(mark)?;
        Some(())
    }

    fn whole(&mut self) -> Option<u64> {
        self.take(|c| c.is_ascii_digit())?.parse().ok()
    }

    fn number(&mut self) -> Option<f64> {
        self.take(|c| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E'))?.parse().ok()
    }

    /// Behind `BO_`: `291 Engine: 8 Sender`.
    fn message(&mut self) -> Option<ListedMessage<'a>> {
        let id = u32::try_from(self.whole()?).ok()?;
        let name = self.word()?;
        self.mark(':')?;
        Some(ListedMessage { id, name, bytes: self.whole()?, signals: Vec::new() })
    }

    /// Behind `SG_`: `Speed m3 : 23|16@0+ (0.01,0) …`.
    fn signal(&mut self) -> Option<ListedSignal<'a>> {
        let name = self.word()?;
        let multiplex = self.word().unwrap_or_default();
        let is_multiplexor = multiplex.ends_with('M');
        let number = multiplex.trim_end_matches('M').strip_prefix('m');
        let multiplexed = match number {
            Some(number) => Some(number.parse().ok()?),
            None if matches!(multiplex, "" | "M") => None,
            None => return None,
        };
        self.mark(':')?;
        let start = self.whole()?;
        self.mark('|')?;
        let length = self.whole()?;
        self.mark('@')?;
        let order = match self.whole()? {
            0 => ByteOrder::Big,
            1 => ByteOrder::Little,
            _ => return None,
        };
        let is_signed = self.mark('-').is_some();
        let meaning = if is_signed { BitsMeaning::Signed } else { BitsMeaning::Unsigned };
        (is_signed || self.mark('+').is_some()).then_some(())?;
        self.mark('(')?;
        let factor = self.number()?;
        self.mark(',')?;
        let offset = self.number()?;
        self.mark(')')?;
        Some(ListedSignal {
            name,
            is_multiplexor,
            multiplexed,
            is_extended: false,
            start,
            length,
            order,
            meaning,
            factor,
            offset,
        })
    }

    /// A signal by the identifier of its message and its name.
    fn named<'b>(&mut self, messages: &'b mut [ListedMessage<'a>]) -> Option<&'b mut ListedSignal<'a>> {
        let id = self.whole()?;
        let name = self.word()?;
        let message = messages.iter_mut().find(|message| u64::from(message.id) == id)?;
        message.signals.iter_mut().find(|signal| signal.name == name)
    }

    /// Behind the signal of `SIG_VALTYPE_`: `: 1;`, where 1 and 2 are floating point.
    fn float_type(&mut self) -> bool {
        let _optional = self.mark(':');
        matches!(self.whole(), Some(1 | 2))
    }
}

fn find(messages: &[ListedMessage<'_>], name: &str) -> Result<SignalPlace, String> {
    let Some((message_name, signal_name)) = name.split_once('.') else {
        return Err(format!("`signal` is `{name}`: give the message and the signal, such as `Engine.Speed`"));
    };
    let message = messages.iter().find(|message| message.name == message_name).ok_or_else(|| {
        let names = messages.iter().map(|message| message.name);
        format!("has no message `{message_name}`; {}", listed("messages", names))
    })?;
    let signal = message.signals.iter().find(|signal| signal.name == signal_name).ok_or_else(|| {
        let names = message.signals.iter().map(|signal| signal.name);
        format!("message `{message_name}` has no signal `{signal_name}`; {}", listed("signals", names))
    })?;
    let extended = message.id & EXTENDED_FLAG != 0;
    let id = message.id & !EXTENDED_FLAG;
    if id > if extended { MOST_EXTENDED } else { MOST_STANDARD } {
        return Err(format!(
            "message `{message_name}` has the number {}, which is no identifier",
            message.id
        ));
    }
    let too_large = || format!("message `{message_name}` has {} bytes: a frame has up to 64", message.bytes);
    let bytes = u8::try_from(message.bytes).ok().filter(|bytes| *bytes <= 64).ok_or_else(too_large)?;
    let place = SignalPlace {
        id,
        extended,
        layout: layout(message, signal)?,
        bytes: Some(bytes),
        only: multiplexor(message, signal)?,
    };
    if place.least_bytes() > usize::from(bytes) {
        return Err(format!("signal `{name}` goes beyond the {bytes} bytes of its message"));
    }
    Ok(place)
}

fn layout(message: &ListedMessage<'_>, signal: &ListedSignal<'_>) -> Result<SignalLayout, String> {
    // Numbers that are too large for these types are too large for a frame, too.
    let start = u16::try_from(signal.start).unwrap_or(u16::MAX);
    let length = u8::try_from(signal.length).unwrap_or(u8::MAX);
    SignalLayout::new(start, length, signal.order, signal.meaning, signal.factor, signal.offset)
        .map_err(|error| format!("signal `{}.{}`: {error}", message.name, signal.name))
}

/// The multiplexor of a signal, and its number in the frames that have the signal.
fn multiplexor(
    message: &ListedMessage<'_>,
    signal: &ListedSignal<'_>,
) -> Result<Option<(SignalLayout, f64)>, String> {
    let Some(number) = signal.multiplexed else { return Ok(None) };
    let name = format!("`{}.{}`", message.name, signal.name);
    let multiplexors: Vec<_> = message.signals.iter().filter(|other| other.is_multiplexor).collect();
    match multiplexors[..] {
        [one] if !signal.is_extended && one.multiplexed.is_none() => {
            let plain =
                ListedSignal { factor: 1.0, offset: 0.0, meaning: BitsMeaning::Unsigned, ..one.clone() };
            Ok(Some((layout(message, &plain)?, number as f64)))
        }
        [] => Err(format!("signal {name} is multiplexed, and its message has no multiplexor")),
        _ => Err(format!(
            "signal {name} is multiplexed in several levels or for several numbers, which is not supported"
        )),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEAD: &str = "VERSION \"\"\nNS_ :\n  SIG_VALTYPE_\n  SG_MUL_VAL_\nBS_:\nBU_: A\n";

    fn place(text: &str, name: &str) -> Result<SignalPlace, String> {
        find(&parse(&format!("{HEAD}{text}"))?, name)
    }

    #[test]
    fn texts_in_quotes_are_not_statements() {
        let text = "\n\nBO_ 2147483939 M : 12 A\r\n\n SG_ S:7|8@0-(1E-1,-4.5)[0|0]\"a\" A\r\n\r\nCM_ SG_ 2147483939 S \"two\n \
                    SG_ T : bad\nBO_ bad\";\nCM_ BO_ 291 \"x\";\nSIG_VALTYPE_ 1 S : 1;\n";
        let found = place(text, "M.S").unwrap();
        let layout = SignalLayout::new(7, 8, ByteOrder::Big, BitsMeaning::Signed, 0.1, -4.5).unwrap();
        assert_eq!(found, SignalPlace { id: 291, extended: true, layout, bytes: Some(12), only: None });
    }

    #[test]
    fn what_is_wrong_is_said() {
        const MESSAGE: &str = "BO_ 291 M: 8 A\n";
        for (text, name, expected) in [
            ("BO_ x M: 8 A\n", "M.S", "line 7: not a message"),
            ("SG_ S : 0|8@1+ (1,0)\n", "M.S", "line 7: not a signal of a message"),
            ("BO_ 291 M: 8 A\n SG_ S : 0|8@2+ (1,0)\n", "M.S", "line 8: not a signal"),
            ("BO_ 291 M: 8 A\n SG_ S q : 0|8@1+ (1,0)\n", "M.S", "line 8: not a signal"),
            (MESSAGE, "S", "such as `Engine.Speed`"),
            (MESSAGE, "N.S", "has no message `N`; messages there: M"),
            (MESSAGE, "M.S", "no signal `S`; it has no signals"),
            ("BO_ 291 M: 8 A\n SG_ S : 60|8@1+ (1,0)\n", "M.S", "beyond the 8 bytes"),
            ("BO_ 291 M: 65 A\n SG_ S : 0|8@1+ (1,0)\n", "M.S", "up to 64"),
            ("BO_ 2048 M: 8 A\n SG_ S : 0|8@1+ (1,0)\n", "M.S", "no identifier"),
            ("BO_ 291 M: 8 A\n SG_ S : 0|65@1+ (1,0)\n", "M.S", "1 to 64 bits"),
            ("BO_ 291 M: 8 A\n SG_ S m1 : 0|8@1+ (1,0)\n", "M.S", "no multiplexor"),
        ] {
            let said = place(text, name).unwrap_err();
            assert!(said.contains(expected), "{said}: {expected}");
        }
        assert!(parse("hello").unwrap_err().contains("not a DBC file"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(BO_|SG_|SIG_VALTYPE_|[0-9a-zA:|@+(),.\" \n-]){0,80}|\\PC{0,60}") {
            let _no_panic = parse(&text).map(|messages| find(&messages, "a.a"));
        }
    }
}
