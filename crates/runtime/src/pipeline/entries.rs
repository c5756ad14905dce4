//! Contents of the file before anything is built: its header and its tables.

use super::error::Fault;
use super::section::{Section, type_words};
use super::source::Source;
use crate::base::options::{CoreList, Options, Pace};
use crate::base::wording::quoted;
use crate::graph::limits::{OnMiss, PathLimits};
use crate::operator::message::Value;
use onbeat_trace::record::WhenFull;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::PathBuf;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub(super) const TOP_KEYS: [&str; 33] = [
    "name",
    "scheduler",
    "cores",
    "workers",
    "share",
    "idle",
    "house_keeping",
    "policy",
    "lock_memory",
    "prefault",
    "huge_pages",
    "numa",
    "timer_slack",
    "dma_latency",
    "force",
    "clock",
    "scale",
    "strict",
    "watchdog",
    "on_hang",
    "explain",
    "output",
    "control",
    "duration",
    "pace",
    "sync_files",
    "store",
    "defaults",
    "pool",
    "operator",
    "edge",
    "path",
    "subgraph",
];

/// Values of the top level, without its tables.
pub(super) struct Header {
    pub name: String,
    pub options: Options,
    pub output: PathBuf,
    pub control: Option<PathBuf>,
}

/// `[[operator]]`. Its kind determines which other keys it may have.
pub(super) struct OperatorEntry<'a, 'i> {
    pub name: Spanned<String>,
    pub table: &'a DeTable<'i>,
    /// Place of its head.
    pub at: Range<usize>,
}

/// `[[edge]]`
#[derive(Clone)]
pub(super) struct EdgeEntry {
    pub from: Spanned<String>,
    pub to: Spanned<String>,
    pub capacity: Option<usize>,
    pub quantum: Option<usize>,
    pub when_full: WhenFull,
    pub initial: Option<Spanned<Value>>,
    pub capacity_at: Option<Range<usize>>,
    pub quantum_at: Option<Range<usize>>,
}

/// `[[path]]`
pub(super) struct PathEntry {
    pub from: Spanned<String>,
    pub to: Spanned<String>,
    pub limits: PathLimits,
}

/// `[[subgraph]]`
pub(super) struct SubgraphEntry<'a, 'i> {
    pub name: Spanned<String>,
    pub operators: Vec<OperatorEntry<'a, 'i>>,
    pub edges: Vec<EdgeEntry>,
    /// Names of exposed ports, and the inner ports that they stand for.
    pub ports: Vec<(String, String)>,
}

/// Tables of a file.
pub(super) struct Entries<'a, 'i> {
    pub operators: Vec<OperatorEntry<'a, 'i>>,
    pub edges: Vec<EdgeEntry>,
    pub paths: Vec<PathEntry>,
    pub subgraphs: HashMap<String, SubgraphEntry<'a, 'i>>,
}

pub(super) fn top<'a, 'i>(value: &'a Spanned<DeValue<'i>>) -> Result<Section<'a, 'i>, Fault> {
    Section::new("the pipeline", value, &TOP_KEYS)
}

impl Header {
    pub fn read(top: &Section<'_, '_>, file_stem: &str) -> Result<Self, Fault> {
        let name = match top.get::<String>("name")? {
            Some(name) => check_pipeline_name(name)?,
            None => file_stem.to_string(),
        };
        let mut options = Options::default();
        set(&mut options.scheduler, top.get("scheduler")?);
        if let Some(cores) = top.get::<CoreList>("cores")? {
            options.cores = cores.into_inner().0;
        }
        if let Some(cores) = top.get::<CoreList>("house_keeping")? {
            options.house_keeping = cores.into_inner().0;
        }
        options.workers = top.get::<usize>("workers")?.map(Spanned::into_inner);
        set(&mut options.share, top.get("share")?);
        set(&mut options.idle, top.get("idle")?);
        super::pools::read(top, &mut options)?;
        set(&mut options.clock, top.get("clock")?);
        set(&mut options.scale, top.get("scale")?);
        set(&mut options.strict, top.get("strict")?);
        if let Some(limit_ns) = watchdog(top)? {
            options.watchdog_ns = limit_ns;
        }
        set(&mut options.on_hang, top.get("on_hang")?);
        set(&mut options.explain, top.get("explain")?);
        options.pace = top.get::<Pace>("pace")?.map(Spanned::into_inner);
        set(&mut options.sync_files, top.get("sync_files")?);
        options.duration_ns = top.time_ns("duration")?;
        options.store_bytes = top.bytes("store")?.unwrap_or(options.store_bytes);
        if let Some(defaults) = top.raw("defaults") {
            let defaults = Section::new("[defaults]", defaults, &["capacity", "quantum"])?;
            options.capacity = defaults.capacity()?.unwrap_or(options.capacity);
            options.quantum = defaults.bytes("quantum")?.unwrap_or(options.quantum);
        }
        let mut output = PathBuf::from("out");
        set(&mut output, top.get("output")?);
        let control = top.get("control")?.map(check_socket_name).transpose()?;
        Ok(Header { name, options, output, control })
    }
}

pub(super) fn set<T>(place: &mut T, value: Option<Spanned<T>>) {
    if let Some(value) = value {
        *place = value.into_inner();
    }
}

/// A time, or `"off"`.
fn watchdog(top: &Section<'_, '_>) -> Result<Option<Option<u64>>, Fault> {
    const LEAST_NS: u64 = 10_000_000;
    let Some(value) = top.raw("watchdog") else { return Ok(None) };
    if value.get_ref().as_str() == Some("off") {
        return Ok(Some(None));
    }
    match top.time_ns("watchdog").map_err(|fault| fault.help("a time such as \"10 s\", or \"off\""))? {
        Some(limit_ns) if limit_ns < LEAST_NS => {
            Err(Fault::at(value.span(), "`watchdog` of the pipeline: it must be 10 ms or more, or \"off\""))
        }
        limit_ns => Ok(Some(limit_ns)),
    }
}

/// Checks the name of the pipeline, after which files are named.
fn check_pipeline_name(name: Spanned<String>) -> Result<String, Fault> {
    let text = name.get_ref();
    let wrong = text.trim().is_empty() || text.starts_with('.') || text.len() > 200;
    if wrong || text.contains(|c: char| c == '/' || c.is_control()) {
        return Err(Fault::at(name.span(), format!("{} cannot name a pipeline", quoted(text)))
            .help("files are named after it: up to 200 bytes without `/`, and no `.` at the beginning"));
    }
    Ok(name.into_inner())
}

/// Refuses socket names that the system would refuse, before anything starts.
fn check_socket_name(name: Spanned<String>) -> Result<PathBuf, Fault> {
    const LIMIT: usize = onbeat_os::local::PATH_MAX_BYTES;
    let text = name.get_ref();
    let wrong = match text.len() {
        0 => "it is empty".to_string(),
        _ if text.contains('\0') => "it holds a zero byte".to_string(),
        _ if text.ends_with('/') => "it is a folder".to_string(),
        bytes if bytes > LIMIT => {
            format!("it has {bytes} bytes, and the name of a socket has at most {LIMIT}")
        }
        _ => return Ok(PathBuf::from(name.into_inner())),
    };
    Err(Fault::at(name.span(), format!("`control` of the pipeline: {wrong}"))
        .help("the name of a socket, relative to where you are: control = \"out/fm.ctl\""))
}

impl<'a, 'i> Entries<'a, 'i> {
    pub fn read(top: &Section<'a, 'i>, source: &Source<'_>) -> Result<Self, Fault> {
        let mut subgraphs: HashMap<String, SubgraphEntry<'a, 'i>> = HashMap::new();
        for value in top.tables("subgraph")? {
            let subgraph = SubgraphEntry::read(value, source)?;
            let name = subgraph.name.clone();
            if let Some(first) = subgraphs.insert(name.get_ref().clone(), subgraph) {
                let line = source.line(&first.name.span());
                return Err(Fault::at(
                    name.span(),
                    format!("two subgraphs are called {}", quoted(name.get_ref())),
                )
                .help(format!("the other one is in line {line}")));
            }
        }
        Ok(Entries {
            operators: operators(top.tables("operator")?, source)?,
            edges: edges(top.tables("edge")?)?,
            paths: top.tables("path")?.iter().map(PathEntry::read).collect::<Result<_, _>>()?,
            subgraphs,
        })
    }
}

fn operators<'a, 'i>(
    values: &'a [Spanned<DeValue<'i>>],
    source: &Source<'_>,
) -> Result<Vec<OperatorEntry<'a, 'i>>, Fault> {
    let mut seen: HashMap<String, Range<usize>> = HashMap::new();
    let mut entries = Vec::with_capacity(values.len());
    for value in values {
        let DeValue::Table(table) = value.get_ref() else {
            let found = type_words(value.get_ref());
            return Err(Fault::at(value.span(), format!("an operator: expected a table, found {found}")));
        };
        let section = Section { what: "an operator".to_string(), table, span: value.span() };
        let name = section.need::<String>("name")?;
        check_operator_name(&name)?;
        if let Some(first) = seen.insert(name.get_ref().clone(), name.span()) {
            let fault =
                Fault::at(name.span(), format!("two operators are called {}", quoted(name.get_ref())));
            return Err(
                fault.help(format!("names are unique; the other one is in line {}", source.line(&first)))
            );
        }
        entries.push(OperatorEntry { name, table, at: value.span() });
    }
    Ok(entries)
}

fn check_operator_name(name: &Spanned<String>) -> Result<(), Fault> {
    let text = name.get_ref();
    if text.is_empty()
        || text.contains(|c: char| matches!(c, '.' | '/') || c.is_whitespace() || c.is_control())
    {
        return Err(Fault::at(name.span(), format!("{} cannot name an operator", quoted(text)))
            .help("a name has at least one character, and no `.`, `/`, blank or line break"));
    }
    Ok(())
}

fn edges(values: &[Spanned<DeValue<'_>>]) -> Result<Vec<EdgeEntry>, Fault> {
    values.iter().map(EdgeEntry::read).collect()
}

impl EdgeEntry {
    fn read(value: &Spanned<DeValue<'_>>) -> Result<Self, Fault> {
        let edge =
            Section::new("an edge", value, &["from", "to", "capacity", "when_full", "quantum", "initial"])?;
        Ok(EdgeEntry {
            from: edge.need("from")?,
            to: edge.need("to")?,
            capacity: edge.capacity()?,
            quantum: edge.bytes("quantum")?,
            when_full: edge.get("when_full")?.map_or(WhenFull::Wait, Spanned::into_inner),
            initial: edge.get("initial")?,
            capacity_at: edge.raw("capacity").map(Spanned::span),
            quantum_at: edge.raw("quantum").map(Spanned::span),
        })
    }
}

impl PathEntry {
    fn read(value: &Spanned<DeValue<'_>>) -> Result<Self, Fault> {
        let path = Section::new("a path", value, &["from", "to", "max_latency", "max_in_flight", "on_miss"])?;
        let limits = PathLimits {
            max_latency_ns: path.time_ns("max_latency")?,
            max_in_flight: path.in_flight("max_in_flight")?,
            on_miss: path.get("on_miss")?.map_or(OnMiss::Record, Spanned::into_inner),
        };
        if limits.on_miss != OnMiss::Record && limits.max_latency_ns.is_none() {
            return Err(path.needs("on_miss", "max_latency"));
        }
        Ok(PathEntry { from: path.need("from")?, to: path.need("to")?, limits })
    }
}

impl<'a, 'i> SubgraphEntry<'a, 'i> {
    fn read(value: &'a Spanned<DeValue<'i>>, source: &Source<'_>) -> Result<Self, Fault> {
        let keys = ["name", "inputs", "outputs", "operator", "edge"];
        let section = Section::new("a subgraph", value, &keys)?;
        let name: Spanned<String> = section.need("name")?;
        let what = format!("subgraph {}", quoted(name.get_ref()));
        let section = Section { what: what.clone(), ..section };
        let operators = operators(section.tables("operator")?, source)?;
        if operators.is_empty() {
            return Err(Fault::at(name.span(), format!("{what} has no operators"))
                .help("write them below it, as [[subgraph.operator]]"));
        }
        let (mut ports, mut seen) = (Vec::new(), HashSet::new());
        for side in ["inputs", "outputs"] {
            let Some(value) = section.raw(side) else { continue };
            let what = format!("`{side}` of {what}");
            let DeValue::Table(table) = value.get_ref() else {
                let found = type_words(value.get_ref());
                return Err(Fault::at(value.span(), format!("{what}: expected a table, found {found}"))
                    .help(format!("such as {side} = {{ in = \"channel.in\" }}")));
            };
            let names = Section { what, table, span: value.span() };
            for outer in table.keys() {
                let inner: Spanned<String> = names.need(outer.get_ref())?;
                let text = outer.get_ref().to_string();
                if text.is_empty() || text.contains(['.', '/']) || !seen.insert(text.clone()) {
                    return Err(Fault::at(outer.span(), format!("{} cannot name a port of {}", quoted(&text), section.what))
                        .help("the name of a port has no `.` or `/`, and no input and output of one subgraph share it"));
                }
                ports.push((text, inner.into_inner()));
            }
        }
        Ok(SubgraphEntry { operators, edges: edges(section.tables("edge")?)?, ports, name })
    }
}
