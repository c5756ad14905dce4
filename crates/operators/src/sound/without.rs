//! Both operators in a build without sound: they are known, and say what is missing.

use super::SoundSetup;
use crate::check;
use crate::lanes::{channel_inputs, channel_outputs, show_inputs, show_outputs};
use onbeat_runtime::{Chunk, Context, Error, Input, Operator, Output, Ports, Step};

fn no_sound(setup: &SoundSetup) -> Error {
    Error::new(format!(
        "cannot open {}: this onbeat was built without sound: install its Debian package, or build it with `cargo install \
         --locked --path crates/cli --features alsa` (needs libasound2-dev)",
        setup.device
    ))
}

/// Stands for the source of a build with the Cargo feature `alsa`.
pub struct NoAudioSource {
    /// Samples of the only channel.
    pub out: Output<Chunk<f32>>,
    /// With several channels, one output each.
    pub outputs: Vec<Output<Chunk<f32>>>,
    setup: SoundSetup,
}

impl NoAudioSource {
    /// Describes the ports.
    ///
    /// # Errors
    /// If there are no channels, or more than 64.
    pub fn new(setup: SoundSetup) -> Result<Self, Error> {
        let outputs = channel_outputs(setup.channels)?;
        Ok(NoAudioSource { out: Output::default(), outputs, setup })
    }

    /// Selects the only channel to send.
    ///
    /// # Errors
    /// If there is no such channel.
    pub fn channel(mut self, channel: u64) -> Result<Self, Error> {
        check::within("channel", channel as f64, 0.0, self.setup.channels as f64 - 1.0, "it counts from 0")?;
        self.outputs.clear();
        Ok(self)
    }
}

impl Operator for NoAudioSource {
    fn ports(&mut self, p: &mut Ports) {
        show_outputs(p, &mut self.out, &mut self.outputs);
    }

    fn check(&self) -> Result<(), Error> {
        Err(no_sound(&self.setup))
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        Err(no_sound(&self.setup))
    }

    fn step(&mut self, _: &mut Context) -> Result<Step, Error> {
        Ok(Step::Done)
    }
}

/// Stands for the sink of a build with the Cargo feature `alsa`.
pub struct NoAudioSink {
    /// Samples of the only channel.
    pub input: Input<Chunk<f32>>,
    /// With several channels, one input each.
    pub inputs: Vec<Input<Chunk<f32>>>,
    setup: SoundSetup,
}

impl NoAudioSink {
    /// Describes the ports.
    ///
    /// # Errors
    /// If there are no channels, or more than 64.
    pub fn new(setup: SoundSetup) -> Result<Self, Error> {
        let inputs = channel_inputs(setup.channels)?;
        Ok(NoAudioSink { input: Input::default(), inputs, setup })
    }

    /// Has no effect.
    pub fn delay(self, _: f64) -> Self {
        self
    }

    /// Has no effect.
    pub fn adapt(self, _: bool) -> Self {
        self
    }
}

impl Operator for NoAudioSink {
    fn ports(&mut self, p: &mut Ports) {
        show_inputs(p, &mut self.input, &mut self.inputs);
    }

    fn check(&self) -> Result<(), Error> {
        Err(no_sound(&self.setup))
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        Err(no_sound(&self.setup))
    }

    fn step(&mut self, _: &mut Context) -> Result<Step, Error> {
        Ok(Step::Done)
    }
}
