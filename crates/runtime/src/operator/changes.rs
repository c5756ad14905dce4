//! Parameters that change while a stream runs, each at its sample.

use crate::operator::kernel::Change;
use crate::operator::lanes::LaneOrder;
use crate::{Error, Value};
use std::collections::VecDeque;

/// Changes that may wait for their sample at one operator.
pub(crate) const WAITING: usize = 1000;

/// Changes of a kernel that are still to come, by rising sample.
pub(crate) struct Changes<K>(VecDeque<(u64, Change<K>)>);

impl<K> Default for Changes<K> {
    fn default() -> Self {
        Changes(VecDeque::new())
    }
}

impl<K> Changes<K> {
    /// Adds a change for sample number `sample` of a stream of which `position` samples have been processed.
    pub fn add(&mut self, sample: u64, position: u64, change: Change<K>) -> Result<(), Error> {
        if sample < position {
            return Err(Error::new(format!("sample {sample} has gone by: sample {position} comes next")));
        }
        if self.0.len() >= WAITING {
            return Err(Error::new(format!(
                "{WAITING} changes wait for their samples already: wait for some of them"
            )));
        }
        let after = self.0.partition_point(|&(other, _)| other <= sample);
        self.0.insert(after, (sample, change));
        Ok(())
    }

    /// Number of changes that are left.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds changes that all copies in a lane make at the same samples.
    #[cold]
    pub fn add_orders(
        &mut self,
        orders: Vec<LaneOrder>,
        change: impl Fn(&str, &Value) -> Result<Change<K>, Error>,
    ) -> Result<(), Error> {
        for LaneOrder { name, value, sample, .. } in orders {
            let after = self.0.partition_point(|&(other, _)| other <= sample);
            self.0.insert(after, (sample, change(&name, &value)?));
        }
        Ok(())
    }

    /// Whether no change is left.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Makes the changes before sample number `position`.
    #[inline]
    pub fn make(&mut self, position: u64, kernel: &mut K) -> Result<(), Error> {
        if self.0.is_empty() { Ok(()) } else { self.make_due(position, kernel) }
    }

    #[cold]
    fn make_due(&mut self, position: u64, kernel: &mut K) -> Result<(), Error> {
        while self.0.front().is_some_and(|&(sample, _)| sample <= position) {
            if let Some((sample, change)) = self.0.pop_front() {
                change(kernel).map_err(|error| {
                    Error::new(format!("a parameter cannot change at sample {sample}: {error}"))
                })?;
            }
        }
        Ok(())
    }

    /// Makes the changes before sample number `position`, each at its own sample, in a lane that has not seen
    /// these samples. Resumes at `position` then.
    #[cold]
    pub fn make_in_lane(
        &mut self,
        position: u64,
        kernel: &mut K,
        resume: impl Fn(&mut K, u64),
    ) -> Result<(), Error> {
        while let Some(&(sample, _)) = self.0.front()
            && sample < position
        {
            resume(kernel, sample);
            self.make_due(sample, kernel)?;
        }
        resume(kernel, position);
        Ok(())
    }

    /// Returns a note on the changes that are left at the end.
    pub fn note(&self, position: u64) -> Option<String> {
        let left = self.0.len();
        let what = if left == 1 {
            "1 change of a parameter".to_string()
        } else {
            format!("{left} changes of parameters")
        };
        (left > 0).then(|| format!("{what} waited for samples that did not come: there were {position}"))
    }

    /// Returns how many of `samples` samples from number `position` on come before the next change.
    #[inline]
    pub fn before_next(&self, position: u64, samples: usize) -> usize {
        match self.0.front() {
            Some(&(sample, _)) => {
                usize::try_from(sample.saturating_sub(position)).map_or(samples, |n| n.min(samples))
            }
            None => samples,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_come_by_their_sample_and_then_in_their_order() {
        let mut changes = Changes::<Vec<u32>>::default();
        for (sample, number) in [(5, 1), (3, 2), (5, 3), (0, 4)] {
            let change = Box::new(move |list: &mut Vec<u32>| {
                list.push(number);
                if number == 3 { Err(Error::new("no more")) } else { Ok(()) }
            });
            changes.add(sample, 0, change).unwrap();
        }
        let mut list = Vec::new();
        assert_eq!(changes.before_next(0, 10), 0);
        changes.make(0, &mut list).unwrap();
        assert_eq!((changes.before_next(0, 10), changes.before_next(1, 1)), (3, 1));
        changes.make(4, &mut list).unwrap();
        assert_eq!(
            changes.note(4).unwrap(),
            "2 changes of parameters waited for samples that did not come: there were 4"
        );
        let error = changes.make(9, &mut list).unwrap_err().to_string();
        assert_eq!(error, "a parameter cannot change at sample 5: no more");
        assert_eq!(
            (list.as_slice(), changes.before_next(9, 7), changes.note(9)),
            (&[4, 2, 1, 3][..], 7, None)
        );
    }

    #[test]
    fn what_has_gone_by_or_is_too_much_is_refused() {
        let mut changes = Changes::<()>::default();
        let error = changes.add(7, 8, Box::new(|()| Ok(()))).unwrap_err().to_string();
        assert_eq!(error, "sample 7 has gone by: sample 8 comes next");
        for sample in 0..WAITING as u64 {
            changes.add(sample, 0, Box::new(|()| Ok(()))).unwrap();
        }
        assert!(
            changes.add(0, 0, Box::new(|()| Ok(()))).unwrap_err().to_string().contains("1000 changes wait")
        );
    }
}
