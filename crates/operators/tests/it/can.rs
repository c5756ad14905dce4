//! CAN without a bus: text to frames to values and back, and what is said if there is no interface.
#![forbid(unsafe_code)]

use onbeat_operators::buses::can::CanFrame;
use onbeat_operators::registry;
use onbeat_runtime::testing::{Feed, Seen, Trial};

const LOG: [&str; 6] = [
    "(1436509052.249713) can0 123#E803000000000000",
    "(1436509052.349713) can0 7FF#",
    "(1436509053.249713) can1 123#0000",
    "",
    "(1436509053.749713) can0 123#18FC R",
    "(1436509053.749714) can0 1ABCDEF0##5000102030405060708090A0B",
];

fn parse(parameters: &str, lines: &[&str]) -> Seen {
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    let trial = Trial::kind(&registry(), "can.parse", parameters).feed("in", Feed::messages(lines));
    trial.keep::<CanFrame>("out").run()
}

fn frames(parameters: &str) -> Vec<CanFrame> {
    parse(parameters, &LOG).messages("out")
}

#[test]
fn a_log_becomes_frames_and_the_same_log() {
    assert_eq!(frames("interface = \"can1\"").len(), 1);
    let frames = frames("interface = \"can0\"");
    let last = frames[3];
    assert_eq!((last.id(), last.is_extended(), last.is_fd(), last.length()), (0x1abc_def0, true, true, 12));
    assert_eq!(last.time_unix_ns, 1_436_509_053_749_714_000);
    let trial = Trial::kind(&registry(), "can.text", "").feed("in", Feed::messages(frames));
    let lines: Vec<&str> = LOG.iter().copied().filter(|line| line.contains("can0")).collect();
    let expected: Vec<&str> = lines.iter().map(|line| line.trim_end_matches(" R")).collect();
    assert_eq!(trial.run().messages::<String>("out"), expected);
}

#[test]
fn what_is_not_a_frame_is_counted() {
    let lines = ["hello", "(2.5) can0 123#00", "(1.5) can0 20000004#0001000000000000", "(2.0) can0 123#01"];
    let seen = parse("", &lines);
    assert_eq!(seen.messages::<CanFrame>("out").len(), 2);
    let [(1, "lines", reason)] = seen.losses()[..] else { panic!("{:?}", seen.losses()) };
    assert!(reason.contains("candump"), "{reason}");
    let notes = seen.notes().join("\n");
    assert!(notes.contains("1 error frames") && notes.contains("1 frames were older"), "{notes}");
}

#[test]
fn a_replay_keeps_the_times_of_the_log() {
    let seen = parse("pace = \"real\"", &LOG);
    assert_eq!(seen.messages::<CanFrame>("out").len(), 5);
}

#[test]
fn signals_become_values_and_frames() {
    let signal = "id = 0x123\nstart_bit = 0\nlength = 16\nnumber = \"signed\"\nfactor = 0.5\noffset = 10.0";
    let trial = Trial::kind(&registry(), "can.signal", signal).feed("in", Feed::messages(frames("")));
    let values = trial.run().messages::<f64>("out");
    assert_eq!(values, [510.0, 10.0, -490.0]);
    let trial = Trial::kind(&registry(), "can.frame", &format!("{signal}\nbytes = 2"));
    let more = [values, vec![f64::NAN, 1e9]].concat();
    let seen = trial.feed("in", Feed::messages(more)).keep::<CanFrame>("out").run();
    let texts: Vec<String> = seen.messages::<CanFrame>("out").iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["123#E803", "123#0000", "123#18FC", "123#FF7F"]);
    assert_eq!(seen.losses().len(), 1);
    assert!(seen.notes().join("").contains("1 values were beyond the range"), "{:?}", seen.notes());
    let short = Trial::kind(&registry(), "can.signal", "id = 0x7ff\nstart_bit = 0\nlength = 16");
    let seen = short.feed("in", Feed::messages(frames(""))).run();
    assert_eq!(seen.losses(), [(1, "frames", "shorter than the signal's place in the frame")]);
}

#[test]
fn a_missing_interface_is_said() {
    let said =
        Trial::kind(&registry(), "can.source", "interface = \"nocan0\"").keep::<CanFrame>("out").failure();
    assert!(
        said.contains("cannot open nocan0") && (said.contains("modprobe") || said.contains("vcan")),
        "{said}"
    );
}
