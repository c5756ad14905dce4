//! Rights for the pipeline at hand: a systemd unit, a file for limits.d, flags for a container.

use super::{Error, Plan};
use crate::case::Case;
use crate::pipeline::Pipeline;
use onbeat_os::CoreSet;

/// What a run needs to be told.
#[derive(Debug, Clone)]
pub struct Run<'r> {
    /// The command, as an absolute path.
    pub command: &'r str,
    /// The pipeline.
    pub pipeline: &'r Pipeline,
    /// The cores that are left to the system.
    pub house: &'r CoreSet,
}

/// The least that is granted: room for another priority without another file.
const LEAST_PRIORITY: u8 = 1;

/// A unit of systemd that runs the pipeline with the rights that it needs.
///
/// # Errors
/// A path with a line end in it, which no unit can name.
pub fn systemd(run: &Run<'_>, case: &Case, plan: &Plan) -> Result<String, Error> {
    let pipeline = run.pipeline;
    let (command, file) = (quoted(run.command)?, quoted(&pipeline.file)?);
    let folder = pipeline
        .file
        .rsplit_once('/')
        .map_or("/", |(folder, _)| if folder.is_empty() { "/" } else { folder });
    let name: String = pipeline.name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut capabilities = vec!["CAP_SYS_NICE"];
    if pipeline.lock_memory {
        capabilities.push("CAP_IPC_LOCK");
    }
    let capabilities = capabilities.join(" ");
    let mut text = format!(
        "# Made by `onbeat tune --systemd`, for the cores {}. Check it: systemd-analyze verify FILE\n",
        plan.cpus
    );
    text += &format!(
        "[Unit]\nDescription=onbeat pipeline {}\n\n[Service]\nType=notify\n",
        name.replace('%', "%%")
    );
    let house = if run.house.is_empty() { String::new() } else { format!(" -H {}", run.house) };
    text += &format!("ExecStart={command} run {file}{house} --strict\n");
    text += &format!("WorkingDirectory={}\n", folder.replace('%', "%%"));
    text += "# User=NAME                     # the rights below are enough: root is not needed\n";
    text += &format!("AmbientCapabilities={capabilities}\n");
    text += &format!("LimitRTPRIO={}\n", pipeline.priority().max(LEAST_PRIORITY));
    text += "LimitMEMLOCK=infinity\nLimitRTTIME=infinity\n";
    match pipeline.has_deadline() {
        true => {
            text +=
                "# No CPUAffinity= and no AllowedCPUs=: SCHED_DEADLINE is refused on a part of the cores\n";
        }
        false if !run.house.is_empty() => {
            text += &format!("CPUAffinity={}\n", run.house.to_string().replace(',', " "));
        }
        false => {}
    }
    text += "# No step takes that long: raise it where one does, or the service is killed for it\nWatchdogSec=10\n";
    text += "OOMScoreAdjust=-900\n";
    if pipeline.dma_latency_us.is_some() {
        text += "# /dev/cpu_dma_latency: with User=, a udev rule has to give it to a group of that user\n";
    }
    if case.facts.kernel.has("RT_GROUP_SCHED") == Some(true)
        && case.facts.kernel.parameter("rt_group_sched") != Some("0")
    {
        text += "# This kernel has RT_GROUP_SCHED: services are refused FIFO and RR until it is booted with rt_group_sched=0\n";
    }
    text += "\n[Install]\nWantedBy=multi-user.target\n";
    Ok(text)
}

/// A file for `/etc/security/limits.d`.
#[must_use]
pub fn limits(pipeline: Option<&Pipeline>) -> String {
    let priority = pipeline.map_or(95, |pipeline| pipeline.priority().max(LEAST_PRIORITY));
    format!(
        "# Made by `onbeat tune`, for /etc/security/limits.d/95-onbeat.conf. Whoever is in the group `realtime` has these rights after\n\
         # the next log-in: sudo groupadd -f realtime; sudo usermod -aG realtime USER\n\
         @realtime - rtprio {priority}\n@realtime - memlock unlimited\n@realtime - nice -20\n"
    )
}

/// Flags for `docker run` and `podman run`.
#[must_use]
pub fn container(pipeline: Option<&Pipeline>, house: &CoreSet, cpus: &CoreSet) -> Vec<String> {
    let priority = pipeline.map_or(95, |pipeline| pipeline.priority().max(LEAST_PRIORITY));
    let pins = pipeline.map(Pipeline::cores).unwrap_or_default();
    let mut flags = vec![
        "--cap-add SYS_NICE".to_owned(),
        "--cap-add IPC_LOCK".to_owned(),
        format!("--ulimit rtprio={priority}"),
        "--ulimit memlock=-1".to_owned(),
    ];
    if pipeline.is_none_or(|pipeline| pipeline.dma_latency_us.is_some()) {
        flags.push("--device /dev/cpu_dma_latency".to_owned());
    }
    if !pipeline.is_some_and(Pipeline::has_deadline) {
        flags.push(format!("--cpuset-cpus {}", house.and(cpus).and(&pins)));
    }
    flags
        .extend(["--cap-add PERFMON".to_owned(), "-v /sys/kernel/tracing:/sys/kernel/tracing:ro".to_owned()]);
    flags
}

/// As systemd reads it in `ExecStart=`.
fn quoted(path: &str) -> Result<String, Error> {
    if path.contains(['\n', '\r', '\0']) {
        return Err(Error::new(format!("the path {path:?} has a line end in it"), "rename it"));
    }
    let escaped = path.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    Ok(if escaped.contains(char::is_whitespace) || escaped != path {
        format!("\"{escaped}\"")
    } else {
        escaped
    })
}
