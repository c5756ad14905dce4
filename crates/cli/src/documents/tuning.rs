//! Plan of `onbeat tune`, and results of its undo.

use super::counted;
use onbeat_host::finding::sysctl_name;
use onbeat_host::tune::boot::Edit;
use onbeat_host::tune::undo::{TuneChange, UndoOutcome};
use onbeat_host::tune::{TuningPlan, Write, grants};
use onbeat_host::{MachineCase, finding};
use serde_json::json;

/// Plan with the files of the boot loader.
pub struct Tuning<'t> {
    pub plan: &'t TuningPlan,
    pub edits: &'t [Edit],
    pub case: &'t MachineCase,
    pub why_cpus: &'t str,
}

impl Tuning<'_> {
    fn flags(&self) -> Vec<String> {
        let house = self.plan.house.parse().unwrap_or_default();
        grants::container(self.case.pipeline.as_ref(), &house, &self.case.cpus)
    }

    /// Returns the plan as text.
    pub fn text(&self, colour: bool) -> String {
        let plan = self.plan;
        let head =
            |text: &str| if colour { format!("\u{1b}[1m{text}\u{1b}[0m\n") } else { format!("{text}\n") };
        let mut text = head(&format!(
            "tune: cores {} quiet ({}), {} for the system",
            plan.cpus, self.why_cpus, plan.house
        ));
        plan.notes.iter().for_each(|note| text += &format!("note: {note}\n"));
        text += &format!("\n{}", head("kernel command line, effective from the next boot"));
        let widest = plan.parameters.iter().map(|parameter| parameter.to_string().len()).max().unwrap_or(0);
        for parameter in &plan.parameters {
            text += &format!("  {:widest$}  {}\n", parameter.to_string(), parameter.why);
        }
        for edit in self.edits {
            text += &format!("  {}, in /{}:\n", edit.loader.name(), edit.file);
            for (_, new) in &edit.lines {
                text += &format!("    {}\n", printable(new.trim()));
            }
            for command in &edit.then {
                text += &format!("    {command}\n");
            }
        }
        if self.edits.is_empty() {
            text += "  no boot loader configuration found: add these parameters to the kernel command line of this machine\n";
        }
        text += "  then: onbeat doctor --verify\n";
        text += &format!("\n{}", head("settings until the next boot: onbeat tune --apply, and --undo"));
        if plan.writes.is_empty() {
            text += "  none: all settings are already correct\n";
        }
        for (finding, lines) in by_finding(&plan.writes) {
            for line in lines {
                text += &format!("  {line}   # {finding}\n");
            }
        }
        let lasting: Vec<String> = plan
            .writes
            .iter()
            .filter_map(|write| Some(format!("{} = {}", sysctl_name(&write.path)?, write.value)))
            .collect();
        if !lasting.is_empty() {
            text += "  to make the sysctl settings permanent, in /etc/sysctl.d/95-onbeat.conf:\n";
            lasting.iter().for_each(|line| text += &format!("    {line}\n"));
        }
        if !plan.by_hand.is_empty() {
            text += &format!("\n{}", head("manual steps, if they suit this machine"));
            plan.by_hand.iter().for_each(|(id, line)| text += &format!("  {id}: {}\n", printable(line)));
        }
        text += &format!("\n{}", head("without a reboot, instead of isolcpus"));
        text += &match self.case.facts.environment.cpusets.known() {
            Some(_) => format!(
                "  onbeat tune --cpus {} --apply --partition   # isolated cgroup partition: /sys/fs/cgroup/onbeat\n",
                plan.cpus
            ),
            None => format!("  not available: {}\n", self.case.facts.environment.cpusets.why()),
        };
        text += &format!("\n{}", head("rights"));
        text += &format!(
            "  limits: onbeat tune{} --limits /etc/security/limits.d/95-onbeat.conf\n",
            self.pipeline_flag()
        );
        text += &match self.case.pipeline {
            Some(_) => format!("  service: onbeat tune{} --systemd FILE.service\n", self.pipeline_flag()),
            None => "  service: onbeat tune --pipeline FILE --systemd FILE.service\n".to_owned(),
        };
        text + &format!("  container: docker run {}\n", self.flags().join(" "))
    }

    fn pipeline_flag(&self) -> String {
        self.case.pipeline.as_ref().map_or(String::new(), |pipeline| format!(" --pipeline {}", pipeline.file))
    }
}

/// Returns the commands for the settings of each finding. Files with the same value share a command.
fn by_finding(writes: &[Write]) -> Vec<(String, Vec<String>)> {
    let mut found: Vec<(String, Vec<finding::Fix>)> = Vec::new();
    for write in writes {
        let fix = finding::Fix::Write { path: write.path.clone(), value: write.value.clone() };
        match found.iter_mut().find(|(id, _)| *id == write.finding) {
            Some((_, fixes)) => fixes.push(fix),
            None => found.push((write.finding.clone(), vec![fix])),
        }
    }
    found.into_iter().map(|(id, fixes)| (id, finding::in_words(&fixes))).collect()
}

/// Returns the plan as JSON, for programs.
pub fn tuning(shown: &Tuning<'_>) -> serde_json::Value {
    json!({
        "schema": "onbeat.tune",
        "version": 1,
        "plan": shown.plan,
        "boot": shown.edits,
        "limits": grants::limits(shown.case.pipeline.as_ref()),
        "container": shown.flags(),
    })
}

/// Returns the results of an undo as text, and whether all changes were undone.
pub fn undone(outcomes: &[(TuneChange, UndoOutcome)]) -> (String, bool) {
    let mut text = String::new();
    let (mut back, mut untouched, mut wrong) = (0_u64, 0_u64, 0_u64);
    for (change, outcome) in outcomes {
        let path = change.path();
        match outcome {
            UndoOutcome::Back => {
                back += 1;
                match change {
                    TuneChange::File { old, .. } => {
                        text += &format!("/{path} is {} again\n", printable(old.trim()));
                    }
                    TuneChange::Folder { .. } => text += &format!("/{path} was removed\n"),
                }
            }
            UndoOutcome::Untouched => untouched += 1,
            UndoOutcome::Foreign(now) => {
                text += &format!(
                    "/{path}: left unchanged, because another program set it to {}\n",
                    printable(now)
                );
            }
            UndoOutcome::Failed(why) => {
                wrong += 1;
                text += &format!("/{path}: not restored: {}\n", printable(why));
            }
        }
    }
    text += &format!("{} restored, {untouched} had not changed", counted(back, "setting"));
    text += &match wrong {
        0 => "\n".to_owned(),
        wrong => format!(", {wrong} not restored: run the command again\n"),
    };
    (text, wrong == 0)
}

fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
