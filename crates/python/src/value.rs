//! Values between Python and the engine: numbers, booleans and text.

use onbeat::{Bytes, Decibels, Hertz, Seconds, Value};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString};

/// Converts a value of the engine.
pub fn from_value(py: Python<'_>, value: &Value) -> PyResult<Py<PyAny>> {
    Ok(match value {
        Value::Bool(value) => PyBool::new(py, *value).to_owned().into_any().unbind(),
        Value::Int(value) => value.into_pyobject(py)?.into_any().unbind(),
        Value::Float(value) => PyFloat::new(py, *value).into_any().unbind(),
        Value::Text(value) => PyString::new(py, value).into_any().unbind(),
    })
}

/// Converts a Python value.
pub fn to_value(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Ok(value) = value.cast::<PyBool>() {
        return Ok(Value::Bool(value.is_true()));
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(Value::Int(value.extract()?));
    }
    if value.is_instance_of::<PyString>() {
        return Ok(Value::Text(value.extract::<String>()?.into()));
    }
    value.extract().map(Value::Float).map_err(|_| {
        PyTypeError::new_err(format!(
            "a value of the engine is a number, a boolean or a text, not {}",
            value.get_type().name().map_or_else(|_| "this".into(), |name| name.to_string())
        ))
    })
}

/// Converts a value of a file.
pub fn from_file<'py>(py: Python<'py>, value: &serde_json::Value) -> PyResult<Bound<'py, PyAny>> {
    use serde_json::Value;
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::String(value) => PyString::new(py, value).into_any(),
        Value::Bool(value) => PyBool::new(py, *value).to_owned().into_any(),
        Value::Number(value) => match value.as_i64() {
            Some(value) => value.into_pyobject(py)?.into_any(),
            None => PyFloat::new(py, value.as_f64().unwrap_or(f64::NAN)).into_any(),
        },
        Value::Array(values) => {
            let list = PyList::empty(py);
            for value in values {
                list.append(from_file(py, value)?)?;
            }
            list.into_any()
        }
        Value::Object(table) => {
            let dict = PyDict::new(py);
            for (key, value) in table {
                dict.set_item(key, from_file(py, value)?)?;
            }
            dict.into_any()
        }
    })
}

/// Converts a Python value to one of a file. `place` is for the error.
pub fn to_toml(value: &Bound<'_, PyAny>, place: &str) -> PyResult<toml::Value> {
    if let Ok(value) = value.cast::<PyBool>() {
        return Ok(toml::Value::Boolean(value.is_true()));
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(toml::Value::Integer(value.extract()?));
    }
    if value.is_instance_of::<PyString>() {
        return Ok(toml::Value::String(value.extract()?));
    }
    if let Ok(dict) = value.cast::<PyDict>() {
        let mut table = toml::Table::new();
        for (key, value) in dict {
            let key: String = key.extract()?;
            if !value.is_none() {
                let inner = format!("{place}.{key}");
                table.insert(key, to_toml(&value, &inner)?);
            }
        }
        return Ok(toml::Value::Table(table));
    }
    if let Ok(number) = value.extract::<f64>() {
        return Ok(toml::Value::Float(number));
    }
    // A path, as the standard library has them.
    if let Ok(path) = value.call_method0("__fspath__") {
        return Ok(toml::Value::String(path.extract()?));
    }
    let items = value.try_iter().map_err(|_| {
        PyTypeError::new_err(format!(
            "`{place}`: a file has no value of type {}: use a number, a boolean, a text, a list or a dict",
            value.get_type().name().map_or_else(|_| "this".into(), |name| name.to_string())
        ))
    })?;
    items.map(|item| to_toml(&item?, place)).collect::<PyResult<Vec<_>>>().map(toml::Value::Array)
}

/// Parses TOML to a dict.
#[pyfunction]
pub fn parse_toml<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    let table: serde_json::Value =
        toml::from_str(text).map_err(|error| PyValueError::new_err(error.to_string()))?;
    from_file(py, &table)
}

/// Writes a dict as TOML.
#[pyfunction]
pub fn format_toml(table: &Bound<'_, PyDict>) -> PyResult<String> {
    let table = to_toml(table.as_any(), "pipeline")?;
    toml::to_string(&table).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Reads a quantity such as "-45 kHz" in this unit: "Hz", "s", "dB" or "B".
#[pyfunction]
pub fn quantity(name: &str, value: &Bound<'_, PyAny>, unit: &str) -> PyResult<f64> {
    let value = to_value(value)?;
    let wrong = |error: onbeat::Error| PyValueError::new_err(error.to_string());
    Ok(match unit {
        "Hz" => value.read::<Hertz>(name).map_err(wrong)?.0,
        "s" => value.read::<Seconds>(name).map_err(wrong)?.0,
        "dB" => value.read::<Decibels>(name).map_err(wrong)?.0,
        "B" => value.read::<Bytes>(name).map_err(wrong)?.0,
        _ => value.read::<f64>(name).map_err(wrong)?,
    })
}
