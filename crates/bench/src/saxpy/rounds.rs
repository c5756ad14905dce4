//! All measurements in turn, once per round.

use super::beside::{Beside, Measurement};
use super::case::{Limit, SaxpyCase, cases};
use super::graph;
use super::peers::{self, SaxpyPeer};
use super::settings::{Mode, SaxpyForm, SaxpySettings, Whose};
use crate::others::Others;
use crate::{BenchError, BenchWatch};
use onbeat_os::CoreSet;
use std::collections::BTreeMap;

/// All measurements.
pub(super) struct SaxpyRounds {
    /// Cores used, in order.
    pub on: Vec<usize>,
    /// Cases of onbeat, each with a measurement per round.
    pub ours: Vec<(SaxpyCase, Vec<Measurement>)>,
    /// Peers, each with a measurement per round.
    pub peers: Vec<(SaxpyPeer, Vec<Measurement>)>,
    /// Number of repeated measurements, and of those that are still disturbed.
    pub again: (usize, usize),
    /// Share of the machine used by others during the measurement.
    pub others: Option<f64>,
    pub notes: Vec<String>,
}

pub(super) fn measure(
    settings: &SaxpySettings,
    watch: &mut dyn BenchWatch,
) -> Result<SaxpyRounds, BenchError> {
    if let Some(fault) = settings.fault() {
        return Err(BenchError::Settings(fault));
    }
    let on = cores(settings)?;
    let mut rounds = SaxpyRounds {
        on: on.clone(),
        ours: cases(settings).into_iter().map(|case| (case, Vec::new())).collect(),
        peers: Vec::new(),
        again: (0, 0),
        others: None,
        notes: Vec::new(),
    };
    if let Some(folder) = &settings.peers {
        watch.at(0, 1, "looking for peers");
        let (found, notes) = peers::find(folder, settings)?;
        rounds.peers = found.into_iter().map(|peer| (peer, Vec::new())).collect();
        rounds.notes.extend(notes);
    }
    rounds.leave_out();
    if rounds.ours.is_empty() && rounds.peers.is_empty() {
        let reason = match rounds.notes.join("; ") {
            empty if empty.is_empty() => {
                "greedy runs on one core; pinned needs two or more cores, and at least as many kernels"
                    .to_owned()
            }
            notes => notes,
        };
        return Err(BenchError::Nothing(reason));
    }
    let others = Others::watch();
    let mut taking = MeasuringLoop {
        settings,
        on: &on,
        beside: Beside::new(&on, settings.seconds),
        alone: None,
        helpers_ns: 0,
        notes: Vec::new(),
    };
    for round in 0..settings.rounds {
        if !rounds.once(round, &mut taking, watch)? {
            if round == 0 {
                return Err(BenchError::Stopped);
            }
            rounds.notes.push(format!("stopped in round {} of {}", round + 1, settings.rounds));
            rounds.shorten(round);
            break;
        }
    }
    // After a stop, nothing is repeated.
    if !watch.is_stopped() {
        rounds.again(&mut taking, watch)?;
    }
    rounds.again.1 = rounds.disturbed(&taking.beside).len();
    rounds.others = others.share(taking.helpers_ns);
    rounds.notes.extend(taking.notes);
    Ok(rounds)
}

/// The cores to use: as many as the largest number of cores requires.
fn cores(settings: &SaxpySettings) -> Result<Vec<usize>, BenchError> {
    let most = settings.cores.iter().copied().max().unwrap_or(1);
    let allowed =
        CoreSet::allowed().map_err(|error| BenchError::System { what: "cores of this process", error })?;
    let on: Vec<usize> = if settings.on.is_empty() { allowed.iter().collect() } else { settings.on.clone() };
    if let Some(core) = on.iter().find(|core| !allowed.contains(**core)) {
        let text = format!("on: core {core} is not available to this process, which can use {allowed}");
        return Err(BenchError::Settings(text));
    }
    if on.len() < most {
        let text = format!("cores: {most} are needed, but there are {}: give fewer", on.len());
        return Err(BenchError::Settings(text));
    }
    Ok(on)
}

/// State of the measuring loop.
struct MeasuringLoop<'a> {
    settings: &'a SaxpySettings,
    on: &'a [usize],
    beside: Beside<'a>,
    /// A chain on one core, and its rates on each core right after the last measurement.
    alone: Option<(SaxpyCase, Vec<f64>)>,
    /// CPU time of the peers' processes.
    helpers_ns: u64,
    notes: Vec<String>,
}

impl MeasuringLoop<'_> {
    fn ours(&mut self, case: &SaxpyCase) -> Result<Measurement, BenchError> {
        let (settings, on) = (self.settings, &self.on[..case.shape.cores]);
        let run = |case: &SaxpyCase, on: &[usize], seconds: f64| {
            let rate = graph::run(case, on, settings.idle, seconds);
            rate.map_err(|reason| BenchError::Scenario { name: case.name(), reason })
        };
        let last = self.alone.take();
        let alone = &mut self.alone;
        self.beside.take(case.shape, Some(case.limit()), || {
            if case.mode == Mode::Greedy {
                return Ok((run(case, on, settings.seconds)?, None));
            }
            let one = case.alone();
            // Measured before and after, one core at a time. The cores are alone for the same time in total
            // as they are together.
            let each = || -> Result<Vec<f64>, BenchError> {
                on.iter().map(|core| run(&one, &[*core], settings.seconds / 2.0)).collect()
            };
            let before = match last {
                Some((of, rates)) if of == one && rates.len() >= on.len() => rates,
                _ => each()?,
            };
            let rate = run(case, on, settings.seconds)?;
            let after = each()?;
            let sum: f64 = before.iter().zip(&after).map(|(before, after)| before + after).sum();
            let one_core = sum / 2.0 / on.len() as f64;
            *alone = Some((one, after));
            Ok((rate, Some(one_core)))
        })
    }

    /// The rate is NaN if the peer gave none; a note says why.
    fn peer(&mut self, peer: &SaxpyPeer) -> Result<Measurement, BenchError> {
        let mut why_not = None;
        let taken = self.beside.take(peer.shape(), None, || {
            let run = peer.run(self.on, self.settings.seconds);
            self.helpers_ns += run.cpu_ns;
            let rate = run.rate.unwrap_or_else(|reason| {
                why_not = Some(format!("{}: {reason}", peer.name()));
                f64::NAN
            });
            Ok((rate, None))
        });
        self.alone = None;
        self.notes.extend(why_not.filter(|note| !self.notes.contains(note)));
        taken
    }
}

impl SaxpyRounds {
    /// Plans each case. Modes that this version or machine does not support are skipped, and a note says so.
    fn leave_out(&mut self) {
        let (on, notes) = (&self.on, &mut self.notes);
        let mut refused: Vec<Mode> = Vec::new();
        self.ours.retain(|(case, _)| {
            if refused.contains(&case.mode) {
                return false;
            }
            let Err(reason) = graph::plan(case, on) else { return true };
            refused.push(case.mode);
            notes.push(format!("{}: not available: {reason}", case.mode.name()));
            false
        });
    }

    /// Makes one round. Returns `false` if it was stopped.
    fn once(
        &mut self,
        round: usize,
        taking: &mut MeasuringLoop,
        watch: &mut dyn BenchWatch,
    ) -> Result<bool, BenchError> {
        let (each, rounds) = (self.ours.len() + self.peers.len(), taking.settings.rounds);
        for at in 0..each {
            let text = format!("round {} of {rounds}: {}", round + 1, self.name(at));
            watch.at(round * each + at, rounds * each, &text);
            if watch.is_stopped() {
                return Ok(false);
            }
            let taken = self.take(at, taking)?;
            self.taken(at).push(taken);
        }
        Ok(true)
    }

    /// Repeats measurements made on a disturbed machine; the calmer one counts.
    fn again(&mut self, taking: &mut MeasuringLoop, watch: &mut dyn BenchWatch) -> Result<(), BenchError> {
        let passes = taking.settings.again;
        for pass in 1..=passes {
            let disturbed = self.disturbed(&taking.beside);
            for (number, &(at, round)) in disturbed.iter().enumerate() {
                let text = format!("again, {pass} of {passes}: {}", self.name(at));
                watch.at(number, disturbed.len(), &text);
                if watch.is_stopped() {
                    self.notes.push("stopped during the repetition of disturbed measurements".to_owned());
                    self.again.0 += number;
                    return Ok(());
                }
                let taken = self.take(at, taking)?;
                let before = &mut self.taken(at)[round];
                if taking.beside.calm(&taken) > taking.beside.calm(before) {
                    *before = taken;
                }
            }
            self.again.0 += disturbed.len();
        }
        Ok(())
    }

    /// Disturbed measurements, as index and round.
    fn disturbed(&self, beside: &Beside) -> Vec<(usize, usize)> {
        let all = self.ours.iter().map(|(_, taken)| taken).chain(self.peers.iter().map(|(_, taken)| taken));
        let each = all
            .enumerate()
            .flat_map(|(at, taken)| taken.iter().enumerate().map(move |(round, taken)| (at, round, taken)));
        each.filter(|(.., taken)| beside.calm(taken) < 1.0).map(|(at, round, _)| (at, round)).collect()
    }

    /// Names the cases of onbeat, then the peers.
    fn name(&self, at: usize) -> String {
        match self.ours.get(at) {
            Some((case, _)) => case.name(),
            None => self.peers[at - self.ours.len()].0.name(),
        }
    }

    fn taken(&mut self, at: usize) -> &mut Vec<Measurement> {
        let ours = self.ours.len();
        if at < ours { &mut self.ours[at].1 } else { &mut self.peers[at - ours].1 }
    }

    fn take(&self, at: usize, taking: &mut MeasuringLoop) -> Result<Measurement, BenchError> {
        match self.ours.get(at) {
            Some((case, _)) => taking.ours(case),
            None => taking.peer(&self.peers[at - self.ours.len()].0),
        }
    }

    /// Keeps only whole rounds, so that all compared figures were measured close together.
    fn shorten(&mut self, rounds: usize) {
        self.ours.iter_mut().for_each(|(_, taken)| taken.truncate(rounds));
        self.peers.iter_mut().for_each(|(_, taken)| taken.truncate(rounds));
    }

    /// Rate of each limit, one value per round: the median of its measurements in that round.
    pub fn limits(&self) -> BTreeMap<Limit, Vec<f64>> {
        let mut all: BTreeMap<Limit, Vec<Vec<f64>>> = BTreeMap::new();
        for (case, taken) in &self.ours {
            for (round, taken) in taken.iter().enumerate() {
                for (limit, rate) in [(case.kernel(), Some(taken.kernel)), (case.limit(), taken.limit)] {
                    let rounds = all.entry(limit).or_default();
                    rounds.resize(rounds.len().max(round + 1), Vec::new());
                    rounds[round].extend(rate);
                }
            }
        }
        let median = |mut rates: Vec<f64>| {
            rates.sort_by(f64::total_cmp);
            rates[rates.len() / 2]
        };
        all.into_iter().map(|(limit, rounds)| (limit, rounds.into_iter().map(median).collect())).collect()
    }

    /// Best rate of a peer in this shape, per round.
    pub fn best_peer(&self, case: &SaxpyCase) -> Option<Vec<f64>> {
        let alike = |peer: &SaxpyPeer| {
            (peer.cores, peer.kernels) == (case.shape.cores, case.shape.kernels)
                && (peer.in_place == (case.shape.form == SaxpyForm::InPlace) || case.whose == Whose::Own)
        };
        let mut best: Option<Vec<f64>> = None;
        for (_, taken) in self.peers.iter().filter(|(peer, _)| alike(peer)) {
            let rates = taken.iter().map(|taken| if taken.rate.is_nan() { 0.0 } else { taken.rate });
            best = Some(match best {
                None => rates.collect(),
                Some(best) => best.into_iter().zip(rates).map(|(a, b)| a.max(b)).collect(),
            });
        }
        best
    }
}
