//! `onbeat ctl SOCKET ...`

use super::show;
use crate::arguments::OutputFormat;
use crate::arguments::ctl::{
    CtlArguments, CtlOrder, FetchArguments, GatePosition, GetArguments, SetArguments, StatusArguments,
};
use crate::control::{Connection, RequestError};
use crate::documents;
use crate::error::CommandError;
use crate::output::{self, RepeatedText};
use crate::top::LiveRun;
use crate::{stderr, views};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use onbeat::RunStatus;
use onbeat::trace::replace::replace;
use serde_json::{Value, json};
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

/// Interval between two updates.
const EVERY: Duration = Duration::from_secs(1);

pub fn ctl(arguments: &CtlArguments) -> Result<u8, CommandError> {
    let named =
        |operator: &Option<String>| operator.as_ref().map_or(String::new(), |name| format!(" `{name}`"));
    let (request, done) = match &arguments.order {
        CtlOrder::Status(status) => return show_status(arguments, status),
        CtlOrder::Top => return top(arguments),
        CtlOrder::Pause(of) => {
            (json!({ "command": "pause", "operator": of.operator }), format!("paused{}", named(&of.operator)))
        }
        CtlOrder::Resume(of) => (
            json!({ "command": "resume", "operator": of.operator }),
            format!("resumed{}", named(&of.operator)),
        ),
        CtlOrder::Stop(of) => {
            let done = match &of.operator {
                Some(name) => format!("stopped `{name}`"),
                None => "stopping: finishing messages in flight".to_string(),
            };
            (json!({ "command": "stop", "operator": of.operator }), done)
        }
        CtlOrder::Set(set) => assignment(set)?,
        CtlOrder::Get(get) => return show_parameters(arguments, get),
        CtlOrder::Fetch(fetch) => return save(arguments, fetch),
        CtlOrder::Gate(gate) => {
            let (open, word) = match gate.position {
                GatePosition::Open => (true, "open"),
                GatePosition::Close => (false, "closed"),
            };
            (
                json!({ "command": "gate", "name": gate.gate, "open": open }),
                format!("gate `{}` is {word}", gate.gate),
            )
        }
        CtlOrder::Ring { event } => {
            (json!({ "command": "ring", "name": event }), format!("triggered `{event}`"))
        }
    };
    ask(arguments, request)?;
    output::to_stdout(&format!("{done}\n"))?;
    Ok(0)
}

/// Carries out a request, over a new connection.
fn ask(arguments: &CtlArguments, request: Value) -> Result<Value, CommandError> {
    Connection::open(arguments)?.ask(request).map_err(|error| {
        let failure = CommandError::from(error);
        if failure.message().starts_with("there is no ") {
            failure.help(format!("`onbeat ctl {} status` lists the names", arguments.socket.display()))
        } else {
            failure
        }
    })
}

/// Saves what an operator hands out. The file appears when it is complete; a device or a pipe is written to.
fn save(run: &CtlArguments, FetchArguments { operator, file }: &FetchArguments) -> Result<u8, CommandError> {
    let answer = ask(run, json!({ "command": "fetch", "operator": operator }))?;
    let bytes = answer["base64"].as_str().and_then(|text| BASE64_STANDARD.decode(text).ok());
    let bytes = bytes.ok_or_else(|| {
        CommandError::new("the answer has no data").help("use the same version of onbeat as the run")
    })?;
    let cannot = |error: io::Error| CommandError::new(format!("cannot write {error}"));
    if file.as_os_str() == "-" {
        let written = io::stdout().lock().write_all(&bytes).map(|()| 0);
        return written.map_err(|error| CommandError::new(format!("cannot write to stdout: {error}")));
    }
    replace(file, &bytes).map_err(cannot)?;
    // It can be stdout by another name.
    if fs::metadata(file).is_ok_and(|found| !found.is_file()) {
        return Ok(0);
    }
    let kind = answer["media_type"].as_str().unwrap_or("data");
    output::to_stdout(&format!("{}: {} bytes, {kind}\n", file.display(), bytes.len()))?;
    Ok(0)
}

/// Returns the request, and the message after it was carried out.
fn assignment(set: &SetArguments) -> Result<(Value, String), CommandError> {
    const FORM: &str = "write OPERATOR.PARAMETER=VALUE, e.g. squelch.open=-40";
    let wrong = |what: &str| CommandError::new(format!("{}: {what}", set.assignment)).help(FORM);
    let (key, text) = set.assignment.split_once('=').ok_or_else(|| wrong("the `=` is missing"))?;
    let (operator, parameter) = key.trim().split_once('.').ok_or_else(|| wrong("the operator is missing"))?;
    if operator.is_empty() || parameter.is_empty() {
        return Err(wrong("a name before or after the `.` is missing"));
    }
    let value = match text.trim().parse::<toml::Value>() {
        Ok(toml::Value::String(text)) => Value::from(text),
        Ok(toml::Value::Integer(number)) => Value::from(number),
        Ok(toml::Value::Boolean(value)) => Value::from(value),
        Ok(toml::Value::Float(number)) if number.is_finite() => Value::from(number),
        Ok(toml::Value::Float(number)) => {
            return Err(wrong(&format!("{number} is not a finite number")));
        }
        Ok(other) => {
            let what = other.type_str();
            return Err(wrong(&format!(
                "the value must be a number, a word, true or false, not of type {what}"
            )));
        }
        // Not TOML: a word without quotes.
        Err(_) => Value::from(text),
    };
    let when = match set.at {
        Some(sample) => format!("at sample {sample} of its input"),
        None => "from its next sample on".to_string(),
    };
    let done = format!("{operator}.{parameter} = {value} {when}");
    let request = json!({
        "command": "set", "operator": operator, "parameter": parameter, "value": value, "sample": set.at,
    });
    Ok((request, done))
}

fn show_parameters(run: &CtlArguments, get: &GetArguments) -> Result<u8, CommandError> {
    let status = status(run)?;
    let names: Vec<String> = status.operators.iter().map(|operator| operator.name.clone()).collect();
    let (operator, parameter) = match &get.of {
        // An operator in a subgraph, and a kind, may have points in their names.
        Some(of) if names.contains(of) => (Some(of.as_str()), None),
        Some(of) => match of.rsplit_once('.') {
            Some((operator, parameter)) => (Some(operator), Some(parameter)),
            None => (Some(of.as_str()), None),
        },
        None => (None, None),
    };
    if let Some(name) = operator.filter(|name| !names.iter().any(|known| known == name)) {
        let help = format!("`onbeat ctl {} get` lists all parameters", run.socket.display());
        return Err(CommandError::new(format!("there is no operator `{name}`")).help(help));
    }
    let document = documents::current(&status, operator, parameter);
    if let (Some(name), true) = (operator, document.tables.iter().all(|table| table.rows.is_empty())) {
        let what = match parameter {
            Some(parameter) => {
                format!("operator `{name}` has no parameter `{parameter}` that can be changed")
            }
            None => format!("operator `{name}` has no parameters that can be changed while it runs"),
        };
        let help = format!("`onbeat ctl {} get` lists all parameters", run.socket.display());
        return Err(CommandError::new(what).help(help));
    }
    show(&document, get.format)?;
    Ok(0)
}

fn show_status(run: &CtlArguments, arguments: &StatusArguments) -> Result<u8, CommandError> {
    let status = status(run)?;
    if !arguments.watch {
        show(&documents::status(&status), arguments.format)?;
        return Ok(0);
    }
    let mut screen = RepeatedText::new();
    let mut next = Ok(status);
    loop {
        match next {
            Ok(status) => draw(&mut screen, &status, arguments.format)?,
            Err(RequestError::Gone(_)) => {
                stderr::to_stderr("the run has ended\n");
                return Ok(0);
            }
            Err(RequestError::Other(failure)) => return Err(failure),
        }
        if screen.is_gone() {
            return Ok(0);
        }
        std::thread::sleep(EVERY);
        next = self::status(run);
    }
}

fn top(run: &CtlArguments) -> Result<u8, CommandError> {
    let mut next = Ok(status(run)?);
    let mut live = LiveRun::new(false)?;
    loop {
        match next {
            Ok(status) => live.draw(status, |text| output::to_stdout(&format!("{text}\n")))?,
            Err(RequestError::Gone(_)) => {
                drop(live);
                stderr::to_stderr("the run has ended\n");
                return Ok(0);
            }
            Err(RequestError::Other(failure)) => return Err(failure),
        }
        if !live.wait(|| false)? {
            return Ok(0);
        }
        next = self::status(run);
    }
}

fn draw(screen: &mut RepeatedText, status: &RunStatus, format: OutputFormat) -> Result<(), CommandError> {
    let document = documents::status(status);
    match format {
        OutputFormat::Human => {
            let text = views::view(format, stderr::may_colour(io::stdout().is_terminal())).text(&document);
            screen.draw(&text)
        }
        OutputFormat::Json => screen.add(&format!("{}\n", document.json)),
        OutputFormat::Csv => screen.add(&format!("{}\n", views::view(format, false).text(&document))),
    }
}

/// Asks for the status over a new connection. One that stays open between requests would block other clients.
fn status(run: &CtlArguments) -> Result<RunStatus, RequestError> {
    let mut answer = Connection::open(run)?.ask(json!({ "command": "status" }))?;
    serde_json::from_value(answer["status"].take()).map_err(|error| {
        let failure = CommandError::new(format!(
            "control socket `{}`: cannot read the status: {error}",
            run.socket.display()
        ));
        RequestError::Other(failure.help("use the same version of onbeat as the run"))
    })
}
