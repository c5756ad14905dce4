//! The connection for signs of life and times.

use super::{Meeting, send};
use crate::clocks::{Exchange, Exchanges};
use crate::frame::{FrameReader, Head};
use crate::stream::LinkStream;
use onbeat_os::clock::monotonic_ns;
use onbeat_queue::sync::atomic::Ordering;
use onbeat_trace::Histogram;
use std::io::{self, ErrorKind};
use std::time::Duration;

/// Probes at the beginning, until the other clock is known well, and the time between them.
const FIRST: u64 = 16;
const FIRST_NS: u64 = 5_000_000;

/// Exchanges probes until the other end is gone. Returns why, and whether it has closed the connection.
pub(super) fn exchange(meeting: &Meeting, mut stream: LinkStream) -> (String, bool) {
    match probe(meeting, &mut stream) {
        Ok(None) => ("the other end closed the connection".to_string(), true),
        Ok(Some(why)) => (why, false),
        Err(error) => (error.to_string(), false),
    }
}

fn probe(meeting: &Meeting, stream: &mut LinkStream) -> io::Result<Option<String>> {
    let beat_ns = meeting.settings.heartbeat_ns;
    let (mut exchanges, mut asked) = (Exchanges::default(), 0);
    let mut reader = FrameReader::new(0);
    let mut next_ns = monotonic_ns();
    let mut heard_ns = next_ns;
    stream.socket().set_write_timeout(Some(Duration::from_nanos(3 * beat_ns)))?;
    loop {
        let now_ns = monotonic_ns();
        if now_ns.saturating_sub(heard_ns) > 3 * beat_ns {
            return Ok(Some(format!("the other end was silent for {} ms", 3 * beat_ns / 1_000_000)));
        }
        if now_ns >= next_ns {
            asked += 1;
            next_ns = now_ns + if asked < FIRST { FIRST_NS.min(beat_ns) } else { beat_ns };
            send(stream, &Head::Probe { asked_ns: monotonic_ns() })?;
        }
        let wait_ns = next_ns.saturating_sub(monotonic_ns()).max(1_000_000);
        stream.socket().set_read_timeout(Some(Duration::from_nanos(wait_ns)))?;
        match reader.fill(stream) {
            Ok(0) => return Ok(None),
            Ok(_) => heard_ns = monotonic_ns(),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        while let Some((head, _)) = reader.head(0)? {
            match head {
                Head::Probe { asked_ns } => {
                    let answered_ns = monotonic_ns();
                    send(stream, &Head::Answer { asked_ns, came_ns: heard_ns, answered_ns })?;
                }
                Head::Answer { asked_ns, came_ns, answered_ns } => {
                    let exchange = Exchange { asked_ns, came_ns, answered_ns, heard_ns };
                    meeting.learn(exchange, &mut exchanges);
                }
                _ => return Ok(Some("what came is not a sign of life".to_string())),
            }
        }
    }
}

impl Meeting {
    fn learn(&self, exchange: Exchange, exchanges: &mut Exchanges) {
        let before = exchanges.steps();
        let offset = exchanges.add(exchange);
        let mut state = self.state();
        state.clock = Some(offset);
        state.clock_steps += exchanges.steps() - before;
        state.round_trips.get_or_insert_with(|| Box::new(Histogram::new())).record(exchange.round_trip_ns());
        let begins = state.met.take();
        let has_begun = begins.is_some();
        if has_begun {
            state.session = begins;
        }
        drop(state);
        if has_begun {
            self.ring();
        } else {
            // Without the bell: a step looks when it has a message.
            self.version.fetch_add(1, Ordering::Relaxed);
        }
    }
}
