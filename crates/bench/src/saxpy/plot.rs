//! Draws the figures: the two plots of the published report, for each number of cores and quantum.

use super::{Mode, PeerRow, SaxpyForm, SaxpyResults, SaxpyRow};
use onbeat_report::BenchResult;
use onbeat_report::plot::{Axis, Line, Lines, Sheet, Style};

pub(super) fn sheet(found: &SaxpyResults) -> Sheet {
    let result = &found.result;
    let mut sheet = Sheet::new("onbeat bench saxpy: a chain of y = a · x + b");
    for line in facts(result) {
        sheet = sheet.line(line);
    }
    for (cores, quantum, form) in panels(found) {
        let lines = lines(found, cores, quantum, form);
        let what = if form == SaxpyForm::InPlace { "in place" } else { "out of place" };
        let title = format!("{cores} core{}, {} KiB, {what}", plural(cores), quantum as f64 / 1024.0);
        sheet = sheet.lines(Lines {
            title,
            x: Axis::linear("saxpy operators in the chain"),
            y: Axis::log("Gsamples/s"),
            lines,
            limits: Vec::new(),
        });
    }
    sheet
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

fn facts(result: &BenchResult) -> Vec<String> {
    let machine = &result.machine;
    let text = |fact: &Option<String>| fact.clone().unwrap_or_default();
    let cores = machine.cores_online.map_or(String::new(), |cores| format!("{cores} cores"));
    let parameter = |name: &str| result.parameters.get(name).map_or(String::new(), ToString::to_string);
    vec![
        [text(&machine.cpu_model), cores, text(&machine.kernel)].join(" · "),
        format!(
            "medians of {} rounds of {} s each · onbeat {} ({})",
            parameter("rounds"),
            parameter("seconds"),
            parameter("version").trim_matches('"'),
            parameter("profile").trim_matches('"')
        ),
    ]
}

/// Distinct numbers of cores with quantum and form, in the order of the table.
fn panels(found: &SaxpyResults) -> Vec<(usize, usize, SaxpyForm)> {
    let mut panels = Vec::new();
    for SaxpyRow { case, .. } in &found.rows {
        let panel = (case.shape.cores, case.shape.quantum, case.shape.form);
        if !panels.contains(&panel) {
            panels.push(panel);
        }
    }
    panels
}

fn lines(found: &SaxpyResults, cores: usize, quantum: usize, form: SaxpyForm) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let shown = |row: &&SaxpyRow| {
        let shape = row.case.shape;
        (shape.cores, shape.quantum, shape.form) == (cores, quantum, form)
    };
    let rows: Vec<&SaxpyRow> = found.rows.iter().filter(shown).collect();
    let value = |name: &str| found.result.value(name);
    for row in &rows {
        let mut name = row.case.mode.name().to_owned();
        if row.case.mode == Mode::Pinned {
            name = format!("pinned, in order{}", buffers(row));
        }
        if row.name.ends_with(".own") {
            name += ", own operator";
        }
        if let Some(rate) = value(&format!("{}.rate", row.name)) {
            add(&mut lines, &name, Style::Both, (row.case.shape.kernels as f64, rate));
        }
    }
    for peer in found.peers.iter().filter(|row| row.peer.cores == cores) {
        if peer.peer.in_place == (form == SaxpyForm::InPlace)
            && let Some(rate) = value(&format!("{}.rate", peer.name))
        {
            add(&mut lines, &label(peer), Style::Both, (peer.peer.kernels as f64, rate));
        }
    }
    ideal(found, &rows, cores, &mut lines);
    for (colour, line) in lines.iter_mut().enumerate() {
        line.colour = colour;
    }
    lines
}

fn buffers(row: &SaxpyRow) -> String {
    row.case.buffers.map_or(String::new(), |buffers| format!(" ({buffers})"))
}

fn label(row: &PeerRow) -> String {
    format!("{} {}", row.peer.peer, row.peer.variant)
}

/// The lines of the published report, from the rates without an engine in the same run.
fn ideal(found: &SaxpyResults, rows: &[&SaxpyRow], cores: usize, lines: &mut Vec<Line>) {
    let Some(first) = rows.first() else { return };
    let kernel = found.result.value(&format!("{}.rate", first.case.kernel().name()));
    let mut kernels: Vec<usize> = rows.iter().map(|row| row.case.shape.kernels).collect();
    kernels.sort_unstable();
    kernels.dedup();
    if let Some(kernel) = kernel {
        for &m in &kernels {
            add(lines, "fair: N/M", Style::Dashed, (m as f64, kernel * cores as f64 / m as f64));
        }
        for &m in kernels.iter().filter(|_| cores > 1) {
            add(lines, "static: 1/ceil(M/N)", Style::Dashed, (m as f64, kernel / m.div_ceil(cores) as f64));
        }
    }
    for row in rows.iter().filter(|row| row.case.mode == Mode::Pinned && row.case.buffers == Some(cores + 1))
    {
        if let Some(rate) = found.result.value(&row.limit) {
            let name = format!("bare hand-over ({})", cores + 1);
            add(lines, &name, Style::Dashed, (row.case.shape.kernels as f64, rate));
        }
    }
}

/// Adds a point to the line of this name.
fn add(lines: &mut Vec<Line>, name: &str, style: Style, point: (f64, f64)) {
    if let Some(line) = lines.iter_mut().find(|line| line.name == name && line.style == style) {
        if !line.points.contains(&point) {
            line.points.push(point);
        }
        return;
    }
    lines.push(Line { name: name.to_owned(), colour: 0, style, points: vec![point] });
}
