//! Chunks that cross a link without a copy, between processes of one machine.
//!
//! The stores of the producer are in files that the consumer maps. A message then has the place of its chunk
//! instead of samples. The producer keeps the chunk until the consumer says that it is back:
//!
//! ```text
//! producer                           consumer
//!    │ ── Store, with its file ───────► │  maps it, once
//!    │ ── Message, with a place ──────► │  passes the chunk on
//!    │ ◄─────────────────── Taken ───── │  as of every message: credit does not wait for the chunk
//!    │ ◄─────────────────── Back ────── │  its operators need the chunk no more
//! ```
//!
//! At most as many chunks as the window are lent, or 64. Beyond that, samples are sent as to another machine:
//! an operator that keeps chunks for long holds nobody up. After a cut, the producer says which chunks it
//! believes to be lent, and the consumer gives back those that it does not have.

use crate::carry::Carried;
use crate::frame::{Head, LentPlace, MessageHead, write_head};
use crate::line::contradicts;
use onbeat_queue::BlockPlace;
use onbeat_runtime::{Error, LentChunks};
use std::io;
use std::os::fd::OwnedFd;

/// Most chunks that are lent at a time.
const LENT: usize = 64;
/// Most places in one frame.
const AT_ONCE: usize = 1000;

/// The producer's side.
#[derive(Debug)]
pub(crate) struct Lender<M> {
    /// Stores that the consumer has mapped in this session.
    known: Vec<u64>,
    /// Chunks that the consumer has taken and not given back.
    kept: Vec<(LentPlace, M)>,
    /// Chunks that are lent, those of messages in flight included.
    out: Vec<LentPlace>,
    /// Most chunks that are lent at a time.
    pub most: usize,
    /// Messages that were lent.
    pub count: u64,
}

impl<M: Carried> Lender<M> {
    pub fn new(window: usize) -> Self {
        let most = window.min(LENT);
        Lender { known: Vec::new(), kept: Vec::new(), out: Vec::new(), most, count: 0 }
    }

    /// Begins a session. Returns what the consumer should hear of earlier ones. Messages in flight did not
    /// arrive there, and are lent again.
    pub fn resume(&mut self) -> Vec<Head> {
        self.known.clear();
        self.out = self.kept.iter().map(|(place, _)| *place).collect();
        self.out.chunks(AT_ONCE).map(|places| Head::Lent(places.to_vec())).collect()
    }

    /// Where the other end finds a message, if it can be lent now.
    pub fn place<'m>(&self, message: &'m M) -> Option<(LentPlace, BlockPlace<'m>)> {
        if self.out.len() >= self.most {
            return None;
        }
        let block = message.place()?;
        let place = LentPlace { store: block.store as u64, chunk: u32::try_from(block.index).ok()? };
        // A chunk that was sent twice is lent once.
        (!self.out.contains(&place)).then_some((place, block))
    }

    /// Whether the consumer has mapped the store of a place.
    pub fn knows(&self, place: LentPlace) -> bool {
        self.known.contains(&place.store)
    }

    /// Tells the consumer of the store of a place.
    pub fn introduce(&mut self, place: LentPlace, block: &BlockPlace<'_>) -> Head {
        self.known.push(place.store);
        Head::Store {
            store: place.store,
            chunks: u32::try_from(block.blocks).unwrap_or(u32::MAX),
            chunk_bytes: u32::try_from(block.block_bytes).unwrap_or(u32::MAX),
        }
    }

    /// Notes that a message is lent.
    pub fn lend(&mut self, place: LentPlace) {
        self.out.push(place);
    }

    /// The consumer has taken a message that was lent.
    pub fn taken(&mut self, place: LentPlace, message: M) {
        if self.out.contains(&place) {
            self.kept.push((place, message));
        }
    }

    /// The consumer has given chunks back.
    pub fn back(&mut self, places: &[LentPlace]) {
        self.out.retain(|place| !places.contains(place));
        self.kept.retain(|(place, _)| !places.contains(place));
    }
}

/// The consumer's side.
#[derive(Debug, Default)]
pub(crate) struct Borrower {
    stores: Vec<(u64, LentChunks)>,
    /// Chunks that its operators have, or had a moment ago.
    out: Vec<LentPlace>,
    /// Chunks to give back.
    back: Vec<LentPlace>,
    /// Messages that were borrowed.
    pub count: u64,
}

impl Borrower {
    /// Maps a store of the producer. One that is mapped already stays: its chunks may be in use.
    pub fn map(&mut self, store: u64, chunks: u32, bytes: u32, file: Option<OwnedFd>) -> io::Result<()> {
        let file = file.ok_or_else(|| contradicts("no file came with a store"))?;
        if self.stores.iter().all(|(known, _)| *known != store) {
            let opened = LentChunks::open(file, chunks as usize, bytes as usize).map_err(io::Error::other)?;
            self.stores.push((store, opened));
        }
        Ok(())
    }

    /// Makes the message of a place.
    pub fn borrow<M: Carried>(
        &mut self,
        head: &mut MessageHead,
        place: LentPlace,
        bytes: usize,
    ) -> io::Result<M> {
        let store = self.stores.iter().find(|(known, _)| *known == place.store).map(|(_, store)| store);
        let store = store.ok_or_else(|| contradicts("it lent a chunk of an unknown store"))?;
        let message = M::borrow(head, place.chunk as usize, bytes, store)
            .ok_or_else(|| contradicts("it lent a chunk twice, or one that it does not have"))?;
        self.out.push(place);
        self.count += 1;
        Ok(message)
    }

    /// The producer believes that these chunks are lent.
    pub fn compare(&mut self, places: &[LentPlace]) {
        let unknown = places.iter().filter(|place| !self.out.contains(place) && !self.back.contains(place));
        let unknown: Vec<LentPlace> = unknown.copied().collect();
        self.back.extend(unknown);
    }

    /// Whether operators have chunks.
    pub fn has_any(&self) -> bool {
        !self.out.is_empty() || !self.back.is_empty()
    }

    /// What to tell the producer: chunks that came back.
    pub fn give_back(&mut self) -> Option<Head> {
        let Borrower { stores, out, back, .. } = self;
        out.retain(|place| {
            let store = stores.iter().find(|(known, _)| *known == place.store);
            let is_back = store.is_none_or(|(_, store)| store.is_back(place.chunk as usize));
            if is_back {
                back.push(*place);
            }
            !is_back
        });
        (!back.is_empty()).then(|| Head::Back(back.drain(..back.len().min(AT_ONCE)).collect()))
    }

    /// Forgets the producer: another run has taken its place, or this one ends. Chunks that operators still
    /// have stay as they are.
    pub fn forget(&mut self) {
        (self.stores, self.out, self.back) = (Vec::new(), Vec::new(), Vec::new());
    }
}

/// Writes a head without a body.
pub(crate) fn put(bytes: &mut Vec<u8>, head: &Head) -> Result<(), Error> {
    write_head(bytes, head, 0).map_err(|error| Error::new(error.to_string()))
}
