//! CSV files as streams and values.
#![forbid(unsafe_code)]

mod files;
mod hostile;
mod sinks;
mod values;

use onbeat_operators::registry;
use onbeat_runtime::Pace;
use onbeat_runtime::testing::{Seen, Trial};
use std::path::{Path, PathBuf};

/// A folder with one file.
struct Csv {
    folder: tempfile::TempDir,
}

impl Csv {
    fn new(text: impl AsRef<[u8]>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("in.csv"), text).unwrap();
        Csv { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn trial(&self, kind: &str, parameters: &str) -> Trial {
        trial(kind, &self.path("in.csv"), parameters).options(|options| options.pace = Some(Pace::Fast))
    }

    fn play(&self, parameters: &str) -> Seen {
        self.trial("csv.source", parameters).run()
    }

    fn refused(&self, parameters: &str) -> String {
        self.trial("csv.source", parameters).failure()
    }
}

fn trial(kind: &str, path: &Path, parameters: &str) -> Trial {
    Trial::kind(&registry(), kind, &format!("path = {path:?}\n{parameters}"))
}

fn bits(samples: &[f32]) -> Vec<u32> {
    samples.iter().map(|x| x.to_bits()).collect()
}
