//! CAN without a bus: text to frames to values and back, and what is said if there is no interface.
#![forbid(unsafe_code)]

use onbeat_operators::buses::can::CanFrame;
use onbeat_operators::registry;
use onbeat_runtime::testing::{Feed, Seen, Trial};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

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

/// A random file that cantools 45.1.0 wrote, and what it reads by that from random data: signal, identifier,
/// whether it has 29 bits, data, value (`None` if the multiplexor has another number).
const DBC: &str = include_str!("can/reference.dbc");
const DBC_VALUES: &str = include_str!("can/reference.values");

fn dbc_row(line: &str) -> (&str, CanFrame, Option<f64>) {
    let words: Vec<&str> = line.split(' ').collect();
    let hex = |at: usize| u8::from_str_radix(&words[3][2 * at..2 * at + 2], 16).unwrap();
    let data: Vec<u8> = (0..words[3].len() / 2).map(hex).collect();
    let (id, extended) = (words[1].parse().unwrap(), words[2] == "1");
    let frame = if data.len() > 8 {
        CanFrame::fd(id, extended, 0, &data)
    } else {
        CanFrame::classic(id, extended, &data)
    };
    (words[0], frame.unwrap(), words[4].parse().ok())
}

fn dbc_signal(path: &Path, name: &str, frames: Vec<CanFrame>) -> Vec<f64> {
    let parameters = format!("dbc = {path:?}\nsignal = \"{name}\"");
    Trial::kind(&registry(), "can.signal", &parameters)
        .feed("in", Feed::messages(frames))
        .run()
        .messages("out")
}

#[test]
fn signals_of_a_dbc_file_are_those_of_cantools() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reference.dbc");
    fs::write(&path, DBC).unwrap();
    let mut signals: BTreeMap<&str, (Vec<CanFrame>, Vec<f64>)> = BTreeMap::new();
    for (name, frame, value) in DBC_VALUES.lines().map(dbc_row) {
        let (frames, values) = signals.entry(name).or_default();
        frames.push(frame);
        values.extend(value);
    }
    assert!(signals.len() > 50);
    for (name, (frames, values)) in signals {
        assert_eq!(dbc_signal(&path, name, frames), values, "{name}");
        let parameters = format!("dbc = {path:?}\nsignal = \"{name}\"");
        let trial =
            Trial::kind(&registry(), "can.frame", &parameters).feed("in", Feed::messages(values.clone()));
        let again = dbc_signal(&path, name, trial.keep::<CanFrame>("out").run().messages("out"));
        let is_near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-6 * b.abs().max(1.0);
        assert!(
            again.len() == values.len() && again.iter().zip(&values).all(is_near),
            "{name}: {again:?} {values:?}"
        );
    }
}

#[test]
fn what_a_dbc_file_does_not_say_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small.dbc");
    fs::write(&path, "VERSION \"\"\nBO_ 291 Engine: 2 A\n SG_ Speed : 0|16@1+ (1,0) [0|0] \"\" A\n").unwrap();
    let parameters = |more: &str| format!("dbc = {path:?}\n{more}");
    let trial = Trial::kind(&registry(), "can.signal", &parameters("signal = \"Engine.Torque\""));
    let said = trial.feed("in", Feed::messages(frames(""))).failure();
    assert!(said.contains("signals there: Speed"), "{said}");
    let trial = Trial::kind(&registry(), "can.frame", &parameters("signal = \"Engine.Speed\"\nbytes = 1"));
    let said = trial.feed("in", Feed::messages(vec![1.0])).keep::<CanFrame>("out").failure();
    assert!(said.contains("needs 2 or more"), "{said}");
    assert_eq!(dbc_signal(&path, "Engine.Speed", frames("interface = \"can1\"")), [0.0]);
}

#[test]
fn a_missing_interface_is_said() {
    let said =
        Trial::kind(&registry(), "can.source", "interface = \"nocan0\"").keep::<CanFrame>("out").failure();
    assert!(
        said.contains("cannot open nocan0") && (said.contains("modprobe") || said.contains("vcan")),
        "{said}"
    );
    let looked = registry().operator("can.source", "interface = \"nocan0\"").unwrap().check().unwrap_err();
    assert!(said.contains(&looked.to_string()), "{looked}");
}
