//! The bench of echoes through its public interface. Its figures depend on the machine; their number does
//! not: each message comes back.

use crate::stops::StopsAfter;
use crate::watchdog::watched;
use onbeat_bench::echo::{EchoSettings, EchoTransport, EchoWait, run, serve};
use onbeat_bench::{BenchError, BenchWatch, Unwatched};
use onbeat_os::CoreSet;
use std::ffi::OsString;

const ASKED: &str = "ONBEAT_TEST_ECHO_SERVER";

/// Not a test: the server of the tests below, which start this program again.
#[test]
fn a_server_when_asked() {
    if std::env::var_os(ASKED).is_some() {
        assert!(serve());
    }
}

/// Few messages, by servers that are this program.
fn tiny() -> EchoSettings {
    let program = std::env::current_exe().expect("this program");
    let mut server: Vec<OsString> = vec!["env".into(), format!("{ASKED}=1").into(), program.into()];
    server.extend(["echo::a_server_when_asked", "--exact", "--nocapture"].map(OsString::from));
    EchoSettings {
        intervals_ns: vec![5_000_000, 500_000],
        rounds: 2,
        seconds: 0.05,
        server,
        ..EchoSettings::default()
    }
}

/// Whether client and server can have a core each.
#[expect(clippy::disallowed_macros, reason = "a test says why it was skipped")]
fn has_two_cores() -> bool {
    let has = CoreSet::allowed().is_ok_and(|cores| cores.iter().count() > 1);
    if !has {
        println!("skipped: client and server need a core each");
    }
    has
}

fn every_message_comes_back(transport: EchoTransport, client: EchoWait) {
    if !has_two_cores() {
        return;
    }
    // The pipe is tested with the command: here, the test harness writes to stdout.
    let settings = EchoSettings { transports: vec![transport], client, ..tiny() };
    let result = watched(move || run(&settings, &mut Unwatched)).expect("figures");
    let figure = |name: &str| {
        let figure = result.figures.get(name).unwrap_or_else(|| panic!("{name}: {result:?}"));
        assert_eq!(figure.runs, 2, "{name}");
        (figure.min, figure.max)
    };
    let transport = transport.name();
    for (interval, messages) in [("5000us", 10.0), ("500us", 100.0)] {
        for wait in ["park", "spin"] {
            let case = format!("{transport}.{interval}.{wait}");
            for (server, messages) in [("bare", messages), ("onbeat", messages), ("stamped", messages / 2.0)]
            {
                let name = format!("{case}.{server}");
                assert_eq!(figure(&format!("{name}.echoes")), (messages, messages), "{name}");
                assert_eq!(figure(&format!("{name}.lost")), (0.0, 0.0), "{name}");
                assert_eq!(figure(&format!("{name}.wrong")), (0.0, 0.0), "{name}");
                let (p50, p99) = (figure(&format!("{name}.p50")).0, figure(&format!("{name}.p99")).0);
                assert!(0.0 < p50 && p50 <= p99, "{name}");
            }
            for name in ["own", "ratio.p50", "ratio.p99", "record.p50", "seen.p50", "off.p50", "off.p99"] {
                figure(&format!("{case}.{name}"));
            }
            assert_eq!(figure(&format!("{case}.recorded")), (messages, messages), "all are in the record");
        }
    }
    let workers = figure(&format!("silence.{transport}.workers"));
    let process = figure(&format!("silence.{transport}.process"));
    assert!(workers.0 <= process.0 && workers.1 <= process.1);
}

#[test]
fn every_datagram_comes_back() {
    every_message_comes_back(EchoTransport::Udp, EchoWait::Spin);
}

#[test]
fn every_datagram_comes_back_to_a_client_that_sleeps() {
    every_message_comes_back(EchoTransport::Udp, EchoWait::Park);
}

#[test]
fn every_message_comes_back_over_tcp() {
    every_message_comes_back(EchoTransport::Tcp, EchoWait::Spin);
}

#[test]
fn every_message_comes_back_over_tcp_to_a_client_that_sleeps() {
    every_message_comes_back(EchoTransport::Tcp, EchoWait::Park);
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    type Change = fn(&mut EchoSettings);
    let table: [(Change, &str); 11] = [
        (|it| it.bytes = 0, "bytes is 0: it must be a multiple of 4"),
        (|it| it.bytes = 402, "bytes is 402"),
        (|it| it.bytes = 1404, "from 4 to 1400 (one datagram)"),
        (|it| it.intervals_ns = vec![1_000], "interval is 0.001 ms: it must be from 0.05 to 1000 ms"),
        (|it| it.intervals_ns = vec![1_000_500], "interval is 1.0005 ms: it must be"),
        (|it| it.intervals_ns.clear(), "must be named"),
        (|it| it.transports.clear(), "must be named"),
        (|it| it.rounds = 0, "rounds must be 1 or more"),
        (|it| it.seconds = f64::NAN, "seconds is NaN: it must be from 0.001 to 600"),
        (|it| it.client_core = Some(5_000), "core 5000 is not available to this process"),
        (|it| (it.client_core, it.server_core) = (Some(0), Some(0)), "core"),
    ];
    for (change, part) in table {
        let mut settings = tiny();
        change(&mut settings);
        let error = run(&settings, &mut Unwatched).unwrap_err();
        assert!(matches!(error, BenchError::Settings(_)) && error.to_string().contains(part), "{error}");
    }
}

#[test]
fn a_program_that_is_not_a_server_is_named() {
    if !has_two_cores() {
        return;
    }
    let silent = "read line; echo '{\"ready\":{\"port\":9,\"echoes\":0}}' >&2; \
                  echo '{\"failed\":\"no luck\"}' >&2; exec sleep 60";
    let table: [(&[&str], &str); 5] = [
        (&["sh", "-c", silent], "3 of 3 messages had no echo within 1 s; the server said: no luck"),
        (&[], "no program was named for the servers"),
        (&["./no-such-program"], "cannot start ./no-such-program: No such file"),
        (&["sh", "-c", "read line; exit 3"], "a server ended without a word (exit status: 3)"),
        (&["sh", "-c", "read line; echo no >&2"], "a server said: no"),
    ];
    for (server, part) in table {
        let server = server.iter().map(OsString::from).collect();
        let settings = EchoSettings { server, ..tiny() };
        let error = watched(move || run(&settings, &mut Unwatched)).unwrap_err().to_string();
        assert!(error.starts_with("udp.5000us.park.bare: ") && error.contains(part), "{error}");
    }
}

#[test]
fn a_stop_before_the_first_round_says_so() {
    if !has_two_cores() {
        return;
    }
    let error = watched(|| run(&tiny(), &mut StopsAfter::looks(0))).unwrap_err();
    assert!(matches!(error, BenchError::Stopped), "{error}");
}

/// Stops the bench in its second round.
#[derive(Default)]
struct StopsInSecondRound(bool);

impl BenchWatch for StopsInSecondRound {
    fn at(&mut self, _: usize, _: usize, next: &str) {
        self.0 = next.starts_with("round 2 of 2: udp.1000us.spin");
    }

    fn is_stopped(&self) -> bool {
        self.0
    }
}

#[test]
fn a_stop_keeps_whole_rounds() {
    if !has_two_cores() {
        return;
    }
    let settings =
        EchoSettings { transports: vec![EchoTransport::Udp], intervals_ns: vec![1_000_000], ..tiny() };
    let result = watched(move || run(&settings, &mut StopsInSecondRound::default())).expect("figures");
    assert!(result.notes.iter().any(|note| note == "stopped in round 2 of 2"), "{:?}", result.notes);
    assert!(result.figures.values().all(|figure| figure.runs == 1), "{:?}", result.figures);
    assert!(result.value("udp.1000us.park.ratio.p50").is_some());
}
