//! `onbeat deploy PIPELINE HOSTS`

use super::{EndedPart, JsonLines, NodeReply, NodeRequest, REPLY_BYTES, own_identity, write_line};
use crate::arguments::OutputFormat;
use crate::arguments::nodes::DeployArguments;
use crate::documents::{self, RunFacts};
use crate::error::CommandError;
use crate::stderr::to_stderr;
use crate::{output, views};
use onbeat::explain::{NodeRun, name_causes_elsewhere};
use onbeat::link::deployment::{Hosts, NodePart, TypedEdge, split, without_machine};
use onbeat::link::{NodeIdentity, SharedStream, call};
use onbeat::{Overrides, Pipeline, Registry};
use onbeat_os::signal::on_interrupt;
use std::io::IsTerminal;
use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use toml::Table;

/// Longest wait for a node to be reached, and for an answer of it.
const CONNECT: Duration = Duration::from_secs(5);
const ANSWER: Duration = Duration::from_secs(60);

pub fn deploy(
    arguments: &DeployArguments,
    registry: &Registry,
    abort: fn() -> !,
) -> Result<u8, CommandError> {
    let DeployedJob { parts, records } = prepare(arguments, registry)?;
    if arguments.print {
        for part in &parts {
            let text =
                toml::to_string(&part.pipeline).map_err(|error| CommandError::new(error.to_string()))?;
            output::to_stdout(&format!("# Node {} at {}\n\n{text}\n", part.node, part.endpoint))?;
        }
        return Ok(0);
    }
    let identity = own_identity(arguments.identity.as_deref())?;
    let mut nodes = Vec::new();
    for part in &parts {
        nodes.push(ReachedNode::reach(part, &settings_of(part, &parts, &arguments.set), identity.as_ref())?);
    }
    let ways: Vec<WayToStop> = nodes.iter().zip(&parts).map(way_to_stop).collect();
    let ways = Arc::new(Mutex::new(ways));
    let _guard = stop_on_interrupt(&ways, abort)?;
    for node in &mut nodes {
        node.start(arguments.quiet)?;
    }
    let (sender, ends) = channel();
    for node in nodes {
        node.wait(&sender)?;
    }
    drop(sender);
    report(&ends, arguments, &records)
}

/// What to run, and where its records go.
struct DeployedJob {
    parts: Vec<NodePart>,
    records: PathBuf,
}

/// Reads both files, checks the pipeline and cuts it.
fn prepare(arguments: &DeployArguments, registry: &Registry) -> Result<DeployedJob, CommandError> {
    let text = read(&arguments.pipeline, "pipeline")?;
    let hosts = read(&arguments.hosts, "deployment file")?;
    let wrong = |error: onbeat::Error| {
        CommandError::new(format!("deployment file `{}`: {error}", arguments.hosts.display()))
    };
    let mut hosts = Hosts::parse(&hosts).map_err(wrong)?;
    hosts.is_proved = arguments.identity.is_some();
    if !arguments.print {
        check_secure(&hosts)?;
    }
    let mut overrides = Overrides::default();
    for setting in &arguments.set {
        overrides.set(setting);
    }
    let table: Table = match toml::from_str(&text) {
        Ok(table) => table,
        // The error of the reader shows the line.
        Err(_) => return Err(whole(arguments, registry, &overrides)),
    };
    let folder = arguments.pipeline.parent().unwrap_or(Path::new(""));
    let bare =
        toml::to_string(&without_machine(&table)).map_err(|error| CommandError::new(error.to_string()))?;
    let shown = arguments.pipeline.display().to_string();
    let pipeline = Pipeline::parse(&bare, &shown, folder, registry, &overrides)
        .map_err(|_| whole(arguments, registry, &overrides))?;
    let edges: Vec<TypedEdge> = pipeline
        .plan
        .edges
        .iter()
        .map(|edge| TypedEdge {
            from: edge.from.clone(),
            to: edge.to.clone(),
            message: edge.message.clone(),
            capacity: edge.capacity,
        })
        .collect();
    let parts = split(&table, &edges, &hosts, pipeline.name()).map_err(wrong)?;
    let records = arguments.records.clone().unwrap_or(pipeline.output);
    Ok(DeployedJob { parts, records })
}

/// Refuses to talk to other machines in the clear, unless that was asked for.
fn check_secure(hosts: &Hosts) -> Result<(), CommandError> {
    let may = hosts.is_proved || hosts.link.get("insecure").and_then(toml::Value::as_bool) == Some(true);
    for (name, node) in hosts.node.iter().filter(|_| !may) {
        let found = node.endpoint.to_socket_addrs().map_err(|error| {
            CommandError::new(format!("node `{name}`: cannot find the host of {}: {error}", node.endpoint))
        })?;
        if found.into_iter().any(|address| !address.ip().is_loopback()) {
            let text = format!(
                "node `{name}` at {} is another machine: everybody on the way could read and change the pipeline",
                node.endpoint
            );
            return Err(CommandError::new(text).help(
                "give an identity (--identity DIR), or set `insecure = true` in [link] if that network is trusted",
            ));
        }
    }
    Ok(())
}

/// The error of the pipeline as it is written.
fn whole(arguments: &DeployArguments, registry: &Registry, overrides: &Overrides) -> CommandError {
    match Pipeline::read(&arguments.pipeline, registry, overrides) {
        Err(error) => error.into(),
        Ok(_) => CommandError::new(format!(
            "pipeline `{}`: it is only right with its keys for this machine (`cores`, `pool`, `policy`)",
            arguments.pipeline.display()
        ))
        .help("set those in `options` of each node"),
    }
}

fn read(path: &Path, what: &str) -> Result<String, CommandError> {
    let cannot = |error: std::io::Error| {
        CommandError::new(format!("{what} `{}`: cannot be read: {error}", path.display()))
    };
    if !std::fs::metadata(path).map_err(cannot)?.is_file() {
        let text = format!("{what} `{}`: cannot be read: it is not a regular file", path.display());
        return Err(CommandError::new(text));
    }
    std::fs::read_to_string(path).map_err(cannot)
}

/// The settings for a node: those of its operators, and those of the whole pipeline.
fn settings_of(part: &NodePart, parts: &[NodePart], set: &[String]) -> Vec<String> {
    let is_elsewhere = |setting: &&String| {
        let name = setting.split(['.', '=']).next().unwrap_or_default().trim();
        !part.operators.contains(name) && parts.iter().any(|other| other.operators.contains(name))
    };
    set.iter().filter(|setting| !is_elsewhere(setting)).cloned().collect()
}

/// How to stop the part of a node.
struct WayToStop {
    stream: SharedStream,
    /// The sources there that end when the deployment is stopped: the streams of links end then too.
    sources: Vec<String>,
}

fn way_to_stop((node, part): (&ReachedNode, &NodePart)) -> WayToStop {
    let tables = |key: &str| part.pipeline.get(key).and_then(toml::Value::as_array).into_iter().flatten();
    let text =
        |table: &toml::Value, key: &str| table.get(key).and_then(toml::Value::as_str).map(str::to_string);
    let fed: Vec<String> =
        tables("edge").filter_map(|edge| Some(text(edge, "to")?.split('.').next()?.to_string())).collect();
    let is_source = |name: &String| part.operators.contains(name) && !fed.contains(name);
    let sources = tables("operator").filter_map(|table| text(table, "name")).filter(is_source).collect();
    WayToStop { stream: node.lines.writer(), sources }
}

/// Ends the sources at the first Ctrl-C, so that all in flight is processed; everything at the second.
fn stop_on_interrupt(ways: &Arc<Mutex<Vec<WayToStop>>>, abort: fn() -> !) -> Result<impl Drop, CommandError> {
    let ways = Arc::clone(ways);
    let guard = on_interrupt(move |count| {
        let line = if std::io::stderr().is_terminal() { "\n" } else { "" };
        if count > 1 {
            to_stderr(&format!("{line}onbeat: aborted; the nodes end their parts\n"));
            abort();
        }
        to_stderr(&format!(
            "{line}onbeat: stopping: finishing messages in flight; press Ctrl-C again to abort\n"
        ));
        for WayToStop { stream, sources } in ways.lock().unwrap_or_else(PoisonError::into_inner).iter_mut() {
            if !sources.is_empty() {
                // A node that is gone has ended its part.
                let _gone = write_line(stream, &NodeRequest::Stop(sources.clone()));
            }
        }
    });
    guard.map_err(|error| CommandError::new(format!("cannot handle Ctrl-C: {error}")))
}

/// A node that has a part.
struct ReachedNode {
    name: String,
    endpoint: String,
    lines: JsonLines,
}

/// How the part of a node ended.
struct NodeEnd {
    name: String,
    result: Result<EndedPart, String>,
}

impl ReachedNode {
    /// Connects, and lets the node plan its part.
    fn reach(part: &NodePart, set: &[String], identity: Option<&NodeIdentity>) -> Result<Self, CommandError> {
        let (name, endpoint) = (part.node.clone(), part.endpoint.clone());
        let cannot = |error: &dyn std::fmt::Display| {
            CommandError::new(format!("node `{name}`: cannot reach {endpoint}: {error}"))
                .help("start `onbeat node --listen ADDRESS` there")
        };
        let addresses = endpoint.to_socket_addrs().map_err(|error| cannot(&error))?;
        let mut last = None;
        let found = addresses.into_iter().find_map(|address| {
            TcpStream::connect_timeout(&address, CONNECT).map_err(|error| last = Some(error)).ok()
        });
        let socket = found.ok_or_else(|| match &last {
            Some(error) => cannot(error),
            None => cannot(&"it has no address"),
        })?;
        let stream = socket
            .set_nodelay(true)
            .and_then(|()| socket.set_read_timeout(Some(CONNECT)))
            .and_then(|()| call(socket, identity, &name))
            .and_then(SharedStream::new);
        let mut stream = stream.map_err(|error| cannot(&error))?;
        stream.patience = Some(ANSWER);
        let lines = JsonLines::new(stream, REPLY_BYTES);
        let mut node = ReachedNode { name, endpoint, lines };
        let pipeline =
            toml::to_string(&part.pipeline).map_err(|error| CommandError::new(error.to_string()))?;
        let check = NodeRequest::Check {
            version: env!("CARGO_PKG_VERSION").to_string(),
            pipeline,
            set: set.to_vec(),
        };
        match node.ask(&check)? {
            NodeReply::Checked => Ok(node),
            reply => Err(node.unexpected(reply)),
        }
    }

    fn start(&mut self, is_quiet: bool) -> Result<(), CommandError> {
        match self.ask(&NodeRequest::Start)? {
            NodeReply::Started { notes } => {
                for note in notes.iter().filter(|_| !is_quiet) {
                    to_stderr(&format!("{}: {note}\n", self.name));
                }
                Ok(())
            }
            reply => Err(self.unexpected(reply)),
        }
    }

    fn ask(&mut self, request: &NodeRequest) -> Result<NodeReply, CommandError> {
        write_line(&mut self.lines.writer(), request).map_err(|error| self.gone(&error))?;
        let reply = self.lines.read().map_err(|error| self.gone(&error))?;
        reply.ok_or_else(|| self.gone(&"it closed the connection"))
    }

    /// Waits for the end of the part, in a thread.
    fn wait(mut self, ends: &Sender<NodeEnd>) -> Result<(), CommandError> {
        let ends = ends.clone();
        // A part may run for days.
        self.lines.reader.get_mut().patience = None;
        let body = move || {
            let result = match self.lines.read() {
                Ok(Some(NodeReply::Ended(ended))) => Ok(*ended),
                Ok(Some(NodeReply::Failed(why))) => Err(why),
                Ok(Some(_)) => Err("it said something else than the end of its part".to_string()),
                Ok(None) => Err(format!("{} closed the connection: the node is gone", self.endpoint)),
                Err(error) => Err(format!("the connection with {} broke: {error}", self.endpoint)),
            };
            // Nobody waits if the command failed.
            let _over = ends.send(NodeEnd { name: self.name, result });
        };
        onbeat_os::thread::spawn("onbeat-deploy", body)
            .map(drop)
            .map_err(|error| CommandError::new(format!("no thread for a node: {error}")))
    }

    fn gone(&self, error: &dyn std::fmt::Display) -> CommandError {
        CommandError::new(format!("node `{}` at {}: {error}", self.name, self.endpoint))
    }

    fn unexpected(&self, reply: NodeReply) -> CommandError {
        match reply {
            NodeReply::Failed(why) => self.gone(&why),
            _ => self.gone(&"it answers something else").help("install the same version of onbeat there"),
        }
    }
}

/// Collects the ends of all parts, writes their records and shows them. Returns the worst exit status.
fn report(ends: &Receiver<NodeEnd>, arguments: &DeployArguments, records: &Path) -> Result<u8, CommandError> {
    std::fs::create_dir_all(records).map_err(|error| {
        CommandError::new(format!("folder `{}`: cannot be created: {error}", records.display()))
    })?;
    let (mut worst, mut failures) = (0, Vec::new());
    let (mut runs, mut positions) = (Vec::new(), Vec::new());
    for NodeEnd { name, result } in ends {
        // The others may go on for long.
        let reason = match &result {
            Ok(ended) if ended.record.result.exit_status == 1 => Some(&ended.record.result.reason),
            Ok(_) => None,
            Err(why) => Some(why),
        };
        if let Some(reason) = reason {
            to_stderr(&format!("{name} failed: {reason}\n"));
        }
        match result {
            Ok(EndedPart { record, position_ns }) => {
                worst = worse(worst, record.result.exit_status);
                if record.result.exit_status == 1 {
                    failures.push(CommandError::new(format!("node `{name}`: {}", record.result.reason)));
                }
                runs.push(NodeRun { node: name, record });
                positions.push(position_ns);
            }
            Err(why) => {
                worst = worse(worst, 1);
                failures.push(CommandError::new(format!("node `{name}`: {why}")));
            }
        }
    }
    name_causes_elsewhere(&mut runs);
    for (run, position_ns) in runs.iter().zip(positions) {
        show(run, position_ns, arguments, records)?;
    }
    failures.iter().for_each(CommandError::show);
    Ok(worst)
}

/// Writes the record of a node, and prints its table.
fn show(
    NodeRun { node, record }: &NodeRun,
    position_ns: u64,
    arguments: &DeployArguments,
    records: &Path,
) -> Result<(), CommandError> {
    let path = records.join(format!("{}.record.json", record.name));
    record.write(&path).map_err(|error| {
        CommandError::new(format!("record `{}`: cannot be written: {error}", path.display()))
    })?;
    if arguments.quiet {
        return Ok(());
    }
    // The files are where the node wrote them.
    let output = record.config.get("output").and_then(serde_json::Value::as_str).unwrap_or_default();
    let output = PathBuf::from(format!("{node}:{output}"));
    let facts = RunFacts { position_ns, output: &output, record: Some(&path), said: &[] };
    let colour = crate::stderr::may_colour(std::io::stdout().is_terminal());
    let text = views::view(OutputFormat::Human, colour).text(&documents::run(record, &facts));
    output::to_stdout(&format!("{text}\n"))
}

/// The status that matters more: an error, then lost data, then a limit.
fn worse(one: u8, other: u8) -> u8 {
    let rank = |status: u8| match status {
        0 => 0,
        2 => 1,
        3 => 2,
        _ => 3,
    };
    if rank(other) > rank(one) { other } else { one }
}
