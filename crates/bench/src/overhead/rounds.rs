//! All measurements in turn, once per round, so that disturbances of the machine affect all of them.

use super::break_even::{self, Loaded, SHARES};
use super::case::OverheadCase;
use super::effort::{ArithmeticRounds, NoEffort};
use super::marks::{Length, UsageDelta};
use super::measure::{self, RunTimes};
use super::python::{self, PeerTimes, PythonCases};
use super::recipe::WorkerSetup;
use super::settings::{OverheadSettings, PUBLISHED_ITERATIONS};
use super::{EngineShare, bare};
use crate::others::{self, Others};
use crate::{BenchError, BenchWatch};
use onbeat_os::EventCounter;
use onbeat_runtime::{Graph, Options, Plan};

/// All measurements.
pub(super) struct OverheadRounds {
    pub pairs: Vec<Pair>,
    /// Cases without an engine, on one thread and on two.
    pub limits: Vec<BareLimit>,
    /// Nanoseconds from one thread to another; empty if nothing runs on two.
    pub one_way_ns: Vec<f64>,
    pub checks: Option<Checks>,
    pub python: Option<PythonCases>,
    /// Cases in Python without an engine, in nanoseconds per iteration.
    pub python_bare: Vec<(OverheadCase, Vec<f64>)>,
    pub peer: Option<PythonCases>,
    /// Share of the machine used by others during the measurement, if known.
    pub others: Option<f64>,
    pub notes: Vec<String>,
}

/// One scheduler with one case.
pub(super) struct Pair {
    pub recipe: WorkerSetup,
    pub case: OverheadCase,
    pub options: Options,
    /// Consecutive steps in an iteration: those of one worker, if each has its own operators.
    pub steps: f64,
    pub limit: Option<usize>,
    /// Iterations of its steady runs.
    pub iterations: u64,
    pub process: Vec<RunTimes>,
    pub steady: Vec<RunTimes>,
    /// Counted in a separate run.
    pub counted: Option<UsageDelta>,
    pub python: Vec<PeerTimes>,
    pub peer: Vec<PeerTimes>,
}

/// A case without an engine.
pub(super) struct BareLimit {
    pub case: OverheadCase,
    pub threads: usize,
    /// Nanoseconds per iteration.
    pub runs: Vec<f64>,
}

/// Check of the break-even of one pair, with operators that work.
pub(super) struct Checks {
    pub pair: usize,
    pub loaded: Vec<(EngineShare, Vec<Loaded>)>,
}

/// Approximate duration of a steady run, unless the iterations are given.
const STEADY_NS: f64 = 50e6;

pub(super) fn measure(
    settings: &OverheadSettings,
    watch: &mut dyn BenchWatch,
) -> Result<OverheadRounds, BenchError> {
    if settings.warm_up == 0 || settings.iterations == Some(0) || settings.runs == 0 {
        return Err(BenchError::Settings("iterations, warm-up and runs must be 1 or more".to_owned()));
    }
    let mut notes = Vec::new();
    let (mut pairs, mut limits) = (Vec::new(), Vec::new());
    for recipe in WorkerSetup::all(settings) {
        for &case in &settings.cases {
            match prepare(recipe, case, settings, &mut limits, &mut notes) {
                Ok(pair) => pairs.push(pair),
                Err(reason) => note(&mut notes, format!("{}: not available: {reason}", recipe.name())),
            }
        }
    }
    if pairs.is_empty() {
        return Err(BenchError::Nothing(notes.join("; ")));
    }
    let (mut python, mut peer) = interpreters(settings, watch, &mut notes);
    // Done on the thread that starts the workers, because they inherit the counter. It is closed before
    // anything is timed.
    count(&mut pairs, settings, watch, &mut notes)?;
    let mut rounds = OverheadRounds {
        pairs,
        limits,
        one_way_ns: Vec::new(),
        checks: None,
        python: None,
        python_bare: settings.cases.iter().map(|&case| (case, Vec::new())).collect(),
        peer: None,
        others: None,
        notes,
    };
    let helpers_ns = |helpers: [&Option<PythonCases>; 2]| -> u64 {
        helpers.into_iter().flatten().filter_map(|helper| others::cpu_ns(helper.id())).sum()
    };
    let (others, before_ns) = (Others::watch(), helpers_ns([&python, &peer]));
    rounds.all(settings, watch, [python.as_mut(), peer.as_mut()])?;
    rounds.check(settings, watch)?;
    rounds.others = others.share(helpers_ns([&python, &peer]).saturating_sub(before_ns));
    (rounds.python, rounds.peer) = (python, peer);
    Ok(rounds)
}

/// Starts the interpreters for onbeat's package and for the peer. A note says why one cannot be had.
fn interpreters(
    settings: &OverheadSettings,
    watch: &mut dyn BenchWatch,
    notes: &mut Vec<String>,
) -> (Option<PythonCases>, Option<PythonCases>) {
    let python = settings.python.as_ref().and_then(|program| {
        watch.at(0, 1, "starting Python");
        let iterations = process_iterations(settings);
        PythonCases::start(program, python::ONBEAT, iterations)
            .inspect_err(|why| notes.push(why.clone()))
            .ok()
    });
    let peer = settings.peer.as_ref().and_then(|peer| {
        watch.at(0, 1, "starting Holoscan");
        let started = PythonCases::start(&peer.python, python::HOLOSCAN, peer.iterations);
        started.inspect_err(|why| notes.push(why.clone())).ok()
    });
    (python, peer)
}

/// Adds a note once, even if it applies to several cases.
fn note(notes: &mut Vec<String>, text: String) {
    if !notes.contains(&text) {
        notes.push(text);
    }
}

/// Checks whether a pair can run, and finds its limit.
fn prepare(
    recipe: WorkerSetup,
    case: OverheadCase,
    settings: &OverheadSettings,
    limits: &mut Vec<BareLimit>,
    notes: &mut Vec<String>,
) -> Result<Pair, String> {
    let options = recipe.options(settings)?;
    let length = Length { warm_up: 1, iterations: 1 };
    let graph: Graph = case.prepare(length, NoEffort, None).graph;
    let plan: Plan = graph.plan(&options).map_err(|error| error.to_string())?;
    for setting in plan.obtained.iter().filter(|setting| setting.asked != setting.obtained) {
        let reason = setting.reason.as_deref().unwrap_or("not available");
        let (what, asked, obtained) = (&setting.what, &setting.asked, &setting.obtained);
        let (recipe, case) = (recipe.name(), case.name());
        note(notes, format!("{recipe}.{case}: {what}: {asked} asked for, {obtained} obtained: {reason}"));
    }
    // A scheduler that can use one worker has the limit of one thread; one that must use two has that of two.
    let threads = if recipe.must_share() { plan.workers.len() } else { 1 };
    let steps = case.operators() as f64 / threads as f64;
    let limit = (threads <= 2).then(|| {
        let known = limits.iter().position(|limit| limit.case == case && limit.threads == threads);
        known.unwrap_or_else(|| {
            limits.push(BareLimit { case, threads, runs: Vec::new() });
            limits.len() - 1
        })
    });
    let (process, steady, python, peer) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    Ok(Pair {
        recipe,
        case,
        options,
        steps,
        limit,
        iterations: 0,
        process,
        steady,
        counted: None,
        python,
        peer,
    })
}

/// Determines the iterations of a steady run, and the kernel's counts in one run.
fn count(
    pairs: &mut [Pair],
    settings: &OverheadSettings,
    watch: &mut dyn BenchWatch,
    notes: &mut Vec<String>,
) -> Result<(), BenchError> {
    let all = pairs.len();
    for (done, pair) in pairs.iter_mut().enumerate() {
        if watch.is_stopped() {
            return Err(BenchError::Stopped);
        }
        watch.at(done, all, &format!("counting calls: {}", pair.name()));
        let probe = settings.iterations.unwrap_or(20_000).min(20_000);
        let taken = pair.run(Length { warm_up: settings.warm_up, iterations: probe }, None)?;
        pair.iterations = settings.iterations.unwrap_or_else(|| {
            round_number(STEADY_NS / (taken.steady_ns as f64 / probe as f64)).clamp(20_000, 5_000_000)
        });
        let futex = match EventCounter::tracepoint("syscalls", "sys_enter_futex") {
            Ok(futex) => Some(futex),
            Err(error) => {
                note(
                    notes,
                    format!(
                        "futex calls are not counted: {error}; voluntary switches include the sleeps among \
                         them"
                    ),
                );
                None
            }
        };
        pair.counted = pair.run(pair.length(settings), futex)?.counted;
    }
    Ok(())
}

/// Rounds to 1, 2 or 5 times a power of ten, at most `most`.
fn round_number(most: f64) -> u64 {
    let power = 10f64.powf(most.clamp(1.0, 1e15).log10().floor());
    let factor = [5.0, 2.0, 1.0].into_iter().find(|factor| factor * power <= most).unwrap_or(1.0);
    (factor * power) as u64
}

impl Pair {
    pub fn name(&self) -> String {
        format!("{}.{}", self.recipe.name(), self.case.name())
    }

    pub fn length(&self, settings: &OverheadSettings) -> Length {
        Length { warm_up: settings.warm_up, iterations: self.iterations }
    }

    fn run(&self, length: Length, futex: Option<EventCounter>) -> Result<RunTimes, BenchError> {
        measure::run(self.case, &self.recipe.name(), &self.options, length, NoEffort, futex)
    }

    /// Measures like the published benchmark: a run as warm-up, then a timed run.
    fn process(&mut self, settings: &OverheadSettings) -> Result<(), BenchError> {
        let published = |all: u64| Length { warm_up: 1, iterations: all.saturating_sub(1).max(1) };
        self.run(published(settings.warm_up), None)?;
        let taken = self.run(published(process_iterations(settings)), None)?;
        self.process.push(taken);
        Ok(())
    }
}

/// Length of a run that is measured from outside.
pub(super) fn process_iterations(settings: &OverheadSettings) -> u64 {
    // One iteration of warm-up and one measured iteration, at least.
    settings.iterations.unwrap_or(PUBLISHED_ITERATIONS).max(2)
}

impl OverheadRounds {
    /// Measures all pairs and their limits in turn, once per round. A stop takes effect after the current
    /// measurement.
    fn all(
        &mut self,
        settings: &OverheadSettings,
        watch: &mut dyn BenchWatch,
        [mut python, mut peer]: [Option<&mut PythonCases>; 2],
    ) -> Result<(), BenchError> {
        let all = settings.runs * (self.pairs.len() + self.limits.len());
        let mut done = 0;
        for round in 0..settings.runs {
            let mut next = |watch: &mut dyn BenchWatch, text: &str| {
                watch.at(done, all, &format!("round {} of {}: {text}", round + 1, settings.runs));
                done += 1;
                !watch.is_stopped()
            };
            for limit in &mut self.limits {
                if !next(watch, &format!("bare {}", limit.case.name())) {
                    return self.stopped(round, settings);
                }
                limit.measure(settings)?;
            }
            if self.limits.iter().any(|limit| limit.threads == 2) {
                self.one_way_ns.push(bare::one_way(settings.iterations.unwrap_or(20_000).min(20_000))?);
            }
            if let Some(python) = python.as_deref_mut() {
                for (case, taken) in &mut self.python_bare {
                    match python.run(*case, None, settings.warm_up) {
                        Ok(times) => taken.push(times.steady_ns),
                        Err(reason) => note(&mut self.notes, reason),
                    }
                }
            }
            for pair in &mut self.pairs {
                if !next(watch, &pair.name()) {
                    return self.stopped(round, settings);
                }
                if settings.method.has_process() {
                    pair.process(settings)?;
                }
                if settings.method.has_steady() {
                    pair.steady.push(pair.run(pair.length(settings), None)?);
                }
                let sides =
                    [(python.as_deref_mut(), &mut pair.python), (peer.as_deref_mut(), &mut pair.peer)];
                for (side, taken) in sides {
                    let Some(side) = side.filter(|side| side.has(pair.recipe)) else { continue };
                    match side.run(pair.case, Some(pair.recipe), settings.warm_up) {
                        Ok(times) => taken.push(times),
                        Err(reason) => note(&mut self.notes, reason),
                    }
                }
            }
        }
        Ok(())
    }

    fn stopped(&mut self, round: usize, settings: &OverheadSettings) -> Result<(), BenchError> {
        if round == 0 {
            return Err(BenchError::Stopped);
        }
        self.notes.push(format!("stopped in round {} of {}", round + 1, settings.runs));
        Ok(())
    }

    /// Adds work to the operators of the first pair with one worker, as much as the break-even says.
    fn check(&mut self, settings: &OverheadSettings, watch: &mut dyn BenchWatch) -> Result<(), BenchError> {
        let wanted = |pair: &Pair| pair.recipe.workers == 1 && !pair.steady.is_empty();
        let better = |pair: &Pair| wanted(pair) && pair.case == OverheadCase::TxRx;
        let place = self.pairs.iter().position(better).or_else(|| self.pairs.iter().position(wanted));
        let Some(place) = place.filter(|_| !watch.is_stopped()) else { return Ok(()) };
        let pair = &self.pairs[place];
        let mut steady: Vec<f64> = pair.steady.iter().map(|taken| taken.steady_ns as f64).collect();
        steady.sort_by(f64::total_cmp);
        let step_ns = steady[steady.len() / 2] / pair.iterations as f64 / pair.steps;
        let loads: Vec<(EngineShare, f64, ArithmeticRounds)> = SHARES
            .into_iter()
            .map(|share| {
                let operator_ns = break_even::operator_ns(step_ns, share.share);
                (share, operator_ns, ArithmeticRounds::for_ns(operator_ns))
            })
            .collect();
        let mut loaded: Vec<(EngineShare, Vec<Loaded>)> =
            SHARES.into_iter().map(|share| (share, Vec::new())).collect();
        let all = settings.runs * loads.len();
        for round in 0..settings.runs {
            for (at, (share, operator_ns, work)) in loads.iter().enumerate() {
                watch.at(
                    round * loads.len() + at,
                    all,
                    &format!("break-even: {} {}", pair.name(), share.name),
                );
                if watch.is_stopped() {
                    break;
                }
                let recipe = pair.recipe.name();
                let steps = break_even::steps(settings.iterations, *operator_ns);
                loaded[at].1.push(break_even::loaded(pair.case, &recipe, &pair.options, *work, steps)?);
            }
        }
        self.checks = Some(Checks { pair: place, loaded });
        Ok(())
    }
}

impl BareLimit {
    fn measure(&mut self, settings: &OverheadSettings) -> Result<(), BenchError> {
        let per_iteration = if self.threads == 1 {
            bare::one_thread(self.case, settings.iterations.unwrap_or(2_000_000), NoEffort)
        } else {
            let capacity = Options::default().capacity;
            bare::two_threads(self.case, settings.iterations.unwrap_or(200_000), capacity)?
        };
        self.runs.push(per_iteration);
        Ok(())
    }

    pub fn name(&self) -> String {
        let threads = if self.threads == 1 { "one_thread" } else { "two_threads" };
        format!("bare.{threads}.{}", self.case.name())
    }
}
