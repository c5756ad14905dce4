//! Construction of a graph from the entries of a file: makes the operators and expands the subgraphs.

use super::entries::{EdgeEntry, Entries, OperatorEntry, PathEntry, SubgraphEntry};
use super::error::Fault;
use super::on_error;
use super::overrides::Setting;
use super::parameters::{self, KnownKeys};
use super::section::Section;
use super::when;
use super::written::OperatorPlace;
use crate::base::wording::{list, near, quoted};
use crate::graph::Graph;
use crate::graph::kind::{Folders, Registry};
use crate::graph::limits::OnMiss;
use crate::graph::values::NamedValues;
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};
use toml::Spanned;
use toml::de::DeTable;

/// Most operators of a file, including those of its subgraphs at each use.
const OPERATORS: usize = 100_000;
/// Most nested subgraphs.
const DEPTH: usize = 64;

/// Places in the file of the parts of a graph.
#[derive(Default)]
pub(super) struct Places {
    /// Places of the operators, by full name.
    pub operators: HashMap<String, OperatorPlace>,
    /// Places of the edges, in the order of the graph's edges.
    pub edges: Vec<EdgeEntry>,
    pub paths: Vec<PathEntry>,
}

/// A graph, the places of its parts in the file, and the operators with their parameters for the record.
pub(super) struct Built {
    pub graph: Graph,
    pub places: Places,
    pub operators: Vec<Value>,
}

/// State that all operators of a file share while the graph is built.
pub(super) struct Builder<'b, 'a, 'i> {
    registry: &'b Registry,
    folders: &'b Folders,
    subgraphs: &'b HashMap<String, SubgraphEntry<'a, 'i>>,
    /// Settings by full name of the operator, and whether the operator was found.
    settings: HashMap<&'i str, (Vec<Setting<'i>>, bool)>,
    keys: KnownKeys,
    used: HashSet<&'b str>,
    places: Places,
    operators: Vec<Value>,
    /// Parameters that can be changed during a run.
    values: NamedValues,
}

/// Operators and edges of one level: the file's own, or those of a subgraph.
struct Level<'b, 'a, 'i> {
    operators: &'b [OperatorEntry<'a, 'i>],
    edges: &'b [EdgeEntry],
    /// "radio/" within the subgraph that is used as `radio`.
    prefix: &'b str,
    /// Names of the enclosing subgraphs, outermost first.
    within: &'b [&'b str],
}

pub(super) fn build<'i>(
    name: &str,
    entries: Entries<'_, 'i>,
    settings: Vec<Setting<'i>>,
    registry: &Registry,
    folders: &Folders,
) -> Result<Built, Fault> {
    let mut by_operator: HashMap<&str, (Vec<Setting<'i>>, bool)> = HashMap::new();
    for setting in settings {
        by_operator.entry(setting.path[0]).or_default().0.push(setting);
    }
    let mut builder = Builder {
        registry,
        folders,
        subgraphs: &entries.subgraphs,
        settings: by_operator,
        keys: KnownKeys::default(),
        used: HashSet::new(),
        places: Places::default(),
        operators: Vec::new(),
        values: Vec::new(),
    };
    for subgraph in entries.subgraphs.values() {
        builder.check_name(subgraph)?;
    }
    let mut graph = Graph::new(name);
    let level = Level { operators: &entries.operators, edges: &entries.edges, prefix: "", within: &[] };
    builder.fill(&mut graph, &level)?;
    for path in &entries.paths {
        graph.limit(path.from.get_ref(), path.to.get_ref(), path.limits);
    }
    builder.check_settings()?;
    let places = Places { paths: entries.paths, ..std::mem::take(&mut builder.places) };
    let operators = std::mem::take(&mut builder.operators);
    graph.values = std::mem::take(&mut builder.values);
    // Unused subgraphs are built too, so that mistakes in them are found now.
    for (name, subgraph) in &entries.subgraphs {
        if !builder.used.contains(name.as_str()) {
            builder.fill(&mut Graph::new(name), &Level::of(subgraph, "", &[name]))?;
        }
    }
    Ok(Built { graph, places, operators })
}

impl<'b, 'a, 'i> Level<'b, 'a, 'i> {
    fn of(subgraph: &'b SubgraphEntry<'a, 'i>, prefix: &'b str, within: &'b [&'b str]) -> Self {
        Level { operators: &subgraph.operators, edges: &subgraph.edges, prefix, within }
    }
}

impl<'b, 'i> Builder<'b, '_, 'i> {
    fn fill(&mut self, graph: &mut Graph, level: &Level<'_, '_, 'i>) -> Result<(), Fault> {
        for operator in level.operators {
            self.operator(graph, level, operator)?;
        }
        for edge in level.edges {
            let mut options =
                graph.connect_names(edge.from.get_ref(), edge.to.get_ref()).when_full(edge.when_full);
            if let Some(messages) = edge.capacity {
                options = options.capacity(messages);
            }
            if let Some(bytes) = edge.quantum {
                options = options.quantum(bytes);
            }
            if let Some(value) = &edge.initial {
                options.initial_value(value.get_ref().clone());
            }
        }
        self.places.edges.extend_from_slice(level.edges);
        Ok(())
    }

    fn operator(
        &mut self,
        graph: &mut Graph,
        level: &Level<'_, '_, 'i>,
        entry: &OperatorEntry<'_, 'i>,
    ) -> Result<(), Fault> {
        let name = entry.name.get_ref();
        let full = format!("{}{name}", level.prefix);
        let mut table = entry.table.clone();
        self.apply_settings(&full, &mut table)?;
        let what = format!("operator {}", quoted(&full));
        let section = Section { what, table: &table, span: entry.at.clone() };
        let kind: Spanned<String> = section.need("kind")?;
        self.places.operators.insert(full.clone(), OperatorPlace::new(entry.name.span(), &table));
        if self.subgraphs.contains_key(kind.get_ref()) {
            section.check_keys(&["name", "kind"])?;
            return self.subgraph(graph, level, name, &full, &kind);
        }
        let Some(known) = self.registry.get(kind.get_ref()) else { return Err(self.unknown_kind(&kind)) };
        let deadline_ns = section.time_ns("deadline")?;
        let budget_ns = section.time_ns("budget")?;
        let on_miss = section.get::<OnMiss>("on_miss")?.map(Spanned::into_inner);
        if on_miss.is_some() && deadline_ns.is_none() {
            return Err(section.needs("on_miss", "deadline"));
        }
        let cost_ns = section.time_ns("cost")?;
        self.keys.check(known, &section)?;
        let (operator, resolved) =
            parameters::make(known, &section, self.folders, &self.places.operators[&full])?;
        self.values.extend(self.keys.values(known, &full, &*operator, &resolved));
        let (on_error, on_error_shown) = on_error::on_error(&section)?;
        let conditions = when::conditions(&section, graph, self.registry, self.folders)?;
        let number = graph.add_boxed(name, known.name(), operator);
        deadline_ns.into_iter().for_each(|deadline_ns| graph.deadline_of(number, deadline_ns));
        if let Some(budget_ns) = budget_ns {
            graph.budget_of(number, budget_ns);
        }
        if let Some(on_miss) = on_miss {
            graph.on_miss_of(number, on_miss);
        }
        if let Some(cost_ns) = cost_ns {
            graph.cost_of(number, cost_ns);
        }
        let mut shown = Map::new();
        shown.insert("name".to_string(), full.into());
        shown.insert("kind".to_string(), known.name().into());
        if let Some(deadline_ns) = deadline_ns {
            shown.insert("deadline".to_string(), (deadline_ns as f64 / 1e9).into());
        }
        if let Some(budget_ns) = budget_ns {
            shown.insert("budget".to_string(), (budget_ns as f64 / 1e9).into());
        }
        if let Some(on_miss) = on_miss {
            shown.insert("on_miss".to_string(), json!(on_miss));
        }
        if let Some(cost_ns) = cost_ns {
            shown.insert("cost".to_string(), (cost_ns as f64 / 1e9).into());
        }
        graph.on_error_of(number, on_error);
        shown.extend(on_error_shown.into_iter().map(|(key, value)| (key.to_string(), value)));
        if let Some(when::ConditionTable { list, shown: conditions }) = conditions {
            list.into_iter().for_each(|condition| graph.when_of(number, condition));
            shown.insert("when".to_string(), conditions);
        }
        if let Value::Object(parameters) = resolved {
            shown.extend(parameters);
        }
        self.operators.push(Value::Object(shown));
        if self.operators.len() > OPERATORS {
            let message =
                format!("the pipeline has more than {OPERATORS} operators, including those of its subgraphs");
            return Err(Fault::at(entry.name.span(), message));
        }
        Ok(())
    }

    fn subgraph(
        &mut self,
        graph: &mut Graph,
        level: &Level<'_, '_, 'i>,
        name: &str,
        full: &str,
        kind: &Spanned<String>,
    ) -> Result<(), Fault> {
        let (key, subgraph) = self.subgraphs.get_key_value(kind.get_ref()).expect("the caller has looked");
        let within: Vec<&str> = level.within.iter().copied().chain([key.as_str()]).collect();
        if level.within.contains(&key.as_str()) {
            let message = format!("subgraph `{key}` contains itself: {}", within.join(" → "));
            return Err(Fault::at(kind.span(), message));
        }
        if within.len() > DEPTH {
            return Err(Fault::at(
                kind.span(),
                format!("there are more than {DEPTH} subgraphs within each other"),
            ));
        }
        self.used.insert(key);
        let mut inner = Graph::new(key);
        self.fill(&mut inner, &Level::of(subgraph, &format!("{full}/"), &within))?;
        for (outside, port) in &subgraph.ports {
            inner.expose(outside, port);
        }
        graph.add_graph(name, inner);
        Ok(())
    }

    fn check_name(&self, subgraph: &SubgraphEntry<'_, '_>) -> Result<(), Fault> {
        let name = subgraph.name.get_ref();
        if self.registry.get(name).is_none() {
            return Ok(());
        }
        Err(Fault::at(subgraph.name.span(), format!("a subgraph cannot be called {}", quoted(name)))
            .help("an operator kind has this name"))
    }

    fn unknown_kind(&self, kind: &Spanned<String>) -> Fault {
        let known = self.registry.names().chain(self.subgraphs.keys().map(String::as_str));
        let hint = near(kind.get_ref(), known);
        let fault =
            Fault::at(kind.span(), format!("there is no operator kind {}{hint}", quoted(kind.get_ref())));
        if !hint.is_empty() {
            return fault;
        }
        if kind.get_ref() == "python" {
            return fault.help(
                "operators in Python need the Python package: `python3 -m onbeat run FILE` has this kind",
            );
        }
        fault.help("`onbeat operators` lists all, with `--find WORD` those about it; one of your own is known to the command of its crate only")
    }

    fn apply_settings(&mut self, full: &str, table: &mut DeTable<'i>) -> Result<(), Fault> {
        let Some((settings, found)) = self.settings.get_mut(full) else { return Ok(()) };
        *found = true;
        for setting in settings {
            if setting.path[1] == "name" {
                return Err(Fault::at(
                    setting.span.clone(),
                    "the name of an operator cannot be set: edges use it",
                ));
            }
            setting.apply(table, 1)?;
        }
        Ok(())
    }

    /// Checks that each setting has found its operator.
    fn check_settings(&self) -> Result<(), Fault> {
        let lost = self.settings.values().filter(|(_, found)| !found).flat_map(|(settings, _)| settings);
        let Some(setting) = lost.min_by_key(|setting| setting.span.start) else { return Ok(()) };
        let name = setting.path[0];
        let names: Vec<&str> = self.places.operators.keys().map(String::as_str).collect();
        if ["edge", "path", "pool", "subgraph"].contains(&name) {
            let text = format!("{} is a list, and its entries have no names here", quoted(name));
            let help = "keys at the top and keys of operators can be set; change the others in the file";
            return Err(Fault::at(setting.span.clone(), text).help(help));
        }
        let hint = near(name, names.iter().copied());
        let fault = Fault::at(setting.span.clone(), format!("there is no operator {}{hint}", quoted(name)));
        if hint.is_empty() && names.len() <= 20 {
            let mut names = names;
            names.sort_unstable();
            return Err(fault.help(format!("there are {}", list(&names))));
        }
        Err(fault)
    }
}
