//! What may be typed.

pub mod actions;
pub mod bench;
pub mod ctl;
pub mod events;
pub mod host;
pub mod noise;
pub mod numbers;
pub mod report;
pub mod timerlat;
pub mod times;

use actions::Action;
use clap::{Args, Parser, Subcommand, ValueEnum};
use onbeat::Overrides;
use std::path::PathBuf;

pub const EXAMPLES: &str = "\
EXAMPLES
  onbeat run examples/fm_receiver.toml                  run a pipeline until its sources end
  onbeat run fm.toml --pace fast --duration 10s         as fast as it can, at most 10 s
  onbeat run fm.toml --set channel.factor=4             with another parameter
  onbeat run fm.toml --max-misses 0 --format csv        exit status 2 if anything was late
  onbeat check fm.toml                                  whether it could be run
  onbeat plan fm.toml                                   what would run where
  onbeat plan fm.toml --measure                         which scheduler is the fastest here, and why
  onbeat run fm.toml --scheduler pinned --cores 0,1     a worker on each of two cores
  onbeat operators fir.decimate                         parameters and ports of a kind of operator
  onbeat run fm.toml --control fm.ctl                   with a socket for `onbeat ctl fm.ctl status`, pause, set, ...
  onbeat run fm.toml --top                              what it does, live
  onbeat run fm.toml --trace fm.pftrace                 a trace for ui.perfetto.dev
  onbeat run fm.toml --metrics 9464                     OpenMetrics at http://127.0.0.1:9464/metrics
  onbeat report out/fm.record.json -o report.html       a page of what it did, with plots
  onbeat bench overhead                                 what the engine costs, here
  onbeat noise top                                      what this machine takes away from its programs, and why
  onbeat doctor                                         whether this machine is fit for real time, and what mends it";

pub const EXIT_STATUS: &str = "\
EXIT STATUS
  0  good
  1  an error, a wrong command line included
  2  a limit was exceeded: --max-misses, --on-miss, an on_miss of stop; for noise, -s or -S; for doctor, --fail-on
  3  data was lost that nobody chose to lose";

/// A real-time dataflow runtime that explains its own jitter
#[derive(Debug, Parser)]
#[command(name = "onbeat", version, before_help = EXAMPLES, after_help = EXIT_STATUS, max_term_width = 110)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a pipeline, and say what it did
    #[command(after_help = EXIT_STATUS)]
    Run(RunArguments),
    /// Show who would run where, on which queues, without running it
    Plan(PlanArguments),
    /// List the kinds of operators, or show one of them
    Operators(OperatorsArguments),
    /// Say whether a pipeline could be run: it is read and planned, and the files that it reads are there
    Check(CheckArguments),
    /// Measure what onbeat is compared by, beside the limit of this machine
    #[command(subcommand)]
    Bench(bench::BenchCommand),
    /// Say how much of each CPU the system takes away, and what it was
    #[command(subcommand)]
    Noise(noise::NoiseCommand),
    /// Say how late a timer wakes a thread, and why
    #[command(subcommand)]
    Timerlat(timerlat::TimerlatCommand),
    /// Say what this machine costs a pipeline in determinism, worst first, and what mends it
    #[command(before_help = host::DOCTOR_EXAMPLES, after_help = host::DOCTOR_STATUS)]
    Doctor(host::DoctorArguments),
    /// Plan what makes some cores quiet, do what needs no reboot, and take it back
    #[command(before_help = host::TUNE_EXAMPLES)]
    Tune(host::TuneArguments),
    /// Make a page of one run or several beside each other, or their figures as JSON, CSV or Markdown
    #[command(before_help = report::EXAMPLES)]
    Report(report::ReportArguments),
    /// Watch and steer a run through its control socket
    #[command(before_help = ctl::EXAMPLES)]
    Ctl(ctl::CtlArguments),
    /// Print the JSON Schema of pipeline files, for editors
    Schema,
    /// Print a script that completes what is typed
    Completions(CompletionsArguments),
    /// Print the manual page
    Man,
}

#[derive(Debug, Args)]
pub struct RunArguments {
    #[command(flatten)]
    pub pipeline: PipelineArguments,
    /// Write the record to this file, `-` for stdout [default: NAME.record.json in the pipeline's `output` folder]
    #[arg(long, value_name = "PATH")]
    pub record: Option<PathBuf>,
    /// What goes to stdout: a table, the record, or the tables as CSV
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// No progress and no table; errors and --format json|csv are still written
    #[arg(long, short)]
    pub quiet: bool,
    /// Exit with status 2 when there are more misses than this
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub max_misses: Option<u64>,
    /// Do this when a message is late: trace[,file=FILE], signal,num=N,pid=PID|parent, shell,command=COMMAND; then the run ends with
    /// status 2, but with continue; may be given again
    #[arg(long, value_name = "ACTION")]
    pub on_miss: Vec<Action>,
    /// Show what it does, again every second; `q` ends the run
    #[arg(long, conflicts_with = "quiet")]
    pub top: bool,
    /// Answer at this address with what the run does, for Prometheus; a port alone is open to this machine only: 127.0.0.1:9464
    #[arg(long, value_name = "ADDRESS", allow_hyphen_values = true)]
    pub metrics: Option<String>,
    /// Write a trace for ui.perfetto.dev: operators, queues, what the kernel did, misses
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct PlanArguments {
    #[command(flatten)]
    pub pipeline: PipelineArguments,
    /// What goes to stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// A drawing for Graphviz in place of the tables: onbeat plan FILE --dot | dot -Tsvg
    #[arg(long, conflicts_with = "format")]
    pub dot: bool,
    /// With --costs: what the machine takes away, as `onbeat noise hist --record FILE` found it, on top of what is in the costs
    #[arg(long, value_name = "FILE", requires = "costs", conflicts_with = "measure")]
    pub noise: Option<PathBuf>,
    /// Run it for a moment, say what each scheduler would do and recommend one
    #[arg(long, conflicts_with = "dot")]
    pub measure: bool,
    /// Put the recommended scheduler into the file; everything else there stays as it is
    #[arg(long, requires = "measure")]
    pub write: bool,
    /// Measure this machine again, whatever is kept of it
    #[arg(long, requires = "measure")]
    pub fresh: bool,
    /// How long it is run for that
    #[arg(long, value_name = "S", default_value_t = 0.6, requires = "measure", allow_hyphen_values = true)]
    pub seconds: f64,
}

#[derive(Debug, Args)]
pub struct CheckArguments {
    #[command(flatten)]
    pub pipeline: PipelineArguments,
    /// Say nothing when it is good
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Debug, Args)]
pub struct CompletionsArguments {
    /// The shell that completes
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub struct OperatorsArguments {
    /// The kind to show: its ports, its parameters, an example
    pub name: Option<String>,
    /// What goes to stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: KindsFormat,
}

/// A pipeline, and what to change in it.
#[derive(Debug, Args)]
pub struct PipelineArguments {
    /// The pipeline, in TOML
    pub file: PathBuf,
    /// Replace a value of the file: `operator.key=value`, `radio/demod.gain=2`, `output=DIR`; may be given again
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// How sources keep time, in place of what the file says: real or fast
    #[arg(long, value_name = "PACE")]
    pace: Option<String>,
    /// Stop after this time: 30s, "2 min"
    #[arg(long, short, value_name = "TIME", allow_hyphen_values = true)]
    duration: Option<String>,
    /// The clock of the run: real, or manual for virtual time
    #[arg(long, value_name = "CLOCK")]
    clock: Option<String>,
    /// The recipe that makes workers of the graph: greedy, event, pinned, replicated or custom
    #[arg(long, value_name = "NAME")]
    scheduler: Option<String>,
    /// Cores to run on, one worker on each: 0,2-3
    #[arg(long, short, visible_alias = "cpus", value_name = "LIST", allow_hyphen_values = true)]
    cores: Option<String>,
    /// How many workers there are, where the kernel is to place them; greedy has one
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    workers: Option<String>,
    /// How workers wait for something to do: park, spin, spin:20us, or early:150us
    #[arg(long, value_name = "HOW")]
    idle: Option<String>,
    /// Cores for all threads that are no workers; workers keep off them unless --cores says otherwise
    #[arg(long, short = 'H', value_name = "LIST", allow_hyphen_values = true)]
    house_keeping: Option<String>,
    /// What the kernel's scheduler gives to workers: o:N, f:80, r:50, d:RUNTIME[:DEADLINE]:PERIOD
    #[arg(long, short = 'P', visible_alias = "priority", value_name = "POLICY", allow_hyphen_values = true)]
    policy: Option<String>,
    /// How long idle cores may take to wake up while it runs: 0us
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    dma_latency: Option<String>,
    /// Run what may hang this machine: a real-time worker that spins for ever where others need the core
    #[arg(long)]
    force: bool,
    /// Make this socket, by which `onbeat ctl` can watch and steer the run
    #[arg(long, value_name = "SOCKET")]
    control: Option<String>,
    /// Whether to find out why messages were late: on, off, or auto for where something has a limit
    #[arg(long, value_name = "WHEN", num_args = 0..=1, default_missing_value = "on", require_equals = true)]
    explain: Option<String>,
    /// Share the operators out by what they cost in this record of an earlier run, in place of what the file says
    #[arg(long, value_name = "RECORD")]
    pub costs: Option<PathBuf>,
    /// Fail when something that is asked for is not obtained
    #[arg(long)]
    strict: bool,
}

impl PipelineArguments {
    /// Whether the command line says how sources keep time.
    pub fn has_pace(&self) -> bool {
        self.pace.is_some()
    }

    /// Whether it names a scheduler.
    pub fn has_scheduler(&self) -> bool {
        self.scheduler.is_some()
    }

    /// The flags that say what `--set` could say too come after it: they win.
    pub fn overrides(&self) -> Overrides {
        let mut overrides = Overrides::default();
        for setting in &self.set {
            overrides.set(setting);
        }
        let flags = [
            ("pace", &self.pace),
            ("duration", &self.duration),
            ("clock", &self.clock),
            ("scheduler", &self.scheduler),
            ("cores", &self.cores),
            ("workers", &self.workers),
            ("idle", &self.idle),
            ("explain", &self.explain),
            ("policy", &self.policy),
        ];
        for (key, value) in flags {
            if let Some(value) = value {
                overrides.flag(&format!("--{key}"), key, value);
            }
        }
        if let Some(cores) = &self.house_keeping {
            overrides.flag("--house-keeping", "house_keeping", cores);
        }
        if let Some(time) = &self.dma_latency {
            overrides.flag("--dma-latency", "dma_latency", time);
        }
        if self.force {
            overrides.flag("--force", "force", "true");
        }
        if let Some(socket) = &self.control {
            overrides.text("--control", "control", socket);
        }
        if self.strict {
            overrides.flag("--strict", "strict", "true");
        }
        overrides
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// Tables for people
    #[default]
    Human,
    /// Everything, as JSON
    Json,
    /// One table after the other, each with its head, an empty line between them
    Csv,
}

/// The same for kinds of operators, and a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum KindsFormat {
    /// Tables for people
    #[default]
    Human,
    /// Everything, as JSON
    Json,
    /// One table after the other, each with its head, an empty line between them
    Csv,
    /// A page for a book; without a NAME, all kinds with their parameters
    Markdown,
}

impl KindsFormat {
    /// `None` for a page.
    pub fn tables(self) -> Option<Format> {
        match self {
            KindsFormat::Human => Some(Format::Human),
            KindsFormat::Json => Some(Format::Json),
            KindsFormat::Csv => Some(Format::Csv),
            KindsFormat::Markdown => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn help_begins_with_examples() {
        assert!(Arguments::command().render_long_help().to_string().starts_with("EXAMPLES"));
    }
}
