//! Findings of the doctor: as text, worst first, with the fix; as tables; and the list of all checks.

use super::table::{Cell, Column, Table, Unit};
use super::{Document, counted};
use onbeat::trace::{CauseClass, CauseFix};
use onbeat_host::checks::{self, Check};
use onbeat_host::finding::in_words;
use onbeat_host::verify::{Agreement, Row};
use onbeat_host::{Finding, MachineCase, Report, Severity, State};
use serde_json::json;
use std::fmt::Write;

/// Report of the doctor, and the case it examined.
pub struct FindingsView<'f> {
    pub report: &'f Report,
    pub case: &'f MachineCase,
    /// Whether good findings are shown, too.
    pub all: bool,
}

/// Width of the text if that of the terminal is unknown.
const USUAL_WIDTH: usize = 110;
const LEAST_WIDTH: usize = 60;
/// Width of the first column: the severity, and two spaces.
const INDENT: usize = 10;

const BOLD: &str = "1";
const DIM: &str = "2";
const RED: &str = "1;31";
const YELLOW: &str = "33";
const BLUE: &str = "34";
const GREEN: &str = "32";

impl FindingsView<'_> {
    /// Returns the report as text.
    pub fn text(&self, width: Option<usize>, colour: bool) -> String {
        let paint = Paint { colour, width: width.unwrap_or(USUAL_WIDTH).clamp(LEAST_WIDTH, USUAL_WIDTH) };
        let mut text = paint.lines("", &self.title(), 0, BOLD);
        for note in &self.report.notes {
            text += &paint.lines("note: ", note, 6, "");
        }
        text.push('\n');
        for finding in &self.report.findings {
            match finding.state {
                State::Bad => text += &paint.bad(finding),
                State::Unknown | State::Good if self.all => text += &paint.other(finding),
                _ => {}
            }
        }
        if !self.all {
            let unknown: Vec<&str> = self
                .report
                .findings
                .iter()
                .filter(|finding| finding.state == State::Unknown)
                .map(|finding| finding.id)
                .collect();
            if !unknown.is_empty() {
                text += &paint.lines("unknown   ", &unknown.join(", "), INDENT, DIM);
            }
        }
        text.push('\n');
        text += &paint.lines("", &self.summary(), 0, self.verdict_colour());
        let rest = "onbeat doctor --explain ID explains a finding; --all shows good findings and the reasons for unknown ones";
        text + &paint.lines("", rest, 0, DIM)
    }

    fn title(&self) -> String {
        let kernel = self.case.facts.kernel.release.known().map_or("an unknown kernel", String::as_str);
        let online = self.case.online();
        let what =
            self.case.pipeline.as_ref().map_or(String::new(), |pipeline| format!(" for `{}`", pipeline.name));
        let cpus = if self.report.cpus.is_empty() { "none" } else { &self.report.cpus };
        format!("doctor{what}: cores {cpus} of {online} ({}), Linux {kernel}", self.report.why_cpus)
    }

    fn summary(&self) -> String {
        let report = self.report;
        let count = |severity| report.count_bad(severity) as u64;
        format!(
            "{} critical, {}, {} info, {} good, {} unknown: {}",
            count(Severity::Critical),
            counted(count(Severity::Warning), "warning"),
            count(Severity::Info),
            report.count(State::Good),
            report.count(State::Unknown),
            report.verdict()
        )
    }

    fn verdict_colour(&self) -> &'static str {
        match (self.report.count_bad(Severity::Critical), self.report.count_bad(Severity::Warning)) {
            (0, 0) => GREEN,
            (0, _) => YELLOW,
            _ => RED,
        }
    }

    /// Returns the list of all checks.
    pub fn list() -> Document {
        let row = |check: &Check| {
            vec![check.id.into(), check.area.into(), word(check.severity).into(), check.title.into()]
        };
        let table = Table {
            columns: vec![
                Column::new("id", "check", Unit::Text),
                Column::new("area", "about", Unit::Text),
                Column::new("severity", "if bad", Unit::Text),
                Column::new("title", "what", Unit::Text),
            ],
            rows: checks::all().map(row).collect(),
        };
        let json = checks::all().map(|check| {
            json!({"id": check.id, "area": check.area, "severity": check.severity, "title": check.title, "what": check.what,
                "how": check.how, "cost": check.cost, "skip": check.skip,
                "causes": causes(check).iter().map(|(class, names)| json!({"class": class, "names": names})).collect::<Vec<_>>()})
        });
        let json = json.collect::<Vec<_>>().into();
        Document { head: Vec::new(), tables: vec![table], tail: Vec::new(), json }
    }
}

/// Layout of lines.
struct Paint {
    colour: bool,
    width: usize,
}

impl Paint {
    fn paint(&self, code: &str, text: &str) -> String {
        if self.colour && !code.is_empty() && !text.is_empty() {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    fn bad(&self, finding: &Finding) -> String {
        let code = match finding.severity {
            Severity::Critical => RED,
            Severity::Warning => YELLOW,
            Severity::Info => BLUE,
        };
        let label = format!("{:<INDENT$}", word(finding.severity));
        let lost = match finding.lost_ms {
            Some(0.0) => " [no lateness in this run: can be skipped]".to_owned(),
            Some(ms) => format!(" [added {ms:.1} ms of lateness in this run]"),
            None => String::new(),
        };
        let body = format!("{}: {}{lost}", finding.id, finding.evidence);
        let mut text = self.labelled(&label, code, &body);
        for fix in in_words(&finding.fixes).iter().take(3) {
            text += &self.lines(&format!("{:INDENT$}fix: ", ""), fix, INDENT + 5, "");
        }
        text
    }

    fn other(&self, finding: &Finding) -> String {
        let (label, code) = if finding.state == State::Good { ("good", GREEN) } else { ("unknown", DIM) };
        self.labelled(&format!("{label:<INDENT$}"), code, &format!("{}: {}", finding.id, finding.evidence))
    }

    /// Returns a label in colour, and a text next to it.
    fn labelled(&self, label: &str, code: &str, body: &str) -> String {
        let text = self.lines(label, body, INDENT, "");
        match text.strip_prefix(label) {
            Some(rest) => {
                self.paint(code, label.trim_end()) + &" ".repeat(label.len() - label.trim_end().len()) + rest
            }
            None => text,
        }
    }

    /// Breaks a text at spaces, and indents all lines after the first.
    fn lines(&self, begin: &str, body: &str, indent: usize, code: &str) -> String {
        let body: String = body.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let mut lines = vec![begin.to_owned()];
        let mut is_first = true;
        for word in body.split(' ').filter(|word| !word.is_empty()) {
            let line = lines.last_mut().expect("there is one");
            let room = line.chars().count() + usize::from(!is_first) + word.chars().count() <= self.width;
            if room || is_first {
                if !is_first {
                    line.push(' ');
                }
                line.push_str(word);
            } else {
                lines.push(" ".repeat(indent) + word);
            }
            is_first = false;
        }
        lines.iter().map(|line| self.paint(code, line.trim_end()) + "\n").collect()
    }
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "critical",
        Severity::Warning => "warning",
        Severity::Info => "info",
    }
}

fn state(state: State) -> &'static str {
    match state {
        State::Good => "good",
        State::Bad => "bad",
        State::Unknown => "unknown",
    }
}

/// Returns the findings as a table and JSON, for programs.
pub fn findings(shown: &FindingsView<'_>) -> Document {
    let report = shown.report;
    let row = |finding: &Finding| {
        vec![
            finding.id.into(),
            state(finding.state).into(),
            word(finding.severity).into(),
            finding.evidence.as_str().into(),
            in_words(&finding.fixes).join("; ").as_str().into(),
            finding.lost_ms.map_or(Cell::Nothing, |ms| Cell::Decimal(ms * 1e6)),
        ]
    };
    let table = Table {
        columns: vec![
            Column::new("id", "check", Unit::Text),
            Column::new("state", "state", Unit::Text),
            Column::new("severity", "severity", Unit::Text),
            Column::new("evidence", "evidence", Unit::Text),
            Column::new("fix", "fix", Unit::Text),
            Column::new("lost_ns", "lost", Unit::Nanos),
        ],
        rows: report.findings.iter().map(row).collect(),
    };
    let findings: Vec<serde_json::Value> = report
        .findings
        .iter()
        .map(|finding| {
            let mut value = serde_json::to_value(finding).expect("plain data");
            value["fix"] = in_words(&finding.fixes).into();
            value["skip"] = finding.cost_nothing().into();
            value
        })
        .collect();
    let json = json!({
        "schema": "onbeat.doctor",
        "version": 1,
        "cpus": report.cpus,
        "why_cpus": report.why_cpus,
        "machine": onbeat::trace::Machine::of_this_process(),
        "notes": report.notes,
        "verdict": report.verdict(),
        "findings": findings,
    });
    Document { head: vec![shown.title()], tables: vec![table], tail: vec![shown.summary()], json }
}

/// Returns the parameters of the kernel's command line, and whether the kernel applied them.
pub fn verified(rows: &[Row], misspelt: &[(String, &'static str)]) -> Document {
    let verdict = |agreement| match agreement {
        Agreement::Same => "applied",
        Agreement::Differs => "DIFFERS",
        Agreement::Unknown => "unknown",
    };
    let table = Table {
        columns: vec![
            Column::new("parameter", "parameter", Unit::Text),
            Column::new("asked", "requested", Unit::Text),
            Column::new("found", "the kernel says", Unit::Text),
            Column::new("verdict", "verdict", Unit::Text),
            Column::new("place", "where", Unit::Text),
        ],
        rows: rows
            .iter()
            .map(|row| {
                let cells = [&row.name, &row.asked, &row.found].map(|text| Cell::Text(text.clone()));
                cells.into_iter().chain([verdict(row.agreement).into(), row.place.into()]).collect()
            })
            .collect(),
    };
    let wrong = rows.iter().filter(|row| row.agreement == Agreement::Differs).count() + misspelt.len();
    let mut tail: Vec<String> = misspelt
        .iter()
        .map(|(word, meant)| format!("`{word}` is not a kernel parameter: did you mean {meant}?"))
        .collect();
    tail.push(match (rows.is_empty(), wrong) {
        (true, 0) => "the command line names no cores".to_owned(),
        (_, 0) => "the kernel applied its command line".to_owned(),
        (_, wrong) => format!(
            "{} not applied: correct the command line in the boot loader (`onbeat tune` prints it)",
            counted(wrong as u64, "parameter")
        ),
    });
    let misspelt: Vec<_> =
        misspelt.iter().map(|(word, meant)| json!({"word": word, "meant": meant})).collect();
    let json =
        json!({"schema": "onbeat.doctor.verify", "version": 1, "parameters": rows, "misspelt": misspelt});
    Document {
        head: vec!["kernel command line, and what the kernel applied".to_owned()],
        tables: vec![table],
        tail,
        json,
    }
}

/// Returns the full description of a check.
pub fn explained(check: &Check, colour: bool) -> String {
    let paint = Paint { colour, width: 80 };
    let mut text = paint.lines("", &format!("{}: {}", check.id, check.title), 0, BOLD);
    text += &paint.lines("", &format!("{}, {} if bad", check.area, word(check.severity)), 0, DIM);
    for (head, body) in [
        ("effect", check.what),
        ("how to fix it", check.how),
        ("cost of the fix", check.cost),
        ("when to skip it", check.skip),
    ] {
        text.push('\n');
        text += &paint.lines("", head, 0, BOLD);
        text += &paint.lines("  ", body, 2, "");
    }
    if let Some(causes) = causes_in_words(check) {
        text.push('\n');
        text += &paint.lines("", "late messages that it explains", 0, BOLD);
        text += &paint.lines("  ", &causes, 2, "");
    }
    text
}

/// Causes of late messages that a check helps to fix: each class once, with prefixes of names, or none for
/// the class.
fn causes(check: &Check) -> Vec<(CauseClass, Vec<&'static str>)> {
    let mut causes: Vec<(CauseClass, Vec<&str>)> = Vec::new();
    for row in CauseFix::by(check.id) {
        match causes.iter_mut().find(|(class, _)| *class == row.class) {
            Some((_, names)) if names.is_empty() || row.names.is_empty() => names.clear(),
            Some((_, names)) => names.extend(row.names),
            None => causes.push((row.class, row.names.to_vec())),
        }
    }
    causes
}

fn causes_in_words(check: &Check) -> Option<String> {
    let words = |(class, names): &(CauseClass, Vec<&str>)| {
        if names.is_empty() { class.to_string() } else { format!("{class} of {}", names.join(", ")) }
    };
    let causes: Vec<String> = causes(check).iter().map(words).collect();
    (!causes.is_empty()).then(|| causes.join(", "))
}

/// Returns the page of the book with all checks.
pub fn findings_page() -> String {
    let mut text = String::from(
        "<!-- Made by `onbeat doctor --list --format markdown`; `ci/book` compares. Change the descriptions in the checks. -->\n\n\
         # All findings of the doctor\n\nStatus: stable.\n\nA finding is *good*, *bad* or *unknown*. A file that is missing or cannot be read is not an error. \
         `onbeat doctor --explain ID` shows the same in the terminal.\n",
    );
    let mut area = "";
    for check in checks::all() {
        if check.area != area {
            area = check.area;
            let mut letters = area.chars();
            let capital: String =
                letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
            write!(text, "\n## {capital}\n").expect("a string takes all");
        }
        write!(
            text,
            "\n### `{}`\n\n{}, *{}* if bad.\n\n{}\n\n| | |\n|---|---|\n| how to fix it | {} |\n| cost of the fix | {} |\n| when to skip it | {} |\n",
            check.id,
            sentence(check.title),
            word(check.severity),
            check.what,
            cell(check.how),
            cell(check.cost),
            cell(check.skip)
        )
        .expect("a string takes all");
        if let Some(causes) = causes_in_words(check) {
            writeln!(text, "| late messages that it explains | {causes} |").expect("a string takes all");
        }
    }
    text
}

fn sentence(title: &str) -> String {
    let mut letters = title.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
