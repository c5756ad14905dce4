//! Tests of records, histograms and facts about the machine.

mod histogram;
mod machine;
mod over_time;
mod record;
