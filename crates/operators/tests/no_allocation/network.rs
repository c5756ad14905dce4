//! Samples over a network.

use super::*;

pub fn datagrams() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap().to_string();
    let mut steady = Steady::new::<Chunk<f32>>("datagrams", CHUNKS);
    let graph = &mut steady.graph;
    graph.add("chunks", NullSource::<f32>::new(Some(2 * CHUNKS as u64)));
    graph.add("send", UdpSink::<f32>::new(address, Some(SampleFormat::Ri16Le)).unwrap());
    let receive = UdpSource::<f32>::new("127.0.0.1:0", Some(SampleFormat::Ri16Le)).unwrap();
    graph.add("receive", receive.socket(socket).timeout(30_000_000_000));
    steady.connect(&[("chunks", "send"), ("receive", "watch")]);
    // Nothing holds the sender back: on a busy machine the socket's buffer overflows.
    steady.run_lossy();
}

/// One half of a graph sends, the other receives.
pub fn connection() {
    let listen = || TcpListener::bind("127.0.0.1:0").unwrap();
    let (from, to) = (listen(), listen());
    let peer = |listener: &TcpListener| TcpPeer::Connect(listener.local_addr().unwrap().to_string());
    let mut steady = Steady::new::<Chunk<f32>>("connection", CHUNKS);
    let graph = &mut steady.graph;
    graph.add("chunks", NullSource::<f32>::new(Some(2 * CHUNKS as u64)));
    graph.add("send", TcpSink::<f32>::new(peer(&from), None).unwrap().framing(Framing::Strict));
    graph.add("receive", TcpSource::<f32>::new(peer(&to), None).unwrap().framing(Framing::Strict));
    steady.connect(&[("chunks", "send"), ("receive", "watch")]);
    // The forwarding thread stays until everything is counted, because a thread that ends frees memory.
    let counted = Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut from, mut to) = (from.accept().unwrap().0, to.accept().unwrap().0);
            let mut bytes = vec![0; 64 << 10];
            while let Ok(count @ 1..) = from.read(&mut bytes) {
                to.write_all(&bytes[..count]).unwrap();
            }
            to.shutdown(Shutdown::Write).unwrap();
            counted.wait();
        });
        steady.run();
        counted.wait();
    });
}
