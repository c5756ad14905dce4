//! Timer latency: how late a timer wakes a thread, and why.

mod awake;
mod idle;
mod measure;
mod record;
mod settings;

pub(crate) use awake::IdleLimits;
pub use measure::measure;
pub(crate) use record::LatencyTally;
pub use record::{CpuLatency, LatencyRecord, Series, Task};
pub use settings::{LatencySettings, Workload};
