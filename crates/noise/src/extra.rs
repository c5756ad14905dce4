//! Further kernel events for a trace, with filters and triggers.
//!
//! They have their own instance, so they do not affect other counts. Each event costs time on the core where
//! it happens.

use crate::error::NoiseError;
use onbeat_os::ftrace;
use onbeat_os::tracefs::Tracefs;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// An event, or all events of a system, by the kernel's names: `sched:sched_switch`, `irq`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRequest {
    /// System: a folder in `events/`.
    pub system: String,
    /// Event; `None` for all of the system.
    pub name: Option<String>,
    /// Condition that an event has to meet: `prev_pid == 0`.
    pub filter: Option<String>,
    /// Action of the kernel at each event: `stacktrace`, `hist:keys=prev_comm`.
    pub trigger: Option<String>,
}

/// Clock of the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceClock {
    /// `CLOCK_MONOTONIC`, as in all measurements of onbeat's own threads.
    Monotonic,
    /// The clock of the kernel's tracers.
    Tracer,
}

/// Counts of a trigger, and a file name for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventCounts {
    /// `SYSTEM_EVENT_hist.txt`
    pub file: String,
    /// Text, as the kernel writes it.
    pub text: String,
}

/// Events being recorded; dropping it ends the recording.
#[derive(Debug)]
pub struct Extra {
    instance: ftrace::Instance,
    /// `SYSTEM_EVENT` and the folder of the events that count.
    counting: Vec<(String, PathBuf)>,
}

impl Extra {
    /// Starts recording on these cores; the last `ring_bytes` of each are kept.
    ///
    /// # Errors
    /// An event that the kernel does not have, a filter or a trigger that it does not understand, or no right
    /// to write tracefs.
    pub fn open(
        asked: &[EventRequest],
        cpus: &[usize],
        ring_bytes: usize,
        clock: TraceClock,
    ) -> Result<Self, NoiseError> {
        let tracefs = Tracefs::find().map_err(NoiseError::os("-e"))?;
        let opened = ftrace::Instance::open(&tracefs, &[], cpus, |_| ring_bytes);
        let instance =
            opened.map_err(NoiseError::os("-e: no trace instance can be made; run as root"))?.instance;
        let folder = instance.folder().to_owned();
        let set = |name: &str, value: &str| fs::write(folder.join(name), value).map_err(NoiseError::os("-e"));
        if clock == TraceClock::Tracer {
            set("trace_clock", "local")?;
        }
        // Lets the lines contain thread names.
        set("trace_options", "record-cmd")?;
        let mut counting = Vec::new();
        for one in asked {
            let path = one.switch_on(&folder)?;
            if one.trigger.as_deref().is_some_and(|trigger| trigger.starts_with("hist:")) {
                counting.push((one.shown().replace(':', "_"), path));
            }
        }
        instance.enable().map_err(NoiseError::os("-e"))?;
        Ok(Extra { instance, counting })
    }

    /// Stops recording.
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn stop(&self) -> Result<(), NoiseError> {
        self.instance.disable().map_err(NoiseError::os("-e"))
    }

    /// Returns the recorded lines, with their times in nanoseconds.
    ///
    /// # Errors
    /// What reading them returns.
    pub fn lines(&self) -> Result<Vec<(u64, String)>, NoiseError> {
        let text = read(&self.instance.folder().join("trace"))?;
        let mut time_ns = 0;
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
        // A line without a time, such as a frame of a stack, belongs to the line before it.
        Ok(lines
            .map(|line| {
                time_ns = crate::tracer::time_ns(line).unwrap_or(time_ns);
                (time_ns, line.to_owned())
            })
            .collect())
    }

    /// Returns the counts of the triggers.
    ///
    /// # Errors
    /// What reading them returns.
    pub fn counted(&self) -> Result<Vec<EventCounts>, NoiseError> {
        let one = |(name, path): &(String, PathBuf)| {
            Ok(EventCounts { file: format!("{name}_hist.txt"), text: read(&path.join("hist"))? })
        };
        self.counting.iter().map(one).collect()
    }
}

impl EventRequest {
    /// Parses `SYSTEM` or `SYSTEM:EVENT`.
    ///
    /// # Errors
    /// The expected form.
    pub fn parse(text: &str) -> Result<Self, String> {
        const FORM: &str = "write SYSTEM or SYSTEM:EVENT, such as sched:sched_switch; see /sys/kernel/tracing/events for all of them";
        let is_name = |name: &str| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        };
        let (system, name) = match text.split_once(':') {
            Some((system, name)) => (system, Some(name)),
            None => (text, None),
        };
        if !is_name(system) || name.is_some_and(|name| !is_name(name)) {
            return Err(FORM.to_owned());
        }
        Ok(EventRequest {
            system: system.to_owned(),
            name: name.map(str::to_owned),
            filter: None,
            trigger: None,
        })
    }

    fn shown(&self) -> String {
        self.name.as_ref().map_or(self.system.clone(), |name| format!("{}:{name}", self.system))
    }

    /// Switches the event on in an instance; returns its folder.
    fn switch_on(&self, folder: &Path) -> Result<PathBuf, NoiseError> {
        let mut path = folder.join("events").join(&self.system);
        if let Some(name) = &self.name {
            path.push(name);
        }
        let shown = self.shown();
        if !path.is_dir() {
            return Err(NoiseError::Settings(format!(
                "-e {shown}: this kernel has no such event; see /sys/kernel/tracing/available_events"
            )));
        }
        let write = |file: &str, value: &str| {
            fs::write(path.join(file), value).map_err(|error| {
                let why = match error.kind() {
                    io::ErrorKind::InvalidInput if value.starts_with("hist:") && !counts() => {
                        "this kernel has no hist triggers (built without CONFIG_HIST_TRIGGERS)".to_owned()
                    }
                    io::ErrorKind::InvalidInput | io::ErrorKind::NotFound => {
                        format!(
                            "the kernel does not understand it; see its fields in events/{}/format",
                            shown.replace(':', "/")
                        )
                    }
                    _ => error.to_string(),
                };
                NoiseError::Settings(format!("-e {shown}: {file} `{value}`: {why}"))
            })
        };
        if let Some(filter) = &self.filter {
            write("filter", filter)?;
        }
        if let Some(trigger) = &self.trigger {
            if self.name.is_none() {
                return Err(NoiseError::Settings(format!(
                    "-e {shown}: a trigger needs a single event, not a system: name it as SYSTEM:EVENT"
                )));
            }
            write("trigger", trigger)?;
        }
        write("enable", "1")?;
        Ok(path)
    }
}

/// Whether this kernel has triggers that count (hist triggers).
fn counts() -> bool {
    let text = Tracefs::find().and_then(|tracefs| fs::read_to_string(tracefs.root().join("README")));
    text.is_ok_and(|text| text.contains("hist:keys="))
}

fn read(path: &Path) -> Result<String, NoiseError> {
    let text = fs::read(path).map_err(NoiseError::os(path.display().to_string()))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
