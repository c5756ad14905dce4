//! Grants of rights for a pipeline: a systemd unit, a limits.d file, container flags.

use super::{TuneError, TuningPlan};
use crate::case::MachineCase;
use crate::pipeline::PipelineNeeds;
use onbeat_os::CoreSet;

/// Input of a systemd unit.
#[derive(Debug, Clone)]
pub struct ServiceRun<'r> {
    /// Absolute path of the command.
    pub command: &'r str,
    /// The pipeline.
    pub pipeline: &'r PipelineNeeds,
    /// The cores left to the system.
    pub house: &'r CoreSet,
}

/// Minimum of the granted priority, so that another pipeline can use the same file.
const LEAST_PRIORITY: u8 = 1;

/// Writes a systemd unit that runs the pipeline with the rights it needs.
///
/// # Errors
/// A path that contains a line end, which no unit can name.
pub fn systemd(run: &ServiceRun<'_>, case: &MachineCase, plan: &TuningPlan) -> Result<String, TuneError> {
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
                "# No CPUAffinity= and no AllowedCPUs=: SCHED_DEADLINE is refused on a subset of the cores\n";
        }
        false if !run.house.is_empty() => {
            text += &format!("CPUAffinity={}\n", run.house.to_string().replace(',', " "));
        }
        false => {}
    }
    text += "# systemd kills the service if a step takes longer than this: raise it if one does\nWatchdogSec=10\n";
    text += "OOMScoreAdjust=-900\n";
    if pipeline.dma_latency_us.is_some() {
        text +=
            "# /dev/cpu_dma_latency: with User=, a udev rule has to give it to one of the user's groups\n";
    }
    if case.facts.kernel.has("RT_GROUP_SCHED") == Some(true)
        && case.facts.kernel.parameter("rt_group_sched") != Some("0")
    {
        text += "# This kernel has RT_GROUP_SCHED: it refuses FIFO and RR to services unless it is booted with rt_group_sched=0\n";
    }
    text += "\n[Install]\nWantedBy=multi-user.target\n";
    Ok(text)
}

/// Writes a file for `/etc/security/limits.d`.
#[must_use]
pub fn limits(pipeline: Option<&PipelineNeeds>) -> String {
    let priority = pipeline.map_or(95, |pipeline| pipeline.priority().max(LEAST_PRIORITY));
    format!(
        "# Made by `onbeat tune`, for /etc/security/limits.d/95-onbeat.conf. Members of the group `realtime` have these rights after\n\
         # the next log-in: sudo groupadd -f realtime; sudo usermod -aG realtime USER\n\
         @realtime - rtprio {priority}\n@realtime - memlock unlimited\n@realtime - nice -20\n"
    )
}

/// Returns flags for `docker run` and `podman run`.
#[must_use]
pub fn container(pipeline: Option<&PipelineNeeds>, house: &CoreSet, cpus: &CoreSet) -> Vec<String> {
    let priority = pipeline.map_or(95, |pipeline| pipeline.priority().max(LEAST_PRIORITY));
    let pins = pipeline.map(PipelineNeeds::cores).unwrap_or_default();
    let mut flags = vec![
        "--cap-add SYS_NICE".to_owned(),
        "--cap-add IPC_LOCK".to_owned(),
        format!("--ulimit rtprio={priority}"),
        "--ulimit memlock=-1".to_owned(),
    ];
    if pipeline.is_none_or(|pipeline| pipeline.dma_latency_us.is_some()) {
        flags.push("--device /dev/cpu_dma_latency".to_owned());
    }
    if !pipeline.is_some_and(PipelineNeeds::has_deadline) {
        flags.push(format!("--cpuset-cpus {}", house.and(cpus).and(&pins)));
    }
    flags
        .extend(["--cap-add PERFMON".to_owned(), "-v /sys/kernel/tracing:/sys/kernel/tracing:ro".to_owned()]);
    flags
}

/// Quotes a path for `ExecStart=`.
fn quoted(path: &str) -> Result<String, TuneError> {
    if path.contains(['\n', '\r', '\0']) {
        return Err(TuneError::new(format!("the path {path:?} contains a line end"), "rename it"));
    }
    let escaped = path.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    Ok(if escaped.contains(char::is_whitespace) || escaped != path {
        format!("\"{escaped}\"")
    } else {
        escaped
    })
}
