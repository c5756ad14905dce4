//! A value with a number that says whose turn it is.

mod pipeline;
mod round_robin;

pub use pipeline::{Ticket, TicketGuard, TicketedPipeline};
pub use round_robin::{MemberEntry, MemberGuard, TurnMember, TurnWatch};
