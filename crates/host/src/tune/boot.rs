//! The kernel's command line in the files of boot loaders: the new line, and the commands to run after the
//! edit.

use super::BootParameter;
use crate::command_line::CommandLine;
use crate::fact::{self, Fact};
use crate::tree::Tree;
use crate::verify;
use serde::Serialize;

/// A boot loader.
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

/// Edit of a boot loader's file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Edit {
    /// The boot loader.
    pub loader: Loader,
    /// Its file, without the leading slash.
    pub file: String,
    /// Lines before and after the edit.
    pub lines: Vec<(String, String)>,
    /// Commands to run after the edit.
    pub then: Vec<String>,
}

impl Loader {
    /// All boot loaders, in the order in which they are tried.
    pub const ALL: [Loader; 4] = [Loader::Grub, Loader::Extlinux, Loader::SystemdBoot, Loader::KernelInstall];

    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Loader::Grub => "GRUB",
            Loader::Extlinux => "extlinux",
            Loader::SystemdBoot => "systemd-boot",
            Loader::KernelInstall => "kernel-install",
        }
    }

    /// Returns its file, if the machine has one.
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

/// Returns the entry that boots this kernel, or the first one.
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

/// Returns the edits for the machine's boot loader, or for `named`; empty if it has no file.
#[must_use]
pub fn edits(
    tree: &dyn Tree,
    release: &str,
    named: Option<Loader>,
    parameters: &[BootParameter],
) -> Vec<Edit> {
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
    // // kernel-install overwrites the entries of systemd-boot: only its own file needs the edit.
    if named.is_none() && edits.iter().any(|edit| edit.loader == Loader::KernelInstall) {
        edits.retain(|edit| edit.loader != Loader::SystemdBoot);
    }
    edits
}

/// Returns the edit of one file with this text.
#[must_use]
pub fn edit(loader: Loader, file: &str, text: &str, parameters: &[BootParameter]) -> Edit {
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

/// Sets these parameters on a command line, and keeps everything else.
#[must_use]
pub fn merged(line: &str, parameters: &[BootParameter]) -> String {
    let mut line = CommandLine::parse(line);
    // // The correct spelling is among the parameters.
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
/// Not used by recovery entries, which boot as before.
const GRUB_USUAL: &str = "GRUB_CMDLINE_LINUX_DEFAULT";

fn grub(text: &str, parameters: &[BootParameter]) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    let find = |key: &str| {
        let is_it =
            |line: &&str| line.trim_start().strip_prefix(key).is_some_and(|rest| rest.starts_with('='));
        text.lines().rev().find(is_it)
    };
    // // A parameter in both variables would occur twice.
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

/// Returns the quote character and the value of `KEY="value"`.
fn assigned(line: &str) -> (char, &str) {
    let value = line.split_once('=').map_or("", |(_, value)| value.trim());
    for quote in ['"', '\''] {
        if let Some(inner) = value.strip_prefix(quote) {
            return (quote, inner.rsplit_once(quote).map_or(inner, |(inner, _)| inner));
        }
    }
    ('"', value)
}

/// Returns the label that extlinux boots by default.
fn default_label(text: &str) -> Option<String> {
    text.lines().find_map(|line| word(line, "default")).map(str::to_owned)
}

/// Returns the text after a keyword at the beginning of a line.
fn word<'l>(line: &'l str, key: &str) -> Option<&'l str> {
    let (first, rest) = line.trim().split_once(char::is_whitespace)?;
    first.eq_ignore_ascii_case(key).then(|| rest.trim())
}

/// Edits the line with this key, below a label if one is named.
fn keyed(text: &str, key: &str, label: Option<&str>, parameters: &[BootParameter]) -> Vec<(String, String)> {
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
    // // If the label does not exist, the first line with the key is used.
    match label {
        Some(_) => keyed(text, key, None, parameters),
        None => vec![(String::new(), format!("{key} {}", merged("", parameters)))],
    }
}
