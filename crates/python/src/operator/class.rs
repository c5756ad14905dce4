//! What the class of a Python operator says of itself.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// A port: its name, and the word for its type.
pub struct PortSpec {
    pub name: String,
    pub word: String,
}

/// Ports and parameters, as `onbeat.Operator` found them in the annotations.
pub struct OperatorClass {
    pub inputs: Vec<PortSpec>,
    pub outputs: Vec<PortSpec>,
    /// For an operator that changes chunks in place: its only port.
    pub in_place: Option<PortSpec>,
    /// Names of the parameters that can be changed during a run.
    pub settable: &'static [&'static str],
    /// Samples out of `down` samples in.
    pub up: usize,
    pub down: usize,
}

impl OperatorClass {
    /// Reads the class of an instance.
    pub fn of(instance: &Bound<'_, PyAny>) -> PyResult<Arc<Self>> {
        let ports = |name: &str| -> PyResult<Vec<PortSpec>> {
            let found = instance.getattr(name).map_err(|_| {
                let class =
                    instance.get_type().name().map_or_else(|_| "this".into(), |name| name.to_string());
                PyTypeError::new_err(format!(
                    "{class} is not an operator: derive its class from onbeat.Operator"
                ))
            })?;
            let found: Vec<(String, String)> = found.extract()?;
            Ok(found.into_iter().map(|(name, word)| PortSpec { name, word }).collect())
        };
        let settable: Vec<String> = instance.getattr("_settable")?.extract()?;
        let ratio = |name: &str| -> PyResult<usize> {
            let value: i64 = instance.getattr(name)?.extract()?;
            usize::try_from(value).ok().filter(|value| (1..=1 << 20).contains(value)).ok_or_else(|| {
                PyTypeError::new_err(format!("`{name}` is {value}: it is a number from 1 to 1048576"))
            })
        };
        Ok(Arc::new(OperatorClass {
            inputs: ports("_inputs")?,
            outputs: ports("_outputs")?,
            in_place: ports("_in_place")?.pop(),
            settable: for_ever(&settable),
            up: ratio("interpolation")?,
            down: ratio("decimation")?,
        }))
    }
}

/// Returns the names for the life of the process. Equal lists are one.
fn for_ever(names: &[String]) -> &'static [&'static str] {
    static LISTS: Mutex<Option<HashSet<&'static [&'static str]>>> = Mutex::new(None);
    if names.is_empty() {
        return &[];
    }
    let mut lists = LISTS.lock().unwrap_or_else(PoisonError::into_inner);
    let lists = lists.get_or_insert_default();
    let wanted: Vec<&str> = names.iter().map(String::as_str).collect();
    if let Some(found) = lists.iter().find(|list| list[..] == wanted[..]) {
        return found;
    }
    let made: Vec<&'static str> =
        names.iter().map(|name| &*Box::leak(name.clone().into_boxed_str())).collect();
    let made: &'static [&'static str] = Box::leak(made.into_boxed_slice());
    lists.insert(made);
    made
}
