//! Time of an echo from where the user stands: a pipeline next to a bare loop, and what its record says.
//!
//! | module | contents |
//! |---|---|
//! | `settings` | settings, transports, cores |
//! | `messages` | what the bench and its servers tell each other |
//! | `server`, `loops` | the server in its own process: a pipeline or a bare loop |
//! | `process` | a server as a child process |
//! | `client` | the client, which times each echo |
//! | `trial` | one measurement |
//! | `result` | figures |

mod client;
mod loops;
mod messages;
mod process;
mod result;
mod server;
mod settings;
mod trial;

pub use server::serve;
pub use settings::{EchoSettings, EchoTransport, EchoWait};

use crate::others::Others;
use crate::{BenchError, BenchWatch, common};
use messages::EchoLoop;
use onbeat_report::{BenchResult, bench::Machine};
use result::EchoRow;
use serde_json::json;
use trial::EchoCase;

/// Runs the bench: every server in turn, once per round, each in its own process.
///
/// # Errors
/// [`BenchError`]: invalid settings, a failed measurement, or a stop before the first round was complete.
pub fn run(settings: &EchoSettings, watch: &mut dyn BenchWatch) -> Result<BenchResult, BenchError> {
    let cores = settings.check()?;
    let mut result = BenchResult::new("echo", Machine::read());
    result.parameters = common::parameters(json!({
        "transports": settings.transports.iter().map(|it| it.name()).collect::<Vec<_>>(),
        "intervals_ns": settings.intervals_ns,
        "bytes": settings.bytes,
        "rounds": settings.rounds,
        "seconds": settings.seconds,
        "client": settings.client.name(),
        "client_core": cores.client,
        "server_core": cores.server,
    }));
    let mut rows = rows(settings);
    let others = Others::watch();
    let all = settings.rounds * rows.len();
    'rounds: for round in 0..settings.rounds {
        // The machine may change during a round, so the order alternates.
        let count = rows.len();
        for at in 0..count {
            let row = &mut rows[if round % 2 == 0 { at } else { count - 1 - at }];
            let text = format!("round {} of {}: {}", round + 1, settings.rounds, row.name());
            watch.at(round * count + at, all, &text);
            let failed = |reason| BenchError::Scenario { name: row.name(), reason };
            let found = match watch.is_stopped() {
                true => None,
                false => {
                    let (server, silent) = ((row.kind, row.wait), row.is_silent);
                    Some(trial::run(settings, &cores, row.case, server, silent, watch).map_err(failed)?)
                }
            };
            // A measurement during which the bench was stopped is not complete.
            if watch.is_stopped() {
                if round == 0 {
                    return Err(BenchError::Stopped);
                }
                result.notes.push(format!("stopped in round {} of {}", round + 1, settings.rounds));
                rows.iter_mut().for_each(|row| row.found.truncate(round));
                break 'rounds;
            }
            row.found.extend(found);
        }
    }
    result::enter(&rows, &mut result);
    common::doubts(&mut result, others.share(0), common::AGAIN);
    Ok(result)
}

/// All measurements of a round.
fn rows(settings: &EchoSettings) -> Vec<EchoRow> {
    let mut rows = Vec::new();
    for &transport in &settings.transports {
        for (at, &interval_ns) in settings.intervals_ns.iter().enumerate() {
            let case = EchoCase { transport, interval_ns };
            for wait in EchoWait::ALL {
                rows.extend(EchoLoop::ALL.map(|kind| {
                    let is_silent = at == 0 && wait == EchoWait::Park && kind == EchoLoop::Onbeat;
                    EchoRow { case, kind, wait, is_silent, found: Vec::new() }
                }));
            }
        }
    }
    rows
}
