//! Networks of their own, for tests between machines. They need root, and `ip`.

use std::net::IpAddr;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// A cable to a network namespace. Both go away with this value.
pub struct Network {
    /// Name of the namespace and of the end of the link here.
    pub name: String,
    net: IpAddr,
    /// Address of this end.
    pub here: IpAddr,
    /// Address of the other end.
    pub there: IpAddr,
}

/// Runs `ip` with these words. Returns what it complains about.
fn ip(words: &str) -> Result<(), String> {
    let output = Command::new("ip").args(words.split(' ')).output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("ip {words}: {}", said.trim())) }
}

impl Network {
    pub fn new() -> Result<Self, String> {
        static NUMBER: Mutex<u8> = Mutex::new(0);
        let number = {
            let mut next = NUMBER.lock().unwrap_or_else(PoisonError::into_inner);
            *next += 1;
            *next
        };
        let process = std::process::id();
        let name = format!("ob{process}-{number}");
        // Addresses for tests between networks (RFC 2544), four per link.
        let net = [198, 18 | (process >> 8 & 1) as u8, process as u8, number << 2];
        let [net, here, there] = [0, 1, 2].map(|host| IpAddr::from([net[0], net[1], net[2], net[3] | host]));
        ip(&format!("netns add {name}"))?;
        // From here on, dropping it removes all.
        let link = Network { name, net, here, there };
        let name = &link.name;
        ip(&format!("link add {name} type veth peer name peer netns {name}"))?;
        ip(&format!("address add {here}/30 dev {name}"))?;
        ip(&format!("-n {name} address add {there}/30 dev peer"))?;
        ip(&format!("link set {name} up"))?;
        ip(&format!("-n {name} link set peer up"))?;
        // Nothing leaves by another way while the link is down.
        ip(&format!("route add unreachable {net}/30 metric 4000"))?;
        Ok(link)
    }

    /// Takes the cable away (`down`), or plugs it in (`up`).
    pub fn set(&self, state: &str) {
        ip(&format!("link set {} {state}", self.name)).expect("the link changes");
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // The link goes with the namespace.
        let _gone = ip(&format!("netns del {}", self.name));
        let _gone = ip(&format!("route del unreachable {}/30 metric 4000", self.net));
    }
}
