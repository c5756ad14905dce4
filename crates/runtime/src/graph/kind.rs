//! Kinds of operators by name, for pipeline files.

use crate::Error;
use crate::operator::Operator;
use crate::operator::ports::{Described, Ports};
use crate::operator::when::Condition;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::DeTable;

/// Folders of the files that a pipeline reads and writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folders {
    /// Folder of input files with relative names: the one of the pipeline file. A file that is not there is
    /// searched in the current folder, where names typed with `--set` begin.
    pub input: PathBuf,
    /// Folder of output files with relative names.
    pub output: PathBuf,
}

impl Folders {
    /// Returns the path of an input file: next to the pipeline, or in the current folder if it exists only
    /// there.
    pub fn input(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        let beside = self.input.join(path);
        // A dangling link counts as existing.
        let is_there = |path: &Path| path.symlink_metadata().is_ok();
        if !is_there(&beside) && is_there(path) { path.to_path_buf() } else { beside }
    }

    /// Returns the path of an output file.
    pub fn output(&self, path: impl AsRef<Path>) -> PathBuf {
        self.output.join(path)
    }
}

/// A kind of operator: its name, its parameters, and a function that makes one.
///
/// The parameters are a struct that serde reads. `onbeat operators NAME` shows its doc comments and defaults.
/// The record contains the parameters with the defaults filled in.
///
/// ```
/// use onbeat_runtime::{Context, Error, Folders, Input, Kind, Operator, Output, Ports, Registry, Step};
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
///
/// /// Multiplies.
/// #[derive(Serialize, Deserialize, JsonSchema)]
/// #[serde(deny_unknown_fields)]
/// struct Parameters {
///     /// The factor.
///     #[serde(default = "two")]
///     by: f32,
/// }
/// fn two() -> f32 { 2.0 }
///
/// struct Times { input: Input<f32>, out: Output<f32>, by: f32 }
/// impl Operator for Times {
///     fn ports(&mut self, p: &mut Ports) {
///         p.input("in", &mut self.input);
///         p.output("out", &mut self.out);
///     }
///     fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
///         if let Some(x) = self.input.pop(cx) {
///             self.out.push(cx, x * self.by)?;
///         }
///         Ok(Step::Wait)
///     }
/// }
///
/// let mut registry = Registry::default();
/// registry.add(Kind::new("times", "y = by · x", "by = 3.0", |p: &Parameters, _: &Folders| {
///     Ok(Times { input: Input::default(), out: Output::default(), by: p.by })
/// }));
/// assert!(registry.operator("times", "by = 3").is_ok());
/// let error = registry.operator("times", "by = 'much'").err().unwrap().to_string();
/// assert!(error.contains("invalid type: string"), "{error}");
/// ```
pub struct Kind {
    name: &'static str,
    summary: &'static str,
    example: &'static str,
    about: &'static str,
    schema: fn(&mut SchemaGenerator) -> Schema,
    make: Box<MakeFn>,
    /// Parameters that can be changed during a run, by their fields.
    can_set: &'static [&'static str],
}

/// An operator, and its parameters with the defaults filled in.
type Made = (Box<dyn Operator>, serde_json::Value);
type MakeFn = dyn Fn(Spanned<DeTable<'_>>, &Folders) -> Result<Made, MakeError> + Send + Sync;

/// Reason why an operator could not be made.
#[derive(Debug)]
pub enum MakeError {
    /// A parameter has the wrong type, is missing, or is not one of the known words.
    Parameter(toml::de::Error),
    /// The operator refused the values.
    Operator(Error),
}

/// Description of a port of a kind, for tables and documentation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PortInfo {
    /// Name of the port.
    pub name: String,
    /// Name of the message type.
    pub message: String,
    /// Whether it must be connected.
    pub required: bool,
    /// Whether an input takes more than one edge. An output always takes any number.
    pub many: bool,
}

impl Kind {
    /// Makes a kind called `name`. `summary` is one line. `example` is TOML of valid parameters. `make` must
    /// not open files or sockets: that is done in [`Operator::start`].
    pub fn new<P, O>(
        name: &'static str,
        summary: &'static str,
        example: &'static str,
        make: fn(&P, &Folders) -> Result<O, Error>,
    ) -> Self
    where
        P: DeserializeOwned + Serialize + JsonSchema + 'static,
        O: Operator,
    {
        let make = move |table: Spanned<DeTable<'_>>, folders: &Folders| {
            let value = P::deserialize(toml::de::Deserializer::from(table)).map_err(MakeError::Parameter)?;
            let operator = make(&value, folders).map_err(MakeError::Operator)?;
            // Through text, so that an `f32` of 0.2 stays 0.2 as an `f64`.
            let text = serde_json::to_string(&value).unwrap_or_default();
            let resolved = serde_json::from_str(&text).unwrap_or_default();
            Ok((Box::new(operator) as Box<dyn Operator>, resolved))
        };
        Kind {
            name,
            summary,
            example,
            about: "",
            schema: |generator| generator.root_schema_for::<P>(),
            make: Box::new(make),
            can_set: &[],
        }
    }

    /// Names the parameters that the operator has to be able to change.
    pub(crate) fn can_set(self, names: &'static [&'static str]) -> Self {
        Kind { can_set: names, ..self }
    }

    /// Gives the kind another summary, for another use of one operator.
    #[must_use]
    pub fn described(self, summary: &'static str) -> Self {
        Kind { summary, ..self }
    }

    /// Returns the name of the kind in files.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Gives the kind another name, for an operator that exists for several sample types.
    #[must_use]
    pub fn named(self, name: &'static str) -> Self {
        Kind { name, ..self }
    }

    /// Returns a summary of one line.
    pub fn summary(&self) -> &'static str {
        self.summary
    }

    /// Adds what a user has to know to trust its output, in Markdown: formula, reference of levels, delay,
    /// errors.
    #[must_use]
    pub fn about(mut self, text: &'static str) -> Self {
        self.about = text;
        self
    }

    /// Returns what was said with [`about`](Self::about).
    pub fn details(&self) -> &'static str {
        self.about
    }

    /// Returns valid parameters, in TOML.
    pub fn example(&self) -> &'static str {
        self.example
    }

    /// Returns the JSON Schema of its parameters: names, types, defaults and descriptions.
    pub fn schema(&self) -> Schema {
        let mut schema = (self.schema)(&mut SchemaGenerator::default());
        if let Some(object) = schema.as_object_mut() {
            object.values_mut().for_each(shorten);
        }
        schema
    }

    /// Makes an operator from parameters with their positions in the file. Returns it with its parameters,
    /// the defaults filled in.
    ///
    /// # Errors
    /// If a parameter is wrong, or the operator refuses its value.
    pub fn make(
        &self,
        parameters: Spanned<DeTable<'_>>,
        folders: &Folders,
    ) -> Result<(Box<dyn Operator>, serde_json::Value), MakeError> {
        (self.make)(parameters, folders)
    }

    /// Makes an operator from the example.
    fn sample(&self) -> Box<dyn Operator> {
        let table = DeTable::parse(self.example).expect("the example of a kind is TOML");
        let folders = Folders { input: PathBuf::new(), output: PathBuf::new() };
        let made = self.make(table, &folders);
        let operator = made.unwrap_or_else(|error| panic!("the example of `{}`: {error:?}", self.name)).0;
        let lacks = self.can_set.iter().find(|name| !operator.settable().contains(name));
        if let Some(name) = lacks {
            panic!(
                "`{}` cannot change `{name}`: write `#[operator]` over the `impl` of its trait",
                self.name
            );
        }
        operator
    }

    /// Returns the names of the parameters that can be changed during a run, for the operator of the example.
    ///
    /// # Panics
    /// Like [`ports`](Kind::ports).
    pub fn settable(&self) -> &'static [&'static str] {
        self.sample().settable()
    }

    /// Returns the inputs and outputs of the operator of the example.
    ///
    /// # Panics
    /// If the example is not valid. A test checks this for every kind.
    pub fn ports(&self) -> (Vec<PortInfo>, Vec<PortInfo>) {
        let mut operator = self.sample();
        let mut ports = Described::default();
        operator.ports(&mut Ports::describe(&mut ports));
        let inputs = ports.inputs.into_iter().map(|port| PortInfo {
            name: port.name,
            message: port.label,
            required: port.required,
            many: port.merge.is_some(),
        });
        let outputs = ports.outputs.into_iter().map(|port| PortInfo {
            name: port.name,
            message: port.label,
            required: port.required,
            many: true,
        });
        (inputs.collect(), outputs.collect())
    }
}

/// Writes numbers that were an `f32` as that: 0.1, not 0.10000000149011612.
fn shorten(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Number(number) if number.is_f64() => {
            let exact = number.as_f64().unwrap_or(0.0);
            let single = exact as f32;
            let short = single.to_string().parse().ok().and_then(serde_json::Number::from_f64);
            if let Some(short) = short.filter(|_| f64::from(single) == exact) {
                *number = short;
            }
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(shorten),
        serde_json::Value::Object(fields) => fields.values_mut().for_each(shorten),
        _ => {}
    }
}

/// The kinds of operators and conditions that a file can name.
#[derive(Default)]
pub struct Registry {
    kinds: BTreeMap<&'static str, Kind>,
    conditions: BTreeMap<&'static str, MakeCondition>,
}

/// Function that makes a condition from its table in a file.
type MakeCondition = fn(&serde_json::Value) -> Result<Box<dyn Condition>, Error>;

impl Registry {
    /// Adds a kind.
    ///
    /// # Panics
    /// If the name is taken: that is a mistake in the program.
    pub fn add(&mut self, kind: Kind) {
        let name = kind.name;
        assert!(self.kinds.insert(name, kind).is_none(), "two operator kinds are called `{name}`");
    }

    /// Adds a user-defined condition, for `when = { own = "name", … }` in files. `make` gets the whole table.
    ///
    /// # Panics
    /// If the name is taken: that is a mistake in the program.
    pub fn add_condition(
        &mut self,
        name: &'static str,
        make: fn(&serde_json::Value) -> Result<Box<dyn Condition>, Error>,
    ) {
        assert!(self.conditions.insert(name, make).is_none(), "two conditions are called `{name}`");
    }

    pub(crate) fn condition(
        &self,
        name: &str,
        table: &serde_json::Value,
    ) -> Option<Result<Box<dyn Condition>, Error>> {
        self.conditions.get(name).map(|make| make(table))
    }

    pub(crate) fn nearest_condition(&self, name: &str) -> String {
        crate::base::wording::nearest(name, self.conditions.keys().copied())
    }

    /// Makes an operator of a kind, with parameters in TOML, for a graph that is built in Rust
    /// ([`Graph::add_boxed`](crate::Graph::add_boxed)). Relative file names begin at the current folder.
    ///
    /// # Errors
    /// If there is no such kind, a parameter is wrong, or the operator refuses its value.
    pub fn operator(&self, kind: &str, parameters: &str) -> Result<Box<dyn Operator>, Error> {
        let folders = Folders { input: PathBuf::new(), output: PathBuf::new() };
        let found = self
            .get(kind)
            .ok_or_else(|| Error::new(format!("there is no operator kind `{kind}`{}", self.nearest(kind))))?;
        let wrong =
            |error: toml::de::Error| Error::new(format!("a parameter of `{kind}`: {}", error.message()));
        let table = DeTable::parse(parameters).map_err(wrong)?;
        match found.make(table, &folders) {
            Ok((operator, _)) => Ok(operator),
            Err(MakeError::Parameter(error)) => Err(wrong(error)),
            Err(MakeError::Operator(error)) => Err(error),
        }
    }

    /// Returns the kind of this name.
    pub fn get(&self, name: &str) -> Option<&Kind> {
        self.kinds.get(name)
    }

    /// Returns all kinds, sorted by name.
    pub fn kinds(&self) -> impl Iterator<Item = &Kind> {
        self.kinds.values()
    }

    /// Returns the names of all kinds, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.kinds.keys().copied()
    }

    /// Returns ": did you mean …?" for an unknown name, or an empty string if no name is similar.
    pub fn nearest(&self, name: &str) -> String {
        crate::base::wording::nearest(name, self.kinds.keys().copied())
    }
}
