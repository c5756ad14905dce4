//! Graph, plan, workers and record.
#![forbid(unsafe_code)]

mod error;
mod kernel;

pub use error::Error;
pub use kernel::{Kernel, Map, Progress, Ratio};

/// A plain sample type: any bytes are a value of it, and it has no padding.
pub trait Sample: bytemuck::Pod + Send + Sync {}
impl<T: bytemuck::Pod + Send + Sync> Sample for T {}
