//! What the bench and its servers tell each other: lines of JSON, to the server on stdin, from it on stderr.

use super::settings::{EchoTransport, EchoWait};
use serde::{Deserialize, Serialize};

/// What sends the messages back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum EchoLoop {
    /// A loop of one receive and one send.
    Bare,
    /// The same loop, which also notes how long it had each message.
    Stamped,
    /// A source and a sink in a pipeline.
    Onbeat,
}

/// First line to a server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct EchoRequest {
    pub kind: EchoLoop,
    pub wait: EchoWait,
    pub transport: EchoTransport,
    /// Of UDP: the client's port, for echoes.
    pub port: u16,
    /// Size of a message.
    pub bytes: usize,
    /// Core of the loop.
    pub core: usize,
    /// Cores of other threads.
    pub house: Vec<usize>,
}

/// A line from a server.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum EchoLine {
    /// Messages can come.
    Ready {
        /// Port for messages; 0 for pipes.
        port: u16,
        /// Of TCP: the port for echoes.
        echoes: u16,
    },
    /// The end of a server.
    Report(EchoReport),
    /// The server has failed.
    Failed(String),
}

/// What a server knows of its run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct EchoReport {
    /// Of a stamped loop: how long it had each message, in nanoseconds.
    pub held_ns: Vec<u64>,
    /// Of a pipeline: the latency of its path in the record.
    pub latency: Option<onbeat_trace::Summary>,
    /// Of a pipeline: the thread ids of its workers.
    pub workers: Vec<i32>,
}

impl EchoLoop {
    pub const ALL: [EchoLoop; 3] = [EchoLoop::Bare, EchoLoop::Onbeat, EchoLoop::Stamped];

    pub fn name(self) -> &'static str {
        match self {
            EchoLoop::Bare => "bare",
            EchoLoop::Stamped => "stamped",
            EchoLoop::Onbeat => "onbeat",
        }
    }
}
