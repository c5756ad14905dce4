//! Record of one end of a link with another run.

use crate::Summary;
use serde::{Deserialize, Serialize};

/// One end of a link: an edge that leads to an operator of another run, or comes from one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkRecord {
    /// Name of the link, the same at both ends.
    pub name: String,
    /// The operator at this end.
    pub operator: String,
    /// Host name and process of the other end, and its address; `None` if there never was a connection.
    pub peer: Option<String>,
    /// Messages that this end sent or received; one that was sent twice counts once.
    pub messages: u64,
    /// Bytes of their samples or values.
    pub bytes: u64,
    /// Messages whose samples stayed where they were: the other end reads them in memory that both share.
    #[serde(default)]
    pub not_copied: u64,
    /// Messages that were sent again after a cut.
    pub repeated: u64,
    /// Messages that the producer gave up during a cut, as `on_cut = "degrade"` permits. Both ends count
    /// them.
    pub dropped: u64,
    /// Messages that the edge before the link dropped, as its `when_full` permits. The consumer's record has
    /// this number in a deployment only; otherwise it is `None`.
    #[serde(default)]
    pub dropped_before: Option<u64>,
    /// Messages that were sent and not known to be taken when this end stopped.
    pub in_flight: u64,
    /// How often the connection was cut.
    pub cuts: u64,
    /// How long there was no connection after the first one, in nanoseconds.
    pub cut_ns: u64,
    /// How long the producer could not send because the consumer had taken too little, in nanoseconds; 0 at
    /// the consumer.
    pub held_ns: u64,
    /// Time of an exchange with the other end, there and back.
    pub round_trip: Option<Summary>,
    /// At the consumer: time from the producer's write to the read here. Each is uncertain by
    /// `uncertainty_ns`.
    pub transit: Option<Summary>,
    /// By how much the other end's `CLOCK_MONOTONIC` was ahead, at the end, in nanoseconds.
    pub clock_ahead_ns: Option<i64>,
    /// How far `clock_ahead_ns`, and each time that crossed the link, can be from the truth.
    pub uncertainty_ns: Option<u64>,
    /// By how much the other clock runs faster, in millionths.
    pub clock_drift_ppm: Option<f64>,
    /// How often one of the clocks was set, or changed its rate.
    pub clock_steps: u64,
}
