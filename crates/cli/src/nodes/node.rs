//! `onbeat node`

use super::{EndedPart, JsonLines, NodeReply, NodeRequest, REQUEST_BYTES, control, own_identity, write_line};
use crate::arguments::nodes::NodeArguments;
use crate::error::CommandError;
use crate::metrics::{MetricsListener, MetricsOf};
use crate::stderr::to_stderr;
use onbeat::link::{NodeIdentity, SharedStream, answer};
use onbeat::{ControlSocket, Overrides, Pipeline, Registry, RunError, RunHandle, RunStatus};
use onbeat_os::signal::on_interrupt;
use sd_notify::NotifyState;
use std::io;
use std::net::{Shutdown, TcpListener, TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use toml::{Table, Value};

/// Most callers at the same time, those with a part that runs included.
const CALLERS: usize = 64;
/// Time for a caller to say what to run.
const PATIENCE: Duration = Duration::from_secs(60);

/// The runs of this node, to be stopped with it.
#[derive(Default)]
pub(super) struct RunningParts {
    pub parts: Vec<RunningPart>,
    /// Connections of all callers.
    callers: Vec<(u64, TcpStream)>,
    next: u64,
    is_over: bool,
}

/// A part that runs.
pub(super) struct RunningPart {
    number: u64,
    pub name: String,
    handle: RunHandle,
    /// Its control socket.
    pub control: Option<PathBuf>,
}

impl RunningParts {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Ends all parts, and lets nobody say any more.
    fn end(&mut self) {
        self.is_over = true;
        self.parts.iter().for_each(|part| part.handle.stop());
        for (_, stream) in &self.callers {
            // The caller may be gone.
            let _gone = stream.shutdown(Shutdown::Read);
        }
    }
}

type Shared = Arc<Mutex<RunningParts>>;

fn locked(running: &Shared) -> MutexGuard<'_, RunningParts> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn node(arguments: &NodeArguments, registry: &Registry, abort: fn() -> !) -> Result<u8, CommandError> {
    let listener = listen(arguments)?;
    // Its folder may be relative to the present one.
    let identity = own_identity(arguments.identity.as_deref())?;
    if let Some(folder) = &arguments.folder {
        std::env::set_current_dir(folder).map_err(|error| {
            CommandError::new(format!("folder `{}`: cannot be used: {error}", folder.display()))
        })?;
    }
    let metrics = arguments.metrics.as_deref().map(MetricsListener::new).transpose()?;
    let site = NodeSite { registry, identity, allow: &arguments.allow, running: Shared::default() };
    let running = &site.running;
    let stopped = Arc::clone(running);
    let address = listener.local_addr().map_err(|error| CommandError::new(error.to_string()))?;
    let guard = on_interrupt(move |count| {
        if count > 1 {
            to_stderr("onbeat: aborted; files may be incomplete\n");
            abort();
        }
        locked(&stopped).end();
        // Wakes the thread that waits for a caller.
        let _woken = TcpStream::connect(address);
    });
    let _guard = guard.map_err(|error| CommandError::new(format!("cannot handle Ctrl-C: {error}")))?;
    let watched = Arc::clone(running);
    let look = move || status_of_all(&watched);
    if let Some(listener) = &metrics {
        to_stderr(&format!("onbeat node: {}\n", listener.line()));
    }
    let _metrics = metrics.map(|listener| listener.serve(MetricsOf::Node, look)).transpose()?;
    to_stderr(&format!("onbeat node: listening at {address}\n"));
    // Only if a service manager listens.
    let _not_a_service =
        sd_notify::notify(&[NotifyState::Ready, NotifyState::Status(&format!("listening at {address}"))]);
    std::thread::scope(|scope| {
        for caller in listener.incoming() {
            if locked(running).is_over {
                break;
            }
            let Ok(mut stream) = caller else { continue };
            let from = stream.peer_addr().map_or_else(|_| "a caller".to_string(), |from| from.to_string());
            let Some(number) = admit(&stream, running) else {
                let text = format!("{CALLERS} callers are connected already");
                // The caller may be gone.
                let _gone = write_line(&mut stream, &NodeReply::Failed(text));
                continue;
            };
            let site = &site;
            let serve = move || {
                if let Err(error) = serve(stream, &from, site) {
                    to_stderr(&format!("onbeat node: {from}: {error}\n"));
                }
                locked(&site.running).callers.retain(|(other, _)| *other != number);
            };
            let builder = std::thread::Builder::new().name("onbeat-node".to_string());
            if let Err(error) = builder.spawn_scoped(scope, serve) {
                to_stderr(&format!("onbeat node: no thread for a caller: {error}\n"));
            }
        }
    });
    Ok(0)
}

/// The state of all parts that run.
fn status_of_all(running: &Shared) -> Vec<RunStatus> {
    let handles: Vec<RunHandle> = locked(running).parts.iter().map(|part| part.handle.clone()).collect();
    handles.iter().map(RunHandle::status).collect()
}

/// Notes a caller; `None` if there are too many.
fn admit(stream: &TcpStream, running: &Shared) -> Option<u64> {
    let mut running = locked(running);
    if running.callers.len() >= CALLERS {
        return None;
    }
    let number = running.number();
    running.callers.push((number, stream.try_clone().ok()?));
    Some(number)
}

fn listen(arguments: &NodeArguments) -> Result<TcpListener, CommandError> {
    let listen = &arguments.listen;
    let cannot = |error: io::Error| {
        CommandError::new(format!("--listen {listen}: {error}"))
            .help("write the address of an interface of this machine and a port, e.g. 192.168.0.7:7400")
    };
    let mut addresses = listen.to_socket_addrs().map_err(cannot)?;
    if !arguments.insecure
        && arguments.identity.is_none()
        && !addresses.all(|address| address.ip().is_loopback())
    {
        let text =
            format!("--listen {listen}: other machines could run pipelines here, and read and write files");
        let help = "give the node an identity (--identity DIR), or add --insecure if all who reach this address are \
                    trusted";
        return Err(CommandError::new(text).help(help));
    }
    TcpListener::bind(listen).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => CommandError::new(format!("--listen {listen}: {error}"))
            .help("another `onbeat node` may run there already; choose another port"),
        _ => cannot(error),
    })
}

/// Serves one deployment.
fn serve(socket: TcpStream, from: &str, site: &NodeSite<'_>) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let mut stream = SharedStream::new(answer(socket, site.identity.as_ref())?)?;
    stream.patience = Some(PATIENCE);
    let mut lines = JsonLines::new(stream, REQUEST_BYTES);
    let mut writer = lines.writer();
    let mut checked = None;
    while let Some(request) = lines.read()? {
        if let Err(error) = writer.proved(site.allow) {
            return write_line(&mut writer, &NodeReply::Failed(format!("{error} (`--allow`)")));
        }
        let reply = match request {
            NodeRequest::Check { version, pipeline, set } => match site.check(&version, &pipeline, &set) {
                Ok(pipeline) => {
                    checked = Some(pipeline);
                    NodeReply::Checked
                }
                Err(error) => NodeReply::Failed(error),
            },
            NodeRequest::Control { version, run } => {
                let socket =
                    same_version(&version).and_then(|()| control::socket_of(&locked(&site.running), &run));
                match socket {
                    Ok(socket) => return control::pass_on(lines, writer, &socket),
                    Err(error) => NodeReply::Failed(error),
                }
            }
            NodeRequest::Start => match checked.take() {
                Some(pipeline) => return run(pipeline, from, lines, writer, &site.running),
                None => NodeReply::Failed("there is nothing to start: `check` comes first".to_string()),
            },
            NodeRequest::Stop(_) => NodeReply::Failed("nothing runs".to_string()),
        };
        write_line(&mut writer, &reply)?;
    }
    Ok(())
}

/// What a node serves deployments with.
struct NodeSite<'a> {
    registry: &'a Registry,
    identity: Option<NodeIdentity>,
    /// Names of those who may deploy here, if there is an identity.
    allow: &'a [String],
    running: Shared,
}

impl NodeSite<'_> {
    fn check(&self, version: &str, text: &str, set: &[String]) -> Result<Pipeline, String> {
        let text = self.with_identity(text)?;
        let pipeline = check(version, &text, set, self.registry)?;
        let name = pipeline.name();
        if locked(&self.running).parts.iter().any(|part| part.name == name) {
            return Err(format!("`{name}` runs here already: stop it, or give the pipeline another `name`"));
        }
        Ok(pipeline)
    }

    /// Gives the identity of this node to the links of a part that name their peer.
    fn with_identity(&self, text: &str) -> Result<String, String> {
        let Some(identity) = &self.identity else { return Ok(text.to_string()) };
        let mut table: Table = toml::from_str(text).map_err(|error| error.to_string())?;
        let operators = table.get_mut("operator").and_then(Value::as_array_mut).into_iter().flatten();
        for operator in operators.filter_map(Value::as_table_mut) {
            let is_link =
                operator.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.starts_with("link."));
            if is_link && operator.contains_key("peer") {
                let folder = Value::String(identity.folder().display().to_string());
                operator.entry("identity").or_insert(folder);
            }
        }
        toml::to_string(&table).map_err(|error| error.to_string())
    }
}

fn same_version(version: &str) -> Result<(), String> {
    let own = env!("CARGO_PKG_VERSION");
    if version == own {
        return Ok(());
    }
    Err(format!("this node runs onbeat {own}, the caller is onbeat {version}: install the same"))
}

fn check(version: &str, text: &str, set: &[String], registry: &Registry) -> Result<Pipeline, String> {
    same_version(version)?;
    let mut overrides = Overrides::default();
    for setting in set {
        overrides.set(setting);
    }
    Pipeline::parse(text, "the node's part", Path::new(""), registry, &overrides).map_err(|error| {
        let help = error.help().map(|help| format!("; {help}")).unwrap_or_default();
        format!("{}{help}", error.message())
    })
}

/// Runs a part until it ends.
fn run(
    mut pipeline: Pipeline,
    from: &str,
    mut lines: JsonLines,
    mut writer: SharedStream,
    running: &Shared,
) -> io::Result<()> {
    let name = pipeline.name().to_string();
    let number = locked(running).number();
    let mut without = None;
    if pipeline.control.is_none() {
        let path = control::own_socket(number);
        match ControlSocket::bind(&path) {
            Ok(_) => pipeline.control = Some(path),
            Err(error) => without = Some(format!("not obtained: control by `onbeat ctl`: {error}")),
        }
    }
    let control = pipeline.control.clone();
    let started = std::fs::create_dir_all(&pipeline.output)
        .map_err(|error| format!("output folder `{}`: cannot be created: {error}", pipeline.output.display()))
        .and_then(|()| {
            let evidence = onbeat::evidence(&pipeline.plan);
            pipeline.start_explained(evidence).map_err(|error| error.to_string())
        });
    let run = match started {
        Ok(run) => run,
        Err(error) => return write_line(&mut writer, &NodeReply::Failed(error)),
    };
    let missing = crate::documents::not_obtained(run.obtained());
    let notes = run.notes().iter().map(|note| format!("note: {note}"));
    let notes = missing.chain(notes).chain(without).collect();
    write_line(&mut writer, &NodeReply::Started { notes })?;
    to_stderr(&format!("onbeat node: {name}: started by {from}\n"));
    let handle = run.handle();
    enter(running, RunningPart { number, name: name.clone(), handle: handle.clone(), control });
    let (orders, was_stopped) = (handle.clone(), Arc::new(Mutex::new(false)));
    let stopped = Arc::clone(&was_stopped);
    lines.reader.get_mut().patience = None;
    let reading = onbeat_os::thread::spawn("onbeat-orders", move || obey(lines, &orders, &stopped))?;
    let result = run.wait();
    locked(running).parts.retain(|part| part.number != number);
    let reply = match result {
        Ok(record) => ended_with(record, &handle, &was_stopped),
        Err(RunError::Failed(record)) => ended_with(*record, &handle, &was_stopped),
        Err(error) => NodeReply::Failed(error.to_string()),
    };
    if let NodeReply::Ended(ended) = &reply {
        let result = &ended.record.result;
        to_stderr(&format!("onbeat node: {name}: {}: {}\n", result.outcome, result.reason));
    }
    // The deployment may be gone by now; then there is nobody to tell.
    let _gone = write_line(&mut writer, &reply).and_then(|()| writer.shutdown(Shutdown::Both));
    let _panicked = reading.join();
    Ok(())
}

fn ended_with(record: onbeat::Record, handle: &RunHandle, was_stopped: &Mutex<bool>) -> NodeReply {
    let progress = handle.progress();
    // Sources that were stopped one by one have ended, and have not played to their end.
    let position_ns = if *was_stopped.lock().unwrap_or_else(PoisonError::into_inner) {
        progress.position_ns
    } else {
        crate::commands::run::position_ns(&record, progress)
    };
    NodeReply::Ended(Box::new(EndedPart { record, position_ns }))
}

fn enter(running: &Shared, part: RunningPart) {
    let mut running = locked(running);
    if running.is_over {
        part.handle.stop();
    }
    running.parts.push(part);
}

/// Carries out orders until the connection ends, and stops the part then.
fn obey(mut lines: JsonLines, handle: &RunHandle, was_stopped: &Mutex<bool>) {
    while let Ok(Some(request)) = lines.read() {
        let NodeRequest::Stop(sources) = request else { continue };
        *was_stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        if sources.is_empty() {
            handle.stop();
        }
        for source in sources {
            // It may have ended.
            let _over = handle.stop_operator(&source);
        }
    }
    handle.stop();
}
