//! The reader of SigMF metadata: for any metadata, the recording plays or there is an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onbeat::operators::SigmfSource;
use onbeat::testing::Trial;
use onbeat::{Error, Operator};
use std::path::PathBuf;

/// Recording of a few samples, with metadata from the fuzzer.
struct Recording {
    path: PathBuf,
}

impl Recording {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("onbeat-fuzz-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("x.sigmf-data"), [0u8; 64]).expect("a file");
        Recording { path: folder.join("x.sigmf-meta") }
    }
}

thread_local! {
    static RECORDING: Recording = Recording::new();
}

/// One of this many playable recordings is played: a run takes a thousand times longer than a check.
const PLAYED: usize = 16;

fuzz_target!(|bytes: &[u8]| {
    let path = RECORDING.with(|recording| recording.path.clone());
    std::fs::write(&path, bytes).expect("a file");
    let (complex, real) = (SigmfSource::new(&path), SigmfSource::real(&path));
    // If there are several channels, any of them could be wrong.
    let second = SigmfSource::new(&path).channel(1);
    let sum = bytes.iter().fold(0usize, |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    judge(complex.check(), complex, sum);
    judge(real.check(), real, sum);
    judge(second.check(), second, sum);
});

fn judge(checked: Result<(), Error>, source: impl Operator, sum: usize) {
    match checked {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(()) if sum.is_multiple_of(PLAYED) => {
            // The time limit is for recordings whose rate is so low that they last for years.
            let played = Trial::new(source).stop_after(1_000_000_000).try_run();
            assert!(played.is_ok(), "`check` accepts it, but it cannot be played: {:?}", played.err());
        }
        Ok(()) => {}
    }
}
