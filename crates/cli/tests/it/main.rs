//! Tests of the built command.

mod apart;
mod bench;
mod ctl;
mod data;
mod deployed;
mod echo;
mod files;
mod habits;
mod harness;
mod host;
mod identities;
mod interrupted;
mod jobs;
mod late;
mod linked;
mod measured;
mod network;
mod noise;
mod outputs;
mod page;
mod report;
mod saxpy;
mod schema;
mod screens;
mod senseless;

mod sound;
mod stdout;
mod timerlat;
mod typed;
mod watched;
mod wire;
mod workers;
