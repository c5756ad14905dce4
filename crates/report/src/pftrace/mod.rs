//! Run as a Perfetto trace: operators, queues, kernel events and misses, for ui.perfetto.dev.
//!
//! The file is a sequence of packets and can be read up to any of them, so a killed process leaves a usable
//! trace. The packets are a subset of `perfetto_trace.proto`; `ci/formats` reads a trace back with the
//! published schema.

mod edge;
mod messages;

use edge::EdgeMessages;
use messages::{CounterDescriptor, DebugAnnotation, Packets, TracePacket, TrackDescriptor, TrackEvent};
use onbeat_trace::{Class, KernelEvent, Span};
use prost::Message;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Write};

/// Names in a trace, in the order of the plan.
#[derive(Debug, Clone, Default)]
pub struct TraceNames {
    /// Name of the pipeline.
    pub run: String,
    /// Names of the workers.
    pub workers: Vec<String>,
    /// Names of the operators.
    pub operators: Vec<String>,
    /// Names of the edges, with the operators at their ends.
    pub edges: Vec<(String, u32, u32)>,
}

/// Number of the only writer of packets.
const SEQUENCE: u32 = 1;
/// Number of `CLOCK_MONOTONIC` in Perfetto's list of clocks.
const MONOTONIC: u32 = 3;

mod kind {
    pub const BEGIN: i32 = 1;
    pub const END: i32 = 2;
    pub const INSTANT: i32 = 3;
    pub const COUNTER: i32 = 4;
}

/// Writer of a trace during a run.
///
/// ```
/// use onbeat_report::pftrace::{TraceNames, Trace};
/// use onbeat_trace::Span;
/// let (workers, operators) = (vec!["onbeat-w0".into()], vec!["iq".into()]);
/// let names = TraceNames { run: "fm".into(), workers, operators, ..TraceNames::default() };
/// let mut bytes = Vec::new();
/// let mut trace = Trace::new(&mut bytes, names, 1 << 20)?;
/// trace.spans(&[Span { start_ns: 1_000, end_ns: 3_000, ..Span::default() }]);
/// assert_eq!(trace.end()?.dropped, 0);
/// assert!(bytes.windows(2).any(|two| two == b"iq"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Trace<W> {
    out: W,
    names: TraceNames,
    limit_bytes: u64,
    written: TraceSize,
    error: Option<io::Error>,
    /// Messages in flight, by edge and source.
    in_flight: Vec<HashMap<u32, EdgeMessages>>,
    /// Cores whose tracks have names.
    cores: BTreeSet<u32>,
}

/// Step, and whether it certainly was the last one with its message.
type TracedStep<'s> = (&'s Span, bool);

/// Size of a finished trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TraceSize {
    /// Bytes written.
    pub bytes: u64,
    /// Steps, events and misses written.
    pub events: u64,
    /// Steps, events and misses beyond the limit.
    pub dropped: u64,
}

/// Numbers of tracks: groups first, then their members.
mod track {
    pub const OPERATORS: u64 = 1;
    pub const QUEUES: u64 = 2;
    pub const KERNEL: u64 = 3;
    pub const MISSES: u64 = 4;
    pub const OPERATOR: u64 = 0x1_0000_0000;
    pub const EDGE: u64 = 0x2_0000_0000;
    pub const CORE: u64 = 0x3_0000_0000;
}

/// Tracks of a core, in order of precedence: later ones interrupt earlier ones. Instant events of a thread
/// are on the track of threads.
const LEVELS: [&str; 5] = ["threads", "softirqs", "interrupts", "NMIs", "hardware"];

fn level(class: Class) -> u64 {
    match class {
        Class::Thread | Class::Wakeup | Class::Migration | Class::PageFault => 0,
        Class::Softirq => 1,
        Class::Irq => 2,
        Class::Nmi => 3,
        Class::Hardware => 4,
    }
}

impl<W: Write> Trace<W> {
    /// Starts a trace of at most `limit_bytes`.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn new(out: W, names: TraceNames, limit_bytes: u64) -> io::Result<Self> {
        let in_flight = names.edges.iter().map(|_| HashMap::new()).collect();
        let (written, error, cores) = (TraceSize::default(), None, BTreeSet::new());
        let mut trace = Trace { out, names, limit_bytes, written, error, in_flight, cores };
        let run = trace.names.run.clone();
        trace.describe(track::MISSES, None, format!("{run}: misses"), 0, false);
        trace.describe(track::OPERATORS, None, format!("{run}: operators"), 1, false);
        trace.describe(track::QUEUES, None, format!("{run}: queues"), 2, false);
        trace.describe(track::KERNEL, None, "kernel".to_owned(), 3, false);
        for (number, name) in trace.names.operators.clone().into_iter().enumerate() {
            trace.describe(
                track::OPERATOR + number as u64,
                Some(track::OPERATORS),
                name,
                number as i32,
                false,
            );
        }
        for (number, (name, ..)) in trace.names.edges.clone().into_iter().enumerate() {
            trace.describe(track::EDGE + number as u64, Some(track::QUEUES), name, number as i32, true);
        }
        match trace.error.take() {
            Some(error) => Err(error),
            None => Ok(trace),
        }
    }

    /// Finishes the trace.
    ///
    /// # Errors
    /// The first error of the writer. The bytes written before it are a usable trace.
    pub fn end(mut self) -> io::Result<TraceSize> {
        match self.error.take() {
            Some(error) => Err(error),
            None => self.out.flush().map(|()| self.written),
        }
    }

    fn describe(&mut self, uuid: u64, parent: Option<u64>, name: String, rank: i32, is_counter: bool) {
        // 3: sorted by rank.
        let descriptor = TrackDescriptor {
            uuid: Some(uuid),
            parent_uuid: parent,
            name: Some(name),
            counter: is_counter.then_some(CounterDescriptor { unit: Some(2) }),
            child_ordering: parent.is_none().then_some(3),
            sibling_order_rank: Some(rank),
        };
        self.write(TracePacket { track_descriptor: Some(descriptor), ..TracePacket::default() });
    }

    fn event(&mut self, time_ns: u64, event: TrackEvent) {
        self.write(TracePacket {
            timestamp: Some(time_ns),
            timestamp_clock_id: Some(MONOTONIC),
            track_event: Some(event),
            ..TracePacket::default()
        });
    }

    fn slice(
        &mut self,
        track: u64,
        from_ns: u64,
        to_ns: u64,
        name: String,
        category: &str,
        about: Vec<DebugAnnotation>,
    ) {
        if self.has_no_room() {
            return;
        }
        let (track_uuid, categories) = (Some(track), vec![category.to_owned()]);
        self.event(
            from_ns,
            TrackEvent {
                kind: Some(kind::BEGIN),
                track_uuid,
                name: Some(name),
                categories,
                debug_annotations: about,
                ..TrackEvent::default()
            },
        );
        self.event(to_ns, TrackEvent { kind: Some(kind::END), track_uuid, ..TrackEvent::default() });
        self.written.events += 1;
    }

    /// Whether the limit is reached. The start of a slice is written only together with its end.
    fn has_no_room(&mut self) -> bool {
        let is_full = self.error.is_some() || self.written.bytes >= self.limit_bytes;
        self.written.dropped += u64::from(is_full);
        is_full
    }

    fn write(&mut self, mut packet: TracePacket) {
        if self.error.is_some() {
            return;
        }
        packet.trusted_packet_sequence_id = Some(SEQUENCE);
        let bytes = Packets { packet: vec![packet] }.encode_to_vec();
        match self.out.write_all(&bytes) {
            Ok(()) => self.written.bytes += bytes.len() as u64,
            Err(error) => self.error = Some(error),
        }
    }

    /// Writes the number of messages on each edge. The end of the producer's step sends one, the start of the
    /// consumer's step takes it.
    fn count(&mut self, spans: &[Span]) {
        // The next step of the operator tells what a step did: with the same message, the step only waited.
        let mut next: HashMap<u32, u64> = HashMap::new();
        let mut moves: Vec<(u64, bool, TracedStep<'_>)> = Vec::new();
        for span in spans.iter().rev() {
            let follower = next.insert(span.operator, span.sequence);
            let has_waited = follower == Some(span.sequence);
            moves.push((span.start_ns, false, (span, true)));
            if !has_waited {
                moves.push((span.end_ns, true, (span, follower.is_some())));
            }
        }
        // At equal times ends come first: a step that starts when another one ends takes its message.
        moves.sort_by_key(|&(time_ns, is_end, _)| (time_ns, !is_end));
        for (time_ns, is_end, (span, is_sure)) in moves {
            for edge in 0..self.names.edges.len() {
                let (_, from, to) = self.names.edges[edge];
                let messages = self.in_flight[edge].entry(span.source).or_default();
                if is_end && from == span.operator {
                    let sent_ns = messages.ends(span.sequence, time_ns);
                    if let Some(sent_ns) = sent_ns {
                        self.write_depth(edge, sent_ns);
                    }
                    let messages = self.in_flight[edge].entry(span.source).or_default();
                    if let Some(sent_ns) = is_sure.then(|| messages.sent()).flatten() {
                        self.write_depth(edge, sent_ns);
                    }
                } else if !is_end && to == span.operator {
                    let (sent_ns, took) = messages.takes(span.sequence);
                    if let Some(sent_ns) = sent_ns {
                        // Depth before the messages were taken.
                        let depth = self.depth(edge) + took;
                        self.write_count(edge, sent_ns, depth);
                    }
                    if took > 0 {
                        self.write_depth(edge, time_ns);
                    }
                }
            }
        }
    }

    fn depth(&self, edge: usize) -> usize {
        self.in_flight[edge].values().map(|edge| edge.messages.len()).sum()
    }

    fn write_depth(&mut self, edge: usize, time_ns: u64) {
        let depth = self.depth(edge);
        self.write_count(edge, time_ns, depth);
    }

    fn write_count(&mut self, edge: usize, time_ns: u64, depth: usize) {
        if self.has_no_room() {
            return;
        }
        let (track_uuid, counter_value) = (Some(track::EDGE + edge as u64), Some(depth as i64));
        let kind = Some(kind::COUNTER);
        self.event(time_ns, TrackEvent { kind, track_uuid, counter_value, ..TrackEvent::default() });
    }

    fn name_core(&mut self, cpu: u32) {
        if !self.cores.insert(cpu) {
            return;
        }
        let core = track::CORE + u64::from(cpu) * 8;
        self.describe(core + 7, Some(track::KERNEL), format!("core {cpu}"), cpu as i32, false);
        for (level, name) in LEVELS.iter().enumerate() {
            self.describe(
                core + level as u64,
                Some(core + 7),
                format!("core {cpu}: {name}"),
                level as i32,
                false,
            );
        }
    }
}

fn number(name: &str, value: u64) -> DebugAnnotation {
    DebugAnnotation { name: Some(name.to_owned()), uint_value: Some(value), ..DebugAnnotation::default() }
}

fn words(name: &str, value: &str) -> DebugAnnotation {
    DebugAnnotation {
        name: Some(name.to_owned()),
        string_value: Some(value.to_owned()),
        ..DebugAnnotation::default()
    }
}

impl<W: Write> Trace<W> {
    /// Adds steps, sorted by their ends.
    pub fn spans(&mut self, spans: &[Span]) {
        for span in spans {
            let name = self.names.operators.get(span.operator as usize).cloned().unwrap_or_default();
            let mut about = Vec::new();
            if let Some(worker) = self.names.workers.get(span.worker as usize) {
                about.push(words("worker", worker));
            }
            about.push(number("sequence", span.sequence));
            if span.due_ns != Span::NO_DUE {
                about.push(number("ns_after_due", span.end_ns.saturating_sub(span.due_ns)));
            }
            if let Some((edge, ..)) =
                self.names.edges.get(span.held_by as usize).filter(|_| span.held_by != Span::NONE)
            {
                about.push(words("waited_for_room_in", edge));
            }
            self.slice(
                track::OPERATOR + u64::from(span.operator),
                span.start_ns,
                span.end_ns,
                name,
                "operator",
                about,
            );
        }
        self.count(spans);
    }

    /// Adds kernel events on the cores, sorted by their starts.
    pub fn kernel(&mut self, events: &[KernelEvent]) {
        let mut last: BTreeMap<(u32, u64), u64> = BTreeMap::new();
        for event in events {
            self.name_core(event.cpu);
            let level = level(event.class);
            let track = track::CORE + u64::from(event.cpu) * 8 + level;
            let category = format!("{:?}", event.class).to_lowercase();
            let mut about = Vec::new();
            if event.pid != 0 {
                about.push(number("tid", event.pid.unsigned_abs().into()));
            }
            if !event.class.has_core() {
                if !self.has_no_room() {
                    let (kind, name) = (Some(kind::INSTANT), Some(format!("{category}: {}", event.name)));
                    let (track_uuid, categories) = (Some(track), vec![category]);
                    self.event(
                        event.start_ns,
                        TrackEvent {
                            kind,
                            track_uuid,
                            name,
                            categories,
                            debug_annotations: about,
                            ..TrackEvent::default()
                        },
                    );
                    self.written.events += 1;
                }
                continue;
            }
            // Durations exclude interruptions, which are on other tracks. So slices of one track do not
            // overlap.
            let from_ns = event.start_ns.max(last.get(&(event.cpu, level)).copied().unwrap_or(0));
            let to_ns = from_ns.max(event.start_ns + event.duration_ns);
            last.insert((event.cpu, level), to_ns);
            self.slice(track, from_ns, to_ns, event.name.clone(), &category, about);
        }
    }

    /// Adds a miss: its end (nanoseconds on `CLOCK_MONOTONIC`), its path or operator, and its cause in a
    /// sentence.
    pub fn miss(&mut self, end_ns: u64, name: &str, sentence: &str) {
        if self.has_no_room() {
            return;
        }
        let (kind, track_uuid) = (Some(kind::INSTANT), Some(track::MISSES));
        let (name, categories) = (Some(format!("late: {name}")), vec!["miss".to_owned()]);
        let debug_annotations = vec![words("why", sentence)];
        self.event(
            end_ns,
            TrackEvent { kind, track_uuid, name, categories, debug_annotations, ..TrackEvent::default() },
        );
        self.written.events += 1;
    }
}
