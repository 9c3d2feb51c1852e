//! Two threads add: nothing is lost, and a planted lost update is found.
use abi_sync::{Arc, thread};
use rules_core::Counter;

fn two_add(add: fn(&Counter)) {
    abi_sync::model(move || {
        let counter = Arc::new(Counter::new());
        let other = counter.clone();
        let t = thread::spawn(move || add(&other));
        add(&counter);
        t.join().unwrap();
        assert_eq!(counter.get(), 2);
    });
}

#[test]
fn no_update_is_lost() {
    two_add(|c| {
        c.add();
    });
}

#[test]
#[should_panic]
fn the_mutant_is_caught() {
    two_add(Counter::add_in_two_steps);
}
