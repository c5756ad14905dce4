//! A camera from its opening to its end, and what goes wrong with it.

use super::choice::{
    CameraRequest, choose, is_same_rate, rate_text, rates_in_words, read_size, sizes_in_words,
};
use super::pixels::CameraPixels;
use crate::y4m::fraction;
use onbeat_os::video::{FrameLayout, VideoDevice, VideoError, VideoStream};
use onbeat_runtime::Error;
use onbeat_trace::record::Obtained;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Where the kernel lists video devices.
const CLASS: &str = "/sys/class/video4linux";
/// Devices that a message lists.
const SHOWN: usize = 8;

/// Which device, and how it is set.
#[derive(Debug, Clone)]
pub(super) struct CameraSetup {
    /// Path, or name of the card.
    pub device: String,
    /// Number or name of an input.
    pub input: Option<String>,
    pub request: CameraRequest,
    pub buffers: u32,
    /// Settings of the device by name.
    pub controls: BTreeMap<String, i32>,
}

/// What a device was asked for, and what it gives.
#[derive(Debug, Clone, Copy)]
pub(super) struct CameraModes {
    pub layout: FrameLayout,
    pub pixels: CameraPixels,
    /// Frames per second; `None` if the driver does not tell.
    pub rate_hz: Option<f64>,
}

/// A camera that captures.
pub(super) struct OpenCamera {
    pub stream: VideoStream,
    pub modes: CameraModes,
}

impl CameraSetup {
    /// Checks a name for a device, before any is opened.
    pub fn check(&self) -> Result<(), Error> {
        if self.device.is_empty() || self.device.contains('\0') {
            return Err(Error::new(
                "`device` is empty or has a 0 byte: give a path such as \"/dev/video0\", or the name of a camera",
            ));
        }
        Ok(())
    }

    /// Opens the device and chooses its input.
    fn find(&self) -> Result<VideoDevice, Error> {
        let path = self.path()?;
        let device = VideoDevice::open(&path).map_err(|error| self.cannot_open(&path, &error))?;
        Ok(device)
    }

    /// The path of the device.
    fn path(&self) -> Result<PathBuf, Error> {
        let name = &self.device;
        if name.contains('/') {
            return Ok(name.into());
        }
        let nodes = nodes();
        let is_node = |node: &&VideoNode| node.node == *name;
        let is_card = |node: &&VideoNode| node.card == *name && node.is_first;
        match nodes.iter().find(is_node).or_else(|| nodes.iter().find(is_card)) {
            Some(found) => Ok(Path::new("/dev").join(&found.node)),
            None => Err(self.cannot("there is no camera of this name", nodes_here(&nodes))),
        }
    }

    /// Sets the device, if `is_set`, or finds out what it would give.
    fn modes(&self, device: &mut VideoDevice, is_set: bool) -> Result<CameraModes, Error> {
        let wrong = |text: String| Error::new(format!("{}: {text}", self.device));
        let failed = |error: VideoError| wrong(self.why(&error, Path::new(&self.device)));
        if is_set {
            self.set_input(device)?;
            self.set_controls(device)?;
        }
        let pixels = choose(device, &self.request).map_err(wrong)?;
        let size = match self.request.size {
            Some(size) => size,
            None => device.layout().map_err(failed)?.size,
        };
        let layout = device.negotiate(pixels.code(), size, is_set).map_err(failed)?;
        if layout.code != pixels.code() {
            return Err(wrong(format!(
                "it offers {} and gives {} instead: give another `pixels` or `size`",
                pixels.code(),
                layout.code
            )));
        }
        let asked = self.request.rate_hz.and_then(fraction);
        let rate_hz = match asked {
            Some(rate) if is_set => device.set_frame_rate(rate),
            _ => device.frame_rate_hz(),
        };
        Ok(CameraModes { layout, pixels, rate_hz })
    }

    /// What the device would give, without changing it.
    pub fn look(&self) -> Result<CameraModes, Error> {
        self.modes(&mut self.find()?, false)
    }

    /// Opens and sets the device, and lets it capture.
    pub fn open(&self) -> Result<OpenCamera, Error> {
        let mut device = self.find()?;
        let modes = self.modes(&mut device, true)?;
        let stream = VideoStream::start(device, self.buffers);
        let stream = stream
            .map_err(|error| self.cannot("it does not start", self.why(&error, Path::new(&self.device))))?;
        Ok(OpenCamera { stream, modes })
    }

    fn set_input(&self, device: &mut VideoDevice) -> Result<(), Error> {
        let Some(wanted) = &self.input else { return Ok(()) };
        let inputs = device.inputs();
        let by_number = wanted.parse::<usize>().ok().filter(|&number| number < inputs.len());
        let Some(number) = by_number.or_else(|| inputs.iter().position(|name| name == wanted)) else {
            let all: Vec<String> =
                inputs.iter().enumerate().map(|(number, name)| format!("{number} ({name})")).collect();
            let text = format!("there is no input `{wanted}`");
            return Err(self.cannot(&text, format!("inputs of this device: {}", all.join(", "))));
        };
        device.set_input(number as u32).map_err(|error| {
            self.cannot(&format!("input `{wanted}`"), self.why(&error, Path::new(&self.device)))
        })
    }

    fn set_controls(&self, device: &mut VideoDevice) -> Result<(), Error> {
        if self.controls.is_empty() {
            return Ok(());
        }
        let offered = device.controls();
        for (name, &value) in &self.controls {
            let Some(control) = offered.iter().find(|control| control.name == *name) else {
                let names: Vec<&str> = offered.iter().map(|control| control.name.as_str()).collect();
                let text = format!("it has no setting `{name}`");
                return Err(self.cannot(&text, format!("`controls` can have {}", names.join(", "))));
            };
            let [least, most, usual] = control.values;
            let limits = format!("it can be from {least} to {most}, and is {usual} usually");
            // Drivers take the nearest value instead.
            if !(least..=most).contains(&value) {
                return Err(self.cannot(&format!("`{name}` cannot be {value}"), limits));
            }
            device
                .set_control(control, value)
                .map_err(|error| self.cannot(&format!("`{name}` cannot be {value}: {error}"), limits))?;
        }
        Ok(())
    }

    /// The settings that were asked for, and those obtained.
    pub fn obtained(&self, camera: &OpenCamera) -> Vec<Obtained> {
        let OpenCamera { stream, modes: CameraModes { layout, pixels, rate_hz } } = camera;
        let size_text = |(columns, rows): (u32, u32)| format!("{columns}x{rows}");
        let mut all = Vec::new();
        if let Some(asked) = self.request.size {
            let reason = (asked != layout.size).then(|| sizes_in_words(stream.device(), *pixels));
            let (asked, obtained) = (size_text(asked), size_text(layout.size));
            all.push(Obtained { what: "frame size".to_string(), asked, obtained, reason });
        }
        if let Some(asked) = self.request.rate_hz {
            let is_obtained = rate_hz.is_some_and(|rate_hz| is_same_rate(rate_hz, asked));
            let obtained = match rate_hz {
                _ if is_obtained => rate_text(asked),
                Some(rate_hz) => rate_text(*rate_hz),
                None => "an unknown rate".to_string(),
            };
            let reason = (!is_obtained).then(|| rates_in_words(stream.device(), *pixels, layout.size));
            all.push(Obtained { what: "frame rate".to_string(), asked: rate_text(asked), obtained, reason });
        }
        let buffers = stream.buffers();
        all.push(Obtained {
            what: "buffers".to_string(),
            // More than asked for is what the driver needs.
            asked: (self.buffers as usize).max(buffers).to_string(),
            obtained: buffers.to_string(),
            reason: (buffers < self.buffers as usize)
                .then(|| "the driver has no memory for more".to_string()),
        });
        all
    }

    /// The error of a camera that cannot be used any more.
    pub fn gone(&self, error: &std::io::Error) -> Error {
        let why =
            if VideoStream::is_gone(error) { "it was unplugged".to_string() } else { error.to_string() };
        Error::new(format!("{}: {why}. With `on_error = \"restart\"` the operator waits for it", self.device))
    }

    fn cannot(&self, what: &str, why: impl Display) -> Error {
        Error::new(format!("cannot use {}: {what}; {why}", self.device))
    }

    fn cannot_open(&self, path: &Path, error: &VideoError) -> Error {
        Error::new(format!("cannot open {}: {}", self.device, self.why(error, path)))
    }

    fn why(&self, error: &VideoError, path: &Path) -> String {
        match error {
            VideoError::System(system) if system.kind() == ErrorKind::NotFound => {
                format!("there is no such device; {}", nodes_here(&nodes()))
            }
            VideoError::System(system) if system.kind() == ErrorKind::PermissionDenied => format!(
                "you have no right to open {}: join its group (often `video`: `sudo usermod -aG video $USER`, then \
                 log in again)",
                path.display()
            ),
            VideoError::Busy => {
                let path = path.display();
                format!("another program uses it: end that program; `fuser -v {path}` shows which one it is")
            }
            VideoError::NotVideo | VideoError::NotCapture => format!("{error}; {}", nodes_here(&nodes())),
            error => error.to_string(),
        }
    }
}

/// A video device of this machine.
struct VideoNode {
    /// Name in `/dev`.
    node: String,
    card: String,
    /// Whether it is the first one of its card: cameras have others for metadata.
    is_first: bool,
}

/// The video devices of this machine, by number.
fn nodes() -> Vec<VideoNode> {
    let entries = fs::read_dir(CLASS).into_iter().flatten().flatten();
    let read = |path: PathBuf| fs::read_to_string(path).map(|text| text.trim().to_string());
    let mut nodes: Vec<VideoNode> = entries
        .filter_map(|entry| {
            let node = entry.file_name().into_string().ok().filter(|name| name.starts_with("video"))?;
            let card = read(entry.path().join("name")).unwrap_or_default();
            let is_first = read(entry.path().join("index")).is_ok_and(|index| index == "0");
            Some(VideoNode { node, card, is_first })
        })
        .collect();
    nodes.sort_by_key(|node| (node.node.len(), node.node.clone()));
    nodes
}

/// Names the video devices of this machine.
fn nodes_here(nodes: &[VideoNode]) -> String {
    if nodes.is_empty() {
        return "this machine has no video devices: is the camera plugged in, and its driver loaded?"
            .to_string();
    }
    let names: Vec<String> =
        nodes.iter().take(SHOWN).map(|node| format!("/dev/{} ({})", node.node, node.card)).collect();
    format!("video devices here: {}", names.join(", "))
}

/// Reads the parameters that say what is asked for.
pub(super) fn request(mut request: CameraRequest, size: Option<&str>) -> Result<CameraRequest, Error> {
    request.size = size.map(read_size).transpose()?;
    if let Some(rate_hz) = request.rate_hz {
        crate::check::within("rate", rate_hz, 0.001, 100_000.0, "usual rates are 5 to 120 Hz")?;
    }
    Ok(request)
}
