//! Arguments of `onbeat doctor` and `onbeat tune`.

use clap::{Args, ValueEnum};
use onbeat_host::Severity;
use onbeat_host::tune::boot::Loader;
use onbeat_os::CoreSet;
use std::path::PathBuf;

pub const DOCTOR_EXAMPLES: &str = "\
EXAMPLES
  onbeat doctor                                         check this machine, in ten seconds
  onbeat doctor --cpus 2-5                              check it for these cores
  onbeat doctor --pipeline fm.toml --record out/fm.record.json
                                                        rank findings by the last run of a pipeline
  onbeat doctor --explain isolcpus                      explain a finding and its fix
  onbeat doctor --verify                                check the kernel command line after a reboot
  onbeat doctor --fail-on warn --format json            print JSON; exit status 2 after a warning";

pub const DOCTOR_STATUS: &str = "\
EXIT STATUS
  0  no finding at or above --fail-on
  1  error, including a wrong command line
  2  a finding at or above --fail-on; with --verify: a parameter that the kernel did not apply";

pub const TUNE_EXAMPLES: &str = "\
EXAMPLES
  onbeat tune --cpus 2-5                                print settings that make these cores quiet
  onbeat tune --pipeline fm.toml                        print the settings that a pipeline needs
  sudo onbeat tune --cpus 2-5 --apply                   apply the settings that need no reboot
  sudo onbeat tune --undo                               restore the previous settings
  onbeat tune --pipeline fm.toml --systemd fm.service   write a systemd unit that runs the pipeline";

#[derive(Debug, Args)]
pub struct DoctorArguments {
    #[command(flatten)]
    pub case: CaseArguments,
    /// Rank findings by the lateness that their causes added in this record of a run
    #[arg(long, value_name = "RECORD")]
    pub record: Option<PathBuf>,
    /// Exit with status 2 if there is a finding of this severity or higher
    #[arg(long, value_name = "SEVERITY", default_value = "critical")]
    pub fail_on: FailOn,
    /// Check that the kernel applied the parameters of its command line
    #[arg(long, conflicts_with_all = ["record", "explain", "list"])]
    pub verify: bool,
    /// Measure nothing; only read files and test permissions
    #[arg(long)]
    pub no_measure: bool,
    /// Also list good findings, and the reasons for unknown ones
    #[arg(long, short)]
    pub all: bool,
    /// Explain a finding: its effect, how to fix it, the cost of the fix, and when to skip it
    #[arg(long, value_name = "ID")]
    pub explain: Option<String>,
    /// List all checks; with --format markdown, as a page of the book
    #[arg(long, conflicts_with = "explain")]
    pub list: bool,
    /// Output format on stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: super::KindsFormat,
}

/// Which machine to examine, and for which pipeline.
#[derive(Debug, Args)]
pub struct CaseArguments {
    /// Cores that should be quiet, e.g. 2-5,7 [default: those of the pipeline, isolated ones, or all but the
    /// first]
    #[arg(long, short, visible_alias = "cores", value_name = "LIST")]
    pub cpus: Option<CoreSet>,
    /// Pipeline that will run on these cores
    #[arg(long, short, value_name = "FILE")]
    pub pipeline: Option<PathBuf>,
    /// Override a value of the pipeline, as `onbeat run --set`; repeatable
    #[arg(long, value_name = "KEY=VALUE", requires = "pipeline")]
    pub set: Vec<String>,
    /// House-keeping cores of the pipeline, as `onbeat run -H`
    #[arg(long, short = 'H', value_name = "LIST", requires = "pipeline", allow_hyphen_values = true)]
    pub house_keeping: Option<String>,
    /// Folder with copies of /proc, /sys and /etc of another machine; only files are read, nothing is
    /// measured
    #[arg(long, value_name = "FOLDER")]
    pub root: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct TuneArguments {
    #[command(flatten)]
    pub case: CaseArguments,
    /// Apply the settings that need no reboot, after saving the previous ones
    #[arg(long, conflicts_with_all = ["undo", "systemd", "limits"])]
    pub apply: bool,
    /// Restore all settings that --apply changed
    #[arg(long, conflicts_with_all = ["systemd", "limits", "cpus", "pipeline"])]
    pub undo: bool,
    /// With --apply: isolate the cores immediately, with a cgroup cpuset partition
    #[arg(long, requires = "apply")]
    pub partition: bool,
    /// Only the settings for these findings, e.g. damon,irqbalance
    #[arg(long, value_name = "ID,...", value_delimiter = ',')]
    pub only: Vec<String>,
    /// All settings except those for these findings
    #[arg(long, value_name = "ID,...", value_delimiter = ',', conflicts_with = "only")]
    pub skip: Vec<String>,
    /// Boot loader to show the kernel command line for [default: all whose files exist]
    #[arg(long, value_enum)]
    pub loader: Option<LoaderName>,
    /// Write a systemd unit that runs the pipeline; `-` for stdout
    #[arg(long, value_name = "PATH", requires = "pipeline")]
    pub systemd: Option<PathBuf>,
    /// Write a file for /etc/security/limits.d; `-` for stdout
    #[arg(long, value_name = "PATH", conflicts_with = "systemd")]
    pub limits: Option<PathBuf>,
    /// Output format on stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: TuneFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum TuneFormat {
    /// Text for reading
    #[default]
    Human,
    /// All data as JSON
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Any problem
    Info,
    /// Problems that increase jitter
    #[value(alias = "warning")]
    Warn,
    /// Problems that can break a deadline
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
