//! Settings of the bench.

use crate::BenchError;
use onbeat_os::CoreSet;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;

/// How the messages travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EchoTransport {
    /// Datagrams: `udp.source` and `udp.sink`.
    Udp,
    /// One connection to the server, and one from it: `tcp.source` and `tcp.sink`.
    Tcp,
    /// Standard input and output of the server: `stdin.source` and `stdout.sink`.
    Pipe,
}

impl EchoTransport {
    /// All of them.
    pub const ALL: [EchoTransport; 3] = [EchoTransport::Udp, EchoTransport::Tcp, EchoTransport::Pipe];

    /// Name in figures and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            EchoTransport::Udp => "udp",
            EchoTransport::Tcp => "tcp",
            EchoTransport::Pipe => "pipe",
        }
    }

    /// Returns the one with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<EchoTransport> {
        EchoTransport::ALL.into_iter().find(|transport| transport.name() == name)
    }
}

/// How a thread waits for the next message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EchoWait {
    /// It sleeps until the kernel wakes it.
    Park,
    /// It asks again and again, and keeps its core.
    Spin,
}

impl EchoWait {
    /// Both of them.
    pub const ALL: [EchoWait; 2] = [EchoWait::Park, EchoWait::Spin];

    /// Name in figures and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            EchoWait::Park => "park",
            EchoWait::Spin => "spin",
        }
    }

    /// Returns the one with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<EchoWait> {
        EchoWait::ALL.into_iter().find(|wait| wait.name() == name)
    }
}

/// Settings of the bench.
#[derive(Debug, Clone)]
pub struct EchoSettings {
    /// Transports in the order of the table.
    pub transports: Vec<EchoTransport>,
    /// Times from one message to the next, in nanoseconds: one case each.
    pub intervals_ns: Vec<u64>,
    /// Size of a message in bytes.
    pub bytes: usize,
    /// Number of rounds. In each, every server is measured once.
    pub rounds: usize,
    /// Duration of one measurement in seconds.
    pub seconds: f64,
    /// How the client waits for an echo.
    pub client: EchoWait,
    /// Core of the client. `None`: the first one of this process.
    pub client_core: Option<usize>,
    /// Core of the servers. `None`: the last one of this process.
    pub server_core: Option<usize>,
    /// Program that calls [`serve`](super::serve), and its arguments.
    pub server: Vec<OsString>,
}

impl Default for EchoSettings {
    fn default() -> Self {
        EchoSettings {
            transports: EchoTransport::ALL.to_vec(),
            intervals_ns: vec![12_300_000, 1_000_000],
            bytes: 400,
            rounds: 3,
            seconds: 0.5,
            client: EchoWait::Spin,
            client_core: None,
            server_core: None,
            server: Vec::new(),
        }
    }
}

/// Cores of a bench.
#[derive(Debug, Clone)]
pub(super) struct EchoCores {
    pub client: usize,
    pub server: usize,
    /// Cores of the other threads of a server.
    pub house: Vec<usize>,
}

/// Sizes of a message: whole samples that fit one datagram of `udp.sink`.
const BYTES: std::ops::RangeInclusive<usize> = 4..=1400;
/// Size of a sample.
pub(super) const SAMPLE: usize = 4;
/// Times from one message to the next, in nanoseconds.
const INTERVALS_NS: std::ops::RangeInclusive<u64> = 50_000..=1_000_000_000;
/// Durations of a measurement, in seconds.
const SECONDS: std::ops::RangeInclusive<f64> = 0.001..=600.0;

impl EchoSettings {
    /// Number of messages of a measurement.
    pub(super) fn messages(&self, interval_ns: u64) -> usize {
        ((self.seconds * 1e9 / interval_ns as f64).round() as usize).max(1)
    }

    /// Checks the settings, and chooses the cores.
    pub(super) fn check(&self) -> Result<EchoCores, BenchError> {
        let refuse = |text: String| Err(BenchError::Settings(text));
        let Self { bytes, rounds, seconds, .. } = *self;
        if !BYTES.contains(&bytes) || !bytes.is_multiple_of(SAMPLE) {
            let (least, most) = BYTES.into_inner();
            return refuse(format!(
                "bytes is {bytes}: it must be a multiple of {SAMPLE} (one sample) from {least} to {most} (one \
                 datagram)"
            ));
        }
        let is_wrong = |ns: &&u64| !INTERVALS_NS.contains(ns) || !ns.is_multiple_of(1000);
        if let Some(interval_ns) = self.intervals_ns.iter().find(is_wrong) {
            return refuse(format!(
                "interval is {} ms: it must be from 0.05 to 1000 ms, in whole microseconds",
                *interval_ns as f64 / 1e6
            ));
        }
        if self.transports.is_empty() || self.intervals_ns.is_empty() || rounds == 0 {
            return refuse("transports and intervals must be named, and rounds must be 1 or more".to_owned());
        }
        if !SECONDS.contains(&seconds) {
            return refuse(format!("seconds is {seconds}: it must be from 0.001 to 600"));
        }
        self.cores()
    }

    fn cores(&self) -> Result<EchoCores, BenchError> {
        let allowed = CoreSet::allowed()
            .map_err(|error| BenchError::System { what: "cores of this process", error })?;
        for core in [self.client_core, self.server_core].into_iter().flatten() {
            if !allowed.contains(core) {
                return Err(BenchError::Settings(format!(
                    "core {core} is not available to this process, which can use {allowed}"
                )));
            }
        }
        let mut free =
            allowed.iter().filter(|core| ![self.client_core, self.server_core].contains(&Some(*core)));
        let client = self.client_core.or_else(|| free.next());
        let server = self.server_core.or_else(|| free.next_back());
        match (client, server) {
            (Some(client), Some(server)) if client != server => {
                let others = |core: &usize| *core != client && *core != server;
                let mut house: Vec<usize> = allowed.iter().filter(others).collect();
                if house.is_empty() {
                    house.push(client);
                }
                Ok(EchoCores { client, server, house })
            }
            _ => Err(BenchError::Settings(format!(
                "client and server need a core each: this process can use {allowed}; allow it two cores \
                 (taskset, cpuset)"
            ))),
        }
    }
}
