//! The same output for any cut of the input.

use super::{Seen, Trial};

/// Lengths of chunks to try; those that are longer than an edge allows are cut further.
const LENGTHS: [&[usize]; 6] = [&[1 << 20], &[1], &[3, 7, 1000], &[64], &[1000, 1], &[1, 1, 1, 4097, 3]];
/// Quanta in bytes, and capacities.
const EDGES: [(usize, usize); 4] = [(16 << 10, 4), (64, 1), (4 << 10, 1), (64 << 10, 64)];

/// Runs a trial with many cuts of what feeds it, quanta and capacities, and gives what it did with the first.
/// Several inputs are cut differently. The order in which messages of several inputs arrive does not change.
/// Feeds that have a cut or a quantum of their own lose the cut and keep the quantum.
///
/// # Panics
/// When the operator fails, and when samples, tags, messages, rates or notes are not always the same, to the
/// bit: the message says with which cut.
pub fn cuts(trial: impl Fn() -> Trial) -> Seen {
    let mut first: Option<Seen> = None;
    for (quantum, capacity) in EDGES {
        for (number, lengths) in LENGTHS.into_iter().enumerate() {
            let mut trial = trial().quantum(quantum).capacity(capacity);
            // Each input has other cuts, so that chunks of two inputs do not belong together by chance.
            for (input, (_, feed)) in trial.feeds.iter_mut().enumerate() {
                if feed.can_be_cut {
                    feed.shape.lengths = LENGTHS[(number + input) % LENGTHS.len()].to_vec();
                }
            }
            let with =
                format!("chunks of {lengths:?} (of the first input), quantum {quantum}, capacity {capacity}");
            let seen = trial.try_run().unwrap_or_else(|text| panic!("with {with} it failed: {text}"));
            match &first {
                None => first = Some(seen),
                Some(first) => compare(first, &seen, &with),
            }
        }
    }
    first.expect("there is a first cut")
}

fn compare(first: &Seen, seen: &Seen, with: &str) {
    for ((name, bytes, tags, rate_hz), (_, now, tags_now, rate_now)) in
        first.all().into_iter().zip(seen.all())
    {
        if let Some((piece, expected)) = seen.gap(&name) {
            panic!("with {with} a chunk of `{name}` begins at sample {} and not at {expected}", piece.start);
        }
        if bytes != now {
            let at = bytes.iter().zip(&now).position(|(a, b)| a != b).unwrap_or(bytes.len().min(now.len()));
            panic!(
                "with {with} `{name}` sends something else: {} bytes, not {}, the first other one is {at}",
                now.len(),
                bytes.len()
            );
        }
        assert!(tags == tags_now, "with {with} `{name}` has the tags {tags_now:?} instead of {tags:?}");
        assert!(rate_hz == rate_now, "with {with} `{name}` has {rate_now} Hz instead of {rate_hz} Hz");
    }
    assert!(
        first.notes() == seen.notes(),
        "with {with} it notes {:?}, not {:?}",
        seen.notes(),
        first.notes()
    );
}
