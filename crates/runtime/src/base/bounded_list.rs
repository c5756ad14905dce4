//! Things that are kept one by one up to a limit, and only counted after that: a record is no log.

/// The first of them, and how many there were.
#[derive(Debug, Clone)]
pub(crate) struct BoundedList<T> {
    list: Vec<T>,
    total: u64,
}

impl<T> BoundedList<T> {
    /// How many are kept of each kind by each part.
    const LIMIT: usize = 1000;

    pub fn note(&mut self, one: impl FnOnce() -> T) {
        self.total += 1;
        if self.list.len() < Self::LIMIT {
            self.list.push(one());
        }
    }

    /// Makes room for all that will be kept: noting one allocates nothing from here on.
    pub fn reserve(&mut self) {
        self.list.reserve_exact(Self::LIMIT);
    }

    /// The same, each as something else.
    pub fn map<U>(&self, change: impl FnMut(&T) -> U) -> BoundedList<U> {
        BoundedList { list: self.list.iter().map(change).collect(), total: self.total }
    }

    /// All of several, in the order of `key`.
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
