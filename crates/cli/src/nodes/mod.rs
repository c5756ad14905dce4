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
//! A node ends its part when the connection is lost: nobody could stop it any more.

mod deployed;
mod node;

pub use deployed::deploy;
pub use node::node;

use onbeat::Record;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

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
    reader: BufReader<TcpStream>,
    /// Most bytes of a line.
    limit: u64,
}

impl JsonLines {
    fn new(stream: TcpStream, limit: u64) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(JsonLines { reader: BufReader::new(stream), limit })
    }

    /// Another handle, to write while a thread reads.
    fn writer(&self) -> io::Result<TcpStream> {
        self.reader.get_ref().try_clone()
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
            let text = format!("what came is not of this protocol: {error}");
            io::Error::new(io::ErrorKind::InvalidData, text)
        })
    }
}

fn write_line(stream: &mut TcpStream, what: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    stream.write_all(&line)
}
