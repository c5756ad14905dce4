//! Arguments of `onbeat man`.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct ManArguments {
    /// Write the manual pages and the completions of bash, zsh and fish into the folders below DIR/share in
    /// which these programs look, and print the files' names. DIR is usually /usr/local or ~/.local
    #[arg(long, value_name = "DIR")]
    pub prefix: Option<PathBuf>,
}
