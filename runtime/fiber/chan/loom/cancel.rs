//! Waits at channels that are cancelled while others go on: no value is swallowed or doubled, and
//! nobody else is left waiting.
use abi_sync::{explore, thread};
use fiber_chan::{RecvError, Select, SelectTimeoutError, SendError, bounded};
use fiber_rt::{Defect, ModelFiber, plant, shield};

/// A receiver is cancelled while a value is handed to it: it has the value, or it is still the
/// sender's.
fn receiver() {
    let (tx, rx) = bounded(0);
    let (fiber, receiver) = ModelFiber::spawn(move || rx.recv());
    let sender = thread::spawn(move || tx.try_send(1).is_ok());
    fiber.cancel();
    let is_sent = sender.join().unwrap();
    match receiver.join().unwrap() {
        Ok(value) => assert!(is_sent && value == 1),
        Err(_) => assert!(!is_sent, "a cancelled wait swallowed a value"),
    }
}

#[test]
fn a_cancelled_receiver_swallows_nothing() {
    explore("cancelled receiver", receiver);
}

#[test]
#[should_panic(expected = "a cancelled wait swallowed a value")]
fn mutant_cancellation_without_a_decision_swallows_a_value() {
    plant(Defect::CancelsWithoutDeciding);
    explore("mutant: cancelled receiver, no decision", receiver);
}

/// A sender is cancelled while its value is taken: it comes back exactly if it was not.
fn sender() {
    let (tx, rx) = bounded(0);
    let (fiber, sender) = ModelFiber::spawn(move || tx.send(2));
    fiber.cancel();
    let got = rx.try_recv();
    match sender.join().unwrap() {
        Ok(()) => assert_eq!(got, Ok(2)),
        Err(error) => {
            assert_eq!(error, SendError::Cancelled(2));
            assert!(got.is_err(), "taken, and given back as well");
        }
    }
}

#[test]
fn a_cancelled_sender_has_its_value_back_if_nobody_has_it() {
    explore("cancelled sender", sender);
}

#[test]
#[should_panic(expected = "taken, and given back as well")]
fn mutant_cancellation_without_a_decision_doubles_a_value() {
    plant(Defect::CancelsWithoutDeciding);
    explore("mutant: cancelled sender, no decision", sender);
}

#[test]
#[should_panic(expected = "maximum number of branches")]
fn mutant_cancellation_of_the_parked_alone_is_missed() {
    plant(Defect::CancelsOnlyTheParked);
    explore("mutant: cancelled sender, only if parked", sender);
}

/// A select is cancelled while one of its channels gets a value: it takes the value, or leaves it.
fn select() {
    let (tx, rx) = bounded(1);
    let (_other, never) = bounded::<u32>(0);
    let selected = rx.clone();
    let (fiber, selecting) = ModelFiber::spawn(move || {
        let mut set = Select::new();
        set.recv(&never);
        set.recv(&selected);
        match set.select() {
            Ok(chosen) => chosen.recv(&selected).ok(),
            Err(SelectTimeoutError::Cancelled) => None,
            Err(other) => panic!("{other:?}"),
        }
    });
    let sender = thread::spawn(move || tx.send(3));
    fiber.cancel();
    assert_eq!(sender.join().unwrap(), Ok(()));
    let taken = selecting.join().unwrap();
    let left = rx.try_recv().ok();
    assert_eq!(taken.or(left), Some(3), "a cancelled select swallowed a value");
    assert!(taken.is_none() || left.is_none(), "one value arrived twice");
}

#[test]
fn a_cancelled_select_takes_a_value_or_leaves_it() {
    explore("cancelled select", select);
}

#[test]
#[should_panic(expected = "a cancelled select swallowed a value")]
fn mutant_cancelled_select_without_a_decision_keeps_a_value() {
    plant(Defect::CancelsWithoutDeciding);
    explore("mutant: cancelled select, no decision", select);
}

/// Two wait for a value and one of them is cancelled: the value finds the other.
fn others() {
    let (tx, rx) = bounded(0);
    let other = rx.clone();
    let (fiber, first) = ModelFiber::spawn(move || rx.recv());
    let second = thread::spawn(move || other.recv());
    fiber.cancel();
    assert_eq!(tx.send(4), Ok(()));
    drop(tx);
    let got = [first.join().unwrap(), second.join().unwrap()];
    assert!(matches!(got, [Ok(4), Err(RecvError::Disconnected)] | [Err(_), Ok(4)]), "{got:?}");
}

#[test]
fn others_at_the_channel_are_not_stranded() {
    explore("one of two is cancelled", others);
}

#[test]
#[should_panic(expected = "maximum number of branches")]
fn mutant_search_that_ends_at_the_gone_strands_the_other() {
    plant(Defect::StopsAtTheGone);
    explore("mutant: search ends at the gone", others);
}

/// Within a shield a wait goes on; the first one after it ends.
fn shielded() {
    let (tx, rx) = bounded(0);
    let (fiber, receiver) = ModelFiber::spawn(move || (shield(|| rx.recv()), rx.recv()));
    fiber.cancel();
    let sent = tx.send(5);
    let got = receiver.join().unwrap();
    assert_eq!(got, (Ok(5), Err(RecvError::Cancelled)), "a shield masks, and no longer than it is");
    assert_eq!(sent, Ok(()));
}

#[test]
fn a_shield_masks_and_the_cancellation_stays() {
    explore("shielded receiver", shielded);
}

#[test]
#[should_panic(expected = "a shield masks")]
fn mutant_shield_that_masks_nothing() {
    plant(Defect::ShieldsNothing);
    explore("mutant: no shield", shielded);
}
