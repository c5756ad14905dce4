//! The crew, through every interleaving (`ci/loom`). Each property has mistakes planted in the code itself, which loom must
//! find.

use super::Crew;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{UnsafeCell, plant};
use loom::sync::Arc;
use loom::thread;

/// What a waker leaves behind for the run, where loom sees it.
struct Event(UnsafeCell<u32>);

// SAFETY: the crew is what makes the accesses take turns; loom watches them.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

/// Two threads of a crew: each leaves an event and wakes the item; whoever is told to runs it. No event is left over, and
/// nobody touches the item beside another.
fn wake_and_rest() {
    loom::model(|| {
        let crew = Arc::new(Crew::new(2, 1));
        crew.enter(0, 0u32);
        assert!(crew.take(0).unwrap().rest().is_ok());
        let events = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let wakers = [0, 1].map(|me| {
            let (crew, events) = (crew.clone(), events.clone());
            thread::spawn(move || {
                // Relaxed: it is the crew that makes it visible.
                events[me].store(1, Ordering::Relaxed);
                if crew.wake(0) {
                    run(&crew, &events);
                }
            })
        });
        for waker in wakers {
            waker.join().unwrap();
        }
        assert_eq!(
            *crew.take(0).map_or_else(|| wake_again(&crew), |item| item),
            2,
            "an event was overlooked"
        );
    });
}

fn run(crew: &Crew<u32>, events: &[AtomicU32; 2]) {
    let mut item = crew.take(0).expect("it was woken by us, and nobody else was told");
    loop {
        for event in events {
            if event.load(Ordering::Relaxed) == 1 {
                event.store(2, Ordering::Relaxed);
                *item += 1;
            }
        }
        match item.rest() {
            Ok(()) => return,
            Err(again) => item = again,
        }
    }
}

fn wake_again(crew: &Crew<u32>) -> super::Taken<'_, u32> {
    assert!(crew.wake(0), "it rests");
    crew.take(0).unwrap()
}

#[test]
fn model_crew_wake_and_rest() {
    wake_and_rest();
}

#[test]
#[should_panic]
fn model_crew_finds_a_rest_by_a_store() {
    plant("rest by a store");
    wake_and_rest();
}

#[test]
#[should_panic]
fn model_crew_finds_a_relaxed_rest() {
    plant("relaxed rest");
    wake_and_rest();
}

#[test]
#[should_panic]
fn model_crew_finds_a_relaxed_take() {
    plant("relaxed take");
    wake_and_rest();
}

/// A waker that is told "held or queued already" leaves its event to the holder.
fn event_before_a_false_wake() {
    loom::model(|| {
        let crew = Arc::new(Crew::new(2, 1));
        crew.enter(0, ());
        let event = Arc::new(Event(UnsafeCell::new(0)));
        let other = {
            let (crew, event) = (crew.clone(), event.clone());
            thread::spawn(move || {
                event.0.with_mut(|event| {
                    // SAFETY: nobody reads it before the item was woken.
                    unsafe { *event = 7 }
                });
                crew.wake(0)
            })
        };
        // It is ready from the start: either this run sees the wake-up, or the other one was told to see to it.
        let mut item = crew.take(0).unwrap();
        let mut seen = false;
        loop {
            match item.rest() {
                Ok(()) => break,
                Err(again) => {
                    seen = true;
                    event.0.with(|event| {
                        // SAFETY: the waker is done with it.
                        assert_eq!(unsafe { *event }, 7);
                    });
                    item = again;
                }
            }
        }
        let told = other.join().unwrap();
        // Queued before the take, or resting after the rest, or held in between.
        assert!(told || seen || crew.take(0).is_none());
        assert!(!(told && seen));
    });
}

#[test]
fn model_crew_event_before_a_false_wake() {
    event_before_a_false_wake();
}

#[test]
#[should_panic]
fn model_crew_finds_a_relaxed_wake() {
    plant("relaxed wake");
    event_before_a_false_wake();
}

/// One thread offers, the other runs out of work and lies down: it never sleeps beside an offer.
fn offer_and_lie_down() {
    loom::model(|| {
        let crew = Arc::new(Crew::<()>::new(2, 1));
        let sleeper = {
            let crew = crew.clone();
            thread::spawn(move || crew.claim(0).is_none() && crew.lie_down(1))
        };
        let roused = crew.offer(0, 0).is_some();
        let sleeps = sleeper.join().unwrap();
        assert!(!sleeps || roused, "it sleeps beside an offer");
    });
}

#[test]
fn model_crew_offer_and_lie_down() {
    offer_and_lie_down();
}

#[test]
#[should_panic]
fn model_crew_finds_a_missing_fence_after_the_offer() {
    plant("no fence after the offer");
    offer_and_lie_down();
}

#[test]
#[should_panic]
fn model_crew_finds_a_missing_fence_before_the_last_look() {
    plant("no fence before the last look");
    offer_and_lie_down();
}

/// Two threads claim from one set while it is filled: each offer is claimed once.
fn claim_once() {
    loom::model(|| {
        let crew = Arc::new(Crew::<()>::new(2, 2));
        assert_eq!(crew.offer(0, 0), None);
        let claims = [(), ()].map(|()| {
            let crew = crew.clone();
            thread::spawn(move || u32::from(crew.claim(0).is_some()))
        });
        assert_eq!(crew.offer(0, 1), None);
        let claimed: u32 = claims.into_iter().map(|claim| claim.join().unwrap()).sum();
        let left = u32::from(crew.claim(0).is_some()) + u32::from(crew.claim(0).is_some());
        assert_eq!(claimed + left, 2);
    });
}

#[test]
fn model_crew_claim_once() {
    claim_once();
}

#[test]
#[should_panic]
fn model_crew_finds_a_claim_by_load_and_store() {
    plant("claim by load and store");
    claim_once();
}

/// An alarm is set while another thread takes out those that are due: none is forgotten.
fn set_and_take_due() {
    loom::model(|| {
        let crew = Arc::new(Crew::<()>::new(2, 2));
        crew.set_alarm(0, 10);
        let other = {
            let crew = crew.clone();
            thread::spawn(move || {
                crew.set_alarm(1, 20);
            })
        };
        let mut due = Vec::new();
        crew.take_due(15, |item| due.push(item));
        other.join().unwrap();
        assert_eq!(due, [0]);
        assert!(crew.next_alarm_ns() <= 20, "an alarm was forgotten");
    });
}

#[test]
fn model_crew_set_and_take_due() {
    set_and_take_due();
}

#[test]
#[should_panic]
fn model_crew_finds_a_late_reset() {
    plant("next reset behind the scan");
    set_and_take_due();
}

/// A thread sets an alarm and goes on to something long, while the other one lies down: one of them watches the alarm.
fn watch_and_lie_down() {
    loom::model(|| {
        let crew = Arc::new(Crew::<()>::new(2, 1));
        // It has slept before, until a time that is over.
        crew.set_alarm(0, 5);
        assert!(crew.lie_down(1));
        crew.get_up(1);
        crew.take_due(5, |_| ());
        let sleeper = {
            let crew = crew.clone();
            thread::spawn(move || {
                assert!(crew.lie_down(1));
                crew.sleeps_until_ns(1)
            })
        };
        crew.set_alarm(0, 10);
        let roused = crew.watch_alarms(0);
        let until_ns = sleeper.join().unwrap();
        assert!(roused.is_some() || until_ns <= 10, "nobody watches the alarm");
    });
}

#[test]
fn model_crew_watch_and_lie_down() {
    watch_and_lie_down();
}

#[test]
#[should_panic]
fn model_crew_finds_a_missing_fence_after_the_alarm() {
    plant("no fence after the alarm");
    watch_and_lie_down();
}

#[test]
#[should_panic]
fn model_crew_finds_an_old_time() {
    plant("an old time is left");
    watch_and_lie_down();
}
