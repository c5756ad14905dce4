//! At most one alarm per operator, earliest first.

const ABSENT: u32 = u32::MAX;

/// A binary heap of alarms that knows the place of each operator, so that an alarm can be moved or removed at
/// once. It allocates only when it is made.
#[derive(Debug)]
pub(crate) struct Timers {
    /// (time in ns, operator): a heap, earliest at the front; ties go by operator.
    heap: Vec<(u64, u32)>,
    /// Place of each operator in `heap`.
    place: Box<[u32]>,
}

impl Timers {
    pub fn new(operators: usize) -> Self {
        Timers { heap: Vec::with_capacity(operators), place: vec![ABSENT; operators].into() }
    }

    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    pub fn earliest_ns(&self) -> Option<u64> {
        self.heap.first().map(|&(time_ns, _)| time_ns)
    }

    /// Returns the time of the operator's alarm, if it has one.
    pub fn get(&self, operator: u32) -> Option<u64> {
        let place = self.place[operator as usize];
        (place != ABSENT).then(|| self.heap[place as usize].0)
    }

    /// Sets the operator's alarm, and replaces the alarm that it may have.
    pub fn set(&mut self, operator: u32, time_ns: u64) {
        let mut at = self.place[operator as usize] as usize;
        if at == ABSENT as usize {
            at = self.heap.len();
            self.heap.push((time_ns, operator));
            self.place[operator as usize] = at as u32;
        } else {
            self.heap[at].0 = time_ns;
        }
        self.settle(at);
    }

    pub fn clear(&mut self, operator: u32) {
        let at = self.place[operator as usize];
        if at != ABSENT {
            self.remove(at as usize);
        }
    }

    /// Removes the earliest alarm if it is due at `now_ns`, and returns its operator.
    pub fn take_due(&mut self, now_ns: u64) -> Option<u32> {
        let &(time_ns, operator) = self.heap.first()?;
        (time_ns <= now_ns).then(|| {
            self.remove(0);
            operator
        })
    }

    fn remove(&mut self, at: usize) {
        let last = self.heap.len() - 1;
        self.swap(at, last);
        if let Some((_, operator)) = self.heap.pop() {
            self.place[operator as usize] = ABSENT;
        }
        if at < self.heap.len() {
            self.settle(at);
        }
    }

    fn settle(&mut self, mut at: usize) {
        while at > 0 && self.heap[at] < self.heap[(at - 1) / 2] {
            self.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
        loop {
            let left = 2 * at + 1;
            let Some(child) = (left..self.heap.len().min(left + 2)).min_by_key(|&c| self.heap[c]) else {
                return;
            };
            if self.heap[at] <= self.heap[child] {
                return;
            }
            self.swap(at, child);
            at = child;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.place[self.heap[a].1 as usize] = a as u32;
        self.place[self.heap[b].1 as usize] = b as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::Timers;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn behaves_like_a_plain_map(steps in prop::collection::vec((0u8..3, 0u32..20, 0u64..100), 0..300)) {
            let mut timers = Timers::new(20);
            let mut plain = BTreeMap::new();
            for (what, operator, time_ns) in steps {
                match what {
                    0 => { timers.set(operator, time_ns); plain.insert(operator, time_ns); }
                    1 => { timers.clear(operator); plain.remove(&operator); }
                    _ => {
                        let first = plain.iter().map(|(&o, &t)| (t, o)).min().filter(|&(t, _)| t <= time_ns);
                        prop_assert_eq!(timers.take_due(time_ns), first.map(|(_, o)| o));
                        if let Some((_, o)) = first { plain.remove(&o); }
                    }
                }
                prop_assert_eq!(timers.earliest_ns(), plain.values().min().copied());
                prop_assert_eq!(timers.get(operator), plain.get(&operator).copied());
                prop_assert_eq!(timers.is_empty(), plain.is_empty());
            }
        }
    }
}
