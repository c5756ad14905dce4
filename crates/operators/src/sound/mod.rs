//! Sound cards: microphones and loudspeakers through ALSA, and through the sound servers behind it.
//!
//! | module | contents |
//! |---|---|
//! | `source`, `sink` | the operators |
//! | `device` | a device from its opening to its end, also over times without it |
//! | `samples` | samples as a device has them |
//! | `playback`, `timeline` | samples on their way to a loudspeaker; when they are heard |
//! | `servo`, `stretch` | keep two clocks in step: the controller, and the resampler that it steers |
//! | `without` | both operators in a build without the Cargo feature `alsa` |

#[cfg(feature = "alsa")]
mod device;
#[cfg(feature = "alsa")]
mod playback;
#[cfg(feature = "alsa")]
mod samples;
#[cfg(feature = "alsa")]
mod servo;
#[cfg(feature = "alsa")]
mod sink;
#[cfg(feature = "alsa")]
mod source;
#[cfg(feature = "alsa")]
mod stretch;
#[cfg(feature = "alsa")]
mod timeline;
#[cfg(not(feature = "alsa"))]
mod without;

#[cfg(feature = "alsa")]
pub use sink::AudioSink;
#[cfg(feature = "alsa")]
pub use source::AudioSource;
#[cfg(not(feature = "alsa"))]
pub use without::{NoAudioSink as AudioSink, NoAudioSource as AudioSource};

use crate::check;
use crate::format::once;
use crate::streams::{time_ns, usual};
use onbeat_runtime::{Error, Folders, Hertz, Kind, Registry, Seconds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Highest rate of any sound card, in hertz.
const MOST_HZ: f64 = 768e3;
/// Longest period, and longest buffer, in seconds.
const MOST_PERIOD_S: f64 = 1.0;
const MOST_BUFFER_S: f64 = 10.0;
/// Longest name of a device; ALSA's names with parameters are long.
const MOST_NAME: usize = 1000;

/// Format of samples in a device, with ALSA's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SoundFormat {
    /// Integers of 32 bits.
    #[serde(rename = "S32_LE")]
    S32,
    /// 32-bit floating point.
    #[serde(rename = "FLOAT_LE")]
    Float,
    /// Integers of 24 bits in 3 bytes.
    #[serde(rename = "S24_3LE")]
    S24Packed,
    /// Integers of 24 bits in 4 bytes.
    #[serde(rename = "S24_LE")]
    S24,
    /// Integers of 16 bits.
    #[serde(rename = "S16_LE")]
    S16,
}

/// Which device, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct SoundSetup {
    /// ALSA's name of the device.
    pub device: String,
    /// Frames per second.
    pub rate_hz: u32,
    /// Channels of the device.
    pub channels: u64,
    /// Seconds from one interrupt of the device to the next.
    pub period_s: f64,
    /// Periods in the device's buffer.
    pub periods: u32,
    /// Format to ask for; `None` for the best one that the device has.
    pub format: Option<SoundFormat>,
    /// Time in nanoseconds to wait for a device that went away, after a restart.
    pub patience_ns: u64,
}

fn usual_device() -> String {
    "default".to_string()
}

fn usual_rate() -> Hertz {
    Hertz(48e3)
}

fn usual_period() -> Seconds {
    Seconds(5e-3)
}

fn usual_periods() -> u32 {
    4
}

/// Parameters of a kind: those of the device, and some more.
macro_rules! sound_parameters {
    ($(#[$doc:meta])* $name:ident { $($(#[$more:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        struct $name {
            /// ALSA's name of the device. `default` is the user's own choice, usually the sound server
            /// (PipeWire or PulseAudio); `hw:CARD=NAME,DEV=0` is the hardware, and `plughw:CARD=NAME,DEV=0`
            /// the hardware with conversions of format and rate. `aplay -L` and `arecord -L` list the names;
            /// a wrong one gets a list, too.
            #[serde(default = "usual_device")]
            device: String,
            /// Samples per second of each channel, in whole hertz.
            #[serde(default = "usual_rate")]
            sample_rate: Hertz,
            /// Channels of the device. If there are several, each has its own port.
            #[serde(default = "once")]
            channels: u64,
            /// Time from one interrupt of the device to the next. The operator is stepped once per period.
            /// The device may only have other periods; the record has the one obtained.
            #[serde(default = "usual_period")]
            period: Seconds,
            /// Periods in the device's buffer, at least 2. A longer buffer bridges longer interruptions.
            #[serde(default = "usual_periods")]
            periods: u32,
            /// Format of samples in the device: `S32_LE`, `FLOAT_LE`, `S24_3LE`, `S24_LE` or `S16_LE`.
            /// Without it, the first of these that the device has.
            #[serde(default)]
            format: Option<SoundFormat>,
            /// With `on_error = "restart"`: how long to wait for a device that went away.
            #[serde(default = "usual")]
            patience: Seconds,
            $($(#[$more])* $field: $type,)*
        }

        impl $name {
            fn setup(&self) -> Result<SoundSetup, Error> {
                let setup = SoundSetup {
                    device: self.device.clone(),
                    rate_hz: whole_rate(self.sample_rate)?,
                    channels: self.channels,
                    period_s: self.period.0,
                    periods: self.periods,
                    format: self.format,
                    patience_ns: time_ns("patience", self.patience)?,
                };
                setup.check()?;
                Ok(setup)
            }
        }
    };
}

sound_parameters! {
    /// Samples from a sound card.
    AudioSourceParameters {
        /// The only channel to send, counted from 0, at the output `out`.
        #[serde(default)]
        channel: Option<u64>,
    }
}

sound_parameters! {
    /// Samples to a sound card.
    AudioSinkParameters {
        /// Silence before the first sample: the time by which later samples may be late without a gap.
        /// Without it, half of the buffer.
        #[serde(default)]
        delay: Option<Seconds>,
        /// Whether to resample, by a ratio near 1, so that the delay from the source to the loudspeaker stays
        /// the same although both have clocks of their own.
        #[serde(default)]
        adapt: bool,
    }
}

fn whole_rate(rate: Hertz) -> Result<u32, Error> {
    check::within("sample_rate", rate.0, 1.0, MOST_HZ, "48 kHz is usual")?;
    if rate.0.fract() != 0.0 {
        return Err(Error::new(format!("`sample_rate` is {} Hz: sound cards have whole hertz", rate.0)));
    }
    Ok(rate.0 as u32)
}

impl SoundSetup {
    fn check(&self) -> Result<(), Error> {
        let name = &self.device;
        let wrong = if name.is_empty() {
            Some("empty".to_string())
        } else if name.len() > MOST_NAME {
            Some(format!("{} bytes long, and {MOST_NAME} is the limit", name.len()))
        } else {
            let control = name.chars().find(|c| c.is_control());
            control.map(|c| format!("with the control character `{}`", c.escape_debug()))
        };
        if let Some(wrong) = wrong {
            return Err(Error::new(format!(
                "`device` is \"{}\", {wrong}: it must be ALSA's name of a device, such as `default` or \
                 `hw:CARD=PCH,DEV=0`: `aplay -L` lists them",
                check::shown(name)
            )));
        }
        check::within("channels", self.channels as f64, 1.0, 64.0, "choose a device with fewer")?;
        check::positive("period", self.period_s)?;
        let least = 1.0 / f64::from(self.rate_hz);
        check::within("period", self.period_s, least, MOST_PERIOD_S, "5 ms is usual")?;
        check::within("periods", f64::from(self.periods), 2.0, 1024.0, "4 is usual")?;
        let buffer_s = self.period_s * f64::from(self.periods);
        if buffer_s > MOST_BUFFER_S {
            return Err(Error::new(format!(
                "`periods` is {}: with a `period` of {} s the buffer has {buffer_s} s, and {MOST_BUFFER_S} s is the limit",
                self.periods, self.period_s
            )));
        }
        Ok(())
    }
}

fn source(p: &AudioSourceParameters, _: &Folders) -> Result<AudioSource, Error> {
    let source = AudioSource::new(p.setup()?)?;
    match p.channel {
        Some(channel) => source.channel(channel),
        None => Ok(source),
    }
}

fn sink(p: &AudioSinkParameters, _: &Folders) -> Result<AudioSink, Error> {
    let mut sink = AudioSink::new(p.setup()?)?.adapt(p.adapt);
    if let Some(delay) = p.delay {
        let most = p.period.0 * f64::from(p.periods);
        check::within("delay", delay.0, 0.0, most, "the buffer of the device has `periods` times `period`")?;
        sink = sink.delay(delay.0);
    }
    Ok(sink)
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    let example = "device = \"hw:CARD=PCH,DEV=0\"\nchannels = 2";
    registry.add(
        Kind::new("audio.source", "captures samples from a sound card", example, source)
            .about(include_str!("../about/audio_source.md")),
    );
    let example = "device = \"default\"\nadapt = true";
    registry.add(
        Kind::new("audio.sink", "plays samples on a sound card", example, sink)
            .about(include_str!("../about/audio_sink.md")),
    );
}
