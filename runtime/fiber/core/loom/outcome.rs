//! Data, time-out, close and cancellation race for one wait: one of them decides, and its data is there.
use abi_sync::atomic::{AtomicU32, Ordering};
use abi_sync::{Arc, CheckedCell, explore, thread};
use fiber_core::{Outcome, OutcomeCell};

trait Decide: Send + Sync + 'static {
    fn new() -> Self;
    fn decide(&self, outcome: Outcome) -> bool;
    fn get(&self) -> Option<Outcome>;
}

impl Decide for OutcomeCell {
    fn new() -> Self {
        OutcomeCell::new()
    }
    fn decide(&self, outcome: Outcome) -> bool {
        OutcomeCell::decide(self, outcome)
    }
    fn get(&self) -> Option<Outcome> {
        OutcomeCell::get(self)
    }
}

fn race<D: Decide>(outcomes: &'static [Outcome]) {
    let cell = Arc::new(D::new());
    let threads: Vec<_> = outcomes
        .iter()
        .map(|outcome| {
            let cell = cell.clone();
            thread::spawn(move || cell.decide(*outcome))
        })
        .collect();
    let early = cell.get();
    let wins = threads.into_iter().map(|t| t.join().unwrap()).filter(|w| *w).count();
    assert_eq!(wins, 1, "one decides");
    assert!(early.is_none() || early == cell.get(), "a decision changed");
}

#[test]
fn one_of_three_decides() {
    explore("data, time-out, cancellation", || {
        race::<OutcomeCell>(&[Outcome::Data(0), Outcome::Timeout, Outcome::Cancelled]);
    });
}

#[test]
fn one_of_two_arms_decides() {
    explore("two arms", || race::<OutcomeCell>(&[Outcome::Data(0), Outcome::Closed(1)]));
}

/// What the winner moved before it decided is there when the waiter sees the decision.
fn data_is_there(decide: fn(&OutcomeCell) -> bool, look: fn(&OutcomeCell) -> bool) {
    explore("data before decision", move || {
        let world = Arc::new((OutcomeCell::new(), CheckedCell::new(0)));
        let sender = {
            let world = world.clone();
            thread::spawn(move || {
                world.1.update(|value| *value = 7);
                assert!(decide(&world.0));
            })
        };
        if look(&world.0) {
            assert_eq!(world.1.get(), 7);
        }
        sender.join().unwrap();
    });
}

#[test]
fn the_data_is_there() {
    data_is_there(|cell| cell.decide(Outcome::Data(0)), |cell| cell.get().is_some());
}

/// Look, then store: two may win.
struct LookThenStore(AtomicU32);

impl Decide for LookThenStore {
    fn new() -> Self {
        Self(AtomicU32::new(0))
    }
    fn decide(&self, _: Outcome) -> bool {
        if self.0.load(Ordering::SeqCst) != 0 {
            return false;
        }
        self.0.store(1, Ordering::SeqCst);
        true
    }
    fn get(&self) -> Option<Outcome> {
        None
    }
}

#[test]
#[should_panic(expected = "one decides")]
fn mutant_look_then_store_decides_twice() {
    explore("mutant: look then store", || {
        race::<LookThenStore>(&[Outcome::Data(0), Outcome::Timeout, Outcome::Cancelled]);
    });
}

#[test]
#[should_panic(expected = "one decides")]
fn mutant_look_then_store_takes_two_arms() {
    explore("mutant: two arms", || {
        race::<LookThenStore>(&[Outcome::Data(0), Outcome::Closed(1)]);
    });
}

/// Decides before the data is moved.
#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_decision_before_the_data_is_caught() {
    explore("mutant: decide, then move", || {
        let world = Arc::new((OutcomeCell::new(), CheckedCell::new(0)));
        let sender = {
            let world = world.clone();
            thread::spawn(move || {
                let _ = world.0.decide(Outcome::Data(0));
                world.1.update(|value| *value = 7);
            })
        };
        if world.0.get().is_some() {
            world.1.get();
        }
        sender.join().unwrap();
    });
}
