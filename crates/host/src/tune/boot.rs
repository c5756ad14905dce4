//! The kernel's command line in the files of boot loaders: the line as it is to be, and what to run then.

use super::Parameter;
use crate::command_line::CommandLine;
use crate::fact::{self, Fact};
use crate::tree::Tree;
use crate::verify;
use serde::Serialize;

/// A way to boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loader {
    /// `/etc/default/grub`.
    Grub,
    /// `/boot/extlinux/extlinux.conf`, as on a Jetson.
    Extlinux,
    /// Entries of systemd-boot.
    SystemdBoot,
    /// `/etc/kernel/cmdline`, from which kernel-install makes entries.
    KernelInstall,
}

/// What to change in a boot loader's file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Edit {
    /// Which one.
    pub loader: Loader,
    /// Its file, without the slash in front.
    pub file: String,
    /// Lines as they are, and as they are to be.
    pub lines: Vec<(String, String)>,
    /// What to run then.
    pub then: Vec<String>,
}

impl Loader {
    /// All of them, in the order in which they are looked for.
    pub const ALL: [Loader; 4] = [Loader::Grub, Loader::Extlinux, Loader::SystemdBoot, Loader::KernelInstall];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Loader::Grub => "GRUB",
            Loader::Extlinux => "extlinux",
            Loader::SystemdBoot => "systemd-boot",
            Loader::KernelInstall => "kernel-install",
        }
    }

    /// Its file, where a machine has it.
    fn file(self, tree: &dyn Tree, release: &str) -> Option<String> {
        let there = |path: &str| fact::text(tree, path).known().map(|_| path.to_owned());
        match self {
            Loader::Grub => there("etc/default/grub"),
            Loader::Extlinux => there("boot/extlinux/extlinux.conf"),
            Loader::KernelInstall => there("etc/kernel/cmdline"),
            Loader::SystemdBoot => ["boot/loader/entries", "efi/loader/entries", "boot/efi/loader/entries"]
                .into_iter()
                .find_map(|folder| entry(tree, folder, release)),
        }
    }
}

/// The entry that boots this kernel, or the first one.
fn entry(tree: &dyn Tree, folder: &str, release: &str) -> Option<String> {
    let names = tree.list(folder).ok()?;
    let entries: Vec<String> = names
        .into_iter()
        .filter(|name| name.ends_with(".conf"))
        .take(64)
        .map(|name| format!("{folder}/{name}"))
        .collect();
    let boots = |path: &&String| {
        !release.is_empty() && fact::text(tree, path).known().is_some_and(|text| text.contains(release))
    };
    entries.iter().find(boots).or(entries.first()).cloned()
}

/// The edits for a machine's boot loader, or for the one that is named; none where there is no file of it.
#[must_use]
pub fn edits(tree: &dyn Tree, release: &str, named: Option<Loader>, parameters: &[Parameter]) -> Vec<Edit> {
    let wanted = |loader: &Loader| named.is_none_or(|named| named == *loader);
    let mut edits: Vec<Edit> = Loader::ALL
        .into_iter()
        .filter(wanted)
        .filter_map(|loader| {
            let file = loader.file(tree, release)?;
            match fact::text(tree, &file) {
                Fact::Known(text) => Some(edit(loader, &file, &text, parameters)),
                Fact::Unknown(_) => None,
            }
        })
        .collect();
    // kernel-install writes the entries of systemd-boot anew: its own file is the one to change.
    if named.is_none() && edits.iter().any(|edit| edit.loader == Loader::KernelInstall) {
        edits.retain(|edit| edit.loader != Loader::SystemdBoot);
    }
    edits
}

/// The edit of one file with this text.
#[must_use]
pub fn edit(loader: Loader, file: &str, text: &str, parameters: &[Parameter]) -> Edit {
    let sudo = |commands: &[&str]| commands.iter().map(ToString::to_string).collect::<Vec<_>>();
    let (lines, then) = match loader {
        Loader::Grub => (
            grub(text, parameters),
            sudo(&["sudo update-grub   # Fedora and others: sudo grub2-mkconfig -o /boot/grub2/grub.cfg"]),
        ),
        Loader::Extlinux => (keyed(text, "append", default_label(text).as_deref(), parameters), Vec::new()),
        Loader::SystemdBoot => (keyed(text, "options", None, parameters), Vec::new()),
        Loader::KernelInstall => {
            let old = text.lines().next().unwrap_or("").to_owned();
            let new = merged(&old, parameters);
            (
                vec![(old, new)],
                sudo(&["sudo kernel-install add \"$(uname -r)\" /boot/vmlinuz-\"$(uname -r)\""]),
            )
        }
    };
    Edit { loader, file: file.to_owned(), lines, then }
}

/// A command line with these parameters, and everything else as it was.
#[must_use]
pub fn merged(line: &str, parameters: &[Parameter]) -> String {
    let mut line = CommandLine::parse(line);
    // What was meant is among the parameters.
    let wrong: Vec<String> = verify::misspelt(&line)
        .into_iter()
        .filter(|(_, meant)| parameters.iter().any(|parameter| parameter.name == *meant))
        .map(|(word, _)| word)
        .collect();
    line.retain(|parameter| !wrong.contains(&parameter.to_string()));
    for parameter in parameters {
        line.set(&parameter.name, parameter.value.as_deref());
    }
    line.to_string()
}

const GRUB_ALWAYS: &str = "GRUB_CMDLINE_LINUX";
/// Left out by the entries for recovery, which so boot as before.
const GRUB_USUAL: &str = "GRUB_CMDLINE_LINUX_DEFAULT";

fn grub(text: &str, parameters: &[Parameter]) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    let find = |key: &str| {
        let is_it =
            |line: &&str| line.trim_start().strip_prefix(key).is_some_and(|rest| rest.starts_with('='));
        text.lines().rev().find(is_it)
    };
    // What stands in both would be said twice.
    if let Some(old) = find(GRUB_ALWAYS) {
        let (quote, value) = assigned(old);
        let line = CommandLine::parse(value);
        let kept: Vec<String> = line
            .parameters()
            .iter()
            .filter(|parameter| !parameters.iter().any(|wanted| wanted.name == parameter.name))
            .map(ToString::to_string)
            .collect();
        if kept.len() < line.parameters().len() {
            lines.push((old.to_owned(), format!("{GRUB_ALWAYS}={quote}{}{quote}", kept.join(" "))));
        }
    }
    let old = find(GRUB_USUAL).unwrap_or("");
    let (quote, value) = assigned(old);
    lines.push((old.to_owned(), format!("{GRUB_USUAL}={quote}{}{quote}", merged(value, parameters))));
    lines
}

/// The quote and the value of `KEY="value"`.
fn assigned(line: &str) -> (char, &str) {
    let value = line.split_once('=').map_or("", |(_, value)| value.trim());
    for quote in ['"', '\''] {
        if let Some(inner) = value.strip_prefix(quote) {
            return (quote, inner.rsplit_once(quote).map_or(inner, |(inner, _)| inner));
        }
    }
    ('"', value)
}

/// The label that extlinux boots by itself.
fn default_label(text: &str) -> Option<String> {
    text.lines().find_map(|line| word(line, "default")).map(str::to_owned)
}

/// What follows a key word at the begin of a line.
fn word<'l>(line: &'l str, key: &str) -> Option<&'l str> {
    let (first, rest) = line.trim().split_once(char::is_whitespace)?;
    first.eq_ignore_ascii_case(key).then(|| rest.trim())
}

/// The line of that key, below a label where one is named.
fn keyed(text: &str, key: &str, label: Option<&str>, parameters: &[Parameter]) -> Vec<(String, String)> {
    let mut within = label.is_none();
    for line in text.lines() {
        if let (Some(found), Some(label)) = (word(line, "label"), label) {
            within = found == label;
        }
        if let (true, Some(value)) = (within, word(line, key)) {
            let indent = &line[..line.len() - line.trim_start().len()];
            let as_written = line.trim_start().split(char::is_whitespace).next().unwrap_or(key);
            return vec![(line.to_owned(), format!("{indent}{as_written} {}", merged(value, parameters)))];
        }
    }
    // A label that is not there: the first line will do.
    match label {
        Some(_) => keyed(text, key, None, parameters),
        None => vec![(String::new(), format!("{key} {}", merged("", parameters)))],
    }
}
