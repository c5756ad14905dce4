//! Tests of measuring and attributing noise, through the public interface.

mod evidence;
mod extra;
mod measured;
mod replay;
mod timers;
mod tracer;
mod views;
