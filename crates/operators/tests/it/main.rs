//! Tests of the operators through the public interface.
//!
//! `no_allocation` is separate, because it replaces the allocator of its process.

mod add;
mod adsb;
mod any_cut;
mod arithmetic;
mod bad_recordings;
mod channelizer;
mod combine;
mod connections;
mod control;
mod datagrams;
mod deployed;
mod equalizer;
mod exec;
mod expression;
mod filters;
mod flow;
mod fm_chain;
mod fm_receiver;
mod formats;
mod generators;
mod harness;
mod images;
mod kernel_contract;
mod kinds;
mod lanes;
mod lines;
mod measures;
mod mode_s;
mod not_finite;
mod parameters;
mod periods;
mod portions;
mod receiver;
mod recording;
mod reordering;
mod settings;
mod sigmf_source;
mod slices;
mod spectral;
mod tables;
mod tags;
mod video;
mod wav_sink;
mod writers;
