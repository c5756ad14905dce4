//! tracefs: the kernel's description of its tracepoints and tracers.
//!
//! The bytes of a tracepoint differ between kernels; its `format` file says where each field is. So no offset
//! is hard-coded here.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Mount points, in the order in which they are tried.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// A mounted tracefs.
#[derive(Debug, Clone)]
pub struct Tracefs {
    root: PathBuf,
}

impl Tracefs {
    /// Finds the tracefs of this machine, if its list of tracepoints is readable.
    ///
    /// # Errors
    /// `PermissionDenied` if it is not readable, `NotFound` if it is not mounted. The message has a command
    /// that fixes it.
    pub fn find() -> io::Result<Self> {
        let mut refused: Option<(PathBuf, io::Error)> = None;
        for place in PLACES {
            let events = Path::new(place).join("events");
            match fs::read_dir(&events) {
                Ok(_) => return Ok(Self::at(place)),
                // A refusal is more informative than a missing file at the other place.
                Err(error) if refused.is_none() || error.kind() == io::ErrorKind::PermissionDenied => {
                    refused = Some((events, error));
                }
                Err(_) => {}
            }
        }
        let (path, error) = refused.expect("there is more than one place");
        let fix = match error.kind() {
            io::ErrorKind::PermissionDenied => {
                "run as root, or let a group read it: sudo mount -o remount,gid=GROUP,mode=0750 /sys/kernel/tracing"
            }
            _ => "mount it: sudo mount -t tracefs none /sys/kernel/tracing",
        };
        Err(io::Error::new(error.kind(), format!("{}: {error}; {fix}", path.display())))
    }

    /// Uses the tracefs in this folder: for tests, and for copies from another machine.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Tracefs { root: root.into() }
    }

    /// Its folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Reads the description of a tracepoint; `None` if the kernel does not have it.
    ///
    /// # Errors
    /// What reading the file returns, and `InvalidData` if its text is not a description. The message names
    /// the file.
    pub fn format(&self, group: &str, name: &str) -> io::Result<Option<Format>> {
        let path = self.root.join("events").join(group).join(name).join("format");
        let named =
            |kind, why: &dyn std::fmt::Display| io::Error::new(kind, format!("{}: {why}", path.display()));
        match fs::read_to_string(&path) {
            Ok(text) => {
                let format = Format::parse(&text).map_err(|why| named(io::ErrorKind::InvalidData, &why))?;
                Ok(Some(format))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(named(error.kind(), &error)),
        }
    }

    /// Reads the format of the pages of its rings.
    ///
    /// # Errors
    /// As those of [`format`](Self::format).
    pub fn pages(&self) -> io::Result<Pages> {
        let path = self.root.join("events/header_page");
        let named =
            |kind, why: &dyn std::fmt::Display| io::Error::new(kind, format!("{}: {why}", path.display()));
        let text = read_at_once(&path).map_err(|error| named(error.kind(), &error))?;
        Pages::parse(&text).map_err(|why| named(io::ErrorKind::InvalidData, &why))
    }

    /// Tracers that this kernel has: `function`, `osnoise`, `timerlat`, `hwlat`; empty if the list is not
    /// readable.
    #[must_use]
    pub fn tracers(&self) -> Vec<String> {
        let text = fs::read_to_string(self.root.join("available_tracers")).unwrap_or_default();
        text.split_whitespace().map(str::to_owned).collect()
    }
}

/// Reads a kernel file with a single large read. Some kernel files return no more than the first read has
/// room for, or refuse (`EINVAL`) a read that has room for less than the whole content, also at its end.
pub(crate) fn read_at_once(path: &Path) -> io::Result<String> {
    let mut bytes = vec![0; 1 << 16];
    let length = fs::File::open(path)?.read(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes[..length]).into_owned())
}

/// Description of a tracepoint: its `format` file.
///
/// ```
/// use onbeat_os::tracefs::Format;
/// let text = "name: softirq_entry\nID: 145\nformat:\n\
///     \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
///     \tfield:unsigned int vec;\toffset:8;\tsize:4;\tsigned:0;\n\nprint fmt: \"vec=%u\", REC->vec\n";
/// let format = Format::parse(text)?;
/// let vec = format.field("vec").expect("it has that field");
/// assert_eq!((format.id, vec.offset, vec.size, vec.is_signed), (145, 8, 4, false));
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Format {
    /// Number of the tracepoint: `common_type` in its records.
    pub id: u64,
    fields: Vec<Field>,
}

/// Position of a field in a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Offset from the start of the record, in bytes.
    pub offset: usize,
    /// Size in bytes.
    pub size: usize,
    /// Whether the number has a sign.
    pub is_signed: bool,
    /// Whether the field holds only the position of the value in the record (`__data_loc`): offset in the low
    /// 16 bits, length above.
    pub is_elsewhere: bool,
}

/// Format of a ring's page, as `events/header_page` describes it: its start time (u64), the length of its
/// data with flags above it, and the data. In the data, each event begins with a word whose low five bits
/// give its length; see `events/header_event`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pages {
    /// Size of a page.
    pub page_bytes: usize,
    /// Offset of the length.
    pub length_at: usize,
    /// Size of the length, 4 or 8 bytes.
    pub length_bytes: usize,
    /// Offset of the data.
    pub data_at: usize,
}

impl Pages {
    /// Parses the text of `events/header_page`.
    ///
    /// # Errors
    /// What is missing in it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix("field:"));
        let fields: Vec<Field> = lines.filter_map(|line| field(line.trim_start())).collect();
        let find = |name: &str| {
            fields.iter().find(|field| field.name == name).ok_or_else(|| format!("it has no field `{name}`"))
        };
        let (time, length, data) = (find("timestamp")?, find("commit")?, find("data")?);
        if (time.offset, time.size) != (0, 8) || ![4, 8].contains(&length.size) {
            return Err("its time or its length has an unknown type".to_owned());
        }
        Ok(Pages {
            page_bytes: data.offset + data.size,
            length_at: length.offset,
            length_bytes: length.size,
            data_at: data.offset,
        })
    }
}

/// Larger offsets and sizes cannot be those of a kernel record.
const RECORD_MAX_BYTES: usize = 1 << 16;

impl Format {
    /// Parses the text of a `format` file.
    ///
    /// # Errors
    /// The missing part.
    pub fn parse(text: &str) -> Result<Self, String> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:")).ok_or("it has no line `ID:`")?;
        let id = id.trim().parse().map_err(|_| format!("`{}` is not a tracepoint id", id.trim()))?;
        let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix("field:"));
        let fields =
            lines.map(|line| field(line).ok_or_else(|| format!("`{line}` does not describe a field")));
        Ok(Format { id, fields: fields.collect::<Result<_, _>>()? })
    }

    /// Returns the field with this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

fn field(line: &str) -> Option<Field> {
    let mut parts = line.split(';').map(str::trim);
    let declaration = parts.next()?;
    let mut number = |key: &str| -> Option<usize> {
        parts.next()?.strip_prefix(key)?.parse().ok().filter(|number| *number < RECORD_MAX_BYTES)
    };
    let (offset, size) = (number("offset:")?, number("size:")?);
    // `char prev_comm[16]`, `__data_loc char[] name`
    let name = declaration.split_whitespace().last()?.split('[').next()?.trim_start_matches('*');
    Some(Field {
        name: name.to_owned(),
        offset,
        size,
        is_signed: number("signed:").unwrap_or(0) != 0,
        is_elsewhere: declaration.starts_with("__data_loc"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_of_all_kinds_are_read() {
        let text = "name: x\nID: 7\nformat:\n\
            \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
            \tfield:__data_loc char[] name;\toffset:24;\tsize:4;\tsigned:0;\n\
            \tfield:void * handler;\toffset:32;\tsize:8;\tsigned:0;\n\
            \tfield:s64 delta_ns;\toffset:40;\tsize:8;\tsigned:1;\n";
        let format = Format::parse(text).unwrap();
        let found = |name: &str| format.field(name).map(|f| (f.offset, f.size, f.is_signed, f.is_elsewhere));
        assert_eq!(found("prev_comm"), Some((8, 16, false, false)));
        assert_eq!(found("name"), Some((24, 4, false, true)));
        assert_eq!(found("handler"), Some((32, 8, false, false)));
        assert_eq!(found("delta_ns"), Some((40, 8, true, false)));
        assert_eq!(found("other"), None);
    }

    #[test]
    fn pages_are_described() {
        let text = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
            \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
            \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
            \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
        let expected = Pages { page_bytes: 4096, length_at: 8, length_bytes: 8, data_at: 16 };
        assert_eq!(Pages::parse(text), Ok(expected));
        assert!(Pages::parse("").unwrap_err().contains("`timestamp`"));
        assert!(Pages::parse(&text.replace("size:8;\tsigned:1", "size:2;\tsigned:1")).is_err());
    }

    #[test]
    fn what_is_no_description_is_refused() {
        for (text, part) in [
            ("", "no line `ID:`"),
            ("ID: many\n", "`many` is not a tracepoint id"),
            ("ID: 1\n\tfield:int x;\toffset:-4;\tsize:4;\n", "does not describe a field"),
            ("ID: 1\n\tfield:int x;\toffset:99999999;\tsize:4;\n", "does not describe a field"),
            ("ID: 1\n\tfield:;\n", "does not describe a field"),
        ] {
            let error = Format::parse(text).unwrap_err();
            assert!(error.contains(part), "{text:?}: {error}");
        }
    }

    #[test]
    fn what_is_not_there_is_none() {
        let nowhere = Tracefs::at("/nowhere");
        assert_eq!(nowhere.format("irq", "softirq_entry").unwrap(), None);
        assert!(nowhere.tracers().is_empty());
    }
}
