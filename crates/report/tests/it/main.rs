//! Tests of pages, plots and traces made of records.

mod page;
mod pftrace;
mod plots;
