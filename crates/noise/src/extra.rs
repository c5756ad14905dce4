//! Any events of the kernel beside those that are measured, with a filter and a trigger, for whoever reads the trace.
//!
//! They are written by an instance of their own, so they disturb no account; each costs its time on the core where it happens.

use crate::error::Error;
use onbeat_os::ftrace;
use onbeat_os::tracefs::Tracefs;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// An event, or all of a system, as the kernel names them: `sched:sched_switch`, `irq`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRequest {
    /// The folder of `events/` that it is in.
    pub system: String,
    /// Which one; all without.
    pub name: Option<String>,
    /// Only those that this holds for: `prev_pid == 0`.
    pub filter: Option<String>,
    /// What the kernel does at each: `stacktrace`, `hist:keys=prev_comm`.
    pub trigger: Option<String>,
}

/// Whose clock their lines are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceClock {
    /// `CLOCK_MONOTONIC`, as everything that we measure ourselves.
    Monotonic,
    /// The one of the kernel's tracers.
    Tracer,
}

/// What a trigger has counted, and the name of a file for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventCounts {
    /// `SYSTEM_EVENT_hist.txt`
    pub file: String,
    /// As the kernel writes it.
    pub text: String,
}

/// Events that are being written; dropping it ends that.
#[derive(Debug)]
pub struct Extra {
    instance: ftrace::Instance,
    /// `SYSTEM_EVENT` and the folder of those that count.
    counting: Vec<(String, PathBuf)>,
}

impl Extra {
    /// Writes them from now on, on these cores; the last `ring_bytes` of each are kept.
    ///
    /// # Errors
    /// An event that this kernel has not, a filter or a trigger that it does not understand, or no right to write tracefs.
    pub fn open(
        asked: &[EventRequest],
        cpus: &[usize],
        ring_bytes: usize,
        clock: TraceClock,
    ) -> Result<Self, Error> {
        let tracefs = Tracefs::find().map_err(Error::os("-e"))?;
        let opened = ftrace::Instance::open(&tracefs, &[], cpus, ring_bytes);
        let instance = opened.map_err(Error::os("-e: no trace instance can be made; run as root"))?.instance;
        let folder = instance.folder().to_owned();
        let set = |name: &str, value: &str| fs::write(folder.join(name), value).map_err(Error::os("-e"));
        if clock == TraceClock::Tracer {
            set("trace_clock", "local")?;
        }
        // Lines have the names of threads.
        set("trace_options", "record-cmd")?;
        let mut counting = Vec::new();
        for one in asked {
            let path = one.switch_on(&folder)?;
            if one.trigger.as_deref().is_some_and(|trigger| trigger.starts_with("hist:")) {
                counting.push((one.shown().replace(':', "_"), path));
            }
        }
        instance.enable().map_err(Error::os("-e"))?;
        Ok(Extra { instance, counting })
    }

    /// Writes no more.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn stop(&self) -> Result<(), Error> {
        self.instance.disable().map_err(Error::os("-e"))
    }

    /// The lines that there are, with their moments in nanoseconds.
    ///
    /// # Errors
    /// What reading them says.
    pub fn lines(&self) -> Result<Vec<(u64, String)>, Error> {
        let text = read(&self.instance.folder().join("trace"))?;
        let mut time_ns = 0;
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
        // What has no time of its own, such as a frame of a stack, belongs to the line before it.
        Ok(lines
            .map(|line| {
                time_ns = crate::tracer::time_ns(line).unwrap_or(time_ns);
                (time_ns, line.to_owned())
            })
            .collect())
    }

    /// What triggers have counted.
    ///
    /// # Errors
    /// What reading it says.
    pub fn counted(&self) -> Result<Vec<EventCounts>, Error> {
        let one = |(name, path): &(String, PathBuf)| {
            Ok(EventCounts { file: format!("{name}_hist.txt"), text: read(&path.join("hist"))? })
        };
        self.counting.iter().map(one).collect()
    }
}

impl EventRequest {
    /// Reads `SYSTEM` or `SYSTEM:EVENT`.
    ///
    /// # Errors
    /// What it should have been.
    pub fn parse(text: &str) -> Result<Self, String> {
        const FORM: &str = "write SYSTEM or SYSTEM:EVENT, such as sched:sched_switch; /sys/kernel/tracing/events has them all";
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

    /// In that instance; gives its folder.
    fn switch_on(&self, folder: &Path) -> Result<PathBuf, Error> {
        let mut path = folder.join("events").join(&self.system);
        if let Some(name) = &self.name {
            path.push(name);
        }
        let shown = self.shown();
        if !path.is_dir() {
            return Err(Error::Settings(format!(
                "-e {shown}: this kernel has no such event; see /sys/kernel/tracing/available_events"
            )));
        }
        let write = |file: &str, value: &str| {
            fs::write(path.join(file), value).map_err(|error| {
                let why = match error.kind() {
                    io::ErrorKind::InvalidInput if value.starts_with("hist:") && !counts() => {
                        "this kernel was built without such triggers (CONFIG_HIST_TRIGGERS)".to_owned()
                    }
                    io::ErrorKind::InvalidInput | io::ErrorKind::NotFound => {
                        format!(
                            "the kernel does not understand it; events/{}/format has its fields",
                            shown.replace(':', "/")
                        )
                    }
                    _ => error.to_string(),
                };
                Error::Settings(format!("-e {shown}: {file} `{value}`: {why}"))
            })
        };
        if let Some(filter) = &self.filter {
            write("filter", filter)?;
        }
        if let Some(trigger) = &self.trigger {
            if self.name.is_none() {
                return Err(Error::Settings(format!(
                    "-e {shown}: a trigger is one event's and not a system's: name it, as SYSTEM:EVENT"
                )));
            }
            write("trigger", trigger)?;
        }
        write("enable", "1")?;
        Ok(path)
    }
}

/// Whether this kernel has triggers that count.
fn counts() -> bool {
    let text = Tracefs::find().and_then(|tracefs| fs::read_to_string(tracefs.root().join("README")));
    text.is_ok_and(|text| text.contains("hist:keys="))
}

fn read(path: &Path) -> Result<String, Error> {
    let text = fs::read(path).map_err(Error::os(path.display().to_string()))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
