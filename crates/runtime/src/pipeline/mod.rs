//! Pipelines as TOML files.
//!
//! | file | contents |
//! |---|---|
//! | `source` | the file and the settings as one text, so that every value knows where it was written |
//! | `overrides` | settings from outside: `--set` |
//! | `section` | one table, key by key |
//! | `entries` | contents of the file, before anything is built |
//! | `pools` | `[[pool]]`, and the keys for the machine |
//! | `build`, `parameters` | construction of the graph |
//! | `locate` | place in the file of a mistake in the graph |
//! | `rates` | sample rates that follow from the parameters |
//! | `written` | places of the operators, for mistakes that show later |
//! | `error` | [`PipelineError`] |

mod build;
mod check;
mod entries;
mod error;
mod locate;
mod on_error;
mod overrides;
mod parameters;
mod pools;
mod rates;
mod section;
mod source;
mod when;
mod written;

use crate::base::options::Options;
use crate::graph::Graph;
use crate::graph::kind::{Folders, Registry};
use crate::plan::{GraphError, Plan};
use build::{Built, build};
use entries::{Entries, Header};
use error::Fault;
pub use error::PipelineError;
use onbeat_trace::record::InFlightLimit;
pub use overrides::Overrides;
use rates::Rates;
use serde_json::{Value, json};
use source::Source;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};
pub use written::Written;

/// Most bytes of a pipeline file.
const FILE_BYTES: u64 = 16 << 20;

/// A pipeline that was read from TOML, checked and planned.
///
/// ```
/// use onbeat_runtime::{Folders, Input, Kind, Operator, Output, Overrides, Pipeline, Ports, Registry, Step};
/// # use onbeat_runtime::{Context, Error};
/// # #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
/// # struct Count { to: u64 }
/// # struct Source { out: Output<u64>, next: u64, to: u64 }
/// # impl Operator for Source {
/// #     fn ports(&mut self, p: &mut Ports) { p.output("out", &mut self.out); }
/// #     fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
/// #         if self.next == self.to { return Ok(Step::Done); }
/// #         self.next += 1;
/// #         self.out.push(cx, self.next)?;
/// #         Ok(Step::Again)
/// #     }
/// # }
/// # struct Sink { input: Input<u64> }
/// # impl Operator for Sink {
/// #     fn ports(&mut self, p: &mut Ports) { p.input("in", &mut self.input); }
/// #     fn step(&mut self, cx: &mut Context) -> Result<Step, Error> { self.input.pop(cx); Ok(Step::Wait) }
/// # }
/// # #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
/// # struct Nothing {}
/// # let mut registry = Registry::default();
/// # registry.add(Kind::new("count", "counts", "to = 3", |p: &Count, _: &Folders| {
/// #     Ok(Source { out: Output::default(), next: 0, to: p.to })
/// # }));
/// # registry.add(Kind::new("end", "takes", "", |_: &Nothing, _: &Folders| {
/// #     Ok(Sink { input: Input::default() })
/// # }));
/// let text = r#"
/// [[operator]]
/// name = "numbers"
/// kind = "count"
/// to = 3
///
/// [[operator]]
/// name = "end"
/// kind = "end"
///
/// [[edge]]
/// from = "numbers.out"
/// to = "end.in"
/// "#;
/// let mut overrides = Overrides::default();
/// overrides.set("numbers.to=5");
/// let pipeline = Pipeline::parse(text, "count.toml", ".", &registry, &overrides)?;
/// assert_eq!(pipeline.plan.workers[0].operators, ["numbers", "end"]);
/// let record = pipeline.start()?.wait()?;
/// assert_eq!(record.edges[0].received, 5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Pipeline {
    /// Operators and edges. The graph carries the resolved configuration for the record.
    pub graph: Graph,
    /// Options of a run.
    pub options: Options,
    /// Folder for the files of sinks and for the record, relative to the current directory.
    pub output: PathBuf,
    /// Path of the socket that serves and controls the run, relative to the current directory:
    /// see [`ControlSocket`](crate::ControlSocket).
    pub control: Option<PathBuf>,
    /// Placement of the operators, made of `graph` and `options`.
    pub plan: Plan,
    /// Where its operators are written.
    pub written: Written,
}

impl Pipeline {
    /// The keys and tables of a pipeline file.
    pub const KEYS: &'static [&'static str] = &entries::TOP_KEYS;

    /// Reads, checks and plans the pipeline in the file `path`; `-` is stdin. No file that it names is
    /// opened.
    ///
    /// # Errors
    /// When the file cannot be read, or anything in it or in `overrides` is wrong.
    pub fn read(
        path: impl AsRef<Path>,
        registry: &Registry,
        overrides: &Overrides,
    ) -> Result<Self, PipelineError> {
        let path = path.as_ref();
        let shown = path.display().to_string();
        let text = read_text(path).map_err(|reason| PipelineError::whole(&shown, reason))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::parse(&text, &shown, folder, registry, overrides)
    }

    /// Names of gates that are closed at the start.
    pub fn closed_gates(&self) -> Vec<&str> {
        self.graph.gates.iter().filter(|(_, gate)| !gate.is_open()).map(|(name, _)| name.as_str()).collect()
    }

    /// Does the same as [`read`](Pipeline::read) for a text, which messages call `file`.
    /// Paths of files that its operators read are relative to `folder`.
    ///
    /// # Errors
    /// When anything in it or in `overrides` is wrong.
    pub fn parse(
        text: &str,
        file: &str,
        folder: impl AsRef<Path>,
        registry: &Registry,
        overrides: &Overrides,
    ) -> Result<Self, PipelineError> {
        let source = Source::new(file, text, overrides);
        let stem = Path::new(file).file_stem().filter(|stem| *stem != "-");
        let stem = stem.map_or("pipeline".into(), |stem| stem.to_string_lossy());
        read_pipeline(&source, &stem, folder.as_ref(), registry).map_err(|fault| source.error(fault))
    }

    /// Plans the pipeline again with measured costs of its operators: see [`Options::costs`].
    ///
    /// # Errors
    /// When the plan with these costs fails.
    pub fn with_costs(mut self, costs: BTreeMap<String, f64>) -> Result<Self, GraphError> {
        self.options.costs = costs;
        self.plan = self.graph.plan(&self.options)?;
        Ok(self)
    }

    /// Name of the pipeline: its `name`, or that of the file.
    pub fn name(&self) -> &str {
        self.graph.name()
    }

    /// Operators as the record shows them: `name`, `kind`, and their parameters with the defaults filled in.
    pub fn operators(&self) -> &[Value] {
        self.graph.config["operator"].as_array().map_or(&[], Vec::as_slice)
    }
}

fn read_text(path: &Path) -> Result<String, String> {
    let cannot = |error: std::io::Error| format!("cannot be read: {error}");
    if path == Path::new("-") {
        return text_of(std::io::stdin().lock());
    }
    // This comes first, because opening a pipe waits for a writer.
    let found = std::fs::metadata(path).map_err(cannot)?.file_type();
    if !found.is_file() {
        let what = if found.is_dir() { "a folder" } else { "a pipe, a socket or a device" };
        return Err(format!("cannot be read: it is {what}, not a regular file"));
    }
    text_of(std::fs::File::open(path).map_err(cannot)?)
}

fn text_of(file: impl Read) -> Result<String, String> {
    let cannot = |error: std::io::Error| format!("cannot be read: {error}");
    let mut bytes = Vec::new();
    file.take(FILE_BYTES + 1).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() as u64 > FILE_BYTES {
        return Err(format!("is larger than {} MiB: is it a pipeline?", FILE_BYTES >> 20));
    }
    String::from_utf8(bytes).map_err(|error| {
        format!("is not UTF-8 text: see its byte {}; is it a pipeline?", error.utf8_error().valid_up_to())
    })
}

fn read_pipeline(
    source: &Source<'_>,
    stem: &str,
    folder: &Path,
    registry: &Registry,
) -> Result<Pipeline, Fault> {
    let mut root = source.parse()?;
    // A key without an operator is a key of the top level.
    let (settings_of_top, settings) = source.settings()?.into_iter().partition::<Vec<_>, _>(|setting| {
        setting.path.len() == 1 || setting.path[0] == "defaults" || pools::is_for_a_pool(setting, &root)
    });
    for setting in &settings_of_top {
        if let [name] = setting.path[..]
            && !entries::TOP_KEYS.contains(&name)
            && has_operator(&root, name)
        {
            let fault = Fault::at(
                setting.span.clone(),
                format!("{} is an operator", crate::base::wording::quoted(name)),
            );
            return Err(fault.help(format!("say which of its keys: {name}.KEY=VALUE")));
        }
        match pools::is_for_a_pool(setting, &root) {
            true => pools::apply(setting, &mut root)?,
            false => setting.apply(&mut root, 0)?,
        }
    }
    let root = Spanned::new(0..0, DeValue::Table(root));
    let top = entries::top(&root)?;
    let Header { name, options, output, control } = Header::read(&top, stem)?;
    let entries = Entries::read(&top, source)?;
    let folders = Folders { input: folder.to_path_buf(), output };
    let Built { mut graph, places, operators } = build(&name, entries, settings, registry, &folders)?;
    let rates = Rates::of(&mut graph);
    rates.count_initial(&mut graph, &places)?;
    let plan =
        graph.plan(&options).map_err(|error| locate::located(&error, &graph, &places, &top, registry))?;
    rates.check(&graph, &places)?;
    graph.set_config(config(&plan, &options, &folders.output, control.as_deref(), &operators));
    let written = Written::new(source, places.operators);
    Ok(Pipeline { graph, options, output: folders.output, control, plan, written })
}

/// Whether the file has an operator of this name.
fn has_operator(root: &DeTable<'_>, name: &str) -> bool {
    let operators = root.get("operator").and_then(|value| match value.get_ref() {
        DeValue::Array(operators) => Some(operators),
        _ => None,
    });
    let is_named = |operator: &Spanned<DeValue<'_>>| match operator.get_ref() {
        DeValue::Table(table) => table
            .get("name")
            .is_some_and(|found| matches!(found.get_ref(), DeValue::String(text) if text == name)),
        _ => false,
    };
    operators.is_some_and(|operators| operators.iter().any(is_named))
}

/// Configuration of the run: defaults filled in, settings applied, subgraphs expanded. Keys are those of the
/// file. Quantities are plain numbers in seconds and bytes.
fn config(
    plan: &Plan,
    options: &Options,
    output: &Path,
    control: Option<&Path>,
    operators: &[Value],
) -> Value {
    let seconds = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e9);
    let edges = plan.edges.iter().map(|edge| {
        json!({
            "from": edge.from,
            "to": edge.to,
            "capacity": edge.capacity,
            "when_full": edge.when_full,
            "quantum": edge.quantum_bytes,
            "initial": (edge.initial > 0).then_some(edge.initial),
        })
    });
    let paths = plan.paths.iter();
    let paths = paths.map(|path| {
        let max_in_flight = match path.max_in_flight {
            Some(InFlightLimit::Messages(messages)) => json!(messages),
            Some(InFlightLimit::Time(ns)) => json!(ns as f64 / 1e9),
            None => Value::Null,
        };
        json!({
            "from": path.from,
            "to": path.to,
            "max_latency": seconds(path.max_latency_ns),
            "max_in_flight": max_in_flight,
            "on_miss": path.on_miss,
        })
    });
    json!({
        "name": plan.name,
        "scheduler": options.scheduler,
        "cores": options.cores,
        "house_keeping": options.house_keeping,
        "workers": options.workers,
        "share": options.share,
        "idle": options.idle,
        "policy": options.policy.map(|policy| policy.to_string()),
        "lock_memory": options.lock_memory,
        "prefault": options.prefault,
        "huge_pages": options.huge_pages,
        "numa": options.numa,
        "timer_slack": seconds(options.timer_slack_ns),
        "dma_latency": options.dma_latency_us.map(|us| f64::from(us) / 1e6),
        "force": options.force,
        "clock": options.clock,
        "scale": options.scale,
        "strict": options.strict,
        "watchdog": options.watchdog_ns.map_or(json!("off"), |limit_ns| json!(limit_ns as f64 / 1e9)),
        "on_hang": options.on_hang,
        "explain": options.explain,
        "output": output,
        "control": control,
        "duration": seconds(options.duration_ns),
        "pace": options.pace,
        "sync_files": options.sync_files,
        "store": options.store_bytes,
        "defaults": { "capacity": options.capacity, "quantum": options.quantum },
        "pool": pools::config(options),
        "operator": operators,
        "edge": edges.collect::<Vec<_>>(),
        "path": paths.collect::<Vec<_>>(),
    })
}
