//! Other programs in a chain.
#![forbid(unsafe_code)]

use num_complex::Complex;
use onbeat_operators::{Exec, ExecCommand, ExecSink, ExecSource, SampleFormat, registry};
use onbeat_runtime::testing::{Feed, Seen, Trial, cuts};
use onbeat_runtime::{ClockKind, Ending, OnError, Restart};
use std::fs;
use std::path::Path;
use std::process::Command;

const SECOND: u64 = 1_000_000_000;

fn command(words: &[&str]) -> ExecCommand {
    ExecCommand::new(words.iter().map(ToString::to_string).collect()).unwrap()
}

/// A script of the shell.
fn shell(script: &str) -> ExecCommand {
    command(&["sh", "-c", script])
}

fn exec(command: ExecCommand) -> Exec<f32> {
    Exec::new(command, None, None).unwrap()
}

fn ramp(samples: usize) -> Feed {
    Feed::samples((0..samples).map(|n| n as f32)).rate(48e3)
}

fn seen(exec: Exec<f32>, feed: Feed) -> Seen {
    Trial::new(exec).feed("in", feed).options(real).run()
}

fn failure(exec: Exec<f32>, feed: Feed) -> String {
    Trial::new(exec).feed("in", feed).options(real).failure()
}

fn real(options: &mut onbeat_runtime::Options) {
    options.clock = ClockKind::Real;
}

#[test]
fn cat_changes_nothing() {
    let made = cuts(|| Trial::new(exec(command(&["cat"]))).feed("in", ramp(2000).tag(7, "here", 1)));
    let expected: Vec<f32> = (0..2000).map(|n| n as f32).collect();
    assert_eq!((made.samples::<f32>("out"), made.rate_hz("out")), (expected, 48e3));
    assert_eq!(made.notes(), ["1 tags were not passed on: a program takes samples only"]);
    // The times of a sample are those of the same sample of the input.
    let made = seen(exec(command(&["cat"])), ramp(30_000).cut(&[480]));
    for piece in made.pieces("out") {
        let expected_ns = piece.start as f64 * 1e9 / 48e3;
        assert!((piece.time_ns as f64 - expected_ns).abs() <= 2.0, "{piece:?}");
    }
    let complex =
        Exec::<Complex<f32>>::new(command(&["cat"]), Some(SampleFormat::Ci8), Some(SampleFormat::Ci8));
    let feed = Feed::samples([Complex::new(0.5f32, -0.25); 1000]);
    let made = Trial::new(complex.unwrap()).feed("in", feed).run();
    assert_eq!(made.samples::<Complex<f32>>("out"), [Complex::new(0.5, -0.25); 1000]);
}

/// A program that reads all before it writes, one that writes before it reads, and one that says a lot.
#[test]
fn programs_may_buffer_as_they_like() {
    let count = 300_000;
    let expected: Vec<f32> = (0..count).map(|n| n as f32).collect();
    let folder = tempfile::tempdir().unwrap();
    let here = |script: &str| shell(script).folder(folder.path());
    let made = seen(exec(here("cat > all; cat all")), ramp(count));
    assert_eq!(made.samples::<f32>("out"), expected);
    let made = seen(exec(here("head -c 400000 /dev/zero; cat")), ramp(count));
    let samples = made.samples::<f32>("out");
    assert_eq!((samples.len(), &samples[100_000..]), (count + 100_000, &expected[..]));
    let made = seen(exec(here("head -c 3000000 /dev/zero | tr '\\0' x >&2; cat")), ramp(count));
    assert_eq!(made.samples::<f32>("out"), expected);
    assert!(made.notes()[0].starts_with("`sh` wrote to stderr, at last: xxx"), "{:?}", made.notes());
}

#[test]
fn formats_and_rates_are_those_that_are_said() {
    // Every second byte of 8-bit numbers would be noise; of unsigned ones this is the identity.
    let exec = Exec::<f32>::new(command(&["cat"]), Some(SampleFormat::Ri16Be), Some(SampleFormat::Ru8));
    let made = seen(exec.unwrap().sample_rate(96e3), Feed::samples([0.0f32; 1000]).rate(48e3));
    assert_eq!((made.samples::<f32>("out"), made.rate_hz("out")), (vec![-1.0; 2000], 96e3));
    let last = made.pieces("out").pop().unwrap();
    assert_eq!(last.time_ns, (last.start as f64 * 1e9 / 96e3).round() as u64);
    let said = Exec::<f32>::new(command(&["cat"]), Some(SampleFormat::Cu8), None).err().unwrap().to_string();
    assert!(said.contains("its samples are complex"), "{said}");
}

#[test]
#[allow(clippy::disallowed_macros, reason = "a test that is skipped says so")]
fn sox_in_a_chain_is_sox_on_a_file() {
    if Command::new("sox").arg("--version").output().is_err() {
        println!("skipped: sox is not installed");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let raw = ["-t", "raw", "-e", "floating-point", "-b", "32", "-c", "1", "-r"];
    let input: Vec<f32> = (0..60_000).map(|n| (n as f32 * n as f32 * 1e-6).sin() * 0.5).collect();
    let bytes: Vec<u8> = input.iter().flat_map(|x| x.to_le_bytes()).collect();
    fs::write(folder.path().join("in.raw"), bytes).unwrap();
    for (out_hz, effects) in [
        ("48000", &["lowpass", "3000"][..]),
        ("48000", &["reverse"]),
        ("48000", &["echo", "0.8", "0.9", "100", "0.3"]),
        ("16000", &[]),
        ("44100", &["highpass", "300"]),
    ] {
        let words = |from, to| {
            let ends = [&["sox", "-D"][..], &raw, &["48000", from], &raw, &[out_hz, to], effects];
            ends.concat().into_iter().map(str::to_string).collect::<Vec<_>>()
        };
        let alone = words("in.raw", "out.raw");
        let done = Command::new(&alone[0]).args(&alone[1..]).current_dir(folder.path()).status().unwrap();
        assert!(done.success());
        let bytes = fs::read(folder.path().join("out.raw")).unwrap();
        let expected: Vec<u32> = bytes.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
        let rate_hz = out_hz.parse().unwrap();
        let exec = exec(ExecCommand::new(words("-", "-")).unwrap()).sample_rate(rate_hz);
        let made = seen(exec, Feed::samples(input.clone()).rate(48e3).cut(&[1, 700, 4096]));
        let samples: Vec<u32> = made.samples::<f32>("out").iter().map(|x| x.to_bits()).collect();
        assert_eq!(samples.len(), expected.len(), "{effects:?}");
        assert!(samples == expected, "{effects:?}");
        assert_eq!(made.rate_hz("out"), rate_hz);
    }
}

#[test]
fn what_cannot_be_started_is_an_error_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    fs::write(at("text"), "no program").unwrap();
    for (program, expected) in [
        ("no-such-program-here".to_string(), "install it, or give its path"),
        (at("no"), "install it, or give its path"),
        (at("text"), "executable (`chmod +x`)"),
        (at(""), "executable (`chmod +x`)"),
    ] {
        let said = failure(exec(command(&[&program])), ramp(10));
        assert!(said.starts_with("cannot start: ") && said.contains(expected), "{program}: {said}");
        let operator: Box<dyn onbeat_runtime::Operator> = Box::new(exec(command(&[&program])));
        let checked = operator.check().unwrap_err().to_string();
        assert!(checked.contains(expected), "{program}: {checked}");
    }
    for parameters in ["command = []", "command = [\"\"]", "command = [\"cat\", \"\\u0000\"]"] {
        let said = registry().operator("exec", parameters).err().expect(parameters).to_string();
        assert!(said.contains("`command`"), "{said}");
    }
}

#[test]
fn a_program_that_fails_is_quoted() {
    for (script, expected) in [
        ("false", "`sh` failed with exit status 1"),
        ("echo one >&2; echo 'no such effect' >&2; exit 3", "exit status 3; it said: one | no such effect"),
        ("head -c 40000 > /dev/null; echo broken >&2; exit 2", "exit status 2; it said: broken"),
        ("cat > /dev/null; exit 7", "exit status 7"),
        ("kill -9 $$", "was ended by signal 9 (SIGKILL)"),
        ("head -c 4000; kill -SEGV $$", "was ended by signal 11 (SIGSEGV)"),
    ] {
        let said = failure(exec(shell(script)), ramp(100_000));
        assert!(said.contains(expected), "{script}: {said}");
    }
}

#[test]
fn a_program_may_end_early() {
    let made = seen(exec(command(&["head", "-c", "4000"])), ramp(1_000_000));
    assert_eq!(made.samples::<f32>("out").len(), 1000);
    assert!(made.notes()[0].contains("`head` ended before its input did"), "{:?}", made.notes());
    assert!(made.is_done() && made.losses().is_empty());
    let made = seen(exec(shell("cat > /dev/null")), ramp(1000));
    assert_eq!(made.notes(), ["`sh` sent no samples"]);
    // Also one that only closes its stdin.
    let made = seen(exec(shell("exec < /dev/null; printf abcdefgh")), ramp(1_000_000));
    assert_eq!(made.samples::<f32>("out").len(), 2);
}

#[test]
fn half_a_sample_is_lost_and_counted() {
    let made = seen(exec(command(&["head", "-c", "4003"])), ramp(2000));
    assert_eq!(made.samples::<f32>("out").len(), 1000);
    assert_eq!(made.losses(), [(3, "bytes", "the program's output ended in the middle of a sample")]);
}

/// The number that a script wrote to a file.
fn number_in(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_string()).filter(|text| !text.is_empty())
}

fn is_gone(pid: &str) -> bool {
    !Path::new("/proc").join(pid).exists()
}

#[test]
fn a_program_that_does_not_end_is_killed() {
    for (script, expected) in [
        ("echo $$ > pid; exec sleep 1000", "neither took nor sent samples for 1 s: it was killed"),
        ("echo $$ > pid; cat > /dev/null; exec sleep 1000", "did not end, and sent nothing, after its input"),
        ("echo $$ > pid; cat; exec >&-; exec sleep 1000", "did not end, and sent nothing, after its input"),
        ("echo $$ > pid; trap '' TERM; cat; while :; do sleep 0.01; done", "did not end"),
        ("echo $$ > pid; cat > /dev/null; sleep 5 &", "a program that it started keeps its stdout open"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let exec = exec(shell(script).folder(folder.path())).patience(SECOND);
        let said = failure(exec, ramp(200_000));
        assert!(said.contains(expected) && said.contains("raise `patience`"), "{script}: {said}");
        assert!(is_gone(&number_in(&folder.path().join("pid")).unwrap()), "{script}");
    }
}

#[test]
fn a_stop_ends_the_program() {
    // Endless output, silence, and one that ignores the end of its input.
    for (script, is_killed) in [
        ("echo $$ > pid; cat", false),
        ("echo $$ > pid; exec yes", true),
        ("echo $$ > pid; cat; exec sleep 1000", true),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let exec = exec(shell(script).folder(folder.path())).patience(if is_killed {
            SECOND / 5
        } else {
            20 * SECOND
        });
        let trial = Trial::new(exec).feed("in", ramp(1_000_000).paced());
        let seen = trial.options(real).stop_after(SECOND / 5).run();
        assert_eq!(seen.ending(), Some(Ending::Stopped));
        assert!(is_gone(&number_in(&folder.path().join("pid")).unwrap()), "{script}");
        let lost = seen.losses().iter().any(|(count, unit, _)| (*count, *unit) == (1, "programs"));
        assert_eq!(lost, is_killed, "{script}: {:?}", seen.losses());
    }
}

#[test]
fn a_failure_elsewhere_ends_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let exec = exec(shell("echo $$ > pid; echo x >&2; exec sleep 1000").folder(folder.path()));
    let said = failure(exec, ramp(100).then_fail("on purpose"));
    assert!(said.contains("on purpose"), "{said}");
    // It may have ended before it wrote its number.
    assert!(number_in(&folder.path().join("pid")).is_none_or(|pid| is_gone(&pid)));
}

#[test]
fn a_restart_starts_the_program_again() {
    let folder = tempfile::tempdir().unwrap();
    let script = "if [ -e once ]; then cat; else touch once; head -c 4000; exit 1; fi";
    let exec = exec(shell(script).folder(folder.path()));
    let restart = OnError::Restart(Restart { delay_ns: 1_000_000, ..Restart::default() });
    let made = Trial::new(exec).feed("in", ramp(50_000).cut(&[100])).on_error(restart).options(real).run();
    let samples = made.samples::<f32>("out");
    let lost: u64 = made.losses().iter().map(|(count, ..)| count).sum();
    assert_eq!(samples.len() as u64 + lost, 50_000, "{:?}", made.losses());
    assert!(lost > 0 && samples.last() == Some(&49_999.0), "{lost}");
    // After the loss, a sample has the time of its own place in the input.
    let last = made.pieces("out").pop().unwrap();
    let expected_ns = (last.start + lost) as f64 * 1e9 / 48e3;
    assert!((last.time_ns as f64 - expected_ns).abs() <= 2.0, "{last:?}");
}

#[test]
fn sources_and_sinks_are_programs_too() {
    let folder = tempfile::tempdir().unwrap();
    let sink = |script: &str| ExecSink::<f32>::new(shell(script).folder(folder.path()), None).unwrap();
    let source =
        |script: &str| ExecSource::<f32>::new(shell(script).folder(folder.path()), None, 10.0).unwrap();
    let run = |trial: Trial| trial.options(real).try_run();
    run(Trial::new(sink("cat > file; echo not for samples")).feed("in", ramp(100_000))).unwrap();
    let made = run(Trial::new(source("cat file"))).unwrap();
    assert_eq!(made.samples::<f32>("out"), (0..100_000).map(|n| n as f32).collect::<Vec<_>>());
    assert_eq!(made.rate_hz("out"), 10.0);
    let made = run(Trial::new(sink("head -c 8 > /dev/null")).feed("in", ramp(1_000_000))).unwrap();
    assert!(made.notes()[0].contains("ended before its input did"), "{:?}", made.notes());
    let made = run(Trial::new(source("printf abcde"))).unwrap();
    assert_eq!(made.losses()[0].0, 1);
    for (trial, expected) in [
        (Trial::new(source("printf abcd; echo no >&2; exit 4")), "exit status 4; it said: no"),
        (Trial::new(sink("echo no >&2; exit 5")).feed("in", ramp(100_000)), "exit status 5; it said: no"),
        (
            Trial::new(sink("exec sleep 1000").patience(SECOND / 5)).feed("in", ramp(100_000)),
            "neither took nor sent samples for 0.2 s",
        ),
        (Trial::new(source("exec >&-; exec sleep 1000").patience(SECOND / 5)), "did not end"),
    ] {
        let said = run(trial).map(|_| ()).unwrap_err();
        assert!(said.contains(expected), "{said}");
    }
    // A source may be silent; a stop ends it.
    let source = source("echo $$ > pid; exec sleep 1000").patience(SECOND / 5);
    let made = run(Trial::new(source).stop_after(SECOND / 2)).unwrap();
    assert_eq!(made.ending(), Some(Ending::Stopped));
    assert!(is_gone(&number_in(&folder.path().join("pid")).unwrap()));
    assert!(made.losses().is_empty(), "{:?}", made.losses());
}

#[test]
fn a_program_does_not_inherit_what_a_worker_has() {
    let folder = tempfile::tempdir().unwrap();
    let script = "cat; grep -E 'Cpus_allowed_list|SigBlk' /proc/self/status > s; cut -d' ' -f18,19,41 /proc/self/stat >> s";
    let exec = exec(shell(script).folder(folder.path()));
    let trial = Trial::new(exec).feed("in", ramp(10)).options(real).options(|options| {
        (options.cores, options.policy) = (vec![0], Some(onbeat_os::Policy::Fifo(1)));
    });
    trial.run();
    let said = fs::read_to_string(folder.path().join("s")).unwrap();
    // On the cores without a worker, if there are any.
    let all: Vec<usize> = onbeat_os::thread::cores().unwrap().iter().collect();
    let free = all.iter().copied().filter(|core| all.len() == 1 || *core != 0);
    let here = onbeat_os::CoreSet::from_cores(free).unwrap();
    assert!(said.contains(&format!("Cpus_allowed_list:\t{here}\n")), "{said}, and {here} here");
    assert!(said.contains("SigBlk:\t0000000000000000\n"), "{said}");
    // Priority and niceness of a usual program, and policy 0.
    assert!(said.ends_with("20 0 0\n"), "{said}");
}
