//! Hostile data: things that are not files, files that are truncated or contradict themselves, and peers that
//! go away. The answer to each names it and has status 1, and nothing half written is left.

use super::harness::{Answer, Place};
use onbeat::operators::registry;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

/// All kinds that read a file, with their other required parameters.
fn readers() -> Vec<(String, &'static str)> {
    let registry = registry();
    let reads = |kind: &&onbeat::Kind| {
        let schema = serde_json::to_value(kind.schema()).expect("a schema");
        kind.ports().0.is_empty() && schema["properties"].get("path").is_some()
    };
    let with = |kind: &onbeat::Kind| (kind.name().to_string(), needed(kind.name()));
    let readers: Vec<_> = registry.kinds().filter(reads).map(with).collect();
    assert!(readers.len() >= 8, "{readers:?}");
    readers
}

fn needed(kind: &str) -> &'static str {
    match kind {
        "iq.source" => "format = \"cu8\"\nsample_rate = 1000",
        "iq.source.real" => "format = \"ri16_le\"\nsample_rate = 1000",
        "csv.source" => "columns = [\"x\"]",
        "csv.source.value" => "columns = [\"x\"]\ntime = \"t\"",
        _ => "",
    }
}

/// Runs a pipeline that copies the data of a source; `path` is a string in TOML.
fn copy(place: &Place, command: &str, kind: &str, path: &str, more: &str) -> Answer {
    let registry = registry();
    let (_, outputs) = registry.get(kind).expect("a kind").ports();
    let sink = match outputs[0].message.as_str() {
        "Chunk<f32>" => "file.sink",
        "Chunk<Complex<f32>>" => "file.sink.complex",
        "Chunk<u8>" => "npy.sink.bytes",
        "f64" => "csv.sink.value",
        "Frame" => "mode_s.null",
        _ => "text.sink",
    };
    let file = match sink {
        "csv.sink.value" => "path = \"end\"\ncolumns = [\"x\"]",
        "mode_s.null" => "",
        _ => "path = \"end\"",
    };
    let text = format!(
        "[[operator]]\nname = \"in\"\nkind = \"{kind}\"\npath = {path}\n{more}\n\
         [[operator]]\nname = \"end\"\nkind = \"{sink}\"\n{file}\n\
         [[edge]]\nfrom = \"in\"\nto = \"end\"\n"
    );
    fs::write(place.path("data.toml"), text).expect("a file");
    let pace: &[&str] = if command == "run" { &["--pace", "fast"] } else { &[] };
    place.onbeat(&[&[command, "data.toml"], pace].concat())
}

/// Checks that the command failed with a short message and left no files.
fn refused(place: &Place, answer: &Answer, expected: &str) -> Result<(), String> {
    let short = answer.stderr.len() < 1_000 && !answer.stderr.contains(['\0', '\u{1b}']);
    let [end, part] = ["end", "end.part"].map(|name| place.path("out").join(name));
    // What came before the failure is kept under its temporary name; nothing else is.
    let left = end.exists() || part.metadata().is_ok_and(|found| found.len() == 0);
    let _none = fs::remove_file(part);
    if answer.status == Some(1)
        && answer.stderr.contains("operator `in`")
        && answer.stderr.contains(expected)
        && short
        && !left
    {
        return Ok(());
    }
    let said: String = answer.stderr.chars().take(500).collect();
    Err(format!("{:?}, left: {left}: {said}", answer.status))
}

#[test]
fn what_is_no_file_is_no_data() {
    let place = Place::new();
    place.fifo("pipe");
    fs::create_dir(place.path("folder")).expect("a folder");
    symlink("loop2", place.path("loop")).expect("a link");
    symlink("loop", place.path("loop2")).expect("a link");
    symlink("/dev/zero", place.path("device")).expect("a link");
    fs::write(place.path("file"), "").expect("a file");
    let _socket = UnixListener::bind(place.path("socket")).expect("a socket");
    for name in ["pipe", "folder", "loop", "device", "socket"] {
        // A recording is two files.
        symlink(name, place.path(&format!("{name}.sigmf-meta"))).expect("a link");
    }
    let mut wrong = Vec::new();
    for (kind, more) in readers() {
        for (path, expected) in [
            ("no", "No such file"),
            ("file/in", "Not a directory"),
            ("pipe", "it is a pipe"),
            ("folder", "it is a folder"),
            ("device", "it is a device"),
            ("socket", "it is a socket"),
            ("loop", "Too many levels of symbolic links"),
            ("a\\u0000b", "NUL"),
            ("", ""),
        ] {
            // Samples and tables play from pipes.
            if path == "pipe" && ["iq.", "wav.", "csv.", "y4m."].iter().any(|begin| kind.starts_with(begin)) {
                continue;
            }
            for command in ["check", "run"] {
                let answer = copy(&place, command, &kind, &format!("\"{path}\""), more);
                if let Err(said) = refused(&place, &answer, expected) {
                    wrong.push(format!("{command}, {kind} of \"{path}\": {said}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the metadata of a recording with additions.
fn meta(global: &str, rest: &str) -> Vec<u8> {
    let rate = if global.contains("core:sample_rate") { "" } else { "\"core:sample_rate\": 1000," };
    format!(
        "{{\"global\": {{\"core:version\": \"1.2.0\", {rate} \"core:datatype\": \"ci8\"{global}}}{rest}}}"
    )
    .into()
}

/// Returns a WAV file with `says` bytes of samples in its header, and `has` in fact.
fn wav(rate_hz: u32, says: u32, has: usize) -> Vec<u8> {
    let mut bytes = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0".to_vec();
    bytes.extend(rate_hz.to_le_bytes());
    bytes.extend(rate_hz.wrapping_mul(2).to_le_bytes());
    bytes.extend(*b"\x02\0\x10\0data");
    bytes.extend(says.to_le_bytes());
    bytes.resize(bytes.len() + has, 0);
    bytes
}

fn npy(descr: &str, shape: &str, has: usize) -> Vec<u8> {
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\0".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.bytes());
    bytes.resize(bytes.len() + has, 0);
    bytes
}

/// Title, kind of the source, content of its file, part of the message.
type Case = (&'static str, &'static str, Vec<u8>, &'static str);

/// Hostile files of samples and lines.
fn hostile_data() -> Vec<Case> {
    let digits = "9".repeat(300);
    vec![
        ("nothing", "iq.source", vec![], "is empty"),
        ("half a sample", "iq.source", vec![0; 7], "not a whole number of samples"),
        ("half a real sample", "iq.source.real", vec![0; 3], "not a whole number of samples"),
        ("nothing", "wav.source", vec![], "its WAV header cannot be read"),
        ("NULs", "wav.source", vec![0; 4096], "it is not a WAV file"),
        (
            "a header and no more",
            "wav.source",
            b"RIFF\xff\xff\xff\xffWAVE".to_vec(),
            "there is no `data` chunk",
        ),
        ("a rate of 0", "wav.source", wav(0, 98, 98), "its sample rate is 0"),
        ("nothing", "npy.source", vec![], "its header cannot be read"),
        ("NULs", "npy.source", vec![0; 4096], "not an NPY file"),
        ("a truncated file", "npy.source", npy("<f4", "(9,)", 35), "it is truncated"),
        ("a huge shape", "npy.source", npy("<f4", "(4294967295, 4294967295, 4294967295)", 8), "too large"),
        (
            "a shape of 300 digits",
            "npy.source",
            npy("<f4", &format!("({digits},)"), 8),
            "its header cannot be parsed near",
        ),
        ("another type", "npy.source.complex", npy("<f4", "(2,)", 8), "play it with `npy.source`"),
        ("no number", "npy.source", npy("|O", "(2,)", 8), "not supported"),
        ("nothing", "csv.source", vec![], "it is empty: there are no rows"),
        ("NULs", "csv.source", vec![0; 4096], "there is no column `x`"),
        ("unequal rows", "csv.source", b"x,y\n1,2\n3\n".to_vec(), "line 3: it has 1 fields"),
        ("a quote without end", "csv.source", b"x\n\"1\n2\n".to_vec(), "never closed"),
        ("times that go back", "csv.source.value", b"t,x\n2,0\n1,0\n".to_vec(), "line 3: its time is 1 s"),
        ("nothing", "y4m.source", vec![], "it is empty or was cut off"),
        ("NULs", "y4m.source", vec![0; 8192], "is longer than 4096 bytes"),
        ("16 bits", "y4m.source", b"YUV4MPEG2 W1 H1 Cmono16\n".to_vec(), "more than 8 bits"),
        ("a huge frame", "y4m.source", b"YUV4MPEG2 W65535 H65535\nFRAME\n".to_vec(), "no whole frame"),
        ("nothing", "png.source", vec![], "it is not a PNG file"),
        ("NULs", "png.source", vec![0; 4096], "it is not a PNG file"),
        ("no text", "text.source", vec![b'a', b'\n', 0xff], "line 2 is not valid UTF-8"),
        ("a line without end", "text.source", vec![b'x'; 2 << 20], "longer than 1 MiB"),
    ]
}

/// Files that are odd and play: what is odd is noted.
fn odd_data() -> Vec<Case> {
    vec![
        ("a truncated file", "wav.source", wav(8000, 100, 98), "it was cut off"),
        ("half a sample", "wav.source", wav(8000, 99, 99), "the last 1 bytes of its samples"),
        ("a length beyond", "wav.source", wav(8000, u32::MAX - 1, 98), "it was cut off"),
        ("no length", "wav.source", wav(8000, u32::MAX, 98), "does not say how long it is"),
        ("too much", "npy.source", npy("<f4", "(9,)", 37), "1 bytes after the array were not played"),
        (
            "a capture beyond",
            "sigmf.source",
            meta("", ", \"captures\": [{\"core:sample_start\": 18446744073709551615}]"),
            "the metadata contradict the data",
        ),
        (
            "an annotation beyond",
            "sigmf.source",
            meta(
                "",
                ", \"annotations\": [{\"core:sample_start\": 1, \"core:sample_count\": 18446744073709551615}]",
            ),
            "the metadata contradict the data",
        ),
    ]
}

#[test]
fn odd_data_play_with_a_note() {
    let place = Place::new();
    fs::write(place.path("in.sigmf-data"), [0; 64]).expect("a file");
    for (title, kind, bytes, expected) in odd_data() {
        let name = if kind.starts_with("sigmf") { "in.sigmf-meta" } else { "in" };
        fs::write(place.path(name), bytes).expect("a file");
        let answer = copy(&place, "run", kind, "\"in\"", needed(kind));
        assert_eq!(answer.status, Some(0), "{title}: {answer:?}");
        assert!(answer.stdout.contains(expected), "{title}: {answer:?}");
    }
}

/// Hostile metadata of a recording whose data are good.
fn hostile_metadata() -> Vec<Case> {
    let digits = "9".repeat(300);
    let deep = "[".repeat(100_000);
    vec![
        ("nothing", "sigmf.source", vec![], "is not SigMF metadata"),
        ("NULs", "sigmf.source", vec![0; 4096], "is not SigMF metadata"),
        ("no text", "sigmf.source", vec![0xff, 0xfe], "valid UTF-8"),
        ("deep nesting", "sigmf.source", deep.into_bytes(), "is not SigMF metadata"),
        (
            "deep nesting inside",
            "sigmf.source",
            meta(&format!(", \"x\": {}", "[".repeat(50_000)), ""),
            "is not SigMF metadata",
        ),
        ("half of it", "sigmf.source", b"{\"global\": {\"core:vers".to_vec(), "EOF while parsing"),
        ("a rate of 0", "sigmf.source", meta(", \"core:sample_rate\": 0", ""), "`core:sample_rate` is 0"),
        ("a rate beyond", "sigmf.source", meta(", \"core:sample_rate\": 1e999", ""), "out of range"),
        (
            "a rate that is none",
            "sigmf.source",
            meta(", \"core:sample_rate\": NaN", ""),
            "is not SigMF metadata",
        ),
        (
            "channels of 300 digits",
            "sigmf.source",
            meta(&format!(", \"core:num_channels\": {digits}"), ""),
            "is not SigMF metadata",
        ),
        (
            "another checksum",
            "sigmf.source",
            meta(", \"core:sha512\": \"00\"", ""),
            "do not match their checksum",
        ),
        ("another type", "sigmf.source.real", meta("", ""), "its samples are complex"),
    ]
}

#[test]
fn hostile_data_are_refused() {
    let place = Place::new();
    fs::write(place.path("in.sigmf-data"), [0; 64]).expect("a file");
    let mut wrong = Vec::new();
    for (title, kind, bytes, expected) in hostile_data().into_iter().chain(hostile_metadata()) {
        let name = if kind.starts_with("sigmf") { "in.sigmf-meta" } else { "in" };
        fs::write(place.path(name), bytes).expect("a file");
        let answer = copy(&place, "run", kind, "\"in\"", needed(kind));
        if let Err(said) = refused(&place, &answer, expected) {
            wrong.push(format!("{kind} of {title}: {said}"));
        }
    }
    // Good metadata whose data are odd or missing.
    fs::write(place.path("in.sigmf-meta"), meta("", "")).expect("a file");
    for (data, expected) in [(Some(0), "is empty"), (None, "No such file")] {
        match data {
            Some(bytes) => fs::write(place.path("in.sigmf-data"), vec![0; bytes]).expect("a file"),
            None => fs::remove_file(place.path("in.sigmf-data")).expect("a file"),
        }
        let answer = copy(&place, "run", "sigmf.source", "\"in\"", "");
        if let Err(said) = refused(&place, &answer, expected) {
            wrong.push(format!("data of {data:?} bytes: {said}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn bad_samples_are_counted() {
    let place = Place::new();
    let samples = [0.5, f32::NAN, 1.0, f32::NEG_INFINITY, f32::INFINITY, 0.0];
    let bytes: Vec<u8> = samples.iter().flat_map(|x| x.to_le_bytes()).collect();
    fs::write(place.path("in"), bytes).expect("a file");
    let more = "format = \"rf32_le\"\nsample_rate = 1000";
    let answer = copy(&place, "run", "iq.source.real", "\"in\"", more);
    assert_eq!(answer.status, Some(0), "{answer:?}");
    assert!(answer.stdout.contains("3 numbers of in were not finite"), "{}", answer.stdout);
}

/// Runs one end of a connection; `peer` handles the other end.
fn with_peer(place: &Place, pipeline: &str, peer: impl FnOnce(TcpStream) + Send) -> Answer {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    fs::write(place.path("net.toml"), pipeline.replace("ADDRESS", &address)).expect("a file");
    std::thread::scope(|scope| {
        scope.spawn(|| peer(listener.accept().expect("a call").0));
        place.onbeat(&["run", "net.toml"])
    })
}

#[test]
fn a_peer_that_vanishes_is_an_error() {
    let source = |framing: &str| {
        format!(
            "[[operator]]\nname = \"in\"\nkind = \"tcp.source\"\nconnect = \"ADDRESS\"\nframing = \"{framing}\"\n\
             [[operator]]\nname = \"end\"\nkind = \"file.sink\"\npath = \"end\"\n\
             [[edge]]\nfrom = \"in\"\nto = \"end\"\n"
        )
    };
    let place = Place::new();
    // A frame of 1000 bytes of which 10 come.
    let half = |mut peer: TcpStream| {
        let _ = peer.write_all(&[&1000u32.to_le_bytes()[..], &[0; 10]].concat());
    };
    let answer = with_peer(&place, &source("strict"), half);
    assert_eq!(answer.status, Some(1), "{answer:?}");
    assert!(answer.stderr.contains("closed the connection in the middle of the stream"), "{answer:?}");
    // Two samples came, and are kept.
    assert_eq!(fs::read(place.path("out/end.part")).expect("a file").len(), 8);
    fs::remove_file(place.path("out/end.part")).expect("a file");
    // Without frames that is the end, and the bytes left over are lost.
    let answer = with_peer(&place, &source("raw"), |mut peer| drop(peer.write_all(&[0; 11])));
    assert_eq!(answer.status, Some(3), "{answer:?}");
    assert!(answer.stdout.contains("lost: in: 3 bytes: the peer closed"), "{}", answer.stdout);
    assert_eq!(fs::read(place.path("out/end")).expect("a file").len(), 8);
    fs::remove_file(place.path("out/end")).expect("a file");
    // The same for a sender.
    let sink = "[[operator]]\nname = \"from\"\nkind = \"null.source\"\n\
                [[operator]]\nname = \"in\"\nkind = \"tcp.sink\"\nconnect = \"ADDRESS\"\nframing = \"strict\"\n\
                [[edge]]\nfrom = \"from\"\nto = \"in\"\n";
    let answer = with_peer(&place, sink, |mut peer| drop(peer.read_exact(&mut [0; 10_000])));
    refused(&place, &answer, "closed the connection before the end").unwrap_or_else(|said| panic!("{said}"));
}
