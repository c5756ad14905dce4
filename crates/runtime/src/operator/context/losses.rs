//! What operators report for the record: data that they lost although no setting permits it, figures that
//! they measured, requests to the machine, links with other runs.

use super::Context;
use crate::Error;
use onbeat_trace::record::{LinkRecord, LossRecord, MeasuredRecord, Obtained};

/// Losses of the operators of one part, what these operators obtained from the machine, and their links.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    /// One entry for each operator, unit and reason.
    all: Vec<Loss>,
    /// Figures by operator.
    measured: Vec<(u32, MeasuredRecord)>,
    /// Settings that operators requested from the machine.
    pub obtained: Vec<Obtained>,
    /// Links with other runs.
    pub links: Vec<LinkRecord>,
    /// Whether a setting that was not obtained is an error.
    pub strict: bool,
}

/// Data of one kind that an operator lost.
#[derive(Debug)]
struct Loss {
    operator: u32,
    count: u64,
    unit: &'static str,
    reason: &'static str,
}

impl Losses {
    pub fn new(strict: bool) -> Self {
        Losses { strict, ..Losses::default() }
    }

    /// Total of an operator, over all units.
    pub fn total(&self, operator: u32) -> u64 {
        self.of(operator).map(|loss| loss.count).fold(0, u64::saturating_add)
    }

    /// Losses of an operator, for the record.
    pub fn records(&self, operator: u32) -> Vec<LossRecord> {
        let record = |loss: &Loss| LossRecord {
            count: loss.count,
            unit: loss.unit.to_string(),
            reason: loss.reason.to_string(),
        };
        self.of(operator).filter(|loss| loss.count > 0).map(record).collect()
    }

    /// Figures of an operator, for the record.
    pub fn measured(&self, operator: u32) -> Vec<MeasuredRecord> {
        let of = self.measured.iter().filter(|(number, _)| *number == operator);
        of.map(|(_, measured)| measured.clone()).collect()
    }

    fn of(&self, operator: u32) -> impl Iterator<Item = &Loss> {
        self.all.iter().filter(move |loss| loss.operator == operator)
    }

    fn entry(&mut self, operator: u32, unit: &'static str, reason: &'static str) -> &mut u64 {
        let same = |loss: &Loss| (loss.operator, loss.unit, loss.reason) == (operator, unit, reason);
        let place = self.all.iter().position(same).unwrap_or_else(|| {
            self.all.push(Loss { operator, count: 0, unit, reason });
            self.all.len() - 1
        });
        &mut self.all[place].count
    }
}

impl Context {
    /// Counts data that the operator lost although no setting permits a loss: datagrams that never came,
    /// bytes that a peer did not take.
    ///
    /// The record lists them ([`OperatorRecord::losses`](onbeat_trace::record::OperatorRecord::losses)), the
    /// table and the metrics show them, and the run ends with exit status 3. `unit` names the counted thing,
    /// in the plural. `reason` says how it was lost, and how to prevent that if there is a way. Allocates at
    /// the first loss of a kind. Not for `fill` and `drain` of [`Inline`](crate::Inline).
    ///
    /// ```
    /// use onbeat_runtime::Context;
    ///
    /// /// What a receiver does with the number of a datagram.
    /// fn check(number: u64, next: &mut u64, cx: &mut Context) {
    ///     cx.lose(number - *next, "datagrams", "their numbers never came");
    ///     *next = number + 1;
    /// }
    /// ```
    pub fn lose(&mut self, count: u64, unit: &'static str, reason: &'static str) {
        if count > 0 {
            let sum = self.losses.entry(self.current, unit, reason);
            *sum = sum.saturating_add(count);
        }
    }

    /// Moves losses to another reason, for example if a datagram came after all, but too late. Returns their
    /// number: no more than were lost for the first reason.
    pub fn reclassify_lost(
        &mut self,
        count: u64,
        unit: &'static str,
        from: &'static str,
        to: &'static str,
    ) -> u64 {
        let before = self.losses.entry(self.current, unit, from);
        let moved = count.min(*before);
        *before -= moved;
        *self.losses.entry(self.current, unit, to) += moved;
        moved
    }

    /// Reports a figure that the operator measured itself, such as the difference of two clocks, for programs
    /// that read the [record](onbeat_trace::record::OperatorRecord::measured). The last value of a name
    /// counts; one that is not finite is left out. `unit` is `1` for a ratio. Allocates.
    pub fn measured(&mut self, what: &str, value: f64, unit: &str) {
        let same =
            |(operator, measured): &(u32, MeasuredRecord)| *operator == self.current && measured.what == what;
        self.losses.measured.retain(|one| !same(one));
        if value.is_finite() {
            let measured = MeasuredRecord { what: what.to_string(), value, unit: unit.to_string() };
            self.losses.measured.push((self.current, measured));
        }
    }

    /// Reports a setting that the operator requested from the machine, such as the size of a socket's buffer.
    /// The record lists it; if it was not obtained, the run says so.
    ///
    /// # Errors
    /// If the setting was not obtained and the graph is [`strict`](crate::Options::strict).
    pub fn obtained(&mut self, mut setting: Obtained) -> Result<(), Error> {
        setting.what = format!("{} of {}", setting.what, self.name());
        if self.losses.strict && setting.asked != setting.obtained {
            let Obtained { what, asked, obtained, reason } = setting;
            let reason = reason.unwrap_or_else(|| "not available".to_string());
            return Err(Error::new(format!(
                "strict: {what}: {asked} was asked for, {obtained} was obtained: {reason}"
            )));
        }
        self.losses.obtained.push(setting);
        Ok(())
    }

    /// Notes something odd in what the operator was given, such as a header that contradicts its file, and
    /// how it is taken.
    ///
    /// # Errors
    /// If the graph is [`strict`](crate::Options::strict).
    pub fn note_odd(&mut self, text: impl Into<String>) -> Result<(), Error> {
        let text = text.into();
        if self.losses.strict {
            return Err(Error::new(format!("strict: {text}")));
        }
        self.note(text);
        Ok(())
    }

    /// Reports a link with another run, at its end. The record lists it.
    pub fn report_link(&mut self, link: LinkRecord) {
        self.losses.links.push(link);
    }

    /// Returns the real time since the sources were asked to end, in nanoseconds; `None` while
    /// [`is_stopping`](Context::is_stopping) is false.
    ///
    /// An operator that waits for something outside of the run should give up after some time, and count the
    /// rest as [lost](Context::lose). Otherwise the run might never end.
    pub fn stopped_for_ns(&self) -> Option<u64> {
        self.stopping.then(|| self.clock.real_ns().saturating_sub(self.stopped_real_ns))
    }
}
