//! Comparison of noise records.

use crate::arguments::noise::{CompareArguments, ExperimentArguments, ProjectArguments};
use crate::commands::{bench::check_plot, show};
use crate::documents;
use crate::error::CommandError;
use crate::interrupt::CtrlC;
use crate::progress::StatusLine;
use crate::stderr;
use onbeat::trace::replace::replace;
use onbeat_noise::project::project;
use onbeat_noise::{CpuNoise, NoiseRecord, NoiseSettings, Observer, measure, place};
use onbeat_os::{CoreSet, Policy};
use std::path::Path;

pub fn compare(arguments: &CompareArguments) -> Result<u8, CommandError> {
    if let Some(path) = &arguments.plot {
        check_plot(path)?;
    }
    let records = arguments.records.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    if let Some(path) = &arguments.plot {
        draw(path, &records)?;
    }
    show(&documents::noise_compared(&records, arguments.plot.as_deref()), arguments.format)?;
    Ok(0)
}

pub fn projected(arguments: &ProjectArguments) -> Result<u8, CommandError> {
    let record = read(&arguments.record)?;
    let found = project(&record, arguments.step, &arguments.nodes);
    if found.is_empty() {
        let message = format!(
            "{}: no measured time in the record, so nothing can be projected",
            arguments.record.display()
        );
        return Err(CommandError::new(message).help("measure longer: onbeat noise hist -d 60s --record FILE"));
    }
    show(&documents::noise_projected(&record, arguments.step, &found), arguments.format)?;
    Ok(0)
}

/// Measures with a normal and a real-time thread, on normal cores and on isolated ones.
pub fn experiment(arguments: &ExperimentArguments, abort: fn() -> !) -> Result<u8, CommandError> {
    let folder = &arguments.output;
    std::fs::create_dir_all(folder).map_err(|error| {
        CommandError::new(format!("--output {}: cannot be created: {error}", folder.display()))
            .help("name a writable folder")
    })?;
    let mut watch = ExperimentProgress {
        ctrl_c: CtrlC::listen(abort),
        line: StatusLine::new("experiment"),
        what: "",
        duration_ns: arguments.duration,
    };
    let setups = setups(arguments)?;
    for (name, policy, cpus) in &setups {
        // All checks come before the first measurement.
        place::cpus(Some(cpus))
            .and_then(|cpus| place::check_policy(*policy, true, &cpus))
            .map_err(|error| CommandError::new(format!("{name}: {error}")))?;
    }
    let mut records = Vec::new();
    for (name, policy, cpus) in setups {
        watch.what = name;
        let settings = NoiseSettings {
            cpus: Some(cpus),
            duration_ns: Some(arguments.duration),
            policy,
            ..NoiseSettings::default()
        };
        let record = measure(&settings, &mut watch);
        watch.line.clear();
        let mut record = record.map_err(|error| CommandError::new(error.to_string()))?;
        record.name = name.to_owned();
        documents::noise_notes(&record)
            .iter()
            .for_each(|line| stderr::to_stderr(&format!("{name}: {line}\n")));
        let path = folder.join(format!("{name}.json"));
        replace(&path, record.to_json().as_bytes()).map_err(|error| {
            CommandError::new(format!("record {}: cannot be written: {error}", path.display()))
        })?;
        records.push(record);
        if watch.ctrl_c.is_asked() {
            break;
        }
    }
    let plot = folder.join("noise.svg");
    draw(&plot, &records)?;
    show(&documents::noise_compared(&records, Some(&plot)), arguments.format)?;
    Ok(0)
}

/// Name, policy and cores of a setup.
type Setup = (&'static str, Option<Policy>, CoreSet);

/// Returns the setups: normal cores, and, if there are any, cores that the kernel keeps free (tuned).
fn setups(arguments: &ExperimentArguments) -> Result<Vec<Setup>, CommandError> {
    let free = free_cores();
    let cpus = match &arguments.cpus {
        Some(cpus) => cpus.clone(),
        None => onbeat_os::thread::cores().map_err(|error| CommandError::new(error.to_string()))?,
    };
    let part = |is_free: bool| {
        CoreSet::from_cores(cpus.iter().filter(|cpu| free.contains(*cpu) == is_free)).expect("they are cores")
    };
    let (usual, mut tuned) = (part(false), part(true));
    // Isolated cores are not in our affinity mask by default.
    if arguments.cpus.is_none() {
        tuned = free;
    }
    let fifo = Some("f:1".parse::<Policy>().expect("a policy"));
    let mut all: Vec<Setup> = Vec::new();
    if !usual.is_empty() {
        all.extend([("as-is", None, usual.clone()), ("fifo-1", fifo, usual)]);
    }
    if tuned.is_empty() {
        stderr::to_stderr(
            "note: tuned: skipped, because no measured CPU is isolated (isolcpus=, a cpuset partition) or without ticks \
             (nohz_full=)\n",
        );
    } else {
        all.extend([("tuned", None, tuned.clone()), ("tuned-fifo-1", fifo, tuned)]);
    }
    Ok(all)
}

/// Returns the cores that the kernel keeps free of other threads or of ticks.
fn free_cores() -> CoreSet {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/nohz_full").unwrap_or_default();
    let without_ticks: CoreSet = text.trim().parse().unwrap_or_default();
    let isolated = CoreSet::isolated();
    CoreSet::from_cores(isolated.iter().chain(without_ticks.iter())).expect("the kernel's own numbers")
}

fn draw(path: &Path, records: &[NoiseRecord]) -> Result<(), CommandError> {
    replace(path, documents::noise_figures(records).to_svg().as_bytes())
        .map_err(|error| CommandError::new(format!("plot {}: cannot be written: {error}", path.display())))
}

fn read(path: &Path) -> Result<NoiseRecord, CommandError> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        CommandError::new(format!("{shown}: cannot be read: {error}"))
            .help("make a record: onbeat noise hist -d 20s --record FILE")
    })?;
    let mut record =
        NoiseRecord::from_json(&text).map_err(|error| CommandError::new(format!("{shown}: {error}")))?;
    if record.name.is_empty() {
        record.name = shown.to_string();
    }
    Ok(record)
}

struct ExperimentProgress {
    ctrl_c: CtrlC,
    line: StatusLine,
    what: &'static str,
    duration_ns: u64,
}

impl Observer<CpuNoise> for ExperimentProgress {
    fn at(&mut self, _: &dyn Fn() -> Vec<CpuNoise>, elapsed_ns: u64) {
        self.line.draw(&format!("{}: {}", self.what, documents::elapsed(elapsed_ns, Some(self.duration_ns))));
    }

    fn is_stopped(&self) -> bool {
        self.ctrl_c.is_asked()
    }
}
