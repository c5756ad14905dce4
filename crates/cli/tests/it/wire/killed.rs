//! A process that is killed: what its sinks have taken is in their files, up to the last second.

use super::{Wire, edge, operator, until};
use onbeat::testing::free_address;
use rustix::process::Signal;
use std::fs;
use std::net::UdpSocket;

const SAMPLES: usize = 1000;

#[test]
fn files_have_what_came_before() {
    // Kind, parameters, file, its header, bytes per sample.
    let rows = [
        ("iq.sink.real", "path = \"killed\"\nformat = \"rf32_le\"", "killed.part", 0, 4),
        ("file.sink", "path = \"killed\"", "killed.part", 0, 4),
        ("wav.sink", "path = \"killed.wav\"", "killed.wav.part", 44, 2),
        ("sigmf.sink.real", "path = \"killed\"", "killed.sigmf-data.part", 0, 4),
    ];
    for (kind, parameters, file, header, size) in rows {
        let address = free_address();
        let source = operator("in", "udp.source", &format!("bind = \"{address}\"\nsample_rate = \"48 kHz\""));
        let sink = operator("file", kind, parameters);
        let mut wire = Wire::start(&(source + &sink + &edge("in", "file")));
        let sender = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        sender.connect(address).expect("an address");
        let path = wire.place.path("out").join(file);
        // A datagram that comes before the socket is there is refused; then there is silence.
        let has_sent = || sender.send(&[0; 4 * SAMPLES]).and_then(|_| sender.send(&[])).ok().map(drop);
        until("there is a socket", has_sent).expect("a socket");
        let has_data = || fs::metadata(&path).is_ok_and(|found| found.len() > header as u64).then_some(());
        until("the file has them", has_data).expect("data");
        let bytes = fs::metadata(&path).expect("a file").len() as usize - header;
        assert_eq!(bytes % (SAMPLES * size), 0, "{kind}: whole datagrams");
        wire.signal(Signal::KILL);
        wire.child.wait().expect("it has ended");
        let read = fs::read(&path).expect("a file");
        if kind == "wav.sink" {
            let told = u32::from_le_bytes(read[40..44].try_into().expect("four bytes"));
            assert_eq!(told as usize, bytes, "the header has the length");
        }
        if kind == "sigmf.sink.real" {
            let meta = fs::read_to_string(path.with_file_name("killed.sigmf-meta.part")).expect("metadata");
            let meta: serde_json::Value = serde_json::from_str(&meta).expect("JSON");
            assert_eq!(meta["global"]["core:datatype"], "rf32_le");
        }
    }
}
