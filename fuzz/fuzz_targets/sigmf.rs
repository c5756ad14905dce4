//! The reader of SigMF metadata: whatever they say, the recording plays or there is an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onbeat::operators::SigmfSource;
use onbeat::testing::Trial;
use std::path::PathBuf;

/// A recording of a few samples whose metadata are what the fuzzer says.
struct Played {
    folder: PathBuf,
}

impl Played {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("onbeat-fuzz-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("x.sigmf-data"), [0u8; 64]).expect("a file");
        Played { folder }
    }

    fn source(&self, metadata: &[u8]) -> SigmfSource {
        let path = self.folder.join("x.sigmf-meta");
        std::fs::write(&path, metadata).expect("a file");
        SigmfSource::new(path)
    }
}

thread_local! {
    static PLAYED: Played = Played::new();
}

fuzz_target!(|bytes: &[u8]| {
    let source = PLAYED.with(|played| played.source(bytes));
    // The stop is for recordings whose rate is so low that they last for years.
    if let Err(text) = Trial::new(source).stop_after(1_000_000_000).try_run() {
        assert!(!text.is_empty() && !text.contains("panicked"), "{text}");
    }
});
