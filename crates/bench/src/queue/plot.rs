//! Draws the figures.

use super::design::Design;
use onbeat_report::BenchResult;
use onbeat_report::plot::{Axis, Bar, Bars, Group, Sheet};

/// Draws a panel per load, one with the latency of a sleeping worker, and one with the cost of a burst.
pub fn sheet(result: &BenchResult) -> Sheet {
    let machine = &result.machine;
    let parameter = |name: &str| result.parameters.get(name).map_or(String::new(), ToString::to_string);
    let cores = machine.cores_online.map_or(String::new(), |cores| format!("{cores} cores"));
    let facts =
        [machine.cpu_model.clone().unwrap_or_default(), cores, machine.kernel.clone().unwrap_or_default()];
    let mut sheet = Sheet::new("onbeat bench queue: cost of an item")
        .line(facts.join(" · "))
        .line(format!("median, minimum and maximum of {} rounds, all designs in turn", parameter("repeats")));
    let producers = parameter("producers");
    for (case, title) in [
        ("single", "one producer".to_owned()),
        ("multi", format!("{producers} producers")),
        ("cpu.burst.apart", "bursts, worker on its own core: CPU time of both sides".to_owned()),
        ("cpu.burst.free", "bursts, threads placed by the kernel".to_owned()),
    ] {
        let bars: Vec<Bar> = Design::ALL
            .into_iter()
            .filter_map(|design| bar(result, &format!("{case}.{}", design.name()), design.text()))
            .collect();
        if !bars.is_empty() {
            let groups = vec![Group { name: String::new(), bars }];
            let axis = Axis::log("ns per item");
            sheet = sheet.bars(Bars { title, axis, groups, limit: String::new() });
        }
    }
    let mut groups = Vec::new();
    for (key, name) in [
        ("plain.dma_any", "plain"),
        ("plain.dma_0", "plain, dma latency 0"),
        ("fifo.dma_any", "f:10"),
        ("fifo.dma_0", "f:10, dma latency 0"),
    ] {
        let designs = ["model_before", "model_after", "onbeat_park", "onbeat_spin"];
        let bars: Vec<Bar> = designs
            .into_iter()
            .filter_map(|design| {
                let name = format!("latency.{key}.{design}");
                let (value, max) =
                    (result.value(&format!("{name}.p50"))?, result.value(&format!("{name}.max"))?);
                Some(Bar { label: design.to_owned(), value, min: value, max, limit: None })
            })
            .collect();
        if !bars.is_empty() {
            groups.push(Group { name: name.to_owned(), bars });
        }
    }
    if groups.is_empty() {
        return sheet;
    }
    let title = "latency of a sleeping worker: median and maximum".to_owned();
    sheet.bars(Bars { title, axis: Axis::log("ns from schedule to callback"), groups, limit: String::new() })
}

fn bar(result: &BenchResult, name: &str, text: &str) -> Option<Bar> {
    let figure = result.figures.get(name)?;
    Some(Bar { label: text.to_owned(), value: figure.value, min: figure.min, max: figure.max, limit: None })
}
