//! Datagrams that came early, and wait for those before them.

/// Key of the first datagram of a sender that begins again: after all of the sender before it.
pub(super) const RESTART: u64 = u64::MAX;

/// A datagram that came before one with a lower number.
#[derive(Debug)]
pub(super) struct EarlyDatagram {
    pub number: u64,
    /// Whether it marks the end of the stream.
    pub is_end: bool,
    /// Number of its bytes.
    pub length: usize,
    /// Time at which the kernel received it, on the run's clock.
    pub came_ns: u64,
    /// Time at which it has waited long enough, on the run's clock.
    pub until_ns: u64,
    /// Its bytes. The buffer is exchanged with that of the receiver, not copied.
    pub bytes: Box<[u8]>,
}

/// Window in which datagrams are put in order: at most `size` numbers after the one that is missing.
#[derive(Debug, Default)]
pub(super) struct ReorderingWindow {
    /// 0: datagrams are not put in order.
    pub size: usize,
    /// Longest wait of a datagram.
    pub wait_ns: u64,
    /// Datagrams that are missing below this number are given up.
    pub floor: u64,
    /// Datagrams that wait, with the highest key first. The key is the number, or [`RESTART`].
    waiting: Vec<(u64, EarlyDatagram)>,
    /// Free places, with their buffers.
    free: Vec<EarlyDatagram>,
}

impl ReorderingWindow {
    /// Makes all buffers. Nothing is allocated later.
    pub fn start(&mut self, buffer_bytes: usize) {
        // One more than wait before a datagram is read, because it has to be put somewhere.
        let places = if self.size > 0 { self.size + 1 } else { 0 };
        let place = |_| EarlyDatagram {
            number: 0,
            is_end: false,
            length: 0,
            came_ns: 0,
            until_ns: 0,
            bytes: vec![0; buffer_bytes].into(),
        };
        (self.floor, self.free) = (0, (0..places).map(place).collect());
        self.waiting = Vec::with_capacity(places);
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns the lowest key.
    pub fn lowest(&self) -> Option<u64> {
        self.waiting.last().map(|(key, _)| *key)
    }

    pub fn holds(&self, number: u64) -> bool {
        self.waiting.iter().any(|(key, _)| *key == number)
    }

    /// Returns a place to fill; [`hold`](Self::hold) takes it back.
    pub fn place(&mut self) -> Option<EarlyDatagram> {
        self.free.pop()
    }

    /// Lets a datagram wait. Numbers that are too far below it are given up.
    pub fn hold(&mut self, key: u64, early: EarlyDatagram) {
        let distance = if key == RESTART { 0 } else { self.size as u64 };
        self.floor = self.floor.max(key.saturating_sub(distance));
        let at = self.waiting.partition_point(|(other, _)| *other > key);
        self.waiting.insert(at, (key, early));
    }

    /// Takes the datagram with the lowest key. [`give_back`](Self::give_back) makes its place free.
    pub fn take_lowest(&mut self) -> Option<(u64, EarlyDatagram)> {
        self.waiting.pop()
    }

    /// Makes a place free.
    pub fn give_back(&mut self, early: EarlyDatagram) {
        self.free.push(early);
    }

    /// Time at which the first datagram has waited long enough.
    pub fn until_ns(&self) -> Option<u64> {
        self.waiting.iter().map(|(_, early)| early.until_ns).min()
    }

    /// Gives up what is missing before a datagram that has waited long enough. Returns whether there is one.
    pub fn expire(&mut self, now_ns: u64) -> bool {
        // The highest number is first.
        let expired = self.waiting.iter().find(|(_, early)| early.until_ns <= now_ns);
        let Some((key, _)) = expired else { return false };
        self.floor = self.floor.max(*key);
        true
    }
}
