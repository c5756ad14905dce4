//! What may be typed after `onbeat doctor` and `onbeat tune`.

use clap::{Args, ValueEnum};
use onbeat_host::Severity;
use onbeat_host::tune::boot::Loader;
use onbeat_os::CoreSet;
use std::path::PathBuf;

pub const DOCTOR_EXAMPLES: &str = "\
EXAMPLES
  onbeat doctor                                         this machine, in ten seconds
  onbeat doctor --cpus 2-5                              for these cores
  onbeat doctor --pipeline fm.toml --record out/fm.record.json
                                                        for a pipeline, and what its last run has lost
  onbeat doctor --explain isolcpus                      what a finding is about, and what mending it costs
  onbeat doctor --verify                                after a reboot: what the kernel made of its command line
  onbeat doctor --fail-on warn --format json            for programs; exit status 2 where something is found";

pub const DOCTOR_STATUS: &str = "\
EXIT STATUS
  0  nothing at or above --fail-on was found
  1  an error, a wrong command line included
  2  something was";

pub const TUNE_EXAMPLES: &str = "\
EXAMPLES
  onbeat tune --cpus 2-5                                print what makes these cores quiet
  onbeat tune --pipeline fm.toml                        the cores that it pins, and the rights that it needs
  sudo onbeat tune --cpus 2-5 --apply                   do what needs no reboot
  sudo onbeat tune --undo                               put everything back
  onbeat tune --pipeline fm.toml --systemd fm.service   a unit that runs it";

#[derive(Debug, Args)]
pub struct DoctorArguments {
    #[command(flatten)]
    pub case: CaseArguments,
    /// Rank findings by what their causes have cost in this record of a run
    #[arg(long, value_name = "RECORD")]
    pub record: Option<PathBuf>,
    /// Exit with status 2 when a finding is as severe as that
    #[arg(long, value_name = "SEVERITY", default_value = "critical")]
    pub fail_on: FailOn,
    /// Compare what the kernel's command line asks for with what the kernel did
    #[arg(long, conflicts_with_all = ["record", "explain", "list"])]
    pub verify: bool,
    /// Measure nothing: files are read and rights are tried
    #[arg(long)]
    pub no_measure: bool,
    /// Also what is good, and why the rest is not known
    #[arg(long, short)]
    pub all: bool,
    /// Explain a finding: what it does, how it is tuned, what that costs, when to leave it
    #[arg(long, value_name = "ID")]
    pub explain: Option<String>,
    /// List all checks; with --format markdown as a page of the book
    #[arg(long, conflicts_with = "explain")]
    pub list: bool,
    /// What goes to stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: super::KindsFormat,
}

/// A machine, and what for.
#[derive(Debug, Args)]
pub struct CaseArguments {
    /// Cores that are to be quiet: 2-5,7 [default: those of the pipeline, those that are isolated, or all but the first]
    #[arg(long, short, visible_alias = "cores", value_name = "LIST")]
    pub cpus: Option<CoreSet>,
    /// The pipeline that is to run there
    #[arg(long, short, value_name = "FILE")]
    pub pipeline: Option<PathBuf>,
    /// Replace a value of the pipeline, as `onbeat run --set` does; may be given again
    #[arg(long, value_name = "KEY=VALUE", requires = "pipeline")]
    pub set: Vec<String>,
    /// Its cores for house-keeping, as `onbeat run -H`
    #[arg(long, short = 'H', value_name = "LIST", requires = "pipeline", allow_hyphen_values = true)]
    pub house_keeping: Option<String>,
    /// A folder with the proc, sys and etc of another machine: they are read, and nothing is measured or tried
    #[arg(long, value_name = "FOLDER")]
    pub root: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct TuneArguments {
    #[command(flatten)]
    pub case: CaseArguments,
    /// Do what needs no reboot; what was there is written down first
    #[arg(long, conflicts_with_all = ["undo", "systemd", "limits"])]
    pub apply: bool,
    /// Put everything back that --apply has changed
    #[arg(long, conflicts_with_all = ["systemd", "limits", "cpus", "pipeline"])]
    pub undo: bool,
    /// With --apply: isolate the cores at once, by a partition of control groups
    #[arg(long, requires = "apply")]
    pub partition: bool,
    /// Only what these findings ask for: damon,irqbalance
    #[arg(long, value_name = "ID,...", value_delimiter = ',')]
    pub only: Vec<String>,
    /// All but what these findings ask for
    #[arg(long, value_name = "ID,...", value_delimiter = ',', conflicts_with = "only")]
    pub skip: Vec<String>,
    /// The boot loader whose file is shown [default: those whose files are there]
    #[arg(long, value_enum)]
    pub loader: Option<LoaderName>,
    /// Write a unit of systemd that runs the pipeline, `-` for stdout
    #[arg(long, value_name = "PATH", requires = "pipeline")]
    pub systemd: Option<PathBuf>,
    /// Write a file for /etc/security/limits.d, `-` for stdout
    #[arg(long, value_name = "PATH", conflicts_with = "systemd")]
    pub limits: Option<PathBuf>,
    /// What goes to stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: TuneFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum TuneFormat {
    /// For people
    #[default]
    Human,
    /// Everything, as JSON
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Anything that is bad
    Info,
    /// What costs determinism
    #[value(alias = "warning")]
    Warn,
    /// What breaks a promise
    Critical,
}

impl FailOn {
    pub fn severity(self) -> Severity {
        match self {
            FailOn::Info => Severity::Info,
            FailOn::Warn => Severity::Warning,
            FailOn::Critical => Severity::Critical,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LoaderName {
    /// /etc/default/grub
    Grub,
    /// /boot/extlinux/extlinux.conf
    Extlinux,
    /// /boot/loader/entries
    SystemdBoot,
    /// /etc/kernel/cmdline
    KernelInstall,
}

impl LoaderName {
    pub fn loader(self) -> Loader {
        match self {
            LoaderName::Grub => Loader::Grub,
            LoaderName::Extlinux => Loader::Extlinux,
            LoaderName::SystemdBoot => Loader::SystemdBoot,
            LoaderName::KernelInstall => Loader::KernelInstall,
        }
    }
}
