//! Results of `onbeat bench overhead`.

use super::Document;
use super::table::{Cell, Column, Table, Unit};
use onbeat_bench::overhead::{Overhead, OverheadRow, SHARES};
use onbeat_report::Figure;
use std::path::Path;

pub fn overhead(found: &Overhead, plot: Option<&Path>) -> Document {
    let result = &found.result;
    let parameter = |name: &str| result.parameters.get(name).map_or(String::new(), ToString::to_string);
    let cpu = result.machine.cpu_model.as_deref().unwrap_or("unknown processor");
    let cores = result.machine.cores_online.map_or(String::new(), |cores| format!(", {cores} cores"));
    let head = vec![
        format!("overhead: median, minimum and maximum of {} runs; the cases alternate", parameter("runs")),
        format!("{cpu}{cores}, idle {}", parameter("idle").trim_matches('"')),
        "times in ns, switches and futex calls are per iteration: one step of every operator".to_owned(),
    ];
    let tables =
        vec![steady(found), process(found), break_even(found), loaded(found), python(found), peer(found)];
    let mut tail = Vec::new();
    if !tables[2].rows.is_empty() {
        tail.push(
            "break-even: the work per step at which the engine takes 50 %, 5 % or 1 % of the time".to_owned(),
        );
    }
    tail.extend(result.notes.iter().cloned());
    if let Some(path) = plot {
        tail.push(format!("plot written to {}", path.display()));
    }
    let json = serde_json::to_value(result).expect("a result is plain data");
    Document { head, tables, tail, json }
}

/// Returns the two cells that name a row.
fn names(row: &OverheadRow) -> [Cell; 2] {
    [row.recipe.as_str().into(), row.case.name().into()]
}

/// Returns a figure of a row.
fn figure<'f>(found: &'f Overhead, kind: &str, row: &OverheadRow) -> Option<&'f Figure> {
    found.result.figures.get(&format!("{kind}.{}.{}", row.recipe, row.case.name()))
}

fn value(figure: Option<&Figure>) -> Cell {
    figure.map_or(Cell::Nothing, |figure| Cell::Decimal(figure.value))
}

/// Returns the value, the least and the most as cells.
fn range(figure: &Figure) -> [Cell; 3] {
    [figure.value, figure.min, figure.max].map(Cell::Decimal)
}

/// Returns the rows that have this figure, each with its names and its cells.
fn rows(found: &Overhead, kind: &str, cells: impl Fn(&OverheadRow, &Figure) -> Vec<Cell>) -> Vec<Vec<Cell>> {
    let with = found.rows.iter().filter_map(|row| Some((row, figure(found, kind, row)?)));
    with.map(|(row, figure)| names(row).into_iter().chain(cells(row, figure)).collect()).collect()
}

const SCHEDULER: Column = Column::new("scheduler", "scheduler", Unit::Text);
const CASE: Column = Column::new("case", "case", Unit::Text);

fn limit(found: &Overhead, row: &OverheadRow) -> Option<f64> {
    found.result.value(row.limit.as_ref()?)
}

fn steady(found: &Overhead) -> Table {
    let cells = |row: &OverheadRow, figure_here: &Figure| {
        let limit = limit(found, row);
        let factor = limit.map(|limit| Cell::Decimal(figure_here.value / limit));
        let more = [
            limit.map_or(Cell::Nothing, Cell::Decimal),
            factor.unwrap_or(Cell::Nothing),
            value(figure(found, "switches.voluntary", row)),
            value(figure(found, "futex", row)),
        ];
        range(figure_here).into_iter().chain(more).collect()
    };
    Table {
        columns: vec![
            SCHEDULER,
            CASE,
            Column::new("steady_ns", "steady", Unit::Nanos),
            Column::new("min_ns", "least", Unit::Nanos),
            Column::new("max_ns", "most", Unit::Nanos),
            Column::new("bare_ns", "bare", Unit::Nanos),
            Column::new("times_bare", "x bare", Unit::Factor),
            Column::new("voluntary_switches", "switches", Unit::Rate),
            Column::new("futex_calls", "futex calls", Unit::Rate),
        ],
        rows: rows(found, "steady", cells),
    }
}

fn process(found: &Overhead) -> Table {
    let cells = |row: &OverheadRow, figure_here: &Figure| {
        let ends = [value(figure(found, "start", row)), value(figure(found, "stop", row))];
        range(figure_here).into_iter().chain(ends).collect()
    };
    Table {
        columns: vec![
            SCHEDULER,
            CASE,
            Column::new("process_ns", "process", Unit::Nanos),
            Column::new("min_ns", "least", Unit::Nanos),
            Column::new("max_ns", "most", Unit::Nanos),
            Column::new("start_ns", "start", Unit::Micros),
            Column::new("stop_ns", "stop", Unit::Micros),
        ],
        rows: rows(found, "process", cells),
    }
}

fn break_even(found: &Overhead) -> Table {
    let cells = |row: &OverheadRow, steady: &Figure| {
        let of = |share: &str| {
            let name = format!("break_even.{}.{}.{share}", row.recipe, row.case.name());
            value(found.result.figures.get(&name))
        };
        let shares = SHARES.map(|share| of(share.name));
        std::iter::once(Cell::Decimal(steady.value / row.steps)).chain(shares).collect()
    };
    Table {
        columns: vec![
            SCHEDULER,
            CASE,
            Column::new("step_ns", "per step", Unit::Nanos),
            Column::new("half_ns", "50 % at", Unit::Micros),
            Column::new("twentieth_ns", "5 % at", Unit::Micros),
            Column::new("hundredth_ns", "1 % at", Unit::Micros),
        ],
        rows: rows(found, "steady", cells),
    }
}

/// Checks the break-even: measured shares of the engine with operators of that work.
fn loaded(found: &Overhead) -> Table {
    let mut rows = Vec::new();
    for row in &found.rows {
        for share in SHARES {
            let of = |what: &str| {
                let name = format!("loaded.{}.{}.{}.{what}", row.recipe, row.case.name(), share.name);
                found.result.value(&name)
            };
            let (Some(operator_ns), Some(percent)) = (of("operator"), of("share")) else { continue };
            let step_ns = figure(found, "steady", row).map_or(f64::NAN, |figure| figure.value / row.steps);
            let cells = [
                Cell::Decimal(operator_ns),
                Cell::Share(step_ns / (step_ns + operator_ns)),
                Cell::Share(percent / 100.0),
            ];
            rows.push(names(row).into_iter().chain(cells).collect());
        }
    }
    Table {
        columns: vec![
            SCHEDULER,
            CASE,
            Column::new("operator_ns", "operators work", Unit::Micros),
            Column::new("share_expected", "engine expected", Unit::Percent),
            Column::new("share_measured", "engine measured", Unit::Percent),
        ],
        rows,
    }
}

/// Returns the rows of another side that runs the same cases: first those inside runs, then those of whole
/// processes.
fn side_rows(
    found: &Overhead,
    side: &str,
    more: impl Fn(&str, &OverheadRow, &Figure) -> Vec<Cell>,
) -> Vec<Vec<Cell>> {
    let of = |method: &'static str| {
        let more = &more;
        rows(found, &format!("{side}.{method}"), move |row, taken| {
            std::iter::once(method.into()).chain(range(taken)).chain(more(method, row, taken)).collect()
        })
    };
    ["steady", "process"].into_iter().flat_map(of).collect()
}

/// Operators in Python, next to the same calls in a Python loop.
fn python(found: &Overhead) -> Table {
    let rows = side_rows(found, "python", |_, row, taken| {
        match found.result.value(&format!("python.bare.{}", row.case.name())) {
            Some(bare) => vec![Cell::Decimal(bare), Cell::Decimal(taken.value - bare)],
            None => vec![Cell::Nothing, Cell::Nothing],
        }
    });
    Table {
        columns: vec![
            SCHEDULER,
            CASE,
            Column::new("method", "method", Unit::Text),
            Column::new("python_ns", "in Python", Unit::Nanos),
            Column::new("min_ns", "least", Unit::Nanos),
            Column::new("max_ns", "most", Unit::Nanos),
            Column::new("bare_ns", "bare loop", Unit::Nanos),
            Column::new("engine_ns", "more than bare", Unit::Nanos),
        ],
        rows,
    }
}

fn peer(found: &Overhead) -> Table {
    let rows = side_rows(found, "peer.holoscan", |method, row, theirs| {
        let against = [method.to_owned(), format!("python.{method}")].map(|kind| figure(found, &kind, row));
        let factor = |ours: &Figure| Cell::Decimal(theirs.value / ours.value);
        against.into_iter().flat_map(|ours| [value(ours), ours.map_or(Cell::Nothing, factor)]).collect()
    });
    Table {
        columns: vec![
            SCHEDULER,
            CASE,
            Column::new("method", "method", Unit::Text),
            Column::new("holoscan_ns", "Holoscan", Unit::Nanos),
            Column::new("min_ns", "least", Unit::Nanos),
            Column::new("max_ns", "most", Unit::Nanos),
            Column::new("onbeat_ns", "onbeat", Unit::Nanos),
            Column::new("times_onbeat", "x onbeat", Unit::Factor),
            Column::new("python_ns", "onbeat in Python", Unit::Nanos),
            Column::new("times_python", "x onbeat in Python", Unit::Factor),
        ],
        rows,
    }
}
