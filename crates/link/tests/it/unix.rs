//! Links over Unix sockets.

use crate::messages::{Zeros, chunks_arrive};
use crate::{consumer, producer, run_both, watchdog};
use onbeat_link::{LinkPeer, LinkSettings, LinkSink, LinkSource};
use onbeat_runtime::{Chunk, Context, Error, Graph, Input, Operator, Options, Output, Ports, Step};
use std::collections::VecDeque;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Settings of both ends: the producer calls a socket in this folder.
fn local_ends(name: &str, folder: &Path) -> (LinkSettings, LinkSettings) {
    let address = format!("unix:{}", folder.join("link.sock").display());
    let sink = LinkSettings::new(name, LinkPeer::Connect(address.clone()));
    (sink, LinkSettings::new(name, LinkPeer::Listen(address)))
}

#[test]
fn messages_arrive_and_the_socket_goes_away() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("link.sock");
    let (sink, source) = local_ends("numbers", folder.path());
    let (graph, found) = consumer::<u64>(source);
    let run = graph.start(&Options::default()).unwrap();
    let dog = watchdog();
    while !socket.exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let file = std::fs::symlink_metadata(&socket).unwrap();
    assert!(file.file_type().is_socket() && file.mode() & 0o777 == 0o600);
    let record = producer((0..5_000_u64).collect(), sink).run(&Options::default()).unwrap();
    let other = run.wait().unwrap();
    drop(dog);
    assert!(found.lock().unwrap().iter().copied().eq(0..5_000));
    let peer = record.links[0].peer.clone().unwrap();
    assert!(peer.contains(&format!("at process {}", std::process::id())), "{peer}");
    assert_eq!(other.links[0].messages, 5_000);
    // The door looks now and then whether anybody still listens.
    let begin = std::time::Instant::now();
    while socket.exists() && begin.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(!socket.exists());
}

#[test]
fn chunks_of_all_sizes_arrive() {
    for quantum in [256, 16 << 10, 1 << 20] {
        let folder = tempfile::tempdir().unwrap();
        let (sent, taken) = chunks_arrive(local_ends("chunks", folder.path()), quantum);
        assert_eq!((sent.links[0].not_copied, taken.links[0].not_copied), (30, 30));
        assert_eq!(sent.links[0].bytes, taken.links[0].bytes);
    }
}

#[test]
fn mistakes_are_said() {
    let folder = tempfile::tempdir().unwrap();
    let (mut sink, source) = local_ends("wrong", folder.path());
    // A file of this name is left alone.
    std::fs::write(folder.path().join("link.sock"), "mine").unwrap();
    let error = consumer::<u64>(source).0.run(&Options::default()).unwrap_err().to_string();
    assert!(
        error.contains("cannot listen on unix:") && error.contains("there is a file of this name"),
        "{error}"
    );
    assert_eq!(std::fs::read_to_string(folder.path().join("link.sock")).unwrap(), "mine");
    // Nobody listens.
    sink.peer = LinkPeer::Connect(format!("unix:{}", folder.path().join("none.sock").display()));
    sink.patience_ns = 50_000_000;
    let error = producer(vec![1_u64], sink).run(&Options::default()).unwrap_err().to_string();
    assert!(error.contains("cannot reach the `link.source` at unix:"), "{error}");
    let (sink, _) = local_ends("long", Path::new("/very/long").join("x".repeat(200)).as_path());
    let error = producer(vec![1_u64], sink).run(&Options::default()).unwrap_err().to_string();
    assert!(error.contains("the path of a socket has 1 to 107 bytes"), "{error}");
}

/// Keeps the last chunks for a while, and adds one to each sample when it lets go of them.
struct Hoards {
    input: Input<Chunk<f32>>,
    kept: VecDeque<Chunk<f32>>,
    found: Arc<Mutex<Vec<f32>>>,
}

const HOARD: usize = 12;

impl Hoards {
    fn let_go(&mut self, cx: &Context) -> Result<(), Error> {
        let Some(mut chunk) = self.kept.pop_front() else { return Ok(()) };
        chunk.edit(cx)?.iter_mut().for_each(|sample| *sample += 1.0);
        self.found.lock().unwrap().extend_from_slice(&chunk);
        Ok(())
    }
}

impl Operator for Hoards {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input).holds(HOARD + 1);
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(chunk) = self.input.pop(cx) {
            self.kept.push_back(chunk);
            if self.kept.len() > HOARD {
                self.let_go(cx)?;
            }
        } else if self.input.is_ended(cx) {
            while !self.kept.is_empty() {
                self.let_go(cx)?;
            }
            return Ok(Step::Done);
        }
        Ok(Step::Wait)
    }
}

/// An operator that keeps more chunks than the window has holds nobody up, and what it changes is its own.
#[test]
fn lent_chunks_can_be_kept_and_changed() {
    let folder = tempfile::tempdir().unwrap();
    let (mut sink, mut source) = local_ends("hoard", folder.path());
    (sink.window, source.window) = (4, 4);
    let (here, there) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
    let mut one = Graph::new("producer");
    let zeros = one.add("zeros", Zeros::new(100));
    let to = one.add("to", LinkSink::<Chunk<f32>>::new(sink));
    let kept = Arc::clone(&here);
    let end = one.sink("end", move |chunk: Chunk<f32>| {
        std::thread::sleep(Duration::from_micros(200));
        kept.lock().unwrap().extend_from_slice(&chunk);
    });
    one.connect(zeros, |s| &s.out, to, |s| &s.input).quantum(4096);
    one.connect(zeros, |s| &s.out, end, |s| &s.input).quantum(4096);
    let mut other = Graph::new("consumer");
    let from = other.add("from", LinkSource::<Chunk<f32>>::new(source));
    let hoards = Hoards { input: Input::default(), kept: VecDeque::new(), found: Arc::clone(&there) };
    let hoards = other.add("hoards", hoards);
    other.connect(from, |s| &s.out, hoards, |s| &s.input).quantum(4096);
    let (one, other) = run_both(one, other);
    let (one, other) = (one.unwrap(), other.unwrap());
    let (here, there) = (here.lock().unwrap(), there.lock().unwrap());
    assert!(!here.is_empty() && here.iter().map(|sample| sample + 1.0).eq(there.iter().copied()));
    // Some were lent, and the rest was sent: four at a time can be lent.
    let (sent, taken) = (&one.links[0], &other.links[0]);
    assert!((4..100).contains(&sent.not_copied), "{sent:?}");
    assert_eq!((sent.messages, taken.messages, sent.not_copied), (100, 100, taken.not_copied));
}

/// Passes each chunk on, then a new one from a store of its own, then the first one once more.
struct Thrice {
    input: Input<Chunk<f32>>,
    out: Output<Chunk<f32>>,
    next: VecDeque<Chunk<f32>>,
}

impl Operator for Thrice {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input).holds(3);
        p.output("out", &mut self.out);
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(chunk) = self.next.pop_front() {
            self.out.push(cx, chunk)?;
            return Ok(Step::Again);
        }
        let Some(mut own) = self.out.chunk(cx) else { return Ok(Step::Wait) };
        let Some(chunk) = self.input.pop(cx) else { return Ok(Step::Wait) };
        own.truncate(chunk.len());
        own.edit(cx)?.copy_from_slice(&chunk);
        self.next.extend([chunk.clone(), own, chunk]);
        Ok(Step::Again)
    }
}

#[test]
fn chunks_of_several_stores_and_the_same_one_twice_arrive() {
    let folder = tempfile::tempdir().unwrap();
    let (sink, source) = local_ends("stores", folder.path());
    let mut one = Graph::new("producer");
    let zeros = one.add("zeros", Zeros::new(200));
    let thrice = Thrice { input: Input::default(), out: Output::default(), next: VecDeque::new() };
    let thrice = one.add("thrice", thrice);
    let to = one.add("to", LinkSink::<Chunk<f32>>::new(sink));
    one.connect(zeros, |s| &s.out, thrice, |s| &s.input).quantum(2048);
    one.connect(thrice, |s| &s.out, to, |s| &s.input).quantum(4096);
    let found = Arc::new(Mutex::new(Vec::new()));
    let mut other = Graph::new("consumer");
    let from = other.add("from", LinkSource::<Chunk<f32>>::new(source));
    let kept = Arc::clone(&found);
    let end = other.sink("end", move |chunk: Chunk<f32>| kept.lock().unwrap().push(chunk[0]));
    other.connect(from, |s| &s.out, end, |s| &s.input).quantum(4096);
    let (one, other) = run_both(one, other);
    let (one, other) = (one.unwrap(), other.unwrap());
    let found = found.lock().unwrap();
    assert_eq!(found.len(), 600);
    assert!(found.chunks(3).all(|same| same[0] == same[1] && same[0] == same[2]));
    assert!(found.is_sorted());
    let (sent, taken) = (&one.links[0], &other.links[0]);
    assert!(sent.not_copied >= 200 && sent.not_copied == taken.not_copied, "{sent:?} {taken:?}");
}
