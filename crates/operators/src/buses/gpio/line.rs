//! Which line of which chip, and what goes wrong with it.

use crate::check;
use gpiocdev::line::{Bias, Drive, EdgeDetection};
use gpiocdev::request::{Builder, Request};
use gpiocdev::{Chip, FoundLine};
use onbeat_runtime::Error;
use rustix::io::Errno;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Name under which the kernel shows who uses a line.
const CONSUMER: &str = "onbeat";
/// Bytes of the longest name that the kernel gives a line, and of the longest path of a chip.
const LONGEST_NAME: usize = 31;
const LONGEST_PATH: usize = 255;

/// Edges of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GpioEdges {
    /// The line becomes active or inactive.
    #[default]
    Both,
    /// The line becomes active.
    Rising,
    /// The line becomes inactive.
    Falling,
}

/// Resistor of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GpioBias {
    /// As the board has it.
    #[default]
    AsIs,
    /// None.
    Disabled,
    /// To the supply.
    PullUp,
    /// To ground.
    PullDown,
}

/// How an output drives its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GpioDrive {
    /// To both levels.
    #[default]
    PushPull,
    /// To the low level only.
    OpenDrain,
    /// To the high level only.
    OpenSource,
}

impl From<GpioEdges> for EdgeDetection {
    fn from(edges: GpioEdges) -> Self {
        match edges {
            GpioEdges::Both => EdgeDetection::BothEdges,
            GpioEdges::Rising => EdgeDetection::RisingEdge,
            GpioEdges::Falling => EdgeDetection::FallingEdge,
        }
    }
}

impl GpioBias {
    pub(super) fn wanted(self) -> Option<Bias> {
        match self {
            GpioBias::AsIs => None,
            GpioBias::Disabled => Some(Bias::Disabled),
            GpioBias::PullUp => Some(Bias::PullUp),
            GpioBias::PullDown => Some(Bias::PullDown),
        }
    }
}

impl From<GpioDrive> for Drive {
    fn from(drive: GpioDrive) -> Self {
        match drive {
            GpioDrive::PushPull => Drive::PushPull,
            GpioDrive::OpenDrain => Drive::OpenDrain,
            GpioDrive::OpenSource => Drive::OpenSource,
        }
    }
}

/// A line: by its number on a chip, or by its name.
#[derive(Debug, Clone, Default)]
pub(super) struct GpioLine {
    chip: Option<PathBuf>,
    offset: Option<u32>,
    name: Option<String>,
}

impl GpioLine {
    /// Checks the parameters `chip`, `offset` and `line`.
    pub fn new(chip: Option<&str>, offset: Option<u32>, name: Option<&str>) -> Result<Self, Error> {
        match (chip, offset, name) {
            (_, Some(_), Some(_)) => {
                return Err(Error::new("`offset` and `line` both say which line: give one of them"));
            }
            (_, None, None) => {
                return Err(Error::new(
                    "nothing says which line: give its name as `line`, or `chip` and `offset`; `gpioinfo` lists all",
                ));
            }
            (None, Some(offset), None) => {
                return Err(Error::new(format!(
                    "`offset` is {offset}: give the `chip`, too, such as \"gpiochip0\""
                )));
            }
            _ => {}
        }
        check_name("chip", chip, LONGEST_PATH, "give a name such as `gpiochip0`, or a path")?;
        check_name("line", name, LONGEST_NAME, "give a name that `gpioinfo` lists")?;
        // A name without a folder is one of /dev.
        let chip = chip.map(|chip| Path::new("/dev").join(chip));
        Ok(GpioLine { chip, offset, name: name.map(str::to_string) })
    }

    /// The line in words.
    pub fn words(&self) -> String {
        let chip = self.chip.as_deref().map(|chip| chip.display());
        match (chip, self.offset, &self.name) {
            (Some(chip), Some(offset), _) => format!("line {offset} of {chip}"),
            (Some(chip), _, Some(name)) => format!("line {name} of {chip}"),
            (_, _, name) => format!("line {}", name.as_deref().unwrap_or_default()),
        }
    }

    /// Requests the line as `set` says.
    pub fn request(&self, set: impl FnOnce(&mut Builder)) -> Result<Request, Error> {
        let (chip, offset) = self.find()?;
        let mut builder = Request::builder();
        builder.on_chip(&chip).with_line(offset).with_consumer(CONSUMER);
        set(&mut builder);
        builder.request().map_err(|error| self.refused(&chip, offset, &error))
    }

    /// Looks whether the line is there and free.
    pub fn look(&self) -> Result<(), Error> {
        let (path, offset) = self.find()?;
        let chip = Chip::from_path(&path).map_err(|error| self.no_chip(&path, &error))?;
        let info = chip.line_info(offset).map_err(|error| self.refused(&path, offset, &error))?;
        if !info.used {
            return Ok(());
        }
        let busy = std::io::Error::from(Errno::BUSY);
        Err(self.refused(&path, offset, &busy.into()))
    }

    /// The chip's path, and the number of the line.
    fn find(&self) -> Result<(PathBuf, u32), Error> {
        match (&self.chip, self.offset, &self.name) {
            (Some(chip), Some(offset), _) => Ok((chip.clone(), offset)),
            (Some(path), _, Some(name)) => {
                let chip = Chip::from_path(path).map_err(|error| self.no_chip(path, &error))?;
                let found = chip.find_line_info(name).ok_or_else(|| self.unknown())?;
                Ok((path.clone(), found.offset))
            }
            (_, _, name) => {
                let name = name.as_deref().unwrap_or_default();
                let FoundLine { chip, info } =
                    gpiocdev::find_named_line(name).ok_or_else(|| self.unknown())?;
                Ok((chip, info.offset))
            }
        }
    }

    fn unknown(&self) -> Error {
        Error::new(format!(
            "cannot use {}: no line has this name; `gpioinfo` lists all; {}",
            self.words(),
            chips_here()
        ))
    }

    fn no_chip(&self, path: &Path, error: &gpiocdev::Error) -> Error {
        let why = match errno(error) {
            Some(Errno::NOENT) => format!("there is no {}; {}", path.display(), chips_here()),
            Some(Errno::ACCESS | Errno::PERM) => rights(path),
            _ => format!("{error}; {}", chips_here()),
        };
        Error::new(format!("cannot use {}: {why}", self.words()))
    }

    fn refused(&self, path: &Path, offset: u32, error: &gpiocdev::Error) -> Error {
        let Ok(chip) = Chip::from_path(path) else { return self.no_chip(path, error) };
        let why = match errno(error) {
            Some(Errno::BUSY) => match chip.line_info(offset) {
                Ok(info) if !info.consumer.is_empty() => format!("`{}` uses it", info.consumer),
                _ => "another program uses it".to_string(),
            },
            Some(Errno::INVAL) => match chip.info() {
                Ok(info) if offset >= info.num_lines => {
                    format!(
                        "{} has {} lines, the last one is {}",
                        path.display(),
                        info.num_lines,
                        info.num_lines - 1
                    )
                }
                _ => "its driver does not offer these settings".to_string(),
            },
            Some(Errno::ACCESS | Errno::PERM) => rights(path),
            Some(Errno::NXIO | Errno::NOTSUP) => "its driver does not offer these settings".to_string(),
            _ => error.to_string(),
        };
        Error::new(format!("cannot use {}: {why}", self.words()))
    }

    /// The error of a line that cannot be used any more.
    pub fn gone(&self, error: &gpiocdev::Error) -> Error {
        let why = match errno(error) {
            Some(Errno::NODEV) => "its chip went away".to_string(),
            _ => error.to_string(),
        };
        Error::new(format!(
            "{}: {why}. With `on_error = \"restart\"` the operator waits for it",
            self.words()
        ))
    }
}

/// Checks a name of at most `longest` bytes.
fn check_name(what: &str, name: Option<&str>, longest: usize, fix: &str) -> Result<(), Error> {
    let is_good = |name: &str| (1..=longest).contains(&name.len()) && !name.contains('\0');
    match name.filter(|name| !is_good(name)) {
        None => Ok(()),
        Some(name) => {
            let shown = check::shown(name);
            Err(Error::new(format!("`{what}` is `{shown}`: it has 1 to {longest} bytes; {fix}")))
        }
    }
}

fn rights(path: &Path) -> String {
    format!(
        "you have no right to open {}: join its group (often `gpio`: `sudo usermod -aG gpio $USER`, then log in again)",
        path.display()
    )
}

/// Names the chips of this machine.
fn chips_here() -> String {
    const SHOWN: usize = 8;
    let chips = gpiocdev::chip::chips().unwrap_or_default();
    if chips.is_empty() {
        return "this machine has no GPIO chips".to_string();
    }
    let names: Vec<String> = chips.iter().take(SHOWN).map(|chip| chip.display().to_string()).collect();
    format!("chips here: {}", names.join(", "))
}

/// Number of the system's error.
pub(super) fn errno(error: &gpiocdev::Error) -> Option<Errno> {
    match error {
        gpiocdev::Error::Os(gpiocdev_uapi::Errno(number))
        | gpiocdev::Error::Uapi(_, gpiocdev_uapi::Error::Os(gpiocdev_uapi::Errno(number))) => {
            // 0 for errors that are not the system's.
            (*number > 0).then(|| Errno::from_raw_os_error(*number))
        }
        _ => None,
    }
}
