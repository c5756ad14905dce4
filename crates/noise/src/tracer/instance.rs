//! A trace instance that runs one of the kernel's tracers.

use crate::error::NoiseError;
use crate::source::SourceRefusal;
use onbeat_os::knob::Knobs;
use onbeat_os::policy::PolicyFlags;
use onbeat_os::tracefs::Tracefs;
use onbeat_os::{CoreSet, Policy, clock, poll};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time between two reads.
pub(super) const EVERY: Duration = Duration::from_millis(50);
/// Time for the kernel to start its threads.
const THREADS_NS: u64 = 2_000_000_000;

/// Settings of the tracers, an instance, and its lines.
pub(super) struct TracerInstance {
    folder: PathBuf,
    /// Folder of the tracers' settings, shared by all instances.
    osnoise: PathBuf,
    pipe: Option<File>,
    /// Text read so far, from the start of an incomplete line.
    text: Vec<u8>,
    /// Dropped last: it removes the instance.
    knobs: Knobs,
}

impl TracerInstance {
    /// Makes an instance with these `osnoise:` events, and a ring of `ring_bytes` per core; nothing is
    /// measured yet.
    pub fn new(
        tracefs: &Tracefs,
        events: &[&str],
        cpus: &[usize],
        ring_bytes: usize,
    ) -> Result<Self, NoiseError> {
        let mut knobs = Knobs::new().map_err(os)?;
        let osnoise = tracefs.root().join("osnoise");
        let list = CoreSet::from_cores(cpus.iter().copied())
            .map_err(|error| NoiseError::Settings(error.to_string()))?;
        knobs.set(&osnoise.join("cpus"), &list.to_string()).map_err(os)?;
        let folder = tracefs.root().join("instances").join(format!("onbeat-{}", std::process::id()));
        knobs.make_folder(&folder).map_err(os)?;
        write(&folder.join("buffer_size_kb"), &(ring_bytes / 1024).max(64).to_string())?;
        for event in events {
            write(&folder.join("events/osnoise").join(event).join("enable"), "1")?;
        }
        Ok(TracerInstance { folder, osnoise, pipe: None, text: Vec::new(), knobs })
    }

    /// State that killed processes had left and that was restored.
    pub fn cleaned(&self) -> &[String] {
        self.knobs.cleaned()
    }

    /// Whether the kernel's tracers have this setting.
    pub fn has(&self, name: &str) -> bool {
        self.osnoise.join(name).exists()
    }

    /// Changes a setting of the tracers until this is dropped.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), NoiseError> {
        self.knobs.set(&self.osnoise.join(name), value).map_err(os)
    }

    /// Changes a setting in the folder above until this is dropped.
    pub fn set_beside(&mut self, name: &str, value: &str) -> Result<(), NoiseError> {
        let path = self.osnoise.with_file_name(name);
        self.knobs.set(&path, value).map_err(os)
    }

    /// Sets an option, and sets it to `back` at the end.
    pub fn option(&mut self, on: &str, back: &str) -> Result<(), NoiseError> {
        self.knobs.switch(&self.osnoise.join("options"), on, back).map_err(os)
    }

    /// Starts measuring.
    pub fn start(&mut self, tracer: &str) -> Result<(), NoiseError> {
        write(&self.folder.join("current_tracer"), tracer)?;
        let pipe = poll::open(&self.folder.join("trace_pipe")).map_err(NoiseError::os("trace_pipe"))?;
        self.pipe = Some(File::from(pipe));
        Ok(())
    }

    /// Returns the lines since the last call.
    pub fn lines(&mut self) -> Vec<String> {
        let Some(pipe) = &mut self.pipe else { return Vec::new() };
        let mut bytes = vec![0; 1 << 16];
        // The pipe does not block: an error means that there are no more lines now.
        while let Ok(length @ 1..) = pipe.read(&mut bytes) {
            self.text.extend_from_slice(&bytes[..length]);
        }
        let whole = self.text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let whole: Vec<u8> = self.text.drain(..whole).collect();
        String::from_utf8_lossy(&whole).lines().map(str::to_owned).collect()
    }

    /// Whether tracing is on: the kernel switches it off at a limit.
    pub fn is_on(&self) -> bool {
        fs::read_to_string(self.folder.join("tracing_on")).is_ok_and(|on| on.trim() == "1")
    }

    /// Continues after a limit.
    pub fn go_on(&self) -> Result<(), NoiseError> {
        write(&self.folder.join("tracing_on"), "1")
    }

    /// Ends the tracer. The kernel kills threads that still wait for it, also when `tracing_on` becomes 0.
    pub fn stop(&mut self) -> Result<(), NoiseError> {
        // A tracer is busy while its lines are being read.
        self.pipe = None;
        write(&self.folder.join("current_tracer"), "nop")
    }
}

impl Drop for TracerInstance {
    fn drop(&mut self) {
        // An instance cannot be removed while its tracer runs.
        self.pipe = None;
        let _refused = fs::write(self.folder.join("current_tracer"), "nop");
    }
}

/// Sets the policy of a tracer's kernel threads, `NAME/CPU`. Returns the reason of a refusal.
pub(super) fn set_policy(name: &str, cpus: &[usize], policy: Policy) -> Option<String> {
    let end_ns = clock::monotonic_ns() + THREADS_NS;
    let mut left: Vec<String> = cpus.iter().map(|cpu| format!("{name}/{cpu}")).collect();
    while !left.is_empty() && clock::monotonic_ns() < end_ns {
        for (pid, comm) in kernel_threads() {
            let Some(at) = left.iter().position(|wanted| *wanted == comm) else { continue };
            if let Err(error) = policy.set_for(pid, PolicyFlags::default()) {
                return Some(format!("policy {policy} of {comm} was asked for and not obtained: {error}"));
            }
            left.swap_remove(at);
        }
        clock::sleep_until(clock::monotonic_ns() + 10_000_000);
    }
    let list = left.join(", ");
    (!left.is_empty())
        .then(|| format!("policy {policy} was asked for and not obtained: there is no thread {list}"))
}

/// Ids and names of all kernel threads.
fn kernel_threads() -> Vec<(i32, String)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let thread = |pid: i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (comm, rest) = (stat.split_once('(')?.1, stat.rsplit_once(')')?.1);
        // Field 4 is the parent: process 2 is the parent of kernel threads only.
        let is_kernel = rest.split_whitespace().nth(1) == Some("2");
        is_kernel.then(|| (pid, comm.rsplit_once(')').map_or(comm, |(comm, _)| comm).to_owned()))
    };
    pids.filter_map(thread).collect()
}

/// Checks that the kernel has this tracer.
pub(super) fn check(tracefs: &Tracefs, tracer: &str) -> Result<(), SourceRefusal> {
    let tracers = tracefs.tracers();
    if tracers.iter().any(|known| known == tracer) {
        return Ok(());
    }
    let option = tracer.to_uppercase();
    Err(SourceRefusal {
        why: format!("this kernel has no {tracer} tracer; available: {}", tracers.join(", ")),
        fix: format!(
            "leave --backend out: tracepoints do as well; or boot a kernel with CONFIG_{option}_TRACER, such as Debian's \
             linux-image-rt-amd64"
        ),
    })
}

/// Finds tracefs, if the kernel has this tracer.
pub(super) fn find(tracer: &str) -> Result<Tracefs, NoiseError> {
    let refused = |refused| NoiseError::Backend { backend: "tracer", refused };
    let tracefs = Tracefs::find().map_err(|error| {
        let text = error.to_string();
        let (why, fix) = text.split_once("; ").unwrap_or((&text, "run as root"));
        refused(SourceRefusal { why: why.to_owned(), fix: fix.to_owned() })
    })?;
    check(&tracefs, tracer).map_err(refused)?;
    Ok(tracefs)
}

fn os(source: io::Error) -> NoiseError {
    NoiseError::Os { what: "the settings of the kernel's tracer".to_owned(), source }
}

fn write(path: &Path, value: &str) -> Result<(), NoiseError> {
    fs::write(path, value).map_err(NoiseError::os(format!("{}: cannot be set to `{value}`", path.display())))
}
