//! Radios through SoapySDR: receivers and transmitters of many makers.
//!
//! | module | contents |
//! |---|---|
//! | `source`, `sink` | the operators |
//! | `buffer` | samples on their way to a transmitter |
//! | `setup` | which device, and its settings as they were asked for |
//! | `link` | a device from its opening to its end, also over times without it |
//! | `opening`, `refusal` | settings made and read back; why a device cannot be opened, and the fix |
//! | `stamps` | time stamps of a device: due times, and samples that are missing |
//! | `without` | a device in a build without the Cargo feature `soapy` |

mod buffer;
mod link;
#[cfg(feature = "soapy")]
mod opening;
#[cfg(feature = "soapy")]
mod refusal;
mod setup;
mod sink;
mod source;
mod stamps;
#[cfg(not(feature = "soapy"))]
mod without;

pub use sink::SoapySink;
pub use source::SoapySource;

#[cfg(feature = "soapy")]
use onbeat_os::radio::{RadioError, RadioStream};
#[cfg(feature = "soapy")]
use opening::{change, look, open};
#[cfg(not(feature = "soapy"))]
use without::{NoRadioError as RadioError, NoRadioStream as RadioStream, change, look, open};

use onbeat_runtime::{Kind, Registry};
use onbeat_trace::record::Obtained;

/// A device that was opened, and what it has made of its settings.
struct OpenRadio {
    stream: RadioStream,
    /// Samples per second, as chunks have it.
    rate_hz: f64,
    obtained: Vec<Obtained>,
    notes: Vec<String>,
    /// Oddities, which a strict pipeline refuses.
    odd: Vec<String>,
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    registry.add(Kind::operator::<SoapySource>());
    registry.add(Kind::operator::<SoapySink>());
}
