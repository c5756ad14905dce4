//! Arguments of `onbeat cyclictest`, with the letters and meanings of cyclictest, and what they are in those
//! of `onbeat timerlat`.

use super::times::TimeParser;
use crate::error::CommandError;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use onbeat_os::CoreSet;
use std::path::PathBuf;

pub const EXAMPLES: &str = "\
EXAMPLES
  onbeat cyclictest -S -m -p 95 -i 250 -h 400 -q -D 1m  all CPUs, histogram up to 400 us
  onbeat cyclictest -t1 -a2 -p 80 -l 100000             100,000 wake-ups on CPU 2
  onbeat cyclictest -S -p 95 -b 200 --tracemark         stop at 200 us, show the cause";

pub const STATUS: &str = "\
EXIT STATUS
  0  success
  1  error, including an option that onbeat does not have
  2  -b was exceeded";

#[derive(Debug, Args)]
pub struct CyclictestArguments {
    /// CPUs of the threads, e.g. 1,4-7 [default: all]
    #[arg(long, short, value_name = "LIST", num_args = 0..=1)]
    affinity: Option<Option<CoreSet>>,
    /// Stop at the first latency above this, in us, and show its cause
    #[arg(long, short, value_name = "US", value_parser = TimeParser::micros())]
    breaktrace: Option<u64>,
    /// With -b: write the kernel's last events to timerlat_trace.txt
    #[arg(long, requires = "breaktrace")]
    tracemark: bool,
    /// Clock: 0, monotonic
    #[arg(long, short, value_name = "CLOCK", default_value_t = 0)]
    clock: u8,
    /// Distance between the intervals of two threads, in us; only 0 is available
    #[arg(long, short, value_name = "US")]
    distance: Option<u64>,
    /// Duration, e.g. 90, 10m, 24h or 2d [default: until Ctrl-C]
    #[arg(long, short = 'D', value_name = "TIME", value_parser = TimeParser::seconds())]
    duration: Option<u64>,
    /// Number of wake-ups per thread; 0 for no limit
    #[arg(long, short, value_name = "N", default_value_t = 0)]
    loops: u64,
    /// Print a histogram of this many buckets of 1 us at the end
    #[arg(long, short = 'h', value_name = "US", value_parser = clap::value_parser!(u32).range(1..=9_999_999))]
    histogram: Option<u32>,
    /// The same, with a column for all threads
    #[arg(long, short = 'H', value_name = "US", overrides_with = "histogram",
          value_parser = clap::value_parser!(u32).range(1..=9_999_999))]
    histofall: Option<u32>,
    /// Write the histogram to this file
    #[arg(long, value_name = "FILE")]
    pub histfile: Option<PathBuf>,
    /// Write the results to this file, as JSON in the layout of rt-tests
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Interval of the wake-ups, in us
    #[arg(long, short, value_name = "US", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    interval: u64,
    /// Longest time that idle cores may take to wake up, in us
    #[arg(long, short = 'e', value_name = "US", default_value_t = 0)]
    latency: u32,
    /// Leave idle cores alone
    #[arg(long)]
    laptop: bool,
    /// Leave the power management alone
    #[arg(long)]
    default_system: bool,
    /// CPUs of the other threads
    #[arg(long, value_name = "LIST")]
    mainaffinity: Option<CoreSet>,
    /// Lock the memory
    #[arg(long, short)]
    pub mlockall: bool,
    /// Print results in ns
    #[arg(long, short = 'N')]
    pub nsecs: bool,
    /// Scheduling policy: other, fifo or rr [default: fifo with -p, else other]
    #[arg(long, short = 'y', value_name = "NAME")]
    policy: Option<String>,
    /// Real-time priority
    #[arg(long, short, value_name = "PRIO", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=99))]
    pub priority: u8,
    /// Print only the summary at the end
    #[arg(long, short)]
    quiet: bool,
    /// A thread on each CPU, all with the same priority
    #[arg(long, short = 'S', conflicts_with = "threads")]
    smp: bool,
    /// Number of threads, one per CPU; without a number, one on each CPU
    #[arg(long, short, value_name = "N", num_args = 0..=1)]
    threads: Option<Option<usize>>,
    /// No effect: they describe what happens anyway
    #[arg(long, short, hide = true)]
    nanosleep: bool,
    #[arg(long, short, hide = true)]
    unbuffered: bool,
    #[arg(long = "refresh_on_max", short = 'M', hide = true)]
    refresh: bool,
    #[command(flatten)]
    refused: RefusedOptions,
    /// Print help
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
}

/// Options of cyclictest that onbeat does not have: name, letter, whether a value follows, and what to do.
const REFUSED: [(&str, Option<char>, bool, &str); 22] = [
    ("aligned", Some('A'), true, "the threads wake up at the same time; `onbeat timerlat -A US` spaces them"),
    ("fifo", Some('F'), true, "`onbeat timerlat --record FILE` writes the results"),
    ("numa", Some('U'), false, "name the CPUs: -a LIST"),
    ("oscope", Some('o'), true, "-h US shows all latencies"),
    ("posix_timers", Some('x'), false, "leave it out: the threads sleep with clock_nanosleep"),
    ("priospread", Some('Q'), false, "all threads have the priority of -p"),
    ("relative", Some('r'), false, "leave it out: the times of wake-ups are absolute"),
    ("resolution", Some('R'), false, "`onbeat doctor` checks the clock and its timers"),
    ("secaligned", None, false, "leave it out: the threads wake up at the same time"),
    ("smi", None, false, "`onbeat noise hw` measures what they take"),
    ("spike", None, true, "-b US stops at the first; `onbeat timerlat --samples N` shows the N worst"),
    ("spike-nodes", None, true, "`onbeat timerlat --samples N` shows the N worst"),
    ("system", Some('s'), false, "leave it out: the threads sleep with clock_nanosleep"),
    ("verbose", Some('v'), false, "-h US shows all latencies"),
    ("context", Some('C'), false, OLD),
    ("ftrace", Some('f'), false, OLD),
    ("irqsoff", Some('I'), false, OLD),
    ("preemptirqs", Some('B'), false, OLD),
    ("preemptoff", Some('P'), false, OLD),
    ("traceopt", Some('O'), true, OLD),
    ("tracer", Some('T'), true, OLD),
    ("wakeup", Some('w'), false, OLD),
];

const OLD: &str = "newer versions of cyclictest do not have it either: -b US shows the cause of a latency";

/// The first option that was given and is refused.
#[derive(Debug, Default)]
struct RefusedOptions(Option<usize>);

impl FromArgMatches for RefusedOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |(name, _, value, _): &(&str, Option<char>, bool, &str)| match value {
            true => matches.contains_id(name),
            false => matches.get_flag(name),
        };
        Ok(RefusedOptions(REFUSED.iter().position(given)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for RefusedOptions {
    fn augment_args(command: Command) -> Command {
        REFUSED.iter().fold(command, |command, &(name, letter, value, _)| {
            let action = if value { ArgAction::Append } else { ArgAction::SetTrue };
            let arg = Arg::new(name).long(name).action(action).hide(true);
            command.arg(if let Some(letter) = letter { arg.short(letter) } else { arg })
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl CyclictestArguments {
    /// Number of buckets of the histogram, and whether it has a column for all threads.
    pub fn buckets(&self) -> Option<(usize, bool)> {
        self.histogram.or(self.histofall).map(|buckets| (buckets as usize, self.histofall.is_some()))
    }

    /// Whether the summary of each thread is printed: a quiet run has only its histogram, if it has one.
    pub fn has_summary(&self) -> bool {
        !self.quiet || self.buckets().is_none()
    }

    /// Interval of the wake-ups, in microseconds.
    pub fn interval_us(&self) -> u64 {
        self.interval
    }

    /// Returns what is the same for `onbeat timerlat`, and notes on what is different.
    ///
    /// # Errors
    /// If there is nothing of the same meaning.
    pub fn translated(&self, online: &CoreSet) -> Result<(Vec<String>, Vec<String>), CommandError> {
        self.refuse()?;
        let mut notes = Vec::new();
        let cpus = self.cpus(online, &mut notes)?;
        let mut words: Vec<String> =
            vec!["timerlat".into(), if self.buckets().is_some() { "hist".into() } else { "top".into() }];
        let mut add = |flag: &str, value: String| words.extend([flag.to_owned(), value]);
        add("-c", cpus.to_string());
        add("-p", format!("{}us", self.interval));
        add("-P", self.policy_words()?);
        if !(self.laptop || self.default_system) {
            add("--dma-latency", self.latency.to_string());
        }
        if let Some(limit_ns) = self.breaktrace {
            add("-T", format!("{}us", limit_ns as f64 / 1e3));
        }
        if let Some((buckets, _)) = self.buckets() {
            add("-E", buckets.max(10).to_string());
        }
        if let Some(cpus) = &self.mainaffinity {
            add("-H", cpus.to_string());
        }
        if self.loops > 0 {
            add("--wakeups", self.loops.to_string());
        }
        if let Some(ns) = self.duration {
            add("-d", format!("{}s", ns as f64 / 1e9));
        }
        let flags = [(self.tracemark, "-t"), (self.nsecs, "-n"), (self.quiet, "-q")];
        words.extend(flags.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| (*flag).to_owned()));
        Ok((words, notes))
    }

    fn refuse(&self) -> Result<(), CommandError> {
        let cannot =
            |what: String, help: &str| Err(CommandError::new(format!("{what} is not available")).help(help));
        if let Some((name, letter, _, instead)) = self.refused.0.map(|at| REFUSED[at]) {
            let letter = letter.map_or(String::new(), |letter| format!("-{letter}, "));
            return cannot(format!("{letter}--{name}"), instead);
        }
        if self.clock != 0 {
            return cannot(format!("-c {}", self.clock), "the clock is CLOCK_MONOTONIC: -c 0");
        }
        match self.distance {
            Some(us) if us > 0 => cannot(format!("-d {us}"), "all threads have the interval of -i: -d 0"),
            _ => Ok(()),
        }
    }

    /// CPUs of the threads, one for each.
    fn cpus(&self, online: &CoreSet, notes: &mut Vec<String>) -> Result<CoreSet, CommandError> {
        let all = self.affinity.clone().flatten().unwrap_or_else(|| online.clone());
        let count = match &self.threads {
            _ if self.smp => all.len(),
            Some(count) => count.unwrap_or(all.len()),
            None => 1,
        };
        if count == 0 || count > all.len() {
            return Err(CommandError::new(format!(
                "-t {count}: onbeat has one thread on each CPU, and the CPUs are {all}"
            ))
            .help("-t without a number, or a number up to that of the CPUs"));
        }
        let cpus = CoreSet::from_cores(all.iter().take(count)).unwrap_or_default();
        if self.affinity.is_none() && !self.smp {
            notes.push(format!("threads stay on CPUs {cpus}; those of cyclictest move without -a"));
        }
        if count > 1 && self.distance.is_none() && !self.smp && self.buckets().is_none() {
            notes.push(format!(
                "all threads have the interval {} us; cyclictest adds 500 us for each: -d 0 is the same",
                self.interval
            ));
        }
        Ok(cpus)
    }

    fn policy_words(&self) -> Result<String, CommandError> {
        let name = self.policy.as_deref().map(str::to_ascii_lowercase);
        let priority = self.priority;
        match (name.as_deref(), priority) {
            (Some("other" | "normal" | "nr"), _) | (None, 0) => Ok("o:0".to_owned()),
            (Some("fifo"), 1..) | (None, _) => Ok(format!("f:{priority}")),
            (Some("rr"), 1..) => Ok(format!("r:{priority}")),
            (Some(name @ ("fifo" | "rr")), _) => {
                Err(CommandError::new(format!("--policy={name} needs a priority")).help("-p 1 to -p 99"))
            }
            (Some(name), _) => Err(CommandError::new(format!("--policy={name} is not available"))
                .help("other, fifo or rr; `onbeat timerlat -P d:RUNTIME:PERIOD` has deadlines")),
        }
    }
}
