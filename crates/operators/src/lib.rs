//! The operators that come with onbeat.
//!
//! [`dsp`] holds the signal-processing kernels, plain state machines over slices of samples;
//! [`recording`] makes the signal of the FM receiver example.
#![forbid(unsafe_code)]

pub mod dsp;
pub mod recording;
