//! Arguments of `onbeat node` and `onbeat deploy`.

use std::path::PathBuf;

use clap::Args;

pub const NODE_EXAMPLES: &str = "\
EXAMPLES
  onbeat node                                           serve this machine's programs only
  onbeat node --listen 192.168.0.7:7400 --insecure      serve a network in which all are trusted
  onbeat node --folder /srv/radio                       read and write files there";

pub const DEPLOY_EXAMPLES: &str = "\
EXAMPLES
  onbeat deploy fm.toml hosts.toml                      run a pipeline on the nodes of hosts.toml
  onbeat deploy fm.toml hosts.toml --set tune.shift=\"60 kHz\"
                                                        run it with a changed parameter
  onbeat deploy fm.toml hosts.toml --print              print what each node would run";

#[derive(Debug, Args)]
pub struct NodeArguments {
    /// Address and port to listen at for `onbeat deploy`; links use the next port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7400")]
    pub listen: String,
    /// Folder of the files that pipelines read and write here [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// Listen to other machines too. Every program that reaches the port can run pipelines here, and read and
    /// write files as this user; nothing is encrypted
    #[arg(long)]
    pub insecure: bool,
}

#[derive(Debug, Args)]
pub struct DeployArguments {
    /// Pipeline file, in TOML
    pub pipeline: PathBuf,
    /// Deployment file, in TOML: which operator runs on which node
    pub hosts: PathBuf,
    /// Override a value of the pipeline: `operator.key=value`, `output=DIR`; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Print the pipeline of each node, and run nothing
    #[arg(long)]
    pub print: bool,
    /// Folder for the records of all nodes [default: `output` of the pipeline]
    #[arg(long, value_name = "DIR")]
    pub records: Option<PathBuf>,
    /// Print no tables; errors are still printed
    #[arg(long, short)]
    pub quiet: bool,
}
