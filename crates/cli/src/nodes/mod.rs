//! What `onbeat deploy` and `onbeat node` say to each other: one JSON object per line.
//!
//! ```text
//! deploy ── check ──► node      plans the part
//! deploy ◄─ checked ─ node
//! deploy ── start ──► node
//! deploy ◄─ started ─ node
//! deploy ── stop ───► node      ends some sources, or all
//! deploy ◄─ ended ─── node      with the record
//! ```
//!
//! `control` instead of `check` connects the caller to the control socket of a part, for `onbeat ctl`.
//!
//! A node ends its part when the connection is lost: nobody could stop it any more.

mod control;
mod deployed;
mod identity;
mod node;

pub use control::{connect, remote};
pub use deployed::deploy;
pub use identity::identity;
pub use node::node;

use crate::error::CommandError;
use crate::stderr::to_stderr;
use onbeat::Record;
use onbeat::link::{NodeIdentity, SharedStream};
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

/// Most bytes of a line from a deployment: its pipeline. And from a node: its record, with all figures.
const REQUEST_BYTES: u64 = 32 << 20;
const REPLY_BYTES: u64 = 256 << 20;

/// What a deployment asks of a node.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum NodeRequest {
    /// Plans a part.
    Check {
        /// Version of onbeat.
        version: String,
        /// The pipeline.
        pipeline: String,
        /// Settings as of `--set`.
        set: Vec<String>,
    },
    /// Starts the part.
    Start,
    /// Connects to the control socket of a part.
    Control {
        /// Version of onbeat.
        version: String,
        /// Name of the part; empty for the only one.
        run: String,
    },
    /// Ends these sources; all if there are none.
    Stop(Vec<String>),
}

/// What a node says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum NodeReply {
    /// The part can run here.
    Checked,
    /// The part runs.
    Started {
        /// Settings of the machine that were not obtained, and notes.
        notes: Vec<String>,
    },
    /// The part has ended.
    Ended(Box<EndedPart>),
    /// What follows is said to the control socket, and by it.
    Controlled,
    /// It cannot do what was asked.
    Failed(String),
}

/// How a part ended.
#[derive(Debug, Serialize, Deserialize)]
struct EndedPart {
    record: Record,
    /// Source time at the end.
    position_ns: u64,
}

/// A connection that carries lines.
struct JsonLines {
    reader: BufReader<SharedStream>,
    /// Most bytes of a line.
    limit: u64,
}

impl JsonLines {
    fn new(stream: SharedStream, limit: u64) -> Self {
        JsonLines { reader: BufReader::new(stream), limit }
    }

    /// Another handle, to write while a thread reads.
    fn writer(&self) -> SharedStream {
        self.reader.get_ref().clone()
    }

    /// Waits for the next line; `None` at the end of the connection.
    fn read<T: for<'de> Deserialize<'de>>(&mut self) -> io::Result<Option<T>> {
        let mut line = Vec::new();
        let mut limited = (&mut self.reader).take(self.limit);
        limited.read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(None);
        }
        if line.last() != Some(&b'\n') {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the connection ended in the middle of a line, or the line is too long",
            ));
        }
        serde_json::from_slice(&line).map(Some).map_err(|error| {
            let text = format!(
                "the answer is not one of onbeat ({error}): is it the address of a node? Its links have another one"
            );
            io::Error::new(io::ErrorKind::InvalidData, text)
        })
    }
}

fn write_line(stream: &mut impl Write, what: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// Reads an identity, and says if its certificate ends soon.
fn own_identity(folder: Option<&Path>) -> Result<Option<NodeIdentity>, CommandError> {
    let Some(folder) = folder else { return Ok(None) };
    // Parts run in another folder.
    let folder = std::path::absolute(folder).map_err(|error| CommandError::new(error.to_string()))?;
    let identity = NodeIdentity::load(&folder).map_err(|error| {
        CommandError::new(error.to_string()).help("`onbeat identity NAME` makes an identity")
    })?;
    for note in identity.notes() {
        to_stderr(&format!("onbeat: {note}\n"));
    }
    Ok(Some(identity))
}
