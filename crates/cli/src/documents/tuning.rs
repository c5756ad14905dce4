//! What `tune` plans, and what became of taking it back.

use super::counted;
use onbeat_host::finding::sysctl_name;
use onbeat_host::tune::boot::Edit;
use onbeat_host::tune::undo::{TuneChange, UndoOutcome};
use onbeat_host::tune::{TuningPlan, Write, grants};
use onbeat_host::{MachineCase, finding};
use serde_json::json;

/// A plan, and where it goes.
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

    /// For people.
    pub fn text(&self, colour: bool) -> String {
        let plan = self.plan;
        let head =
            |text: &str| if colour { format!("\u{1b}[1m{text}\u{1b}[0m\n") } else { format!("{text}\n") };
        let mut text = head(&format!(
            "tune: cores {} quiet ({}), {} for the system",
            plan.cpus, self.why_cpus, plan.house
        ));
        plan.notes.iter().for_each(|note| text += &format!("note: {note}\n"));
        text += &format!("\n{}", head("the kernel's command line, from the next boot on"));
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
            text += "  no file of a boot loader was found: put them where this machine is booted from\n";
        }
        text += "  then: onbeat doctor --verify\n";
        text += &format!("\n{}", head("at once, until the next boot: onbeat tune --apply, and --undo"));
        if plan.writes.is_empty() {
            text += "  nothing: all settings are as they should be\n";
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
            text += "  to keep the settings of sysctl, in /etc/sysctl.d/95-onbeat.conf:\n";
            lasting.iter().for_each(|line| text += &format!("    {line}\n"));
        }
        if !plan.by_hand.is_empty() {
            text += &format!("\n{}", head("by hand, by whoever knows the machine"));
            plan.by_hand.iter().for_each(|(id, line)| text += &format!("  {id}: {}\n", printable(line)));
        }
        text += &format!("\n{}", head("without a reboot, in place of isolcpus"));
        text += &match self.case.facts.environment.cpusets.known() {
            Some(_) => format!(
                "  onbeat tune --cpus {} --apply --partition   # an isolated partition of control groups: /sys/fs/cgroup/onbeat\n",
                plan.cpus
            ),
            None => format!("  not here: {}\n", self.case.facts.environment.cpusets.why()),
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

/// Commands for the writes of each finding, those of one value together.
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

/// For programs.
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

/// What became of each change, and whether all is as it was.
pub fn put_back(outcomes: &[(TuneChange, UndoOutcome)]) -> (String, bool) {
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
                    TuneChange::Folder { .. } => text += &format!("/{path} is gone\n"),
                }
            }
            UndoOutcome::Untouched => untouched += 1,
            UndoOutcome::Foreign(now) => {
                text += &format!(
                    "/{path}: somebody else has changed it to {}: it is left alone\n",
                    printable(now)
                );
            }
            UndoOutcome::Failed(why) => {
                wrong += 1;
                text += &format!("/{path}: not put back: {}\n", printable(why));
            }
        }
    }
    text += &format!("{} put back, {untouched} had not changed", counted(back, "setting"));
    text += &match wrong {
        0 => "\n".to_owned(),
        wrong => format!(", {wrong} could not be: run it again\n"),
    };
    (text, wrong == 0)
}

fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
