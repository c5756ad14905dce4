//! Limits on how deeply idle cores sleep while timers are measured.

use super::LatencySettings;
use super::idle::IdleStates;
use onbeat_os::latency::DmaLatency;
use std::io;

/// Keeps idle cores from sleeping deeply; dropping it lifts the limits.
pub(crate) struct IdleLimits {
    _latency: Option<DmaLatency>,
    _states: Option<IdleStates>,
}

impl IdleLimits {
    /// Sets the limits that `settings` ask for. A refusal becomes a note.
    pub fn set(settings: &LatencySettings, cpus: &[usize], notes: &mut Vec<String>) -> Self {
        let mut refused = |what: String, error: io::Error, fix: &str| {
            notes.push(format!("{what} was asked for and not obtained: {error}{fix}"));
        };
        let latency = settings.dma_latency_us.and_then(|us| {
            let held = DmaLatency::hold(us);
            held.map_err(|error| refused(format!("--dma-latency {us}"), error, "; run as root")).ok()
        });
        let states = settings.deepest_idle_state.and_then(|deepest| {
            let kept = IdleStates::keep(deepest, cpus);
            kept.map_err(|error| refused(format!("--deepest-idle-state {deepest}"), error, "")).ok()
        });
        IdleLimits { _latency: latency, _states: states }
    }
}
