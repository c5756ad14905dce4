//! Arguments of `onbeat node` and `onbeat deploy`.

use std::path::PathBuf;

use clap::Args;

pub const NODE_EXAMPLES: &str = "\
EXAMPLES
  onbeat node                                           serve this machine's programs only
  onbeat node --listen 192.168.0.7:7400 --identity ids/radio
                                                        serve those whom its authority knows, encrypted
  onbeat node --listen 192.168.0.7:7400 --insecure      serve a network in which all are trusted
  onbeat node --folder /srv/radio                       read and write files there";

pub const IDENTITY_EXAMPLES: &str = "\
EXAMPLES
  onbeat identity radio desk deploy                     make an authority, and identities of three nodes
  onbeat identity roof --folder /root/ids --days 90     make one more, for three months";

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
    /// Folder with authority.pem, certificate.pem and key.pem of this node. Everything is encrypted, and both
    /// sides prove their names
    #[arg(long, value_name = "DIR", conflicts_with = "insecure")]
    pub identity: Option<PathBuf>,
    /// Name of a caller that may run pipelines here, as in its certificate; repeatable
    #[arg(long, value_name = "NAME", default_value = "deploy")]
    pub allow: Vec<String>,
    /// Serve metrics of all parts at this address, as of `onbeat run --metrics`; each has the label `part`
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<String>,
    /// Listen to other machines too, without an identity. Every program that reaches the port can run
    /// pipelines here, and read and write files as this user; nothing is encrypted
    #[arg(long)]
    pub insecure: bool,
}

#[derive(Debug, Args)]
pub struct DeployArguments {
    /// Pipeline file, in TOML
    pub pipeline: PathBuf,
    /// Deployment file, in TOML: which operator runs on which node
    pub hosts: PathBuf,
    /// Folder with authority.pem, certificate.pem and key.pem of the caller, whom the nodes must allow
    #[arg(long, value_name = "DIR")]
    pub identity: Option<PathBuf>,
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

#[derive(Debug, Args)]
pub struct IdentityArguments {
    /// Names of nodes, as in the deployment file, and of callers: `onbeat deploy` is `deploy`
    #[arg(required = true)]
    pub names: Vec<String>,
    /// Folder for all identities; its folder `authority` is made the first time
    #[arg(long, value_name = "DIR", default_value = "identities")]
    pub folder: PathBuf,
    /// How long the certificates are valid, in days
    #[arg(long, value_name = "DAYS", default_value_t = 365, value_parser = clap::value_parser!(i32).range(1..=3650))]
    pub days: i32,
}
