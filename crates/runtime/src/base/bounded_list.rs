//! Lists of a limited length, for events of a run. Events beyond the limit are only counted: a record is not
//! a log.

/// The first [`LIMIT`](Self::LIMIT) items, and the number of all items.
#[derive(Debug, Clone)]
pub(crate) struct BoundedList<T> {
    list: Vec<T>,
    total: u64,
}

impl<T> BoundedList<T> {
    /// Number of items that are kept.
    const LIMIT: usize = 1000;

    /// Counts an item, and keeps it if there is room.
    pub fn note(&mut self, one: impl FnOnce() -> T) {
        self.total += 1;
        if self.list.len() < Self::LIMIT {
            self.list.push(one());
        }
    }

    /// Allocates room for all items, so that [`note`](Self::note) allocates nothing.
    pub fn reserve(&mut self) {
        self.list.reserve_exact(Self::LIMIT);
    }

    /// Returns a list with each item changed.
    pub fn map<U>(&self, change: impl FnMut(&T) -> U) -> BoundedList<U> {
        BoundedList { list: self.list.iter().map(change).collect(), total: self.total }
    }

    /// Joins several lists. Returns the kept items sorted by `key`, and the number of all items.
    pub fn join<K: Ord>(all: impl IntoIterator<Item = Self>, key: impl FnMut(&T) -> K) -> (Vec<T>, u64) {
        let (mut list, mut total) = (Vec::new(), 0);
        for kept in all {
            list.extend(kept.list);
            total += kept.total;
        }
        list.sort_by_key(key);
        (list, total)
    }
}

impl<T> Default for BoundedList<T> {
    fn default() -> Self {
        BoundedList { list: Vec::new(), total: 0 }
    }
}

impl<T> From<Vec<T>> for BoundedList<T> {
    fn from(list: Vec<T>) -> Self {
        BoundedList { total: list.len() as u64, list }
    }
}
