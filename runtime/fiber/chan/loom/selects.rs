//! Select, the real one, against sends, receives and other selects: what it chooses it gets, what it
//! does not choose stays where it is, and nobody waits for somebody who waits.
use abi_sync::{explore, thread};
use fiber_chan::{Receiver, RecvError, Select, Sender, bounded, told};
use fiber_rt::{Defect, plant};

/// Sends its index to whichever channel is ready.
fn send_either(to: [&Sender<usize>; 2]) -> usize {
    let mut set = Select::new();
    to.iter().for_each(|end| _ = set.send(end));
    let chosen = set.select().unwrap();
    let index = chosen.index();
    assert_eq!(chosen.send(to[index], index), Ok(()));
    index
}

/// Receives from whichever channel is ready.
fn receive_either(from: [&Receiver<usize>; 2]) -> usize {
    let mut set = Select::new();
    from.iter().for_each(|end| _ = set.recv(end));
    let chosen = set.select().unwrap();
    let index = chosen.index();
    assert_eq!(chosen.recv(from[index]), Ok(index), "another value than was sent");
    index
}

/// One waits for two channels; both get a value. One is taken, the other stays where it is.
fn losers() {
    let ((tx1, rx1), (tx2, rx2)) = (bounded(1), bounded(1));
    let senders =
        [thread::spawn(move || tx1.send(0).unwrap()), thread::spawn(move || tx2.send(1).unwrap())];
    let other = match receive_either([&rx1, &rx2]) {
        0 => rx2.recv(),
        _ => rx1.recv(),
    };
    other.expect("the loser's value is lost");
    senders.into_iter().for_each(|sender| sender.join().unwrap());
}

#[test]
fn a_select_takes_one_and_leaves_the_other() {
    explore("select losers", losers);
}

#[test]
#[should_panic(expected = "the loser's value is lost")]
fn mutant_commitment_without_a_decision_loses_a_value() {
    plant(Defect::CommitsUndecided);
    explore("mutant: commit undecided", losers);
}

/// A sender that selects meets a receiver, plain or selecting.
fn selecting_sender(receive: fn(&Receiver<u32>) -> Result<u32, RecvError>) {
    let (tx, rx) = bounded(0);
    let sender = thread::spawn(move || {
        let mut set = Select::new();
        set.send(&tx);
        set.select().unwrap().send(&tx, 5)
    });
    assert_eq!(receive(&rx), Ok(5));
    assert_eq!(sender.join().unwrap(), Ok(()));
}

fn selecting(rx: &Receiver<u32>) -> Result<u32, RecvError> {
    let mut set = Select::new();
    set.recv(rx);
    set.select().unwrap().recv(rx)
}

#[test]
fn a_selecting_sender_meets_a_receiver() {
    explore("selecting sender", || selecting_sender(Receiver::recv));
}

#[test]
#[should_panic(expected = "maximum number of branches")]
fn mutant_commitment_nobody_hears_of_leaves_a_receiver() {
    plant(Defect::CommitsWithoutWaking);
    explore("mutant: silent commitment", || selecting_sender(Receiver::recv));
}

#[test]
fn two_selects_meet() {
    explore("two selects", || selecting_sender(selecting));
}

#[test]
#[should_panic(expected = "maximum number of branches")]
fn mutant_commitment_nobody_hears_of_leaves_a_select() {
    plant(Defect::CommitsWithoutWaking);
    explore("mutant: silent commitment, two selects", || selecting_sender(selecting));
}

#[test]
#[should_panic(expected = "maximum number of branches")]
fn mutant_link_without_looking_misses_a_select() {
    plant(Defect::LinksWithoutLooking);
    explore("mutant: link without looking, two selects", || selecting_sender(selecting));
}

/// Two selects on the two sides of two channels, which they link in any order: each may find the
/// other at one channel while it is found itself at the other.
fn opposed() {
    let ((atx, arx), (btx, brx)) = (bounded(0), bounded(0));
    let sender = thread::spawn(move || send_either([&atx, &btx]));
    let received = receive_either([&arx, &brx]);
    assert_eq!(sender.join().unwrap(), received, "they met at one channel");
}

#[test]
fn two_selects_meet_at_one_of_two_channels() {
    explore("two selects, two channels", opposed);
}

#[test]
#[should_panic(expected = "another value than was sent")]
fn mutant_commitment_without_a_decision_is_two() {
    plant(Defect::CommitsUndecided);
    explore("mutant: commit undecided, two selects", opposed);
}

/// Two selects that send and one that receives twice, each with its own order of the channels.
fn crowded() {
    let ((atx, arx), (btx, brx)) = (bounded(0), bounded(0));
    let (a, b) = (atx.clone(), btx.clone());
    let senders = [
        thread::spawn(move || send_either([&atx, &btx])),
        thread::spawn(move || send_either([&b, &a])),
    ];
    let mut left = receive_any([&arx, &brx]) + receive_any([&brx, &arx]);
    senders.into_iter().for_each(|sender| left -= sender.join().unwrap());
    assert_eq!(left, 0, "what was sent is what was received");
}

/// As `receive_either`, whatever the value is.
fn receive_any(from: [&Receiver<usize>; 2]) -> usize {
    let mut set = Select::new();
    from.iter().for_each(|end| _ = set.recv(end));
    let chosen = set.select().unwrap();
    let index = chosen.index();
    chosen.recv(from[index]).unwrap()
}

#[test]
fn three_selects_meet_in_pairs() {
    explore("three selects, two channels", crowded);
}

/// A select that sends gives up what it chose: the select it had found goes on with all of its arms.
fn revoked() {
    let ((atx, arx), (btx, brx)) = (bounded(0), bounded(1));
    let sender = thread::spawn(move || {
        let mut set = Select::new();
        set.send(&atx);
        drop(set.select().unwrap());
        drop(set);
        btx.send(1).unwrap();
        // Not closed by its going.
        atx
    });
    assert_eq!(receive_either([&arx, &brx]), 1);
    drop(sender.join().unwrap());
}

#[test]
fn a_select_whose_partner_gives_up_chooses_again() {
    explore("a partner gives up", revoked);
}

#[test]
#[should_panic(expected = "another value than was sent")]
fn mutant_promise_that_is_trusted_is_caught() {
    plant(Defect::TrustsPromises);
    explore("mutant: promise trusted", revoked);
}

/// It is time at one arm while a value comes to another: what is not chosen is there later.
fn timer_loses() {
    let ((tx, rx), (tell, clock)) = (bounded(0), told());
    let sender = thread::spawn(move || {
        tell.tell();
        tx.send(1).is_ok()
    });
    let mut set = Select::new();
    set.recv(&rx);
    set.recv(&clock);
    let chosen = set.select().unwrap();
    match chosen.index() {
        0 => {
            assert_eq!(chosen.recv(&rx), Ok(1));
            assert!(clock.try_recv().is_ok(), "the timer's value is lost");
        }
        _ => {
            assert!(chosen.recv(&clock).is_ok());
            assert_eq!(rx.recv(), Ok(1), "the sender's value is lost");
        }
    }
    assert!(sender.join().unwrap());
}

#[test]
fn a_timer_that_loses_keeps_its_value() {
    explore("a timer loses", timer_loses);
}

#[test]
#[should_panic(expected = "the sender's value is lost")]
fn mutant_commitment_without_a_decision_takes_the_time_too() {
    plant(Defect::CommitsUndecided);
    explore("mutant: commit undecided, a timer", timer_loses);
}
