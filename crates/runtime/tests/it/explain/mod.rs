//! Why something was late: the pure part of it, on made-up cases.

mod backlog;
mod cases;
mod elsewhere;
mod inputs;
mod properties;
