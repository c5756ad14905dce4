//! The deployment file: which operator runs on which node.

use crate::settings::is_address;
use onbeat_runtime::{Error, Pipeline};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// A deployment file.
///
/// ```
/// let hosts = onbeat_link::deployment::Hosts::parse(r#"
///     [node.radio]
///     endpoint = "192.168.0.7:7400"
///     operators = ["iq", "tune"]
///
///     [node.desk]
///     endpoint = "192.168.0.8:7400"
///     rest = true
/// "#)?;
/// assert_eq!(hosts.node["radio"].links(), "192.168.0.7:7401");
/// # Ok::<(), onbeat_runtime::Error>(())
/// ```
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hosts {
    /// The nodes, by name.
    pub node: BTreeMap<String, HostNode>,
    /// Settings of all links: `window`, `on_cut`, `patience`, `hold`, `heartbeat`, `insecure`.
    #[serde(default)]
    pub link: toml::Table,
    /// Whether the nodes have identities: each end of a link then says which node the other one must be.
    #[serde(skip)]
    pub is_proved: bool,
}

/// One node.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostNode {
    /// Address and port of its `onbeat node`.
    pub endpoint: String,
    /// Address and port at which its links are called; without it, the port after that of `endpoint`.
    #[serde(default)]
    links: Option<String>,
    /// Names of the operators that run there.
    #[serde(default)]
    pub operators: Vec<String>,
    /// Whether all operators that no node names run there.
    #[serde(default)]
    pub rest: bool,
    /// Keys of the pipeline that have other values there: `scheduler`, `cores`, `policy`, `output`.
    #[serde(default)]
    pub options: toml::Table,
}

impl HostNode {
    /// Address and port at which its links are called.
    pub fn links(&self) -> String {
        if let Some(links) = &self.links {
            return links.clone();
        }
        let (host, port) = self.endpoint.rsplit_once(':').unwrap_or((&self.endpoint, ""));
        format!("{host}:{}", port.parse::<u16>().unwrap_or(0).saturating_add(1))
    }
}

/// Whether a text can name a node: 1 to 50 letters, digits, `-` and `_`.
pub fn is_node_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    (1..=50).contains(&name.len()) && name.chars().all(is_allowed)
}

/// What of a pipeline `options` cannot replace: it is the same for all nodes.
const SHARED_KEYS: [&str; 5] = ["name", "operator", "edge", "path", "subgraph"];

/// Keys of the table `link`.
const LINK_KEYS: [&str; 6] = ["window", "on_cut", "patience", "hold", "heartbeat", "insecure"];

impl Hosts {
    /// Reads a deployment file.
    ///
    /// # Errors
    /// If it is not TOML, or a key or an address is wrong.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let hosts: Hosts = toml::from_str(text).map_err(|error| Error::new(error.to_string().trim_end()))?;
        if hosts.node.is_empty() {
            return Err(Error::new("the file names no node: write a table [node.NAME] for each"));
        }
        if hosts.node.values().filter(|node| node.rest).count() > 1 {
            return Err(Error::new("several nodes have `rest = true`: only one can have the rest"));
        }
        if let Some(key) = hosts.link.keys().find(|key| !LINK_KEYS.contains(&key.as_str())) {
            let known = LINK_KEYS.join(", ");
            return Err(Error::new(format!("[link] has the unknown key `{key}`: there are {known}")));
        }
        for (name, node) in &hosts.node {
            if !is_node_name(name) {
                let text = format!("{name:?} cannot name a node: use 1 to 50 letters, digits, `-` and `_`");
                return Err(Error::new(text));
            }
            let own = |key: &str| Pipeline::KEYS.contains(&key) && !SHARED_KEYS.contains(&key);
            if let Some(key) = node.options.keys().find(|key| !own(key)) {
                let all =
                    Pipeline::KEYS.iter().copied().filter(|key| own(key)).collect::<Vec<_>>().join(", ");
                return Err(Error::new(format!(
                    "`options` of node `{name}` has the key `{key}`: it can have {all}"
                )));
            }
            for (key, address) in [("endpoint", &node.endpoint), ("links", &node.links())] {
                if !is_address(address, 1) {
                    return Err(Error::new(format!(
                        "`{key}` of node `{name}` is `{address}`: it must be a host and a port, such as \
                         `192.168.0.7:7400`"
                    )));
                }
            }
        }
        hosts.check_ports()?;
        Ok(hosts)
    }

    /// Checks that no two listen at one address. `onbeat node` takes two ports: the second one is for links.
    fn check_ports(&self) -> Result<(), Error> {
        let mut taken: BTreeMap<String, String> = BTreeMap::new();
        for (name, node) in &self.node {
            let uses = [(node.endpoint.clone(), "the endpoint of"), (node.links(), "for the links of")];
            for (address, what) in uses {
                let what = format!("{what} node `{name}`");
                if let Some(other) = taken.insert(address.clone(), what.clone()) {
                    return Err(Error::new(format!(
                        "{address} is {other}, and it is {what}: a node takes the port of its endpoint and the next one, \
                         unless it has `links`; choose other ports"
                    )));
                }
            }
        }
        Ok(())
    }

    /// Returns the node of each operator.
    ///
    /// # Errors
    /// If an operator has none or two, or a name is not in the pipeline.
    pub fn places(&self, operators: &[String]) -> Result<BTreeMap<String, String>, Error> {
        let known: BTreeSet<&String> = operators.iter().collect();
        let mut places: BTreeMap<String, String> = BTreeMap::new();
        for (name, node) in &self.node {
            for operator in &node.operators {
                if !known.contains(operator) {
                    return Err(Error::new(format!(
                        "node `{name}` has the operator `{operator}`, which the pipeline does not have: it has {}",
                        operators.join(", ")
                    )));
                }
                if let Some(other) = places.insert(operator.clone(), name.clone()) {
                    return Err(Error::new(format!(
                        "operator `{operator}` is on two nodes, `{other}` and `{name}`: it can be on one"
                    )));
                }
            }
        }
        let rest = self.node.iter().find(|(_, node)| node.rest).map(|(name, _)| name);
        for operator in operators {
            if places.contains_key(operator) {
                continue;
            }
            let Some(rest) = rest else {
                return Err(Error::new(format!(
                    "operator `{operator}` is on no node: add it to `operators` of one, or give one `rest = true`"
                )));
            };
            places.insert(operator.clone(), rest.clone());
        }
        Ok(places)
    }
}
