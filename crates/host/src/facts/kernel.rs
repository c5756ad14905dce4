//! The kernel: its build and its boot.

use crate::command_line::CommandLine;
use crate::fact::{self, Fact};
use crate::tree::Tree;
use flate2::read::GzDecoder;
use std::collections::BTreeMap;
use std::io::Read;

/// Build and boot of the kernel.
#[derive(Debug, Clone, Default)]
pub struct KernelFacts {
    /// `6.12.1-rt`.
    pub release: Fact<String>,
    /// `/proc/version`.
    pub version: Fact<String>,
    /// `/sys/kernel/realtime`.
    pub realtime: Fact<bool>,
    /// Preemption mode in force.
    pub preempt: Fact<String>,
    /// Boot command line.
    pub command_line: Fact<CommandLine>,
    /// Build options.
    pub config: Fact<Config>,
    /// `none`, `integrity` or `confidentiality`.
    pub lockdown: Fact<String>,
    /// First number of `/proc/sys/kernel/printk`.
    pub console_level: Fact<i64>,
    /// Identifier of this boot.
    pub boot_id: Fact<String>,
}

/// Build options, without `CONFIG_`. Options that are not set are absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    options: BTreeMap<String, String>,
}

impl KernelFacts {
    pub(super) fn read(tree: &dyn Tree) -> Self {
        let release = fact::text(tree, "proc/sys/kernel/osrelease");
        let config = config(tree, release.known().map_or("", String::as_str));
        KernelFacts {
            release,
            version: fact::text(tree, "proc/version"),
            realtime: fact::switch(tree, "sys/kernel/realtime"),
            preempt: fact::chosen(tree, "sys/kernel/debug/sched/preempt"),
            command_line: fact::text(tree, "proc/cmdline").map(|line| CommandLine::parse(&line)),
            config,
            lockdown: fact::chosen(tree, "sys/kernel/security/lockdown"),
            console_level: fact::parsed(tree, "proc/sys/kernel/printk", |text| {
                text.split_whitespace().next()?.parse().ok()
            }),
            boot_id: fact::text(tree, "proc/sys/kernel/random/boot_id"),
        }
    }

    /// Whether it is a `PREEMPT_RT` kernel.
    #[must_use]
    pub fn is_realtime(&self) -> Fact<bool> {
        match (&self.realtime, &self.version) {
            (Fact::Known(true), _) => Fact::Known(true),
            (_, Fact::Known(version)) => Fact::Known(version.contains("PREEMPT_RT")),
            (_, Fact::Unknown(why)) => Fact::Unknown(why.clone()),
        }
    }

    /// Returns the first two numbers of its version; (0, 0) if they are unknown.
    #[must_use]
    pub fn number(&self) -> (u32, u32) {
        let release = self.release.known().map_or("", String::as_str);
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
        (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
    }

    /// Returns the value of a command-line parameter; `None` if it is absent or the line is unknown.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.command_line.known().and_then(|line| line.value(name))
    }

    /// Whether a build option is set; `None` if the options are unknown.
    #[must_use]
    pub fn has(&self, option: &str) -> Option<bool> {
        self.config.known().map(|config| config.get(option).is_some())
    }
}

impl Config {
    /// Parses `CONFIG_X=y` lines; other lines are ignored.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let option = |line: &str| {
            let (name, value) = line.strip_prefix("CONFIG_")?.split_once('=')?;
            Some((name.to_owned(), value.trim_matches('"').to_owned()))
        };
        Config { options: text.lines().filter_map(option).collect() }
    }

    /// Returns the value of an option.
    #[must_use]
    pub fn get(&self, option: &str) -> Option<&str> {
        self.options.get(option).map(String::as_str)
    }
}

/// A build has thousands of options; a file with fewer than this is something else.
const LEAST_OPTIONS: usize = 10;

fn config(tree: &dyn Tree, release: &str) -> Fact<Config> {
    let understood = |text: &str| {
        let config = Config::parse(text);
        (config.options.len() >= LEAST_OPTIONS).then_some(config)
    };
    if let Ok(packed) = tree.read("proc/config.gz") {
        let mut text = String::new();
        let unpacked = GzDecoder::new(&packed[..]).take(crate::tree::MOST_BYTES).read_to_string(&mut text);
        if let (Ok(_), Some(config)) = (unpacked, understood(&text)) {
            return Fact::Known(config);
        }
    }
    let is_plain = !release.is_empty() && !release.contains('/') && !release.contains("..");
    let places = [format!("boot/config-{release}"), format!("lib/modules/{release}/config")];
    for place in places.iter().filter(|_| is_plain) {
        if let Fact::Known(config) = fact::parsed(tree, place, understood) {
            return Fact::Known(config);
        }
    }
    Fact::Unknown(
        "neither /proc/config.gz nor a file in /boot or /lib/modules has the kernel's options".to_owned(),
    )
}
