//! `onbeat ctl SOCKET ...`

use super::show;
use crate::arguments::Format;
use crate::arguments::ctl::{CtlArguments, CtlOrder, GatePosition, SetArguments, StatusArguments};
use crate::control::{Connection, Trouble};
use crate::documents;
use crate::failure::Failure;
use crate::output::{self, Screen};
use crate::top::Live;
use crate::views;
use onbeat::RunStatus;
use serde_json::{Value, json};
use std::io::{self, IsTerminal};
use std::path::Path;
use std::time::Duration;

/// Between two pictures.
const EVERY: Duration = Duration::from_secs(1);

pub fn ctl(arguments: &CtlArguments) -> Result<u8, Failure> {
    let whole =
        |operator: &Option<String>| operator.as_ref().map_or(String::new(), |name| format!(" `{name}`"));
    let (request, done) = match &arguments.order {
        CtlOrder::Status(status) => return show_status(&arguments.socket, status),
        CtlOrder::Top => return top(&arguments.socket),
        CtlOrder::Pause(of) => {
            (json!({ "command": "pause", "operator": of.operator }), format!("paused{}", whole(&of.operator)))
        }
        CtlOrder::Resume(of) => {
            let who = of.operator.as_ref().map_or("everything".to_string(), |name| format!("`{name}`"));
            (json!({ "command": "resume", "operator": of.operator }), format!("{who} goes on"))
        }
        CtlOrder::Stop(of) => {
            let done = match &of.operator {
                Some(name) => format!("stopped `{name}`"),
                None => "stopping: what is under way is worked off".to_string(),
            };
            (json!({ "command": "stop", "operator": of.operator }), done)
        }
        CtlOrder::Set(set) => assignment(set)?,
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
        CtlOrder::Ring { event } => (json!({ "command": "ring", "name": event }), format!("rang `{event}`")),
    };
    Connection::open(&arguments.socket)?.ask(request).map_err(|trouble| {
        let failure = Failure::from(trouble);
        if failure.message().starts_with("there is no ") {
            failure.help(format!("`onbeat ctl {} status` lists what there is", arguments.socket.display()))
        } else {
            failure
        }
    })?;
    output::to_stdout(&format!("{done}\n"))?;
    Ok(0)
}

/// The request, and what to say when it was carried out.
fn assignment(set: &SetArguments) -> Result<(Value, String), Failure> {
    const FORM: &str = "a setting is written OPERATOR.PARAMETER=VALUE, such as squelch.open=-40";
    let wrong = |what: &str| Failure::new(format!("{}: {what}", set.assignment)).help(FORM);
    let (key, text) = set.assignment.split_once('=').ok_or_else(|| wrong("it has no `=`"))?;
    let (operator, parameter) = key.trim().split_once('.').ok_or_else(|| wrong("it names no operator"))?;
    if operator.is_empty() || parameter.is_empty() {
        return Err(wrong("it lacks a name before or after the `.`"));
    }
    let value = match text.trim().parse::<toml::Value>() {
        Ok(toml::Value::String(text)) => Value::from(text),
        Ok(toml::Value::Integer(number)) => Value::from(number),
        Ok(toml::Value::Boolean(value)) => Value::from(value),
        Ok(toml::Value::Float(number)) if number.is_finite() => Value::from(number),
        Ok(toml::Value::Float(number)) => {
            return Err(wrong(&format!("{number} is no number that can be set")));
        }
        Ok(other) => {
            let what = other.type_str();
            return Err(wrong(&format!("a value is a number, a word, true or false, and no {what}")));
        }
        // As it stands.
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

fn show_status(socket: &Path, arguments: &StatusArguments) -> Result<u8, Failure> {
    let status = status(socket)?;
    if !arguments.watch {
        show(&documents::status(&status), arguments.format)?;
        return Ok(0);
    }
    let mut screen = Screen::new();
    let mut next = Ok(status);
    loop {
        match next {
            Ok(status) => draw(&mut screen, &status, arguments.format)?,
            Err(Trouble::Gone(_)) => {
                output::to_stderr("the run has ended\n");
                return Ok(0);
            }
            Err(Trouble::Other(failure)) => return Err(failure),
        }
        if screen.is_gone() {
            return Ok(0);
        }
        std::thread::sleep(EVERY);
        next = self::status(socket);
    }
}

fn top(socket: &Path) -> Result<u8, Failure> {
    let mut next = Ok(status(socket)?);
    let mut live = Live::new(false)?;
    loop {
        match next {
            Ok(status) => live.draw(status, |text| output::to_stdout(&format!("{text}\n")))?,
            Err(Trouble::Gone(_)) => {
                drop(live);
                output::to_stderr("the run has ended\n");
                return Ok(0);
            }
            Err(Trouble::Other(failure)) => return Err(failure),
        }
        if !live.wait(|| false)? {
            return Ok(0);
        }
        next = self::status(socket);
    }
}

fn draw(screen: &mut Screen, status: &RunStatus, format: Format) -> Result<(), Failure> {
    let document = documents::status(status);
    match format {
        Format::Human => {
            let text = views::view(format, output::may_colour(io::stdout().is_terminal())).text(&document);
            screen.draw(&text)
        }
        Format::Json => screen.add(&format!("{}\n", document.json)),
        Format::Csv => screen.add(&format!("{}\n", views::view(format, false).text(&document))),
    }
}

/// One connection each: a client that waits between two requests would keep a place that others want.
fn status(socket: &Path) -> Result<RunStatus, Trouble> {
    let mut answer = Connection::open(socket)?.ask(json!({ "command": "status" }))?;
    serde_json::from_value(answer["status"].take()).map_err(|error| {
        let failure = Failure::new(format!(
            "control socket `{}`: its status is not understood: {error}",
            socket.display()
        ));
        Trouble::Other(failure.help("use the onbeat that runs it"))
    })
}
