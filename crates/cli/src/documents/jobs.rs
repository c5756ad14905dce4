//! Results of `onbeat bench jobs`.

use super::Document;
use super::table::{Cell, Column, Table, Unit};
use onbeat_bench::jobs::{JobRow, JobSide, JobsResults};
use std::path::Path;

pub fn jobs(found: &JobsResults, plot: Option<&Path>) -> Document {
    let result = &found.result;
    let parameter = |name: &str| result.parameters.get(name).map_or(String::new(), ToString::to_string);
    let cpu = result.machine.cpu_model.as_deref().unwrap_or("unknown processor");
    let cores = result.machine.cores_online.map_or(String::new(), |cores| format!(", {cores} cores"));
    let mut head = vec![
        format!("jobs: from file to file; medians of {} rounds; the cases alternate", parameter("rounds")),
        format!("{cpu}{cores}"),
    ];
    let list = |name: &str| result.parameters.get(name).and_then(|list| list.as_array()).cloned();
    for job in list("jobs").unwrap_or_default() {
        let text = |key: &str| job[key].as_str().unwrap_or_default().to_owned();
        head.push(format!(
            "{}: {}; {} samples; quality: {} in {}",
            text("name"),
            text("about"),
            job["samples"],
            text("quality"),
            text("unit")
        ));
    }
    let mut tail = vec![
        "bare: the same kernels in a loop on one core; of bare: relative to that rate times N".to_owned(),
        "same: whether the result has the same bytes as that of onbeat on one core, in every round"
            .to_owned(),
    ];
    tail.extend(list("peers").unwrap_or_default().iter().map(|peer| {
        let text = |key: &str| peer[key].as_str().unwrap_or_default();
        format!("{} {} {}: {}", text("name"), text("version"), text("variant"), text("how"))
    }));
    tail.extend(result.notes.iter().cloned());
    if let Some(path) = plot {
        tail.push(format!("plot written to {}", path.display()));
    }
    let json = serde_json::to_value(result).expect("a result is plain data");
    Document { head, tables: vec![table(found)], tail, json }
}

fn table(found: &JobsResults) -> Table {
    let columns = vec![
        Column::new("job", "job", Unit::Text),
        Column::new("side", "side", Unit::Text),
        Column::new("cores", "N", Unit::Count),
        Column::new("msamples_per_s", "Msamples/s", Unit::Plain),
        Column::new("min", "least", Unit::Plain),
        Column::new("max", "most", Unit::Plain),
        Column::new("real_time", "x real time", Unit::Factor),
        Column::new("quality", "quality", Unit::Plain),
        Column::new("quality_unit", "in", Unit::Text),
        Column::new("same", "same", Unit::Text),
        Column::new("of_bare", "of bare", Unit::Percent),
        Column::new("times_best_peer", "x best peer", Unit::Factor).optional(),
    ];
    Table { columns, rows: found.rows.iter().map(|row| cells(found, row)).collect() }
}

fn cells(found: &JobsResults, row: &JobRow) -> Vec<Cell> {
    let figure = |what: &str| found.result.figures.get(&format!("{}.{what}", row.name));
    let value = |what: &str| figure(what).map_or(Cell::Nothing, |figure| Cell::Decimal(figure.value));
    let mut cells: Vec<Cell> =
        vec![row.case.job.name().into(), row.case.label().into(), (row.case.cores as u64).into()];
    match figure("rate") {
        Some(rate) => cells.extend([rate.value, rate.min, rate.max].map(Cell::Decimal)),
        None => cells.extend([Cell::Nothing, Cell::Nothing, Cell::Nothing]),
    }
    cells.extend([value("real_time"), value("quality")]);
    cells.push(figure("quality").map(|figure| figure.unit.clone()).into());
    cells.push(match figure("same") {
        Some(same) if same.min < 1.0 => "no".into(),
        Some(_) => "yes".into(),
        None => Cell::Nothing,
    });
    let is_bare = matches!(row.case.side, JobSide::Bare);
    let share = figure("of_bare").filter(|_| !is_bare);
    cells.push(share.map_or(Cell::Nothing, |figure| Cell::Share(figure.value / 100.0)));
    cells.push(value("times_best_peer"));
    cells
}
