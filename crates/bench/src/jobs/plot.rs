//! Draws the rates: a panel per job, a group per number of cores.

use super::{JobRow, JobsResults};
use onbeat_report::BenchResult;
use onbeat_report::plot::{Axis, Bar, Bars, Group, Sheet};

pub(super) fn sheet(found: &JobsResults) -> Sheet {
    let mut sheet = Sheet::new("onbeat bench jobs: whole jobs, from file to file");
    for line in facts(&found.result) {
        sheet = sheet.line(line);
    }
    let mut jobs = Vec::new();
    for row in &found.rows {
        if !jobs.contains(&row.case.job) {
            jobs.push(row.case.job);
        }
    }
    for job in jobs {
        let rows: Vec<&JobRow> = found.rows.iter().filter(|row| row.case.job == job).collect();
        sheet = sheet.bars(Bars {
            title: super::kind::kind(job).about.to_owned(),
            axis: Axis::log("Msamples/s"),
            groups: groups(found, &rows),
            limit: String::new(),
        });
    }
    sheet
}

fn facts(result: &BenchResult) -> Vec<String> {
    let machine = &result.machine;
    let text = |fact: &Option<String>| fact.clone().unwrap_or_default();
    let cores = machine.cores_online.map_or(String::new(), |cores| format!("{cores} cores"));
    let parameter = |name: &str| result.parameters.get(name).map_or(String::new(), ToString::to_string);
    vec![
        [text(&machine.cpu_model), cores, text(&machine.kernel)].join(" · "),
        format!(
            "medians of {} rounds, with their ranges · onbeat {} ({})",
            parameter("rounds"),
            parameter("version").trim_matches('"'),
            parameter("profile").trim_matches('"')
        ),
    ]
}

fn groups(found: &JobsResults, rows: &[&JobRow]) -> Vec<Group> {
    let mut groups: Vec<(usize, Group)> = Vec::new();
    for row in rows {
        let Some(figure) = found.result.figures.get(&format!("{}.rate", row.name)) else { continue };
        let cores = row.case.cores;
        let quality = found.result.value(&format!("{}.quality", row.name));
        let (_, unit) = super::kind::kind(row.case.job).quality;
        let quality = quality.map_or(String::new(), |value| format!(" ({} {unit})", short(value)));
        let bar = Bar {
            label: row.case.label() + &quality,
            value: figure.value,
            min: figure.min,
            max: figure.max,
            limit: None,
        };
        match groups.iter_mut().find(|(of, _)| *of == cores) {
            Some((_, group)) => group.bars.push(bar),
            None => {
                let name = format!("{cores} core{}", if cores == 1 { "" } else { "s" });
                groups.push((cores, Group { name, bars: vec![bar] }));
            }
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// Two digits behind the point for small values, one for others, none for whole numbers.
fn short(value: f64) -> String {
    let places = if value.fract() == 0.0 {
        0
    } else if value < 1.0 {
        2
    } else {
        1
    };
    format!("{value:.places$}")
}
