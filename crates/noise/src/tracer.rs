//! The kernel's own osnoise tracer: its threads, its gaps, its events, read as text from an instance of our own.
//!
//! The lines are the kernel's interface (`Documentation/trace/osnoise-tracer.rst`); times in them are on the clock of the
//! tracer, gaps and events on the same one, so they are laid together as any others.

mod lines;

pub use lines::{Line, line};

use crate::attribute::{Own, attribute};
use crate::error::Error;
use crate::measure::{Settings, Watch};
use crate::place::{self, House};
use crate::record::{Asked, CpuNoise, NoiseRecord, SCHEMA, Stopped, VERSION};
use crate::sampler::Period;
use crate::source::{Backend, Chosen, Counters, Refused};
use crate::tally::Tally;
use onbeat_os::knob::Knobs;
use onbeat_os::tracefs::Tracefs;
use onbeat_os::{CoreSet, clock, poll};
use onbeat_trace::{KernelEvent, Machine};
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Settings of the kernel, an instance, and what is asked of it.
struct Instance {
    folder: PathBuf,
    /// Dropped last: it takes the instance away.
    knobs: Knobs,
}

/// From reading to reading.
const EVERY: Duration = Duration::from_millis(50);
/// Events of a core that are kept for a gap that is told of later.
const EVENTS: usize = 1 << 16;

/// Measures with the kernel's threads, with interrupts off where `is_hw` says so.
///
/// # Errors
/// Where the kernel has no such tracer, or does not let us use it.
pub fn measure(settings: &Settings, is_hw: bool, watch: &mut dyn Watch) -> Result<NoiseRecord, Error> {
    let cpus = place::cpus(settings.cpus.as_ref())?;
    let refused = |refused| Error::Backend { backend: "tracer", refused };
    let tracefs = Tracefs::find().map_err(|error| {
        let (why, fix) = (error.to_string(), "run as root".to_owned());
        refused(Refused { why, fix })
    })?;
    check(&tracefs, settings).map_err(refused)?;
    let house = House::keep(settings.house_keeping.as_ref(), &cpus)?;
    let mut notes: Vec<String> = house.note.iter().cloned().collect();
    let instance = Instance::new(&tracefs, settings, &cpus, is_hw)?;
    notes.extend(
        instance.knobs.cleaned().iter().map(|line| format!("left by a process that was killed: {line}")),
    );
    let new = |cpu: &usize| {
        let tally = Tally::new(*cpu as u32, settings.bucket_ns, settings.entries, settings.samples);
        (*cpu as u32, Core { tally, events: Vec::new(), before: Counters::read(*cpu) })
    };
    let mut cores: BTreeMap<u32, Core> = cpus.iter().map(new).collect();
    let started_unix_ns = clock::realtime_unix_ns();
    let begin_ns = clock::monotonic_ns();
    instance.start()?;
    let stopped = instance.read(settings, &mut cores, begin_ns, watch)?;
    let duration_ns = clock::monotonic_ns().saturating_sub(begin_ns);
    drop(instance);
    let finished = cores.into_iter().map(|(cpu, mut core)| {
        core.tally.counted(Counters::read(cpu as usize).since(&core.before));
        core.tally.so_far()
    });
    Ok(NoiseRecord {
        schema: SCHEMA.to_owned(),
        version: VERSION,
        name: String::new(),
        started_unix_ns,
        begin_ns,
        duration_ns,
        machine: Machine::read(),
        settings: Asked {
            period_ns: settings.period_ns,
            runtime_ns: settings.runtime_ns,
            threshold_ns: settings.threshold_ns,
            policy: "the kernel's own".to_owned(),
            bucket_ns: settings.bucket_ns,
        },
        source: Chosen {
            backend: Backend::Tracer,
            why: "it was asked for".to_owned(),
            fix: None,
            missing: Vec::new(),
        },
        stopped,
        hits: 0,
        notes,
        cpus: finished.collect::<Vec<CpuNoise>>(),
        events: Vec::new(),
    })
}

fn check(tracefs: &Tracefs, settings: &Settings) -> Result<(), Refused> {
    let tracers = tracefs.tracers();
    if !tracers.iter().any(|tracer| tracer == "osnoise") {
        return Err(Refused {
            why: format!("this kernel has no osnoise tracer: its tracers are {}", tracers.join(", ")),
            fix: "leave --backend out, tracepoints do as well; or boot a kernel with CONFIG_OSNOISE_TRACER, as Debian's \
                  linux-image-rt-amd64"
                .to_owned(),
        });
    }
    if settings.goes_on {
        return Err(Refused {
            why: "the kernel's tracer ends at a limit and does not go on".to_owned(),
            fix: "leave --on-threshold continue out, or --backend tracer".to_owned(),
        });
    }
    if settings.policy.is_some() {
        return Err(Refused {
            why: "the policy of the kernel's threads is the kernel's".to_owned(),
            fix: "leave -P out".to_owned(),
        });
    }
    Ok(())
}

impl Instance {
    fn new(tracefs: &Tracefs, settings: &Settings, cpus: &[usize], is_hw: bool) -> Result<Self, Error> {
        let os = |error: std::io::Error| Error::Os {
            what: "the settings of the osnoise tracer".to_owned(),
            source: error,
        };
        let mut knobs = Knobs::new().map_err(os)?;
        let osnoise = tracefs.root().join("osnoise");
        let list =
            CoreSet::from_cores(cpus.iter().copied()).map_err(|error| Error::Settings(error.to_string()))?;
        let us = |ns: u64| (ns / 1000).to_string();
        let stop = |limit_ns: Option<u64>| us(limit_ns.unwrap_or(0));
        // The kernel holds each of the two against the other: the smaller one first, and then again.
        knobs.set(&osnoise.join("period_us"), &us(settings.period_ns.max(1_000_000_000))).map_err(os)?;
        knobs.set(&osnoise.join("runtime_us"), &us(settings.runtime_ns)).map_err(os)?;
        knobs.set(&osnoise.join("period_us"), &us(settings.period_ns)).map_err(os)?;
        knobs.set(&osnoise.join("cpus"), &list.to_string()).map_err(os)?;
        knobs.set(&osnoise.join("stop_tracing_us"), &stop(settings.stop_single_ns)).map_err(os)?;
        knobs.set(&osnoise.join("stop_tracing_total_us"), &stop(settings.stop_total_ns)).map_err(os)?;
        knobs
            .set(&tracefs.root().join("tracing_thresh"), &us(settings.threshold_ns.max(1000)))
            .map_err(os)?;
        if is_hw {
            knobs
                .switch(&osnoise.join("options"), "OSNOISE_IRQ_DISABLE", "NO_OSNOISE_IRQ_DISABLE")
                .map_err(os)?;
        }
        let folder = tracefs.root().join("instances").join(format!("onbeat-{}", std::process::id()));
        knobs.make_folder(&folder).map_err(os)?;
        for event in ["sample_threshold", "irq_noise", "softirq_noise", "nmi_noise", "thread_noise"] {
            write(&folder.join("events/osnoise").join(event).join("enable"), "1")?;
        }
        Ok(Instance { folder, knobs })
    }

    fn start(&self) -> Result<(), Error> {
        write(&self.folder.join("current_tracer"), "osnoise")
    }

    /// Takes lines in until it is over, and says which limit ended it.
    fn read(
        &self,
        settings: &Settings,
        cores: &mut BTreeMap<u32, Core>,
        begin_ns: u64,
        watch: &mut dyn Watch,
    ) -> Result<Option<Stopped>, Error> {
        let end_ns =
            settings.duration_ns.map_or(u64::MAX, |ns| begin_ns.saturating_add(ns + settings.warm_up_ns));
        let pipe = poll::open(&self.folder.join("trace_pipe")).map_err(Error::os("trace_pipe"))?;
        let mut pipe = fs::File::from(pipe);
        let (mut text, mut bytes) = (Vec::new(), vec![0; 1 << 16]);
        let mut stopped = None;
        loop {
            std::thread::sleep(EVERY);
            let elapsed_ns = clock::monotonic_ns().saturating_sub(begin_ns);
            // It does not wait: an error says that there is nothing more for now.
            while let Ok(length @ 1..) = pipe.read(&mut bytes) {
                text.extend_from_slice(&bytes[..length]);
                let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                let lines: Vec<u8> = text.drain(..whole).collect();
                if elapsed_ns >= settings.warm_up_ns {
                    for one in String::from_utf8_lossy(&lines).lines() {
                        take(one, cores, settings, &mut stopped);
                    }
                }
            }
            // The kernel stops by itself at a limit.
            let is_on = fs::read_to_string(self.folder.join("tracing_on")).is_ok_and(|on| on.trim() == "1");
            if !is_on || stopped.is_some() || begin_ns + elapsed_ns >= end_ns || watch.is_stopped() {
                break;
            }
            watch.at(&|| cores.values().map(|core| core.tally.so_far()).collect(), elapsed_ns);
        }
        // A tracer whose lines somebody reads is busy.
        drop(pipe);
        write(&self.folder.join("current_tracer"), "nop")?;
        Ok(stopped)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // A tracer that runs keeps its instance.
        let _refused = fs::write(self.folder.join("current_tracer"), "nop");
    }
}

fn write(path: &Path, value: &str) -> Result<(), Error> {
    fs::write(path, value).map_err(Error::os(format!("{}: cannot be set to `{value}`", path.display())))
}

struct Core {
    tally: Tally,
    events: Vec<KernelEvent>,
    before: Counters,
}

fn take(text: &str, cores: &mut BTreeMap<u32, Core>, settings: &Settings, stopped: &mut Option<Stopped>) {
    match line(text) {
        Some(Line::Event(event)) => {
            if let Some(core) = cores.get_mut(&event.cpu) {
                let over = core.events.len().saturating_sub(EVENTS);
                core.events.drain(..over);
                core.events.push(event);
            }
        }
        Some(Line::Gap(gap)) => {
            let Some(core) = cores.get_mut(&gap.cpu) else { return };
            let verdict = attribute(gap, &core.events, Own::Fair);
            core.events.clear();
            if let Some(limit_ns) = settings.stop_single_ns.filter(|limit| gap.duration_ns() > *limit) {
                stopped.get_or_insert(Stopped {
                    cpu: gap.cpu,
                    what: "one gap".to_owned(),
                    value_ns: gap.duration_ns(),
                    limit_ns,
                });
            }
            core.tally.gap(verdict);
        }
        Some(Line::Period { cpu, runtime_ns, noise_ns }) => {
            let Some(core) = cores.get_mut(&cpu) else { return };
            core.tally.period(&Period { runtime_ns, noise_ns, looks: 0 });
            if let Some(limit_ns) = settings.stop_total_ns.filter(|limit| noise_ns > *limit) {
                stopped.get_or_insert(Stopped {
                    cpu,
                    what: "the noise of a period".to_owned(),
                    value_ns: noise_ns,
                    limit_ns,
                });
            }
        }
        None => {}
    }
}
