//! `on_error` and `restart` of an operator.

use super::error::Fault;
use super::section::Section;
use crate::base::on_error::{OnError, Restart};
use serde::Deserialize;
use serde_json::{Value, json};

/// Values of `on_error`.
#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    Stop,
    Restart,
    Isolate,
}

/// Keys of a section, as the record shows them.
type Shown = Vec<(&'static str, Value)>;

/// Reads the keys, and returns their meaning and their form for the record.
pub(super) fn on_error(section: &Section<'_, '_>) -> Result<(OnError, Shown), Fault> {
    let word = section.get::<Word>("on_error")?.map_or(Word::Stop, |word| *word.get_ref());
    if let Some(restart) = section.raw("restart").filter(|_| word != Word::Restart) {
        let message = format!(
            "`restart` of {} says how it is started again, but `on_error` does not ask for it",
            section.what
        );
        return Err(Fault::at(restart.span(), message).help("write on_error = \"restart\" next to it"));
    }
    Ok(match word {
        Word::Stop => (OnError::Stop, Vec::new()),
        Word::Isolate => (OnError::Isolate, vec![("on_error", json!("isolate"))]),
        Word::Restart => {
            let restart = restart(section)?;
            let Restart { limit, delay_ns, within_ns, then } = restart;
            let seconds = |ns: u64| ns as f64 / 1e9;
            let how = json!({
                "limit": limit, "delay": seconds(delay_ns), "within": seconds(within_ns), "then": then,
            });
            (OnError::Restart(restart), vec![("on_error", json!("restart")), ("restart", how)])
        }
    })
}

fn restart(section: &Section<'_, '_>) -> Result<Restart, Fault> {
    let usual = Restart::default();
    let Some(value) = section.raw("restart") else { return Ok(usual) };
    let what = format!("`restart` of {}", section.what);
    let section = Section::new(what, value, &["limit", "delay", "within", "then"])?;
    let limit = match section.get::<i64>("limit")? {
        None => usual.limit,
        Some(limit) => u32::try_from(*limit.get_ref()).ok().filter(|&limit| limit > 0).ok_or_else(|| {
            let (found, most) = (limit.get_ref(), u32::MAX);
            Fault::at(limit.span(), format!("`limit` of {}: {found} must be 1 to {most}", section.what))
                .help("on_error = \"stop\" or \"isolate\" restarts nothing")
        })?,
    };
    Ok(Restart {
        limit,
        delay_ns: section.time_ns("delay")?.unwrap_or(usual.delay_ns),
        within_ns: section.time_ns("within")?.unwrap_or(usual.within_ns),
        then: section.get("then")?.map_or(usual.then, toml::Spanned::into_inner),
    })
}
