//! Samples and text from and to the outside: standard streams, raw files, UDP and TCP.
//!
//! | module | contents |
//! |---|---|
//! | `wire` | samples as bytes, in a [`SampleFormat`](crate::SampleFormat) |
//! | `patience` | the time that is left for a peer |
//! | `standard` | non-blocking access to stdin and stdout |
//! | `text` | lines of text |
//! | `line_buffer` | splits bytes into lines |
//! | `pipe` | samples on stdin and stdout, raw bytes in a file |
//! | `udp`, `udp_sink`, `datagrams`, `numbering`, `reordering` | datagrams, with or without a number |
//! | `exec` | other programs as operators |
//! | `address` | checks of parameters |
//! | `tcp`, `tcp_sink`, `connection` | a TCP connection, with or without frames |
//! | `rtl_tcp` | a receiver on another host |
//!
//! A step never blocks. When there is nothing to receive, or no room to send, the operator waits for its
//! descriptor, and the worker sleeps or runs other operators meanwhile.

mod address;
mod connection;
mod datagrams;
mod exec;
mod line_buffer;
mod numbering;
mod patience;
mod pipe;
mod reordering;
mod rtl_tcp;
mod standard;
mod tcp;
mod tcp_sink;
mod text;
mod udp;
mod udp_sink;
mod wire;

pub use exec::{Exec, ExecCommand, ExecSink, ExecSource};
pub use pipe::{FileSink, StdinSource, StdoutSink};
pub(crate) use rtl_tcp::RateWatch;
pub use rtl_tcp::{RtlTcpSource, TunerGain};
pub use tcp::TcpSource;
pub use tcp_sink::TcpSink;
pub use text::{TextSink, TextSource};
pub use udp::UdpSource;
pub use udp_sink::UdpSink;

pub use connection::{Framing, TcpPeer};

pub(crate) use address::{check_address, time_ns};
pub(crate) use connection::{Opening, TcpConnection, connect_at_once};
pub(crate) use datagrams::obtained_buffer;
pub(crate) use line_buffer::LineBuffer;
pub(crate) use patience::{is_over, on_clock_ns, over_at_ns, real_ns, usual, usual_ns};
pub(crate) use pipe::{rate, send};
pub(crate) use standard::{Outgoing, Read as StdinRead, Stdin};
pub(crate) use wire::WireCodec;

use onbeat_runtime::Registry;
use serde_json::Value;

pub(crate) fn add_kinds(registry: &mut Registry) {
    text::add_kinds(registry);
    pipe::add_kinds(registry);
    udp::add_kinds(registry);
    udp_sink::add_kinds(registry);
    tcp::add_kinds(registry);
    tcp_sink::add_kinds(registry);
    rtl_tcp::add_kinds(registry);
    exec::add_kinds(registry);
}

/// Whether an operator of this kind, with these parameters, writes its data to stdout. Tables then have to go
/// to stderr.
///
/// ```
/// use serde_json::json;
/// assert!(onbeat_operators::writes_stdout("text.sink", &json!({ "path": "-" })));
/// assert!(!onbeat_operators::writes_stdout("text.sink", &json!({ "path": "lines.txt" })));
/// ```
pub fn writes_stdout(kind: &str, parameters: &Value) -> bool {
    match kind {
        "stdout.sink" | "stdout.sink.complex" => true,
        "text.sink" | "jsonl.sink" | "y4m.sink" => parameters["path"] == "-",
        _ => false,
    }
}
