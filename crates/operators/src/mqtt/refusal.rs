//! What a broker refuses, and what helps.

use super::setup::MqttSetup;
use crate::check::shown;
use onbeat_runtime::Error;

/// The code of a subscription that was refused.
pub(super) const NOT_SUBSCRIBED: u8 = 0x80;

/// The error for a code of the answer to CONNECT.
pub(super) fn refused(code: u8, setup: &MqttSetup, id: &str) -> Error {
    let (said, fix) = match code {
        1 => ("unacceptable protocol version".to_string(), "it needs a listener for MQTT 3.1.1".to_string()),
        2 => (
            format!("identifier rejected (`{}`)", shown(id)),
            "give a `client_id` of 1 to 23 letters and digits that it permits".to_string(),
        ),
        3 => {
            ("server unavailable".to_string(), "with `on_error = \"restart\"` it is called again".to_string())
        }
        4 => ("bad user name or password".to_string(), credentials(setup)),
        5 => ("not authorised".to_string(), credentials(setup)),
        code => (format!("code {code}, which MQTT 3.1.1 does not have"), "look into its log".to_string()),
    };
    Error::new(format!("{} refused the connection: {said}; {fix}", setup.broker))
}

fn credentials(setup: &MqttSetup) -> String {
    match (&setup.user, &setup.password) {
        (None, _) => "give `user` and `password`: this broker lets nobody in without".to_string(),
        (Some(user), None) => format!("give the `password` of `{}`", shown(user)),
        (Some(user), Some(_)) => {
            format!("look whether the broker has the user `{}` with this password", shown(user))
        }
    }
}

/// The error of a subscription that was refused.
pub(super) fn not_subscribed(topic: &str, setup: &MqttSetup) -> Error {
    let user = setup
        .user
        .as_deref()
        .map_or_else(|| "an anonymous user".to_string(), |user| format!("`{}`", shown(user)));
    Error::new(format!(
        "{} refused the subscription to `{}`: its access list must permit {user} to read it",
        setup.broker,
        shown(topic)
    ))
}
