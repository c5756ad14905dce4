//! Command-line arguments.

pub mod actions;
pub mod bench;
pub mod ctl;
pub mod cyclictest;
pub mod events;
pub mod host;
pub mod negations;
pub mod new;
pub mod nodes;
pub mod noise;
pub mod numbers;
pub mod report;
pub mod shell;
pub mod timerlat;
pub mod times;

use actions::Action;
use clap::{Args, Parser, Subcommand, ValueEnum};
use onbeat::Overrides;
use std::path::PathBuf;

pub const EXAMPLES: &str = "\
EXAMPLES
  onbeat run examples/fm_receiver.toml                  run a pipeline until its sources end
  onbeat run fm.toml --pace fast --duration 10s         run as fast as possible, for at most 10 s
  onbeat run fm.toml --set channel.factor=4             run with a changed parameter
  onbeat run fm.toml --max-misses 0 --format csv        exit with status 2 if any message was late
  onbeat check fm.toml                                  check a pipeline without running it
  onbeat plan fm.toml                                   show which worker runs which operator
  onbeat plan fm.toml --measure                         find the fastest scheduler on this machine
  onbeat run fm.toml --scheduler pinned --cores 0,1     run one worker on each of two cores
  onbeat operators fir.decimate                         show ports and parameters of an operator
  onbeat run fm.toml --control fm.ctl                   run with a socket for `onbeat ctl fm.ctl`
  onbeat run fm.toml --top                              run with a live view
  onbeat run fm.toml --trace fm.pftrace                 write a trace for ui.perfetto.dev
  onbeat run fm.toml --metrics 9464                     serve metrics at http://127.0.0.1:9464/
  onbeat report out/fm.record.json -o report.html       make an HTML report of a run, with plots
  onbeat bench overhead                                 measure the overhead of the engine
  onbeat noise top                                      show what takes CPU time from programs
  onbeat doctor                                         check this machine, and show fixes
  onbeat deploy fm.toml hosts.toml                      run one pipeline on several machines";

pub const EXIT_STATUS: &str = "\
EXIT STATUS
  0  success
  1  error, including a wrong command line
  2  limit exceeded: --max-misses, --on-miss or `on_miss = \"stop\"`;
     for noise: -s or -S; for doctor: --fail-on
  3  data was lost unexpectedly: datagrams that never came, bytes that a peer did
     not take, messages; drops by `when_full` do not count";

/// A real-time dataflow runtime that explains its own jitter
#[derive(Debug, Parser)]
#[command(name = "onbeat", version, before_help = EXAMPLES, after_help = EXIT_STATUS, max_term_width = 110)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a pipeline and report the results
    #[command(after_help = EXIT_STATUS)]
    Run(RunArguments),
    /// Show the plan of a pipeline (workers, cores, queues) without running it
    Plan(PlanArguments),
    /// List all operator kinds, or show one
    Operators(OperatorsArguments),
    /// Check a pipeline without running it: read the file, make the plan, look for the input files
    Check(CheckArguments),
    /// Run benchmarks, each next to the limit of this machine
    #[command(subcommand)]
    Bench(bench::BenchCommand),
    /// Measure the CPU time that the system takes away from programs, and name the causes
    #[command(subcommand)]
    Noise(noise::NoiseCommand),
    /// Measure how late a timer wakes a thread, and name the causes
    #[command(subcommand)]
    Timerlat(timerlat::TimerlatCommand),
    /// Measure as `timerlat` does, with the options and the output of cyclictest
    #[command(before_help = cyclictest::EXAMPLES, after_help = cyclictest::STATUS, disable_help_flag = true)]
    Cyclictest(cyclictest::CyclictestArguments),
    /// Check this machine for real time: list the problems, worst first, and how to fix them
    #[command(before_help = host::DOCTOR_EXAMPLES, after_help = host::DOCTOR_STATUS)]
    Doctor(host::DoctorArguments),
    /// Show settings that make cores quiet; apply or undo those that need no reboot
    #[command(before_help = host::TUNE_EXAMPLES)]
    Tune(host::TuneArguments),
    /// Make an HTML report of one or more runs, or print their figures as JSON, CSV or Markdown
    #[command(before_help = report::EXAMPLES)]
    Report(report::ReportArguments),
    /// Monitor and control a run through its control socket
    #[command(before_help = ctl::EXAMPLES)]
    Ctl(ctl::CtlArguments),
    /// Run parts of pipelines on this machine, for `onbeat deploy`
    #[command(before_help = nodes::NODE_EXAMPLES)]
    Node(nodes::NodeArguments),
    /// Run a pipeline on several nodes, and report the results of all
    #[command(before_help = nodes::DEPLOY_EXAMPLES, after_help = EXIT_STATUS)]
    Deploy(nodes::DeployArguments),
    /// Make identities for nodes, so that deployments are encrypted and both sides prove their names
    #[command(before_help = nodes::IDENTITY_EXAMPLES)]
    Identity(nodes::IdentityArguments),
    /// Make a crate with an operator of your own, its test, a pipeline and this command
    #[command(before_help = new::EXAMPLES)]
    New(new::NewArguments),
    /// Print the JSON Schema of pipeline files, for editors
    Schema(SchemaArguments),
    /// Print a shell completion script
    Completions(CompletionsArguments),
    /// Print the manual page, or write all pages and completions for an installation
    Man(shell::ManArguments),
}

#[derive(Debug, Args)]
pub struct RunArguments {
    #[command(flatten)]
    pub pipeline: PipelineArguments,
    /// Write the record to this file, `-` for stdout [default: NAME.record.json in the pipeline's `output`
    /// folder]
    #[arg(long, value_name = "PATH")]
    pub record: Option<PathBuf>,
    /// Write no record, and no output folder unless a sink needs it
    #[arg(long, conflicts_with = "record")]
    pub no_record: bool,
    /// Output on stdout: tables, the record as JSON, or the tables as CSV
    #[arg(long, value_enum, default_value_t)]
    pub format: OutputFormat,
    /// Print no progress and no tables; errors and --format json|csv are still printed
    #[arg(long, short)]
    pub quiet: bool,
    /// Exit with status 2 if there are more misses than N
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub max_misses: Option<u64>,
    /// Action when a message is late: trace[,file=FILE]; signal,num=N,pid=PID|parent; shell,command=COMMAND;
    /// continue. Ends the run with status 2 unless `continue` is given; repeatable
    #[arg(long, value_name = "ACTION")]
    pub on_miss: Vec<Action>,
    /// Show a live view, updated every second; press `q` to end the run
    #[arg(long, conflicts_with = "quiet")]
    pub top: bool,
    /// Serve metrics for Prometheus at this address, e.g. 127.0.0.1:9464; a port alone listens on 127.0.0.1
    #[arg(long, value_name = "ADDRESS", allow_hyphen_values = true)]
    pub metrics: Option<String>,
    /// Write a trace for ui.perfetto.dev: operators, queues, kernel events and misses
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct PlanArguments {
    #[command(flatten)]
    pub pipeline: PipelineArguments,
    /// Output format on stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: OutputFormat,
    /// Print the plan for Graphviz instead of tables: onbeat plan FILE --dot | dot -Tsvg
    #[arg(long, conflicts_with = "format")]
    pub dot: bool,
    /// With --costs: add the noise of the machine, from a record of `onbeat noise hist --record FILE`
    #[arg(long, value_name = "FILE", requires = "costs", conflicts_with = "measure")]
    pub noise: Option<PathBuf>,
    /// Run the pipeline briefly, predict each scheduler's speed and recommend one
    #[arg(long, conflicts_with = "dot")]
    pub measure: bool,
    /// Write the recommended scheduler into the pipeline file; everything else in it stays unchanged
    #[arg(long, requires = "measure")]
    pub write: bool,
    /// Measure this machine again, ignoring cached results
    #[arg(long, requires = "measure")]
    pub fresh: bool,
    /// Run time of the measurement, in seconds
    #[arg(long, value_name = "S", default_value_t = 0.6, requires = "measure", allow_hyphen_values = true)]
    pub seconds: f64,
}

#[derive(Debug, Args)]
pub struct CheckArguments {
    #[command(flatten)]
    pub pipeline: PipelineArguments,
    /// Print nothing on success
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Debug, Args)]
pub struct SchemaArguments {
    /// Output format on stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: SchemaFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum SchemaFormat {
    /// JSON Schema, draft 2020-12
    #[default]
    Json,
    /// Keys of the pipeline file as a page of a book
    Markdown,
}

#[derive(Debug, Args)]
pub struct CompletionsArguments {
    /// Shell to generate the script for
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub struct OperatorsArguments {
    /// Operator kind to show: ports, parameters and an example
    pub name: Option<String>,
    /// List only kinds in whose name, description, types or parameters WORD occurs; repeatable
    #[arg(long, value_name = "WORD", conflicts_with = "name")]
    pub find: Vec<String>,
    /// Output format on stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: KindsFormat,
}

/// Pipeline file, and overrides of its values.
#[derive(Debug, Args)]
pub struct PipelineArguments {
    /// Pipeline file, in TOML
    pub file: PathBuf,
    /// Override a value of the file: `operator.key=value`, `radio/demod.gain=2`, `output=DIR`; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Pace of the sources, instead of the file's: real (at their rates) or fast (without waiting)
    #[arg(long, value_name = "PACE")]
    pace: Option<String>,
    /// Stop after this time, e.g. 30s or "2 min": on the clock, also with --pace fast
    #[arg(long, short, value_name = "TIME", allow_hyphen_values = true)]
    duration: Option<String>,
    /// Clock of the run: real, or manual for virtual time
    #[arg(long, value_name = "CLOCK")]
    clock: Option<String>,
    /// Scheduler: greedy, event, pinned, replicated or custom
    #[arg(long, value_name = "NAME")]
    scheduler: Option<String>,
    /// Cores for the workers, one worker on each, e.g. 0,2-3
    #[arg(long, short, visible_alias = "cpus", value_name = "LIST", allow_hyphen_values = true)]
    cores: Option<String>,
    /// Number of workers, placed by the kernel; greedy has one
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    workers: Option<String>,
    /// How idle workers wait: park, spin, spin:20us (then park) or early:150us (before a source is due)
    #[arg(long, value_name = "HOW")]
    idle: Option<String>,
    /// Cores for non-worker threads; workers avoid them unless --cores names them
    #[arg(long, short = 'H', value_name = "LIST", allow_hyphen_values = true)]
    house_keeping: Option<String>,
    /// Kernel scheduling policy of the workers: o:NICE, f:PRIO, r:PRIO or d:RUNTIME[:DEADLINE]:PERIOD
    #[arg(long, short = 'P', visible_alias = "priority", value_name = "POLICY", allow_hyphen_values = true)]
    policy: Option<String>,
    /// Longest time that idle cores may take to wake up during the run, e.g. 0us
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    dma_latency: Option<String>,
    /// Allow settings that can hang this machine: a real-time worker that always spins on a core that others
    /// need
    #[arg(long)]
    force: bool,
    /// Create a control socket for `onbeat ctl` at this path
    #[arg(long, value_name = "SOCKET")]
    control: Option<String>,
    /// Find the causes of late messages: on, off, or auto (on if the pipeline has a limit)
    #[arg(long, value_name = "WHEN", num_args = 0..=1, default_missing_value = "on", require_equals = true)]
    explain: Option<String>,
    /// Distribute the operators by their costs in this record of an earlier run, instead of the file's costs
    #[arg(long, value_name = "RECORD")]
    pub costs: Option<PathBuf>,
    /// Fail if a requested setting cannot be obtained
    #[arg(long)]
    strict: bool,
}

impl Command {
    /// Carries out the flags that stand for others.
    pub fn settle(&mut self) {
        match self {
            Command::Noise(noise::NoiseCommand::Top(top) | noise::NoiseCommand::Hw(top)) => {
                top.noise.settle();
            }
            Command::Noise(noise::NoiseCommand::Hist(hist)) => hist.noise.settle(),
            Command::Timerlat(timerlat::TimerlatCommand::Top(top)) => top.timer.settle(),
            Command::Timerlat(timerlat::TimerlatCommand::Hist(hist)) => hist.timer.settle(),
            _ => {}
        }
    }
}

impl PipelineArguments {
    /// Whether the command line sets the pace of the sources.
    pub fn has_pace(&self) -> bool {
        self.pace.is_some()
    }

    /// Whether the command line names a scheduler.
    pub fn has_scheduler(&self) -> bool {
        self.scheduler.is_some()
    }

    /// Returns the overrides. Flags come after `--set`, so that they take precedence over it.
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
pub enum OutputFormat {
    /// Tables for reading
    #[default]
    Human,
    /// All data as JSON
    Json,
    /// Tables as CSV, each with a header line, separated by an empty line
    Csv,
}

/// Output format of lists that are also pages of the book.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum KindsFormat {
    /// Tables for reading
    #[default]
    Human,
    /// All data as JSON
    Json,
    /// Tables as CSV, each with a header line, separated by an empty line
    Csv,
    /// A page of the book, as Markdown
    Markdown,
}

impl KindsFormat {
    /// Returns the format of the tables; `None` for a page.
    pub fn tables(self) -> Option<OutputFormat> {
        match self {
            KindsFormat::Human => Some(OutputFormat::Human),
            KindsFormat::Json => Some(OutputFormat::Json),
            KindsFormat::Csv => Some(OutputFormat::Csv),
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
