//! The multiplex of FM stations. `ci/multiplex` compares with GNU Radio.
#![forbid(unsafe_code)]

mod rds;
pub mod signals;
mod stereo;
