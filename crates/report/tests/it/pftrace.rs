//! Traces through the public interface; `ci/formats` reads one with the schema that Perfetto publishes.

use onbeat_report::pftrace::{Trace, TraceNames};
use onbeat_trace::{Class, KernelEvent, Span};
use std::io::{self, Write};

fn names() -> TraceNames {
    TraceNames {
        run: "loop".into(),
        workers: vec!["onbeat-w0".into()],
        operators: vec!["tick".into(), "end".into()],
        edges: vec![("tick.out → end.in".into(), 0, 1)],
    }
}

fn span(operator: u32, sequence: u64, start_ns: u64) -> Span {
    Span { operator, sequence, start_ns, end_ns: start_ns + 100, held_by: Span::NONE, ..Span::default() }
}

#[test]
fn what_has_no_room_is_counted() {
    let mut bytes = Vec::new();
    let mut trace = Trace::new(&mut bytes, names(), 5_000).unwrap();
    for sequence in 0..1_000 {
        trace.spans(&[span(0, sequence, sequence * 1_000), span(1, sequence, sequence * 1_000 + 200)]);
    }
    trace.miss(5, "tick → end", "message 5 of tick → end was late");
    let written = trace.end().unwrap();
    assert_eq!(written.bytes, bytes.len() as u64);
    assert!(written.bytes < 6_000 && written.dropped > 1_000 && written.events > 10, "{written:?}");
}

#[test]
fn whatever_comes_is_written() {
    let event = |class, pid| KernelEvent {
        cpu: u32::MAX,
        start_ns: u64::MAX - 5,
        duration_ns: 3,
        class,
        name: "\u{0}<kworker>".into(),
        pid,
        priority: 120,
        depth: 0,
    };
    let mut bytes = Vec::new();
    let mut trace = Trace::new(&mut bytes, TraceNames::default(), u64::MAX).unwrap();
    trace.spans(&[Span { operator: 7, held_by: 9, due_ns: u64::MAX, end_ns: u64::MAX, ..Span::default() }]);
    for class in [Class::Hardware, Class::Nmi, Class::Irq, Class::Softirq, Class::Thread, Class::PageFault] {
        trace.kernel(&[event(class, 0), event(class, i32::MIN)]);
    }
    assert_eq!(trace.end().unwrap().events, 13);
}

struct Full;

impl Write for Full {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::Error::from_raw_os_error(28))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_told() {
    let error = Trace::new(Full, names(), 1 << 20).err().expect("no room");
    assert!(error.to_string().contains("No space left"), "{error}");
}

/// Returns the values of the counters in file order: field 30 of an event, decoded by hand.
fn counts(bytes: &[u8]) -> Vec<u8> {
    let counter = [0x48, 4];
    let mut counts = Vec::new();
    for at in 0..bytes.len().saturating_sub(2) {
        if bytes[at..].starts_with(&counter) {
            let value = bytes[at..].windows(2).position(|tag| tag == [0xf0, 0x01]).expect("a value");
            counts.push(bytes[at + value + 2]);
        }
    }
    counts
}

#[test]
fn a_message_lies_in_an_edge_from_the_step_that_sent_it_to_the_one_that_takes_it() {
    let mut bytes = Vec::new();
    let mut trace = Trace::new(&mut bytes, names(), u64::MAX).unwrap();
    // The source waits in a step before each message. Its consumer follows at once, or after the next
    // message.
    trace.spans(&[span(0, 0, 1_000), span(0, 0, 2_000), span(1, 0, 2_100)]);
    trace.spans(&[
        span(0, 1, 3_000),
        span(0, 1, 4_000),
        span(0, 2, 5_000),
        span(1, 1, 6_000),
        span(1, 2, 7_000),
        span(0, 3, 8_000),
    ]);
    trace.end().unwrap();
    assert_eq!(counts(&bytes), [1, 0, 1, 2, 1, 0]);
}
