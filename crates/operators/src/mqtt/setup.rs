//! What a client says of itself and of its broker.

use super::packet::LONGEST_TEXT;
use crate::check::shown;
use crate::streams::{check_address, usual_ns};
use onbeat_runtime::Error;
use std::fs;
use std::io::Read;
use std::path::PathBuf;

/// Port of brokers that were given none.
const PORT: u16 = 1883;

/// A broker, and how to log in there.
#[derive(Debug, Clone)]
pub struct MqttSetup {
    /// Host and port.
    pub broker: String,
    /// Identifier of the client. Without one, it is made of the operator's name and the process.
    pub client_id: Option<String>,
    /// User name.
    pub user: Option<String>,
    /// Password of the user.
    pub password: Option<MqttPassword>,
    /// Longest time without a packet, in seconds; 0 for any.
    pub keep_alive_s: u16,
    /// Whether the broker forgets the subscriptions and messages of a connection with its end.
    pub clean_session: bool,
    /// What the broker publishes if the connection breaks.
    pub will: Option<MqttWill>,
    /// How long to wait for the broker, in nanoseconds.
    pub patience_ns: u64,
}

/// A password, or the file that it is read from at the start.
#[derive(Clone)]
pub enum MqttPassword {
    /// The password.
    Text(String),
    /// A file whose first line is the password.
    File(PathBuf),
}

impl std::fmt::Debug for MqttPassword {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            MqttPassword::Text(_) => f.write_str("Text"),
            MqttPassword::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}

/// A message that the broker publishes if the connection breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MqttWill {
    /// Its topic.
    pub topic: String,
    /// Its text.
    pub payload: String,
    /// Its quality, 0 or 1.
    pub qos: u8,
    /// Whether the broker keeps it for new subscribers.
    pub is_retained: bool,
}

impl MqttSetup {
    /// The broker at an address: `host`, `host:port` or `mqtt://host:port`.
    ///
    /// # Errors
    /// If it is none, or needs TLS.
    pub fn new(broker: &str) -> Result<Self, Error> {
        Ok(MqttSetup {
            broker: broker_address(broker)?,
            client_id: None,
            user: None,
            password: None,
            keep_alive_s: 60,
            clean_session: true,
            will: None,
            patience_ns: usual_ns(),
        })
    }

    /// Checks what depends on several settings, and the lengths of all.
    pub(super) fn check(&self) -> Result<(), Error> {
        if !self.clean_session && self.client_id.is_none() {
            return Err(Error::new(
                "`clean_session` is false: give a `client_id`, by which the broker finds the session again",
            ));
        }
        if let Some(id) = &self.client_id {
            check_text("client_id", id)?;
            if id.is_empty() {
                return Err(Error::new("`client_id` is empty: give it a name, or leave it out"));
            }
        }
        if let Some(user) = &self.user {
            check_text("user", user)?;
        } else if self.password.is_some() {
            return Err(Error::new("`password` needs a `user`: MQTT has no password without one"));
        }
        if let Some(MqttPassword::Text(text)) = &self.password
            && text.len() > LONGEST_TEXT
        {
            return Err(Error::new(format!("`password` has {} bytes: at most {LONGEST_TEXT}", text.len())));
        }
        if let Some(will) = &self.will {
            check_topic("will_topic", &will.topic)?;
            if will.payload.len() > LONGEST_TEXT {
                let bytes = will.payload.len();
                return Err(Error::new(format!("`will` has {bytes} bytes: at most {LONGEST_TEXT}")));
            }
        }
        Ok(())
    }

    /// The password.
    pub(super) fn secret(&self) -> Result<Option<Vec<u8>>, Error> {
        let path = match &self.password {
            None => return Ok(None),
            Some(MqttPassword::Text(text)) => return Ok(Some(text.clone().into_bytes())),
            Some(MqttPassword::File(path)) => path,
        };
        let cannot =
            |error| Error::with_source(format!("cannot read `password_file` {}", path.display()), error);
        // Of a pipe, nobody may write the other end.
        if !fs::metadata(path).map_err(cannot)?.is_file() {
            return Err(Error::new(format!("`password_file` {} is not a file", path.display())));
        }
        let mut text = Vec::new();
        let file = fs::File::open(path).map_err(cannot)?;
        file.take(LONGEST_TEXT as u64 + 1).read_to_end(&mut text).map_err(cannot)?;
        let line = text.split(|byte| *byte == b'\n').next().unwrap_or(&[]);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() || line.len() > LONGEST_TEXT {
            return Err(Error::new(format!(
                "`password_file` {}: its first line must be the password, with 1 to {LONGEST_TEXT} bytes",
                path.display()
            )));
        }
        Ok(Some(line.to_vec()))
    }
}

/// The host and port of a broker.
fn broker_address(broker: &str) -> Result<String, Error> {
    let (scheme, address) = broker.split_once("://").map_or(("mqtt", broker), |(a, b)| (a, b));
    match scheme {
        "mqtt" | "tcp" => {}
        "mqtts" | "ssl" | "tls" | "wss" => {
            return Err(Error::new(format!(
                "`broker` is `{scheme}://`: there is no TLS here. Use a port of the broker without TLS (1883 as a \
                 rule), or let a broker on this machine connect to it (mosquitto: `connection`, `bridge_cafile`)"
            )));
        }
        other => {
            let other = shown(other);
            return Err(Error::new(format!(
                "`broker` is `{other}://`: it must be a host and a port, or `mqtt://host:port`"
            )));
        }
    }
    let address = address.strip_suffix('/').unwrap_or(address);
    if address.contains('@') {
        return Err(Error::new("`broker` names a user: give it as `user` and `password`"));
    }
    let has_port = address.rsplit_once(':').is_some_and(|_| !address.ends_with(']'));
    let address = if has_port { address.to_string() } else { format!("{address}:{PORT}") };
    check_address("broker", &address)?;
    Ok(address)
}

/// Checks a text of a packet.
fn check_text(name: &str, text: &str) -> Result<(), Error> {
    if text.len() > LONGEST_TEXT {
        let bytes = text.len();
        return Err(Error::new(format!("`{name}` has {bytes} bytes: MQTT has at most {LONGEST_TEXT}")));
    }
    if text.contains(char::is_control) {
        let shown = shown(text);
        return Err(Error::new(format!("`{name}` is `{shown}`: it must have no control characters")));
    }
    Ok(())
}

/// Checks a topic to publish to.
pub(super) fn check_topic(name: &str, topic: &str) -> Result<(), Error> {
    check_text(name, topic)?;
    if topic.is_empty() || topic.contains(['+', '#']) {
        let shown = shown(topic);
        return Err(Error::new(format!(
            "`{name}` is `{shown}`: a topic to publish to has at least one character, and no `+` and `#`, such as \
             `home/alarm`"
        )));
    }
    Ok(())
}

/// Checks a topic to subscribe to.
pub(super) fn check_filter(name: &str, filter: &str) -> Result<(), Error> {
    check_text(name, filter)?;
    let last = filter.split('/').count() - 1;
    let is_good = |(index, level): (usize, &str)| match level {
        "+" => true,
        "#" => index == last,
        level => !level.contains(['+', '#']),
    };
    if filter.is_empty() || !filter.split('/').enumerate().all(is_good) {
        let shown = shown(filter);
        return Err(Error::new(format!(
            "`{name}` is `{shown}`: `+` stands for a whole level, `#` for all last levels, such as `home/+/state` or \
             `home/#`"
        )));
    }
    Ok(())
}
