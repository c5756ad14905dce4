//! Plots through the public interface: for all values and names the file is valid, and nothing is outside of
//! it.

use onbeat_report::plot::{Axis, Bar, Bars, Group, Line, Lines, Sheet, Style};
use onbeat_report::{BenchResult, Figure, bench::Machine};
use proptest::prelude::*;
use roxmltree::{Document, Node};

fn bars(axis: Axis, name: &str, values: &[f64]) -> Bars {
    let bar = |&value: &f64| Bar {
        label: name.to_owned(),
        value,
        min: value * 0.9,
        max: value * 1.5,
        limit: Some(value / 4.0),
    };
    let group = Group { name: name.to_owned(), bars: values.iter().map(bar).collect() };
    Bars { title: name.to_owned(), axis, groups: vec![group.clone(), group], limit: name.to_owned() }
}

fn lines(x: Axis, y: Axis, name: &str, values: &[f64]) -> Lines {
    let line = |style| Line {
        name: name.to_owned(),
        colour: 9,
        style,
        points: values.iter().map(|&value| (value, value * 2.0)).collect(),
    };
    let styles = [Style::Curve, Style::Dashed, Style::Points, Style::Both];
    let lines = styles.map(line).into();
    Lines { title: name.to_owned(), x, y, lines, limits: vec![(1.0, name.to_owned())] }
}

fn number(node: Node<'_, '_>, name: &str) -> f64 {
    node.attribute(name).unwrap_or("0").trim_end_matches('%').parse().expect("a number")
}

/// Reads it as XML, and sees that everything lies on the page.
fn check(svg: &str) -> usize {
    let document = Document::parse(svg).unwrap_or_else(|error| panic!("{error}\n{svg}"));
    let root = document.root_element();
    let (width, height) = (number(root, "width"), number(root, "height"));
    let mut drawn = 0;
    for node in root.descendants().filter(Node::is_element) {
        let places: &[(&str, f64)] = match node.tag_name().name() {
            "line" => &[("x1", width), ("x2", width), ("y1", height), ("y2", height)],
            "circle" => &[("cx", width), ("cy", height)],
            "text" | "rect" => &[("x", width), ("y", height)],
            _ => &[],
        };
        drawn += usize::from(!places.is_empty());
        for (name, most) in places {
            let value = number(node, name);
            assert!((0.0..=*most).contains(&value), "{name}={value} in {node:?}");
        }
    }
    drawn
}

#[test]
fn values_labels_units_and_limits_are_on_it() {
    let values = [8.4, 150_000.0];
    let svg = Sheet::new("overhead")
        .line("a machine")
        .bars(bars(Axis::log("ns per iteration"), "greedy", &values))
        .lines(lines(Axis::linear("kernels"), Axis::linear("Gsamples/s"), "pinned", &[1.0, 2.0, 3.0]))
        .to_svg();
    check(&svg);
    let document = Document::parse(&svg).expect("XML");
    let texts: Vec<&str> = document
        .descendants()
        .filter(|node| node.has_tag_name("text"))
        .filter_map(|node| node.text())
        .collect();
    for text in
        ["overhead", "a machine", "ns per iteration (logarithmic)", "kernels", "Gsamples/s", "8.4", "greedy"]
    {
        assert!(texts.contains(&text), "{text}: {texts:?}");
    }
    let limits = document.descendants().filter(|node| node.attribute("class") == Some("limit")).count();
    // One across each bar, and one that explains them.
    assert_eq!(limits, 2 * values.len() + 1);
}

#[test]
fn longer_bars_are_for_larger_values() {
    let svg = Sheet::new("").bars(bars(Axis::log("ns"), "x", &[1.0, 10.0, 100.0])).to_svg();
    let document = Document::parse(&svg).expect("XML");
    let widths: Vec<f64> = document
        .descendants()
        .filter(|node| node.has_tag_name("rect") && node.has_attribute("fill") && node.has_children())
        .map(|node| number(node, "width"))
        .collect();
    assert_eq!(widths.len(), 6);
    assert!(widths[0] < widths[1] && widths[1] < widths[2], "{widths:?}");
}

#[test]
fn nothing_to_show_is_still_a_plot() {
    for axis in [Axis::linear("a"), Axis::log("b")] {
        let svg = Sheet::new("")
            .bars(bars(axis.clone(), "", &[]))
            .lines(lines(axis.clone(), axis, "", &[]))
            .to_svg();
        assert!(check(&svg) > 0);
    }
}

proptest! {
    #[test]
    fn any_values_and_names_are_well_formed(
        values in proptest::collection::vec(proptest::num::f64::ANY, 0..8),
        name in any::<String>(),
        log in any::<bool>(),
    ) {
        let axis = || if log { Axis::log(&*name) } else { Axis::linear(&*name) };
        let sheet = Sheet::new(name.clone()).bars(bars(axis(), &name, &values)).lines(lines(axis(), axis(), &name, &values));
        check(&sheet.to_svg());
    }
}

#[test]
fn a_figure_is_the_median_with_its_range() {
    let figure = |runs: &[f64]| {
        Figure::of(runs, "ns").map(|figure| (figure.value, figure.min, figure.max, figure.runs))
    };
    assert_eq!(figure(&[3.0, 1.0, 2.0]), Some((2.0, 1.0, 3.0, 3)));
    assert_eq!(figure(&[4.0, 1.0]), Some((2.5, 1.0, 4.0, 2)));
    assert_eq!(figure(&[7.0]), Some((7.0, 7.0, 7.0, 1)));
    assert_eq!(figure(&[f64::NAN, 7.0, f64::INFINITY]), Some((7.0, 7.0, 7.0, 1)));
    assert_eq!(figure(&[]), None);
    assert_eq!(figure(&[f64::NAN]), None);
}

#[test]
fn the_form_of_every_bench_is_this_one() {
    let mut result = BenchResult::new("overhead", Machine::default());
    result.parameters.insert("runs".into(), 2.into());
    result.add("steady.greedy.tx_rx", &[9.5, 8.0], "ns");
    result.add("nothing", &[], "ns");
    result.notes.push("quiet".into());
    let json = serde_json::to_value(&result).expect("plain data");
    let keys: Vec<&String> = json.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["bench", "machine", "parameters", "figures", "notes", "raw"]);
    let expected = serde_json::json!({
        "steady.greedy.tx_rx": { "value": 8.75, "unit": "ns", "min": 8.0, "max": 9.5, "runs": 2 }
    });
    assert_eq!(json["figures"], expected);
    assert_eq!(json["raw"], serde_json::json!({ "steady.greedy.tx_rx": [9.5, 8.0] }));
    assert_eq!(serde_json::from_value::<BenchResult>(json).expect("the same"), result);
}
