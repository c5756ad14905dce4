//! JSON over several lines, with each list of numbers on one line.

use std::io::{self, Write};

use serde_json::ser::{CharEscape, Formatter, PrettyFormatter};

/// Formats as [`PrettyFormatter`], except for numbers in a list, which share a line.
#[derive(Default)]
pub(super) struct Compact {
    pretty: PrettyFormatter<'static>,
    /// Set before an item of a list: whether it is the first one. Its type decides where it goes.
    item: Option<bool>,
    /// Whether the last item is on the line of the one before it.
    inline: bool,
}

impl Compact {
    /// Called before a value that is not a number.
    fn break_line<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        match self.item.take() {
            Some(first) => {
                self.inline = false;
                self.pretty.begin_array_value(writer, first)
            }
            None => Ok(()),
        }
    }

    fn number<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        match self.item.take() {
            Some(true) => {
                self.inline = true;
                Ok(())
            }
            Some(false) if self.inline => writer.write_all(b", "),
            Some(false) => self.pretty.begin_array_value(writer, false),
            None => Ok(()),
        }
    }
}

macro_rules! numbers {
    ($($method:ident($type:ty)),+) => {
        $(fn $method<W: ?Sized + Write>(&mut self, writer: &mut W, value: $type) -> io::Result<()> {
            self.number(writer)?;
            self.pretty.$method(writer, value)
        })+
    };
}

impl Formatter for Compact {
    numbers!(write_i8(i8), write_i16(i16), write_i32(i32), write_i64(i64), write_i128(i128));
    numbers!(write_u8(u8), write_u16(u16), write_u32(u32), write_u64(u64), write_u128(u128));
    numbers!(write_f32(f32), write_f64(f64), write_number_str(&str));

    fn write_null<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.break_line(writer)?;
        self.pretty.write_null(writer)
    }

    fn write_bool<W: ?Sized + Write>(&mut self, writer: &mut W, value: bool) -> io::Result<()> {
        self.break_line(writer)?;
        self.pretty.write_bool(writer, value)
    }

    fn begin_string<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.break_line(writer)?;
        self.pretty.begin_string(writer)
    }

    fn write_char_escape<W: ?Sized + Write>(&mut self, writer: &mut W, escape: CharEscape) -> io::Result<()> {
        self.pretty.write_char_escape(writer, escape)
    }

    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.break_line(writer)?;
        self.inline = false;
        self.pretty.begin_array(writer)
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if std::mem::take(&mut self.inline) {
            // It leaves one level, but its line break is discarded.
            self.pretty.end_array(&mut io::sink())?;
            return writer.write_all(b"]");
        }
        self.pretty.end_array(writer)
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, _writer: &mut W, first: bool) -> io::Result<()> {
        self.item = Some(first);
        Ok(())
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.end_array_value(writer)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.break_line(writer)?;
        self.pretty.begin_object(writer)
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.pretty.begin_object_key(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.end_object_value(writer)
    }
}
