//! MQTT: messages from and to a broker, as plants and homes have one.
//!
//! | module | contents |
//! |---|---|
//! | `packet` | packets of MQTT 3.1.1 |
//! | `packet_buffer` | splits received bytes into packets |
//! | `setup`, `refusal` | what a client says of itself, and what a broker refuses |
//! | `claim` | identifiers in use |
//! | `client` | a connection, also over times without the broker |
//! | `in_flight` | messages that were not acknowledged |
//! | `payload` | messages as payloads |
//! | `source`, `sink` | the operators |

mod claim;
mod client;
mod in_flight;
mod packet;
mod packet_buffer;
mod payload;
mod refusal;
mod setup;
mod sink;
mod source;

pub use payload::{LinePayload, NumberPayload, ReadPayload, WritePayload};
pub use setup::{MqttPassword, MqttSetup, MqttWill};
pub use sink::{MqttPublishing, MqttSink};
pub use source::{MqttSource, MqttSubscription};

use crate::check;
use crate::streams::{time_ns, usual};
use onbeat_runtime::{Bytes, Error, Folders, Kind, Registry, Seconds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Limits of `longest` in bytes: to what an MQTT packet can hold.
const LONGEST: (f64, f64) = (1.0, 268_435_455.0);

fn usual_longest() -> Bytes {
    Bytes(1_048_576.0)
}

fn a_minute() -> Seconds {
    Seconds(60.0)
}

fn yes() -> bool {
    true
}

/// Parameters of a kind: those of the connection, and some more.
macro_rules! client_parameters {
    ($(#[$doc:meta])* $name:ident { $($(#[$more:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        struct $name {
            /// The broker: `host:port`, `host` or `mqtt://host:port`. Without a port, it is 1883. There is no
            /// TLS.
            broker: String,
            $($(#[$more])* $field: $type,)*
            /// Highest quality of service: 0 (at most once) or 1 (at least once).
            #[serde(default)]
            #[schemars(range(min = 0, max = 1))]
            qos: u8,
            /// Identifier of the client, which no other client of the broker may have. Without it:
            /// `onbeat-PROCESS-OPERATOR`, which is new in each run.
            #[serde(default)]
            client_id: Option<String>,
            /// User name for the broker.
            #[serde(default)]
            user: Option<String>,
            /// Password of the user. It stands in the pipeline file, but not in the record.
            #[serde(default, skip_serializing)]
            password: Option<String>,
            /// A file whose first line is the password; give either `password` or `password_file`.
            #[serde(default)]
            password_file: Option<PathBuf>,
            /// Longest time without a packet to the broker, which ends the connection after 1.5 times this.
            /// In whole seconds, 1 s to 65535 s; 0 for no limit.
            #[serde(default = "a_minute")]
            keep_alive: Seconds,
            /// Topic of the last will: the broker publishes `will` there if the connection breaks or the run
            /// fails, but not after a proper end.
            #[serde(default)]
            will_topic: Option<String>,
            /// Text of the last will.
            #[serde(default)]
            will: Option<String>,
            /// Whether the broker keeps the last will for new subscribers.
            #[serde(default)]
            will_retain: bool,
            /// How long to wait for a connection, for each answer of the broker, and at the end for the last
            /// one.
            #[serde(default = "usual")]
            patience: Seconds,
        }

        impl $name {
            fn setup(&self, folders: &Folders) -> Result<MqttSetup, Error> {
                let mut setup = MqttSetup::new(&self.broker)?;
                check_qos(self.qos)?;
                setup.client_id.clone_from(&self.client_id);
                setup.user.clone_from(&self.user);
                let file = self.password_file.as_ref().map(|path| folders.input(path));
                setup.password = password(self.password.clone(), file)?;
                setup.keep_alive_s = keep_alive_s(self.keep_alive)?;
                setup.will = will(self.will_topic.clone(), self.will.clone(), self.qos, self.will_retain)?;
                setup.patience_ns = time_ns("patience", self.patience)?;
                Ok(setup)
            }
        }
    };
}

/// Parameters of a source, and some more.
macro_rules! source_parameters {
    ($(#[$doc:meta])* $name:ident { $($(#[$more:meta])* $field:ident: $type:ty,)* }) => {
        client_parameters! {
            $(#[$doc])*
            $name {
                /// The topic: `+` stands for one level, `#` at the end for all further ones. Give either
                /// `topic` or `topics`.
                #[serde(default)]
                topic: Option<String>,
                /// Several topics.
                #[serde(default)]
                topics: Option<Vec<String>>,
                $($(#[$more])* $field: $type,)*
                /// Whether to take retained messages: the last one of each topic, which the broker has kept
                /// from before. They are counted in a note.
                #[serde(default = "yes")]
                retained: bool,
                /// Longest payload in bytes. Longer ones are lost and counted.
                #[serde(default = "usual_longest")]
                longest: Bytes,
                /// Whether the broker forgets the subscription with the connection. With `false`, QoS 1 and a
                /// `client_id`, it keeps messages for a client that is away.
                #[serde(default = "yes")]
                clean_session: bool,
            }
        }

        impl $name {
            fn make<R: ReadPayload>(&self, reader: R, folders: &Folders) -> Result<MqttSource<R>, Error> {
                let mut setup = self.setup(folders)?;
                setup.clean_session = self.clean_session;
                let (low, high) = LONGEST;
                check::within("longest", self.longest.0, low, high, "1 MiB is usual")?;
                let topics = topics(self.topic.clone(), self.topics.clone())?;
                let (qos, retained, longest) = (self.qos, self.retained, self.longest.0 as usize);
                MqttSource::new(setup, MqttSubscription { topics, qos, retained, longest }, reader)
            }
        }
    };
}

/// Parameters of a sink, and some more.
macro_rules! sink_parameters {
    ($(#[$doc:meta])* $name:ident { $($(#[$more:meta])* $field:ident: $type:ty,)* }) => {
        client_parameters! {
            $(#[$doc])*
            $name {
                /// The topic to publish to, such as `plant/pump/rms`.
                topic: String,
                $($(#[$more])* $field: $type,)*
                /// Whether the broker keeps the last message for new subscribers.
                #[serde(default)]
                retain: bool,
            }
        }

        impl $name {
            fn make<W: WritePayload>(&self, writer: W, folders: &Folders) -> Result<MqttSink<W>, Error> {
                let publishing =
                    MqttPublishing { topic: self.topic.clone(), qos: self.qos, retain: self.retain };
                MqttSink::new(self.setup(folders)?, publishing, writer)
            }
        }
    };
}

source_parameters! {
    /// Text from a broker.
    MqttSourceParameters {
        /// Whether each text begins with its topic and a space.
        #[serde(default)]
        with_topic: bool,
    }
}

source_parameters! {
    /// Values from a broker.
    MqttValueSourceParameters {
        /// Where the number is in a payload of JSON: `"temperature"`, or `"wind.speed"` for a field of an
        /// object. Without it, the payload is the number.
        #[serde(default)]
        field: Option<String>,
    }
}

sink_parameters! {
    /// Text to a broker.
    MqttSinkParameters {}
}

sink_parameters! {
    /// Values to a broker.
    MqttValueSinkParameters {
        /// Publishes JSON with the number in this field: `"rms"` makes `{"rms":1.5}`, `"pump.rms"` an object
        /// within an object. Without it, the payload is the number.
        #[serde(default)]
        field: Option<String>,
    }
}

fn check_qos(qos: u8) -> Result<(), Error> {
    if qos <= 1 {
        return Ok(());
    }
    let instead = "with 1, nothing is lost, and a message may come twice";
    Err(Error::new(format!("`qos` is {qos}: it must be 0 or 1; {instead}")))
}

fn password(text: Option<String>, file: Option<PathBuf>) -> Result<Option<MqttPassword>, Error> {
    match (text, file) {
        (Some(_), Some(_)) => Err(Error::new("give either `password` or `password_file`, not both")),
        (text, file) => Ok(text.map(MqttPassword::Text).or(file.map(MqttPassword::File))),
    }
}

fn keep_alive_s(time: Seconds) -> Result<u16, Error> {
    let most = f64::from(u16::MAX);
    if time.0 == 0.0 || (1.0..=most).contains(&time.0) {
        return Ok(time.0 as u16);
    }
    let time = time.0;
    Err(Error::new(format!("`keep_alive` is {time} s: it must be 0, or from 1 s to {most} s")))
}

fn will(
    topic: Option<String>,
    payload: Option<String>,
    qos: u8,
    is_retained: bool,
) -> Result<Option<MqttWill>, Error> {
    match (topic, payload) {
        (Some(topic), Some(payload)) => Ok(Some(MqttWill { topic, payload, qos, is_retained })),
        (None, None) if !is_retained => Ok(None),
        _ => Err(Error::new("a last will needs both `will_topic` and `will`")),
    }
}

fn topics(topic: Option<String>, topics: Option<Vec<String>>) -> Result<Vec<String>, Error> {
    match (topic, topics) {
        (Some(topic), None) => {
            setup::check_filter("topic", &topic)?;
            Ok(vec![topic])
        }
        (None, Some(topics)) => Ok(topics),
        _ => Err(Error::new("give either `topic` or `topics`, such as `topic = \"home/+/temperature\"`")),
    }
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    let about = include_str!("../about/mqtt_source.md");
    let example = "broker = \"127.0.0.1:1883\"\ntopic = \"home/+/state\"";
    let text = "receives messages of an MQTT broker as text";
    let source = |p: &MqttSourceParameters, folders: &Folders| {
        p.make(LinePayload { has_topic: p.with_topic }, folders)
    };
    registry.add(Kind::new("mqtt.source", text, example, source).about(about));
    let example = "broker = \"127.0.0.1:1883\"\ntopic = \"home/kitchen\"\nfield = \"temperature\"";
    let text = "receives numbers of an MQTT broker";
    let source = |p: &MqttValueSourceParameters, folders: &Folders| {
        p.make(NumberPayload::new(p.field.as_deref())?, folders)
    };
    registry.add(Kind::new("mqtt.source.value", text, example, source).about(about));
    let about = include_str!("../about/mqtt_sink.md");
    let example = "broker = \"127.0.0.1:1883\"\ntopic = \"plant/alarm\"\nqos = 1";
    let text = "publishes text at an MQTT broker";
    let sink = |p: &MqttSinkParameters, folders: &Folders| p.make(LinePayload::default(), folders);
    registry.add(Kind::new("mqtt.sink", text, example, sink).about(about));
    let example = "broker = \"127.0.0.1:1883\"\ntopic = \"plant/pump/rms\"";
    let text = "publishes numbers at an MQTT broker";
    let sink = |p: &MqttValueSinkParameters, folders: &Folders| {
        p.make(NumberPayload::new(p.field.as_deref())?, folders)
    };
    registry.add(Kind::new("mqtt.sink.value", text, example, sink).about(about));
}
