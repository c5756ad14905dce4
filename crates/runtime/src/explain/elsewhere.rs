//! Causes on other nodes: a record says that messages were late when they came over a link, and the record of
//! the node they came from says why.

use super::sentence::{phrase, sentence};
use onbeat_trace::cause::{Cause, Part};
use onbeat_trace::record::{LinkRecord, Miss, MissKind};
use onbeat_trace::{CauseClass, Record};

/// The run of one node.
#[derive(Debug)]
pub struct NodeRun {
    /// Name of the node.
    pub node: String,
    /// Its record.
    pub record: Record,
}

/// Names the causes of [`CauseClass::OtherNode`] in each record, with the help of the others: the thread, the
/// interrupt or the operator that made the message late there. Returns the number of messages that it could
/// name.
///
/// A message is found by its link and its number at its source. It needs a limit on the path to the link, as
/// a deployment sets it; if it was not too late yet when it left, its node has no verdict on it.
pub fn name_causes_elsewhere(runs: &mut [NodeRun]) -> usize {
    let found: Vec<Vec<(usize, CauseElsewhere)>> = (0..runs.len()).map(|at| all_of(runs, at)).collect();
    let count = found.iter().map(Vec::len).sum();
    enter_drops(runs);
    for (run, found) in runs.iter_mut().zip(found) {
        for (number, elsewhere) in found {
            enter(&mut run.record, number, elsewhere);
        }
        run.record.causes.sort_by_key(|cause| std::cmp::Reverse((cause.lost_ns, cause.misses)));
    }
    count
}

/// Tells the consumer of each link what the edge before it has dropped.
fn enter_drops(runs: &mut [NodeRun]) {
    for at in 0..runs.len() {
        for number in 0..runs[at].record.links.len() {
            let link = &runs[at].record.links[number];
            if link.dropped_before.is_none()
                && let Some((there, sink)) = other_end(runs, at, link)
            {
                let before = runs[there].record.links[sink].dropped_before;
                runs[at].record.links[number].dropped_before = before;
            }
        }
    }
}

/// The run with the other end of a link, and its number there.
fn other_end(runs: &[NodeRun], at: usize, link: &LinkRecord) -> Option<(usize, usize)> {
    let others = runs.iter().enumerate().filter(|(there, _)| *there != at);
    others.into_iter().find_map(|(there, run)| {
        Some((there, run.record.links.iter().position(|other| other.name == link.name)?))
    })
}

/// A cause on another node.
struct CauseElsewhere {
    /// Name of the cause here: "radio, preempted: stress".
    name: String,
    /// What happened there, in words.
    phrase: String,
}

/// The causes of all misses of a run that lie elsewhere, by the number of the miss.
fn all_of(runs: &[NodeRun], at: usize) -> Vec<(usize, CauseElsewhere)> {
    let misses = runs[at].record.misses.iter().enumerate();
    misses.filter_map(|(number, miss)| Some((number, search(runs, at, miss, runs.len())?))).collect()
}

/// Follows a late message over the links, to the node where it became late.
fn search(runs: &[NodeRun], at: usize, miss: &Miss, links_left: usize) -> Option<CauseElsewhere> {
    let record = &runs[at].record;
    let part = other_node(miss)?;
    let origin = part.origin?;
    let source = miss.name.split(" → ").next()?;
    let link = record.links.iter().find(|link| link.operator == source)?;
    let (there, sink) = other_end(runs, at, link)?;
    let sink = &runs[there].record.links[sink];
    let end = format!(" → {}", sink.operator);
    let miss =
        runs[there].record.misses.iter().find(|miss| {
            miss.kind == MissKind::Path && miss.sequence == origin && miss.name.ends_with(&end)
        })?;
    let parts = &miss.verdict.as_ref()?.parts;
    let main = parts.iter().max_by_key(|part| part.late_ns)?;
    if main.class == CauseClass::OtherNode
        && links_left > 0
        && let Some(further) = search(runs, there, miss, links_left - 1)
    {
        return Some(further);
    }
    let node = &runs[there].node;
    let name = match main.name.as_str() {
        "" => format!("{node}, {}", main.class),
        name => format!("{node}, {}: {name}", main.class),
    };
    Some(CauseElsewhere { name, phrase: phrase(main) })
}

fn other_node(miss: &Miss) -> Option<&Part> {
    let parts = &miss.verdict.as_ref()?.parts;
    parts.iter().find(|part| part.class == CauseClass::OtherNode)
}

/// Enters the name into the verdict and the table of causes.
fn enter(record: &mut Record, number: usize, CauseElsewhere { name, phrase }: CauseElsewhere) {
    let miss = &mut record.misses[number];
    let Some(verdict) = &mut miss.verdict else { return };
    let is_main = verdict.parts.first().is_some_and(|part| part.class == CauseClass::OtherNode);
    let Some(part) = verdict.parts.iter_mut().find(|part| part.class == CauseClass::OtherNode) else {
        return;
    };
    let before = std::mem::replace(&mut part.name, name.clone());
    part.detail = Some(phrase);
    let (late_ns, misses) = (part.late_ns, u64::from(is_main));
    verdict.sentence = sentence(&miss.name, miss.sequence, miss.late_ns, &verdict.parts);
    let is = |name: &str, cause: &Cause| cause.class == CauseClass::OtherNode && cause.name == name;
    if let Some(cause) = record.causes.iter_mut().find(|cause| is(&before, cause)) {
        cause.misses = cause.misses.saturating_sub(misses);
        cause.lost_ns = cause.lost_ns.saturating_sub(late_ns);
    }
    record.causes.retain(|cause| cause.misses > 0 || cause.lost_ns > 0);
    match record.causes.iter_mut().find(|cause| is(&name, cause)) {
        Some(cause) => (cause.misses, cause.lost_ns) = (cause.misses + misses, cause.lost_ns + late_ns),
        None => {
            let finding = CauseClass::OtherNode.finding(&name).map(str::to_owned);
            record.causes.push(Cause {
                class: CauseClass::OtherNode,
                name,
                misses,
                lost_ns: late_ns,
                finding,
            });
        }
    }
}
