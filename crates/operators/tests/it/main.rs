//! Tests of the operators through the public interface.
//!
//! `no_allocation` is separate, because it replaces the allocator of its process.

mod add;
mod adsb;
mod any_cut;
mod bad_recordings;
mod channelizer;
mod combine;
mod connections;
mod control;
mod datagrams;
mod deployed;
mod equalizer;
mod expression;
mod flow;
mod fm_chain;
mod fm_receiver;
mod formats;
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
mod receiver;
mod recording;
mod reordering;
mod settings;
mod sigmf_source;
mod slices;
mod spectral;
mod tags;
mod wav_sink;
mod writers;
