//! `when` of an operator: its conditions, from tables such as `{ batch = 8, delay = "2 ms" }`.

use super::error::Fault;
use super::section::{Section, type_words};
use crate::base::wording::quoted;
use crate::graph::Graph;
use crate::graph::kind::{Folders, Registry};
use crate::operator::ticker::Overrun;
use crate::operator::when::When;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// Key that determines the kind of a condition, and the keys that may stand next to it.
const FORMS: [(&str, &[&str]); 14] = [
    ("batch", &["delay", "port"]),
    ("any", &["messages", "timeout"]),
    ("all", &["messages", "timeout"]),
    ("sum", &["messages", "timeout"]),
    ("room", &["port"]),
    ("count", &[]),
    ("gate", &["open"]),
    ("event", &[]),
    ("readable", &[]),
    ("period", &["overrun"]),
    ("chunk_room", &[]),
    ("any_of", &[]),
    ("own", &[]),
    // Last: `any`, `all` and `sum` have it as well.
    ("messages", &["port"]),
];

/// Conditions of one operator, and their form for the record.
pub(super) struct ConditionTable {
    pub list: Vec<When>,
    pub shown: Value,
}

pub(super) fn conditions(
    section: &Section<'_, '_>,
    graph: &mut Graph,
    registry: &Registry,
    folders: &Folders,
) -> Result<Option<ConditionTable>, Fault> {
    let Some(value) = section.raw("when") else { return Ok(None) };
    let what = format!("`when` of {}", section.what);
    let mut reader = Reader { graph, registry, folders, what, begins: BTreeMap::new() };
    let conditions = match value.get_ref() {
        DeValue::Table(_) => vec![reader.condition(value)?],
        DeValue::Array(array) => reader.list(array, value.span())?,
        other => {
            let found = type_words(other);
            let fault =
                Fault::at(value.span(), format!("{}: expected a condition, found {found}", reader.what));
            return Err(fault.help("such as when = { messages = 4 }, or a list of these"));
        }
    };
    let (list, shown): (Vec<When>, Vec<Value>) = conditions.into_iter().unzip();
    Ok(Some(ConditionTable { list, shown: Value::Array(shown) }))
}

struct Reader<'r> {
    graph: &'r mut Graph,
    registry: &'r Registry,
    folders: &'r Folders,
    what: String,
    /// Initial state of gates, if it is given.
    begins: BTreeMap<String, bool>,
}

impl Reader<'_> {
    fn list(&mut self, array: &DeArray<'_>, span: Range<usize>) -> Result<Vec<(When, Value)>, Fault> {
        if array.is_empty() {
            return Err(Fault::at(span, format!("{} has no conditions", self.what)));
        }
        array.iter().map(|value| self.condition(value)).collect()
    }

    fn condition(&mut self, value: &Spanned<DeValue<'_>>) -> Result<(When, Value), Fault> {
        let DeValue::Table(table) = value.get_ref() else {
            let found = type_words(value.get_ref());
            return Err(Fault::at(value.span(), format!("{}: expected a table, found {found}", self.what)));
        };
        let section = Section { what: self.what.clone(), table, span: value.span() };
        let form = FORMS.iter().find(|(key, _)| table.contains_key(*key));
        let Some(&(form, beside)) = form else {
            let names: Vec<&str> = FORMS.iter().map(|&(key, _)| key).collect();
            section.check_keys(&names)?;
            let message = format!("{} does not say what it waits for", self.what);
            return Err(Fault::at(value.span(), message)
                .help(format!("one of {}", crate::base::wording::list(&names))));
        };
        let section = Section { what: format!("`{form}` in {}", self.what), ..section };
        if form == "own" {
            return self.own(&section, table);
        }
        let known: Vec<&str> = [form].into_iter().chain(beside.iter().copied()).collect();
        section.check_keys(&known)?;
        let when = self.form(form, &section)?;
        Ok((when, shown(table)))
    }

    fn form(&mut self, form: &str, section: &Section<'_, '_>) -> Result<When, Fault> {
        let port =
            || Ok::<_, Fault>(section.get::<String>("port")?.map_or(String::new(), Spanned::into_inner));
        Ok(match form {
            "messages" => When::messages(&port()?, number(section, form, 1)?),
            "room" => When::room(&port()?, number(section, form, 0)?),
            "batch" => {
                let Some(delay_ns) = section.time_ns("delay")? else {
                    let fault = Fault::at(section.span.clone(), format!("{} lacks `delay`", section.what));
                    return Err(fault
                        .help("the time after which a part of a batch is enough, such as delay = \"2 ms\""));
                };
                When::batch(&port()?, number(section, form, 1)?, delay_ns)
            }
            "any" | "all" | "sum" => inputs(form, section)?,
            "count" => When::count(number(section, form, 1)? as u64),
            "chunk_room" => When::chunk_room(number(section, form, 1)?),
            "gate" => {
                let gate = self.graph.gate(name(section, form)?.get_ref());
                if let Some(open) = section.get::<bool>("open")? {
                    let name = name(section, form)?.into_inner();
                    let before = self.begins.insert(name.clone(), *open.get_ref());
                    if before.is_some_and(|before| before != *open.get_ref()) {
                        let message = format!(
                            "{}: gate {} begins open here and closed elsewhere, or the other way round",
                            section.what,
                            quoted(&name)
                        );
                        return Err(Fault::at(open.span(), message).help("say `open` once per gate"));
                    }
                    if *open.get_ref() { gate.open() } else { gate.close() }
                }
                When::gate(&gate)
            }
            "event" => When::event(&self.graph.event(name(section, form)?.get_ref())),
            "readable" => self.readable(section)?,
            "period" => {
                let period_ns = section.period_ns("period")?.unwrap_or(1);
                let overrun =
                    section.get::<Overrun>("overrun")?.map_or(Overrun::default(), Spanned::into_inner);
                When::period_ns(period_ns, overrun)
            }
            _ => {
                let value = section.raw("any_of").map(|value| (value, value.get_ref()));
                let Some((value, DeValue::Array(array))) = value else {
                    return Err(Fault::at(
                        section.span.clone(),
                        format!("{}: expected a list", section.what),
                    )
                    .help("such as any_of = [{ messages = 4 }, { gate = \"now\" }]"));
                };
                When::any_of(self.list(array, value.span())?.into_iter().map(|(when, _)| when))
            }
        })
    }

    /// Opens a file, such as a named pipe or a device. Opening does not block.
    fn readable(&self, section: &Section<'_, '_>) -> Result<When, Fault> {
        let path = section.need::<std::path::PathBuf>("readable")?;
        let place = self.folders.input(path.get_ref());
        match onbeat_os::poll::open(&place) {
            Ok(file) => Ok(When::readable(file)),
            Err(error) => {
                let message = format!("{}: cannot open `{}`: {error}", section.what, place.display());
                Err(Fault::at(path.span(), message)
                    .help("the name of something that can be read, such as a pipe made by mkfifo"))
            }
        }
    }

    /// Makes a condition that the program has registered.
    fn own(&mut self, section: &Section<'_, '_>, table: &DeTable<'_>) -> Result<(When, Value), Fault> {
        let kind = name(section, "own")?;
        let shown = shown(table);
        match self.registry.condition(kind.get_ref(), &shown) {
            None => {
                let hint = self.registry.nearest_condition(kind.get_ref());
                Err(Fault::at(kind.span(), format!("there is no condition {}{hint}", quoted(kind.get_ref())))
                    .help("conditions of one's own are added to the registry by the program that runs the pipeline"))
            }
            Some(Err(error)) => Err(Fault::at(section.span.clone(), format!("{}: {error}", section.what))),
            Some(Ok(condition)) => Ok((When::boxed(condition), shown)),
        }
    }
}

fn inputs(form: &str, section: &Section<'_, '_>) -> Result<When, Fault> {
    let ports: Vec<String> = match section.raw(form).map(Spanned::get_ref) {
        Some(DeValue::String(all)) if all == "all" => Vec::new(),
        _ => {
            let ports = section.need::<Vec<String>>(form)?;
            let span = ports.span();
            let ports = ports.into_inner();
            if ports.is_empty() || ports.iter().any(String::is_empty) {
                let names = if ports.is_empty() { "it names no input" } else { "an input has no name" };
                return Err(Fault::at(span, format!("{}: {names}", section.what))
                    .help(format!("name them, such as {form} = [\"in\"], or say {form} = \"all\"")));
            }
            ports
        }
    };
    let ports = ports.iter().map(String::as_str);
    let least = match section.raw("messages") {
        Some(_) => number(section, "messages", 1)?,
        None if form == "sum" => section.need::<i64>("messages").map(|_| 1)?,
        None => 1,
    };
    let when = match form {
        "any" => When::any(ports).least(least),
        "all" => When::all(ports).least(least),
        _ => When::sum(ports, least),
    };
    Ok(match section.time_ns("timeout")? {
        Some(timeout_ns) => when.timeout_ns(timeout_ns),
        None => when,
    })
}

/// Reads a whole number of at least `least`.
fn number(section: &Section<'_, '_>, key: &str, least: i64) -> Result<usize, Fault> {
    const LIMIT: i64 = 1 << 40;
    let value = section.need::<i64>(key)?;
    match *value.get_ref() {
        number if (least..=LIMIT).contains(&number) => Ok(number as usize),
        number => {
            let message =
                format!("{}: {number} must be a whole number from {least} to {LIMIT}", section.what);
            Err(Fault::at(value.span(), message))
        }
    }
}

fn name(section: &Section<'_, '_>, key: &str) -> Result<Spanned<String>, Fault> {
    let name = section.need::<String>(key)?;
    if name.get_ref().is_empty() || name.get_ref().chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(Fault::at(
            name.span(),
            format!("{}: {} cannot be a name", section.what, quoted(name.get_ref())),
        )
        .help("a name has at least one character, and no blank or line break"));
    }
    Ok(name)
}

/// Condition as the record shows it, which is its form in the file.
fn shown(table: &DeTable<'_>) -> Value {
    let value = |value: &DeValue<'_>| plain(value);
    table.iter().map(|(key, found)| (key.get_ref().to_string(), value(found.get_ref()))).collect()
}

fn plain(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => json!(text.as_ref()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => json!(number),
            Err(_) => json!(number.as_str()),
        },
        DeValue::Float(number) => number.as_str().parse::<f64>().map_or(json!(number.as_str()), |n| json!(n)),
        DeValue::Boolean(truth) => json!(truth),
        DeValue::Datetime(time) => json!(time.to_string()),
        DeValue::Array(array) => array.iter().map(|value| plain(value.get_ref())).collect(),
        DeValue::Table(table) => shown(table),
    }
}
