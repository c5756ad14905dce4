//! Every parameter of every kind with absurd values: each is accepted, or refused with a short message that
//! names the parameter. None crashes the program.
#![forbid(unsafe_code)]

use crate::harness::watched;
use num_complex::Complex;
use onbeat_operators::registry;
use onbeat_runtime::testing::{Feed, Trial};
use onbeat_runtime::{ClockKind, Kind, Overrides, Pace, Pipeline, Registry};
use std::path::Path;

/// Values in TOML syntax.
fn values() -> Vec<String> {
    let digits = "9".repeat(300);
    let deep = format!("{}1{}", "[".repeat(60), "]".repeat(60));
    let mut values: Vec<String> = [
        "nan",
        "inf",
        "-inf",
        "0",
        "-0.0",
        "-1",
        "1e300",
        "-1e300",
        "1e-300",
        "5e-324",
        "9223372036854775807",
        "-9223372036854775808",
        "true",
        "1979-05-27T07:32:00Z",
        "{ a = { b = [] } }",
        "[]",
        "\"\"",
        "\"\\u0000\"",
        "\"-1 s\"",
        "\"1e300 GHz\"",
        "\"1e300 dB\"",
        "\"nan Hz\"",
        "\"0.0000001 ns\"",
        "\"../../../..\"",
        "\"\\u001b[31m\"",
    ]
    .map(str::to_string)
    .into();
    values.extend([
        digits.clone(),
        format!("-{digits}"),
        format!("{digits}.0"),
        format!("\"{digits} Hz\""),
        deep,
        format!("\"{}\"", "x".repeat(100_000)),
    ]);
    values
}

#[test]
fn every_parameter_is_taken_or_refused() {
    watched(|| {
        let registry = registry();
        let (mut taken, mut refused, mut wrong) = (0, 0, Vec::new());
        for kind in registry.kinds() {
            let schema = serde_json::to_value(kind.schema()).unwrap();
            let Some(parameters) = schema.get("properties").and_then(|all| all.as_object()) else { continue };
            for parameter in parameters.keys() {
                for value in values() {
                    let others =
                        kind.example().lines().filter(|line| !line.starts_with(&format!("{parameter} ")));
                    let text = format!(
                        "[[operator]]\nname = \"it\"\nkind = \"{}\"\n{}\n{parameter} = {value}\n",
                        kind.name(),
                        others.collect::<Vec<_>>().join("\n")
                    );
                    let answer = Pipeline::parse(&text, "test.toml", ".", &registry, &Overrides::default());
                    let said = answer.map_or_else(|error| error.to_string(), |_| String::new());
                    // A single operator is not a pipeline: its missing connections are found later.
                    if said.is_empty() || said.contains("is not connected") {
                        taken += 1;
                        continue;
                    }
                    refused += 1;
                    // The message also shows the line of the file, shortened if necessary.
                    let said = said.lines().next().unwrap_or("");
                    let names = said.contains(parameter.as_str()) || said.contains("operator `it`");
                    // A number can have 300 digits and occur twice.
                    if !names || said.len() > 1_000 || said.chars().any(char::is_control) {
                        let shown: String = said.chars().take(300).collect();
                        let value: String = value.chars().take(30).collect();
                        wrong.push(format!("{}: {parameter} = {value}: {shown}", kind.name()));
                    }
                }
            }
        }
        assert!(wrong.is_empty(), "{} of {refused}:\n{}", wrong.len(), wrong.join("\n"));
        assert!(taken > 500 && refused > 2000, "{taken} taken, {refused} refused");
    });
}

/// Two thousand samples at 256 kHz for each input, and the parameters of the example except for one. `None`
/// for kinds that cannot be tested this way: they open connections, use standard streams or stay busy as long
/// as they are told.
fn trial(registry: &Registry, kind: &Kind, parameter: &str, value: &str, folder: &Path) -> Option<Trial> {
    let name = kind.name();
    let (inputs, outputs) = kind.ports();
    let elsewhere =
        ["tcp", "udp", "link", "std", "load", "mode_s", "serial", "can.s", "mqtt", "audio", "soapy"]
            .iter()
            .any(|begin| name.starts_with(begin));
    if elsewhere || inputs.is_empty() || parameter == "path" {
        return None;
    }
    // It would have other ports.
    if name == "pid"
        || ["inputs", "outputs", "channels", "columns", "weights", "formula"].contains(&parameter)
    {
        return None;
    }
    let mut text = format!("{parameter} = {value}\n");
    for line in kind.example().lines().filter(|line| !line.starts_with(&format!("{parameter} "))) {
        let path = line.strip_prefix("path = ").map(|_| format!("path = {:?}", folder.join("file-{n}")));
        text += &format!("{}\n", path.as_deref().unwrap_or(line));
    }
    let operator = registry.operator(name, &text).ok()?;
    let mut trial = Trial::boxed(operator).options(|options| {
        (options.clock, options.pace) = (ClockKind::Real, Some(Pace::Fast));
        options.duration_ns = Some(5_000_000);
    });
    for input in &inputs {
        let feed = match input.message.as_str() {
            "Chunk<f32>" => Feed::samples((0..2000).map(|n| (n as f32 * 0.1).sin())).rate(256e3),
            "Chunk<Complex<f32>>" => {
                Feed::samples((0..2000).map(|n| Complex::from_polar(1.0, n as f32 * 0.1))).rate(256e3)
            }
            "Chunk<u8>" => Feed::samples(0..200u8),
            "f64" => Feed::messages((0..100).map(f64::from)).every(1_000_000),
            "u64" => Feed::messages(0..100u64).every(1_000_000),
            _ => return None,
        };
        trial = trial.feed(&input.name, feed);
    }
    let known = |message: &str| matches!(message, "Chunk<f32>" | "Chunk<Complex<f32>>" | "f64" | "u64");
    outputs.iter().all(|output| known(&output.message)).then_some(trial)
}

#[test]
fn what_is_taken_can_be_run() {
    watched(|| {
        let registry = registry();
        let (mut ended, mut failed, mut wrong) = (0, 0, Vec::new());
        for kind in registry.kinds() {
            let schema = serde_json::to_value(kind.schema()).unwrap();
            let Some(parameters) = schema.get("properties").and_then(|all| all.as_object()) else { continue };
            for parameter in parameters.keys() {
                for value in values() {
                    let folder = tempfile::tempdir().unwrap();
                    let Some(trial) = trial(&registry, kind, parameter, &value, folder.path()) else {
                        continue;
                    };
                    match trial.try_run() {
                        Ok(_) => ended += 1,
                        Err(said) if !said.contains("panic") && said.len() < 2_000 => failed += 1,
                        Err(said) => {
                            wrong.push(format!("{}: {parameter} = {value:.30}: {said:.300}", kind.name()));
                        }
                    }
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(ended > 150 && failed > 30, "{ended} ended, {failed} failed");
    });
}
