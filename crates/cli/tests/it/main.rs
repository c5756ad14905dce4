//! Tests of the built command.

mod bench;
mod ctl;
mod data;
mod deployed;
mod echo;
mod files;
mod harness;
mod host;
mod interrupted;
mod jobs;
mod late;
mod measured;
mod noise;
mod outputs;
mod page;
mod report;
mod saxpy;
mod schema;
mod screens;
mod senseless;
mod stdout;
mod timerlat;
mod typed;
mod watched;
mod wire;
mod workers;
