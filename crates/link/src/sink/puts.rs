//! How the producer's end puts messages into the frames to write.

use super::LinkSink;
use crate::carry::Carried;
use crate::frame::{Head, LentPlace, MessageHead, write_head};
use crate::lending::put;
use onbeat_os::clock::monotonic_ns;
use onbeat_runtime::Error;

/// Samples up to this size are copied, so that several messages go out in one write.
const SMALL: usize = 4 << 10;

/// What becomes of the next message.
pub(super) enum LendStep {
    /// Its place is in `outgoing`.
    Lent,
    /// The frames in `outgoing` must be written first.
    WriteFirst,
    /// Its samples must be sent.
    Send,
}

impl<M: Carried> LinkSink<M> {
    /// Puts the place of the next message into `outgoing`, or its store before that.
    pub(super) fn lend(&mut self) -> Result<LendStep, Error> {
        let is_local = self.line.open.as_mut().is_some_and(|open| open.stream.lending().is_some());
        let Some((sequence, kept)) = self.books.to_send().filter(|_| is_local) else {
            return Ok(LendStep::Send);
        };
        let Some((place, block)) = self.lender.place(&kept.message) else { return Ok(LendStep::Send) };
        if !self.lender.knows(place) {
            // A file goes with the first byte of a write.
            if self.outgoing.is_empty() {
                let file = block.file.try_clone_to_owned();
                let cannot = |error| Error::with_source("cannot lend chunks to the other end", error);
                self.outgoing.file = Some(file.map_err(cannot)?);
                put(&mut self.outgoing.bytes, &self.lender.introduce(place, &block))?;
            }
            return Ok(LendStep::WriteFirst);
        }
        let bytes = kept.message.samples().len();
        self.put_head(0, Some((place, bytes as u32)))?;
        self.lender.lend(place);
        if !self.books.is_repeat(sequence) {
            self.bytes += bytes as u64;
            self.lender.count += 1;
        }
        if let Some(kept) = self.books.to_send_mut() {
            kept.lent = Some(place);
        }
        self.books.has_sent();
        Ok(LendStep::Lent)
    }

    /// Puts one message into `outgoing`.
    pub(super) fn put(&mut self) -> Result<(), Error> {
        let Some((sequence, kept)) = self.books.to_send() else { return Ok(()) };
        self.value.clear();
        kept.message.write(&mut self.value)?;
        let samples = kept.message.samples();
        let (body, is_large) = (self.value.len() + samples.len(), samples.len() > SMALL);
        self.put_head(body, None)?;
        if !self.books.is_repeat(sequence) {
            self.bytes += body as u64;
        }
        self.outgoing.bytes.extend_from_slice(&self.value);
        if is_large {
            self.outgoing.has_samples = true;
        } else {
            let samples = self.books.to_send().map_or(&[][..], |(_, kept)| kept.message.samples());
            self.outgoing.bytes.extend_from_slice(samples);
            self.books.has_sent();
        }
        Ok(())
    }

    /// Puts the head of the next message into `outgoing`.
    fn put_head(&mut self, body: usize, lent: Option<(LentPlace, u32)>) -> Result<(), Error> {
        let Some((sequence, kept)) = self.books.to_send() else { return Ok(()) };
        let head = Head::Message(MessageHead {
            sequence,
            origin: kept.origin,
            sent_ns: monotonic_ns(),
            time_ns: kept.time_ns,
            due_ns: kept.due_ns,
            keys: kept.keys.clone(),
            chunk: kept.message.chunk_head(),
            lent,
        });
        write_head(&mut self.outgoing.bytes, &head, body).map_err(|error| Error::new(error.to_string()))
    }
}
