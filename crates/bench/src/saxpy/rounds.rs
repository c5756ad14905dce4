//! Everything in turn, so often.

use super::case::{Case, Limit, cases};
use super::peers::{self, Peer};
use super::settings::{Form, Mode, Settings, Whose};
use super::{bare, graph};
use crate::others::Others;
use crate::{BenchError, Watch};
use onbeat_os::{CoreSet, clock};
use std::collections::BTreeMap;

/// What was measured, in samples per second.
pub(super) struct Rounds {
    /// Which cores were used, from the first.
    pub on: Vec<usize>,
    pub ours: Vec<Ours>,
    /// By limit, a value per round: the median of what it had in it.
    pub limits: BTreeMap<Limit, Vec<f64>>,
    pub peers: Vec<(Peer, Vec<f64>)>,
    /// The part of the machine that went to others meanwhile.
    pub others: Option<f64>,
    pub notes: Vec<String>,
}

/// One of ours, with a value per round of each.
pub(super) struct Ours {
    pub case: Case,
    pub rates: Vec<f64>,
    /// What the kernel and the limit did right before.
    pub kernel: Vec<f64>,
    pub limit: Vec<f64>,
}

/// A limit is measured again where it was measured so long ago: machines that others use, too, change from one second to the next.
const FRESH_NS: u64 = 250_000_000;

/// What limits did in one round, and when each did so last.
#[derive(Default)]
struct Beside(BTreeMap<Limit, (Vec<f64>, u64)>);

impl Beside {
    /// Right now, or just before.
    fn rate(&mut self, limit: Limit, on: &[usize], seconds: f64) -> Result<f64, BenchError> {
        let (rates, at_ns) = self.0.entry(limit).or_default();
        if let Some(rate) = rates.last()
            && clock::monotonic_ns() < *at_ns + FRESH_NS
        {
            return Ok(*rate);
        }
        let rate = bare::measure(&limit, on, seconds)?;
        rates.push(rate);
        *at_ns = clock::monotonic_ns();
        Ok(rate)
    }

    /// Adds a value for this round to each.
    fn end(self, limits: &mut BTreeMap<Limit, Vec<f64>>) {
        for (limit, (mut rates, _)) in self.0 {
            rates.sort_by(f64::total_cmp);
            limits.entry(limit).or_default().push(rates[rates.len() / 2]);
        }
    }
}

pub(super) fn measure(settings: &Settings, watch: &mut dyn Watch) -> Result<Rounds, BenchError> {
    if let Some(fault) = settings.fault() {
        return Err(BenchError::Settings(fault));
    }
    let on = cores(settings)?;
    let mut rounds = Rounds {
        on,
        ours: cases(settings).into_iter().map(Ours::new).collect(),
        limits: BTreeMap::new(),
        peers: Vec::new(),
        others: None,
        notes: Vec::new(),
    };
    if let Some(folder) = &settings.peers {
        watch.at(0, 1, "asking which peers are there");
        let (found, notes) = peers::find(folder, settings)?;
        rounds.peers = found.into_iter().map(|peer| (peer, Vec::new())).collect();
        rounds.notes.extend(notes);
    }
    rounds.leave_out();
    if rounds.ours.is_empty() && rounds.peers.is_empty() {
        let reason = match rounds.notes.join("; ") {
            empty if empty.is_empty() => {
                "greedy runs on one core, and pinned splits between two or more, with as many kernels or more"
                    .to_owned()
            }
            notes => notes,
        };
        return Err(BenchError::Nothing(reason));
    }
    let (others, mut helpers_ns) = (Others::watch(), 0);
    for round in 0..settings.rounds {
        if !rounds.once(round, settings, watch, &mut helpers_ns)? {
            if round == 0 {
                return Err(BenchError::Stopped);
            }
            rounds.notes.push(format!("stopped in round {} of {}", round + 1, settings.rounds));
            rounds.shorten(round);
            break;
        }
    }
    rounds.others = others.share(helpers_ns);
    Ok(rounds)
}

impl Ours {
    fn new(case: Case) -> Self {
        Ours { case, rates: Vec::new(), kernel: Vec::new(), limit: Vec::new() }
    }
}

/// The cores that are used, as many as the largest number of cores asks for.
fn cores(settings: &Settings) -> Result<Vec<usize>, BenchError> {
    let most = settings.cores.iter().copied().max().unwrap_or(1);
    let allowed =
        CoreSet::allowed().map_err(|error| BenchError::System { what: "which cores there are", error })?;
    let on: Vec<usize> = if settings.on.is_empty() { allowed.iter().collect() } else { settings.on.clone() };
    if let Some(core) = on.iter().find(|core| !allowed.contains(**core)) {
        let text = format!("on: core {core}: this process may use {allowed}");
        return Err(BenchError::Settings(text));
    }
    if on.len() < most {
        let text = format!("cores: {most} are asked for, and there are {}: give fewer", on.len());
        return Err(BenchError::Settings(text));
    }
    Ok(on)
}

impl Rounds {
    /// Tries each case for a moment: those that this version or machine does not have are left out, and a note says so.
    fn leave_out(&mut self) {
        let (on, notes) = (&self.on, &mut self.notes);
        let mut refused: Vec<Mode> = Vec::new();
        self.ours.retain(|Ours { case, .. }| {
            if refused.contains(&case.mode) {
                return false;
            }
            let Err(reason) = graph::plan(case, on) else { return true };
            refused.push(case.mode);
            notes.push(format!("{}: not available: {reason}", case.mode.name()));
            false
        });
    }

    /// One round; `false` where it was stopped in it.
    fn once(
        &mut self,
        round: usize,
        settings: &Settings,
        watch: &mut dyn Watch,
        helpers_ns: &mut u64,
    ) -> Result<bool, BenchError> {
        let (mut done, all) = (0, settings.rounds * (self.ours.len() + self.peers.len()));
        let mut next = |watch: &mut dyn Watch, name: &str| {
            let text = format!("round {} of {}: {name}", round + 1, settings.rounds);
            watch.at(round * all / settings.rounds + done, all, &text);
            done += 1;
            !watch.is_stopped()
        };
        let mut beside = Beside::default();
        for Ours { case, rates, kernel, limit } in &mut self.ours {
            if !next(watch, &case.name()) {
                return Ok(false);
            }
            kernel.push(beside.rate(case.kernel(), &self.on, settings.seconds)?);
            limit.push(beside.rate(case.limit(), &self.on, settings.seconds)?);
            let rate = graph::run(case, &self.on, settings.idle, settings.seconds);
            rates.push(rate.map_err(|reason| BenchError::Scenario { name: case.name(), reason })?);
        }
        beside.end(&mut self.limits);
        for (peer, rates) in &mut self.peers {
            if !next(watch, &peer.name()) {
                return Ok(false);
            }
            let taken = peer.run(&self.on, settings.seconds);
            *helpers_ns += taken.cpu_ns;
            match taken.rate {
                Ok(rate) => rates.push(rate),
                Err(reason) => {
                    let note = format!("{}: {reason}", peer.name());
                    if !self.notes.contains(&note) {
                        self.notes.push(note);
                    }
                    rates.push(f64::NAN);
                }
            }
        }
        Ok(true)
    }

    /// Leaves only whole rounds, so that what is compared was measured side by side.
    fn shorten(&mut self, rounds: usize) {
        for Ours { rates, kernel, limit, .. } in &mut self.ours {
            [rates, kernel, limit].into_iter().for_each(|values| values.truncate(rounds));
        }
        self.limits.values_mut().for_each(|rates| rates.truncate(rounds));
        self.peers.iter_mut().for_each(|(_, rates)| rates.truncate(rounds));
    }

    /// The rates of ours on one core under `greedy`, in place of other numbers of cores.
    pub fn on_one_core(&self, case: &Case) -> Option<&[f64]> {
        let wanted = Case {
            mode: Mode::Greedy,
            shape: super::case::Shape { cores: 1, ..case.shape },
            buffers: None,
            whose: case.whose,
        };
        self.ours.iter().find(|ours| ours.case == wanted).map(|ours| &*ours.rates)
    }

    /// The best that a peer had in this shape, round by round.
    pub fn best_peer(&self, case: &Case) -> Option<Vec<f64>> {
        let alike = |peer: &Peer| {
            (peer.cores, peer.kernels) == (case.shape.cores, case.shape.kernels)
                && (peer.in_place == (case.shape.form == Form::InPlace) || case.whose == Whose::Own)
        };
        let mut best: Option<Vec<f64>> = None;
        for (_, rates) in self.peers.iter().filter(|(peer, _)| alike(peer)) {
            let rates = rates.iter().map(|rate| if rate.is_nan() { 0.0 } else { *rate });
            best = Some(match best {
                None => rates.collect(),
                Some(best) => best.into_iter().zip(rates).map(|(a, b)| a.max(b)).collect(),
            });
        }
        best
    }
}
