//! Values of the parameters that can be changed during a run, for those that watch it.

use crate::Value;
use crate::base::units::{Bytes, Decibels, Hertz, Period};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Value of a parameter that can be changed during the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParameterStatus {
    /// Name of the parameter.
    pub name: String,
    /// Value in the file, or the latest one that the operator accepted. One for a sample to come counts.
    pub value: serde_json::Value,
    /// Unit of a number, if it has one: "Hz", "s", "B" or "dB".
    pub unit: Option<String>,
    /// Sample of the operator's input from which on the value holds, if it was set for one.
    #[serde(default)]
    pub sample: Option<u64>,
    /// Value that holds before that sample.
    #[serde(default)]
    pub before: Option<serde_json::Value>,
}

/// Parameters that can be changed, each with the name of its operator.
pub(crate) type NamedValues = Vec<(String, ParameterStatus)>;

/// The same by operator, shared by those who watch and change a run.
#[derive(Debug, Default)]
pub(crate) struct CurrentValues(Mutex<BTreeMap<String, Vec<ParameterStatus>>>);

impl CurrentValues {
    /// Starts with the values of the file.
    pub fn begin(&self, values: NamedValues) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        values.into_iter().for_each(|(operator, one)| known.entry(operator).or_default().push(one));
    }

    /// Notes that an operator has accepted a value.
    pub fn note(&self, operator: &str, name: &str, value: &Value, sample: Option<u64>) {
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_operator = values.entry(operator.to_string()).or_default();
        match of_operator.iter_mut().find(|one| one.name == name) {
            Some(known) => {
                let value = in_unit(value, known.unit.as_deref());
                let former = std::mem::replace(&mut known.value, value);
                (known.sample, known.before) = (sample, sample.map(|_| former));
            }
            None => {
                let (name, value) = (name.to_string(), in_unit(value, None));
                of_operator.push(ParameterStatus { name, value, unit: None, sample, before: None });
            }
        }
    }

    /// Returns those of an operator.
    pub fn of(&self, operator: &str) -> Vec<ParameterStatus> {
        let values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        values.get(operator).cloned().unwrap_or_default()
    }
}

/// The value as a number in this unit, if it is a quantity; otherwise as it is.
fn in_unit(value: &Value, unit: Option<&str>) -> serde_json::Value {
    let number = match unit {
        Some("Hz") => value.read("").map(|Hertz(number)| number),
        Some("s") => value.read("").map(|Period(seconds)| seconds.0),
        Some("B") => value.read("").map(|Bytes(number)| number),
        Some("dB") => value.read("").map(|Decibels(number)| number),
        _ => return serde_json::to_value(value).unwrap_or_default(),
    };
    number.map_or_else(|_| serde_json::to_value(value).unwrap_or_default(), serde_json::Value::from)
}
