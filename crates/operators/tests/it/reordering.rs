//! Datagrams in another order: a window puts them in order, and the sum stays exact.
#![forbid(unsafe_code)]

use crate::datagrams::{LAST, datagram, pair};
use onbeat_operators::UdpSource;
use onbeat_runtime::testing::{Seen, Trial};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Time that a datagram waits: the socket has all from the start, so this time is only over at the end.
const WAIT_NS: u64 = 5_000_000;

/// Runs a source with this window on datagrams of one sample, which is their number.
fn received(window: usize, numbers: &[u64], sent: u64) -> Seen {
    let (socket, sender) = pair();
    for &number in numbers {
        sender.send(&datagram(number, &[number as f32])).unwrap();
    }
    sender.send(&datagram(sent | LAST, &[])).unwrap();
    let source = UdpSource::<f32>::new("x:1", None).unwrap().socket(socket).header(true);
    Trial::new(source.timeout(1_000_000_000).reorder(window, WAIT_NS).unwrap()).run()
}

/// Counts of datagrams.
#[derive(Debug, PartialEq, Eq)]
struct Sum {
    lost: u64,
    late: u64,
    duplicates: u64,
}

fn sum(seen: &Seen) -> Sum {
    let losses = seen.losses();
    let of = |late: bool| {
        losses
            .iter()
            .filter(|(_, _, reason)| reason.starts_with("came after") == late)
            .map(|loss| loss.0)
            .sum()
    };
    let note = seen.notes().iter().find(|note| note.contains("duplicates"));
    let duplicates = note.map_or(0, |note| note.split(' ').next().unwrap().parse().unwrap());
    Sum { lost: of(false), late: of(true), duplicates }
}

/// The same by a plain list: the numbers in order, and what became of the others.
fn expected(window: u64, numbers: &[u64], sent: u64) -> (Vec<u64>, Sum) {
    let (mut given, mut held, mut came) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    let (mut next, mut late, mut duplicates) = (0, 0, 0);
    for &number in numbers {
        if !came.insert(number) {
            duplicates += 1;
        } else if number < next {
            late += 1;
        } else {
            held.insert(number);
            // No datagram waits for one that is further away than the window.
            let floor = number.saturating_sub(window);
            while let Some(&lowest) = held.first()
                && (lowest <= next.max(floor))
            {
                held.pop_first();
                given.push(lowest);
                next = lowest + 1;
            }
            next = next.max(floor);
        }
    }
    given.extend(held);
    let lost = sent - given.len() as u64 - late;
    (given, Sum { lost, late, duplicates })
}

#[test]
fn swapped_datagrams_are_put_in_order() {
    let seen = received(2, &[0, 2, 1, 5, 4, 3, 6], 7);
    assert_eq!(seen.samples::<f32>("out"), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!((seen.losses(), seen.record().result.exit_status), (vec![], 0));
    assert!(seen.tags("out").is_empty() && seen.notes().is_empty(), "{:?}", seen.notes());
}

#[test]
fn a_missing_one_is_given_up_and_then_late() {
    // When 4 comes, 1 is too far away; 6 never comes, and the end is not held up by that.
    let seen = received(2, &[0, 2, 3, 4, 1, 5, 7], 8);
    assert_eq!(seen.samples::<f32>("out"), [0.0, 2.0, 3.0, 4.0, 5.0, 7.0]);
    assert_eq!(sum(&seen), Sum { lost: 1, late: 1, duplicates: 0 });
    assert_eq!(seen.tags("out"), [(1, "lost".to_string(), 1.into()), (5, "lost".to_string(), 1.into())]);
    assert_eq!(seen.record().result.exit_status, 3);
}

#[test]
fn the_end_comes_last_and_a_new_sender_after_the_old_one() {
    let (socket, old) = pair();
    let new = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    new.connect(socket.local_addr().unwrap()).unwrap();
    // Of the old one, 1 is missing when the new one begins, with its second datagram.
    for number in [0, 2, 3] {
        old.send(&datagram(number, &[number as f32])).unwrap();
    }
    for number in [1, 0] {
        new.send(&datagram(number, &[10.0 + number as f32])).unwrap();
    }
    new.send(&datagram(4 | LAST, &[])).unwrap();
    for number in [3, 2] {
        new.send(&datagram(number, &[10.0 + number as f32])).unwrap();
    }
    let source = UdpSource::<f32>::new("x:1", None).unwrap().socket(socket).header(true);
    let seen = Trial::new(source.timeout(1_000_000_000).reorder(4, WAIT_NS).unwrap()).run();
    assert_eq!(seen.samples::<f32>("out"), [0.0, 2.0, 3.0, 10.0, 11.0, 12.0, 13.0]);
    assert_eq!(sum(&seen), Sum { lost: 1, late: 0, duplicates: 0 });
    assert!(seen.is_done() && seen.notes().iter().any(|note| note.starts_with("1 restarts")));
}

#[test]
fn a_window_has_a_limit() {
    let source = UdpSource::<f32>::new("x:1", None).unwrap();
    let text = source.reorder(1025, WAIT_NS).err().unwrap().to_string();
    assert!(text.contains("`reorder` is 1025: it can be 1024 at most"), "{text}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Whatever the network does to the order: the samples are in order, and sent = received + lost + late.
    #[test]
    fn the_order_and_the_sum_are_exact(
        sent in 1_u64..100, lost in 0..30_u64, far in 1..12_u64, window in 0..10_usize, seed: u64,
    ) {
        let mut state = seed | 1;
        let mut random = |most: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % most
        };
        let mut order = Vec::new();
        for number in 0..sent {
            if random(100) >= lost {
                order.push((number + random(far), number));
            }
            if random(20) == 0 && random(100) >= lost {
                order.push((number + random(far), number));
            }
        }
        order.sort_unstable();
        let numbers: Vec<u64> = order.into_iter().map(|(_, number)| number).collect();
        let seen = received(window, &numbers, sent);
        let (given, counts) = expected(window as u64, &numbers, sent);
        let samples: Vec<u64> = seen.samples::<f32>("out").iter().map(|&number| number as u64).collect();
        prop_assert_eq!(&samples, &given, "{:?}", numbers);
        prop_assert_eq!(sum(&seen), counts, "{:?}", numbers);
        if lost == 0 && far <= window as u64 + 1 {
            prop_assert_eq!(samples.len() as u64, sent);
        }
    }
}
