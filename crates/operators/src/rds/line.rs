//! The line of text that a group becomes.

use super::group::RdsGroup;
use super::station::{RdsStation, StationNews};
use serde::Serialize;

/// How groups are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RdsFormat {
    /// A line of JSON for each group.
    #[default]
    Json,
    /// The four blocks of each group in hexadecimal digits, as RDS Spy and redsea read them.
    Hex,
}

/// Types of programmes in Europe: IEC 62106, annex F.
const TYPES: [&str; 32] = [
    "none",
    "news",
    "current affairs",
    "information",
    "sport",
    "education",
    "drama",
    "culture",
    "science",
    "varied",
    "pop music",
    "rock music",
    "easy listening",
    "light classical",
    "serious classical",
    "other music",
    "weather",
    "finance",
    "children's programmes",
    "social affairs",
    "religion",
    "phone-in",
    "travel",
    "leisure",
    "jazz music",
    "country music",
    "national music",
    "oldies music",
    "folk music",
    "documentary",
    "alarm test",
    "alarm",
];

/// One line of JSON. Fields that the group does not tell are left out.
#[derive(Debug, Serialize)]
struct RdsLine {
    time_s: f64,
    blocks: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pi: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pty: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    programme_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tp: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ta: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    music: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ps: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ptyn: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ct: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    af_mhz: Option<Vec<f64>>,
    #[serde(skip_serializing_if = "is_zero")]
    corrected_bits: u32,
    wrong_blocks: f64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(value: &u32) -> bool {
    *value == 0
}

/// Writes groups.
pub(super) struct LineWriter {
    format: RdsFormat,
    station: RdsStation,
}

impl LineWriter {
    pub fn new(format: RdsFormat) -> Self {
        LineWriter { format, station: RdsStation::new() }
    }

    /// Writes a group as a line without a line break.
    pub fn line(&mut self, group: &RdsGroup) -> Option<String> {
        if self.format == RdsFormat::Hex {
            return Some(group.hex());
        }
        let news = self.station.take(group);
        let StationNews { name, text, type_name, time, frequencies_mhz, traffic_announcement, music } = news;
        let pty = group.word(1).map(|word| word >> 5 & 31);
        let line = RdsLine {
            time_s: (group.time_s * 1e6).round() / 1e6,
            blocks: group.hex(),
            pi: group.programme().map(|programme| format!("{programme:04x}")),
            group: group.group_type().map(|of| format!("{}{}", of.number, if of.is_b { 'B' } else { 'A' })),
            pty,
            programme_type: pty.map(|pty| TYPES[usize::from(pty)]),
            tp: group.word(1).map(|word| word >> 10 & 1 == 1),
            ta: traffic_announcement,
            music,
            ps: name,
            rt: text,
            ptyn: type_name,
            ct: time,
            af_mhz: frequencies_mhz,
            corrected_bits: group.corrected(),
            wrong_blocks: group.wrong_share,
        };
        serde_json::to_string(&line).ok()
    }
}
