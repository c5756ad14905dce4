//! Sound cards through ALSA's library: hardware, its plugins, and the sound servers behind them.
//!
//! A [`SoundCard`] never blocks. Its descriptor is readable when a period of samples can be read or written.

mod error;

pub use error::SoundError;

use alsa::Direction;
use alsa::ValueOr;
use alsa::pcm::{Access, Format, Frames, HwParams, PCM, State, TstampType};
use alsa::poll::{Descriptors, pollfd};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use std::ffi::CString;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Way of the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SoundUse {
    /// From a microphone.
    Capture,
    /// To a loudspeaker.
    Play,
}

/// Format of a sample, low byte first, with ALSA's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SoundCode {
    /// `S32_LE`: integers of 32 bits.
    S32,
    /// `FLOAT_LE`: 32-bit floating point.
    Float,
    /// `S24_3LE`: integers of 24 bits in 3 bytes.
    S24Packed,
    /// `S24_LE`: integers of 24 bits in the low bytes of 4.
    S24,
    /// `S16_LE`: integers of 16 bits.
    S16,
}

impl SoundCode {
    /// All of them, the preferred ones first.
    pub const ALL: [SoundCode; 5] =
        [SoundCode::S32, SoundCode::Float, SoundCode::S24Packed, SoundCode::S24, SoundCode::S16];

    fn format(self) -> Format {
        match self {
            SoundCode::S32 => Format::S32LE,
            SoundCode::Float => Format::FloatLE,
            SoundCode::S24Packed => Format::S243LE,
            SoundCode::S24 => Format::S24LE,
            SoundCode::S16 => Format::S16LE,
        }
    }

    /// Bytes of a sample.
    pub fn bytes(self) -> usize {
        match self {
            SoundCode::S32 | SoundCode::Float | SoundCode::S24 => 4,
            SoundCode::S24Packed => 3,
            SoundCode::S16 => 2,
        }
    }
}

impl fmt::Display for SoundCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SoundCode::S32 => "S32_LE",
            SoundCode::Float => "FLOAT_LE",
            SoundCode::S24Packed => "S24_3LE",
            SoundCode::S24 => "S24_LE",
            SoundCode::S16 => "S16_LE",
        })
    }
}

/// Settings of a sound card. The rate, the period and the buffer that are in force may differ from those that
/// were asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SoundSettings {
    /// Frames per second.
    pub rate_hz: u32,
    /// Samples per frame.
    pub channels: u32,
    /// Format of a sample; `None` asks for the first of [`SoundCode::ALL`] that the device has.
    pub code: Option<SoundCode>,
    /// Frames from one interrupt to the next.
    pub period: u32,
    /// Frames in the buffer.
    pub buffer: u32,
}

impl SoundSettings {
    /// Bytes of a frame in the device's format.
    pub fn frame_bytes(&self) -> usize {
        self.channels as usize * self.code.map_or(0, SoundCode::bytes)
    }
}

/// State of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SoundState {
    /// It was not started, or has been stopped.
    Idle,
    /// Samples pass.
    Running,
    /// It stopped because its buffer was full, or empty.
    Xrun,
    /// The machine slept.
    Suspended,
    /// It is not there any more.
    Gone,
}

/// Position of a device at a time.
#[derive(Debug, Clone, Copy)]
pub struct SoundStatus {
    /// State.
    pub state: SoundState,
    /// Frames that can be read or written; more than the buffer has if frames were overwritten.
    pub available: u64,
    /// Capture: frames since the oldest one that was not read was in the converter. Play: frames until one
    /// written now is in the converter.
    pub delay: i64,
    /// The time at which this held, in nanoseconds on `CLOCK_MONOTONIC`; `None` if the device has none.
    pub at_ns: Option<u64>,
}

/// An open device.
pub struct SoundCard {
    pcm: PCM,
    settings: SoundSettings,
    has_clock: bool,
    descriptors: Vec<pollfd>,
    /// Readable when one of `descriptors` is ready.
    ready: OwnedFd,
}

impl SoundCard {
    /// Opens a device by ALSA's name for it, such as `default` or `hw:0,0`. A capture device never stops when
    /// its buffer is full, where its driver permits that; the status then tells what was overwritten.
    ///
    /// # Errors
    /// What the library reports, or a setting that the device does not have.
    pub fn open(name: &str, way: SoundUse, asked: &SoundSettings) -> Result<Self, SoundError> {
        // The library prints errors unless they are taken.
        let said = alsa::Output::local_error_handler()?;
        SoundCard::try_open(name, way, asked).map_err(|error| match error {
            SoundError::System { errno, during, .. } => {
                SoundError::System { errno, during, said: said.borrow().to_string() }
            }
            error => error,
        })
    }

    fn try_open(name: &str, way: SoundUse, asked: &SoundSettings) -> Result<Self, SoundError> {
        let direction = if way == SoundUse::Capture { Direction::Capture } else { Direction::Playback };
        let no_name = |_| SoundError::System { errno: libc::ENOENT, during: "open", said: String::new() };
        let pcm = PCM::open(&CString::new(name).map_err(no_name)?, direction, true)?;
        let settings = set_hardware(&pcm, asked)?;
        set_software(&pcm, way, &settings)?;
        let descriptors = pcm.get()?;
        let (ready, has_clock) = watch(&descriptors).map_err(|error| SoundError::System {
            errno: error.raw_os_error().unwrap_or(0),
            during: "epoll_ctl",
            said: String::new(),
        })?;
        Ok(SoundCard { pcm, settings, has_clock, descriptors, ready })
    }

    /// The settings in force.
    pub fn settings(&self) -> &SoundSettings {
        &self.settings
    }

    /// Whether samples take their time. They take none in ALSA's device `null`, and in files and conversions
    /// before it: the delay that those tell makes no sense.
    pub fn has_clock(&self) -> bool {
        self.has_clock
    }

    /// Begins to capture, or to play what was written.
    ///
    /// # Errors
    /// What the library reports.
    pub fn start(&self) -> Result<(), SoundError> {
        Ok(self.pcm.start()?)
    }

    /// Makes a device that has stopped ready to be started again.
    ///
    /// # Errors
    /// What the library reports.
    pub fn prepare(&self) -> Result<(), SoundError> {
        Ok(self.pcm.prepare()?)
    }

    /// Returns its present position.
    ///
    /// # Errors
    /// What the library reports.
    pub fn status(&self) -> Result<SoundStatus, SoundError> {
        let status = self.pcm.status()?;
        let state = match status.get_state() {
            State::Running | State::Draining => SoundState::Running,
            State::XRun => SoundState::Xrun,
            State::Suspended => SoundState::Suspended,
            State::Disconnected => SoundState::Gone,
            _ => SoundState::Idle,
        };
        let at = status.get_htstamp();
        let at_ns = at.tv_sec as u64 * 1_000_000_000 + at.tv_nsec as u64;
        Ok(SoundStatus {
            state,
            available: status.get_avail().max(0) as u64,
            delay: status.get_delay(),
            at_ns: (at_ns > 0).then_some(at_ns),
        })
    }

    /// Moves frames through plugins, and returns how many can be read or written. The status of a plugin that
    /// converts rates counts those only that were moved before.
    ///
    /// # Errors
    /// What the library reports.
    pub fn available(&self) -> Result<u64, SoundError> {
        Ok(self.pcm.avail_update()?.max(0) as u64)
    }

    /// Reads whole frames. Returns their number.
    ///
    /// # Errors
    /// What the library reports; [`SoundError::is_later`] if there are none.
    pub fn read(&self, bytes: &mut [u8]) -> Result<usize, SoundError> {
        Ok(self.pcm.io_bytes().readi(bytes)?)
    }

    /// Writes whole frames. Returns their number.
    ///
    /// # Errors
    /// What the library reports; [`SoundError::is_later`] if there is no room.
    pub fn write(&self, bytes: &[u8]) -> Result<usize, SoundError> {
        Ok(self.pcm.io_bytes().writei(bytes)?)
    }

    /// Stops at once.
    pub fn stop(&self) {
        // It is closed next.
        let _stopped = self.pcm.drop();
    }

    /// Lets plugins see events, before a wait: some clear their descriptors only then.
    pub fn before_wait(&mut self) {
        if alsa::poll::poll(&mut self.descriptors, 0).is_ok_and(|ready| ready > 0) {
            let _events = self.pcm.revents(&self.descriptors);
        }
    }
}

impl AsFd for SoundCard {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }
}

/// Negotiates rate, format and sizes.
fn set_hardware(pcm: &PCM, asked: &SoundSettings) -> Result<SoundSettings, SoundError> {
    let hardware = HwParams::any(pcm)?;
    hardware.set_access(Access::RWInterleaved)?;
    let code = choose_code(&hardware, asked.code)?;
    hardware.set_format(code.format())?;
    if hardware.set_channels(asked.channels).is_err() {
        let (least, most) = (hardware.get_channels_min()?, hardware.get_channels_max()?);
        let possible = if least == most { least.to_string() } else { format!("{least} to {most}") };
        return Err(SoundError::Setting { what: "channels", asked: asked.channels.to_string(), possible });
    }
    hardware.set_rate_near(asked.rate_hz, ValueOr::Nearest)?;
    hardware.set_period_size_near(Frames::from(asked.period), ValueOr::Nearest)?;
    hardware.set_buffer_size_near(Frames::from(asked.buffer))?;
    pcm.hw_params(&hardware)?;
    let current = pcm.hw_params_current()?;
    Ok(SoundSettings {
        rate_hz: current.get_rate()?,
        channels: current.get_channels()?,
        code: Some(code),
        period: current.get_period_size()? as u32,
        buffer: current.get_buffer_size()? as u32,
    })
}

fn choose_code(hardware: &HwParams<'_>, asked: Option<SoundCode>) -> Result<SoundCode, SoundError> {
    let mut possible = SoundCode::ALL.into_iter().filter(|code| hardware.test_format(code.format()).is_ok());
    let found = match asked {
        None => possible.clone().next(),
        Some(code) => possible.clone().find(|one| *one == code),
    };
    found.ok_or_else(|| {
        let all: Vec<_> = possible.by_ref().map(|code| code.to_string()).collect();
        let asked =
            asked.map_or_else(|| "of 16 to 32 bits, low byte first,".to_string(), |code| code.to_string());
        let possible = if all.is_empty() { "none that is known here".to_string() } else { all.join(", ") };
        SoundError::Setting { what: "format", asked, possible }
    })
}

/// Sets when it wakes, starts and stops, and its clock.
fn set_software(pcm: &PCM, way: SoundUse, settings: &SoundSettings) -> Result<(), SoundError> {
    let software = pcm.sw_params_current()?;
    let boundary = software.get_boundary()?;
    software.set_avail_min(Frames::from(settings.period))?;
    // Only started by name.
    software.set_start_threshold(boundary)?;
    // A loudspeaker that does not stop would repeat old samples.
    let stop = if way == SoundUse::Capture { boundary } else { Frames::from(settings.buffer) };
    software.set_stop_threshold(stop)?;
    software.set_tstamp_mode(true)?;
    // Plugins may have one clock only; their stamps are checked by their age.
    let _kept = software.set_tstamp_type(TstampType::Monotonic);
    Ok(pcm.sw_params(&software)?)
}

/// Makes a descriptor that is readable when one of these is ready. Returns whether that may take time, too.
fn watch(descriptors: &[pollfd]) -> io::Result<(OwnedFd, bool)> {
    let ready = epoll::create(CreateFlags::CLOEXEC)?;
    for one in descriptors {
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::IN, one.events & libc::POLLIN != 0);
        flags.set(EventFlags::OUT, one.events & libc::POLLOUT != 0);
        // SAFETY: the device, from which the descriptor is, is open until the end of this function.
        let fd = unsafe { BorrowedFd::borrow_raw(one.fd) };
        match epoll::add(&ready, fd, EventData::new_u64(0), flags) {
            // `/dev/null`, which never blocks: that of ALSA's plugin `null`, whatever is before it.
            Err(Errno::PERM) => return Ok((eventfd(1, EventfdFlags::CLOEXEC)?, false)),
            added => added?,
        }
    }
    Ok((ready, true))
}

/// Names of the devices here: those of hardware, and those of sound servers.
pub fn devices(way: SoundUse) -> Vec<String> {
    let Ok(_said) = alsa::Output::local_error_handler() else { return Vec::new() };
    let Ok(hints) = alsa::device_name::HintIter::new_str(None, "pcm") else { return Vec::new() };
    let direction = if way == SoundUse::Capture { Direction::Capture } else { Direction::Playback };
    hints
        .filter(|hint| hint.direction.is_none_or(|other| other == direction))
        .filter_map(|hint| hint.name)
        .filter(|name| name.starts_with("hw:") || ["default", "pulse", "pipewire"].contains(&name.as_str()))
        .collect()
}
