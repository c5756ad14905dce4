//! Tests of the benches through the public interface.

mod advice;
mod echo;
mod explain;
mod jobs;
mod overhead;
mod queue;
mod realtime;
mod saxpy;
mod stops;
mod watchdog;
