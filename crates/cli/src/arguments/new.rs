//! Arguments of `onbeat new`.

use clap::Args;
use std::path::PathBuf;

pub const EXAMPLES: &str = "\
EXAMPLES
  onbeat new receiver                                   make a crate in the folder `receiver`
  cd receiver && cargo test                             build it, and run its tests
  cargo run --release -- run pipeline.toml --top        run its pipeline with its operator";

#[derive(Debug, Args)]
pub struct NewArguments {
    /// Folder to make; its last part is the name of the crate
    #[arg(value_name = "PATH")]
    pub path: PathBuf,
    /// Name of the crate, if it is not that of the folder
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Folder with the source code of onbeat [default: the one that this program was built from]
    #[arg(long, value_name = "FOLDER")]
    pub source: Option<PathBuf>,
}
