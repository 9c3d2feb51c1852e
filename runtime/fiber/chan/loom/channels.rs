//! Channels, the real ones: send, receive, close and time-out race, and no value is lost,
//! doubled or left behind.
use abi_sync::{explore, thread};
use fiber_chan::{RecvError, RecvTimeoutError, SendError, bounded, oneshot};
use fiber_rt::{Defect, plant};

const SOON: core::time::Duration = core::time::Duration::from_nanos(1);

/// A sender and a receiver meet, whoever comes first.
fn rendezvous(capacity: usize) {
    let (tx, rx) = bounded(capacity);
    let sender = thread::spawn(move || tx.send(7));
    assert_eq!(rx.recv(), Ok(7));
    assert_eq!(sender.join().unwrap(), Ok(()));
    assert_eq!(rx.recv(), Err(RecvError::Disconnected));
}

#[test]
fn a_sender_meets_a_receiver() {
    explore("rendezvous", || rendezvous(0));
}

#[test]
fn a_value_goes_through_a_buffer() {
    explore("buffer of one", || rendezvous(1));
}

#[test]
#[should_panic(expected = "maximum number of branches")]
fn mutant_link_without_looking_misses_a_sender() {
    plant(Defect::LinksWithoutLooking);
    explore("mutant: link without looking, rendezvous", || rendezvous(0));
}

#[test]
#[should_panic(expected = "maximum number of branches")]
fn mutant_link_without_looking_misses_the_buffer() {
    plant(Defect::LinksWithoutLooking);
    explore("mutant: link without looking, buffer", || rendezvous(1));
}

/// Two senders, one place: the second waits, and both arrive.
fn full_buffer() {
    let (tx, rx) = bounded(1);
    let other = tx.clone();
    let senders = [thread::spawn(move || tx.send(1)), thread::spawn(move || other.send(2))];
    let got = [rx.recv().unwrap(), rx.recv().unwrap()];
    assert!(got == [1, 2] || got == [2, 1]);
    senders.into_iter().for_each(|sender| assert_eq!(sender.join().unwrap(), Ok(())));
}

#[test]
fn a_sender_that_waits_is_admitted_by_a_receive() {
    explore("full buffer", full_buffer);
}

#[test]
#[should_panic(expected = "maximum number of branches")]
fn mutant_link_without_looking_misses_a_full_buffer() {
    plant(Defect::LinksWithoutLooking);
    explore("mutant: link without looking, full buffer", full_buffer);
}

/// A sender waits at a full channel when it is closed: it was admitted, and its value drains after
/// the buffer. One that comes later is refused.
fn close_against_sender() {
    let (tx, rx) = bounded(1);
    tx.send(1).unwrap();
    let sender = thread::spawn(move || tx.send(2));
    let was_parked = rx.has_parked_sender();
    rx.close();
    let values: Vec<u32> = rx.iter().collect();
    let sent = sender.join().unwrap();
    assert!(sent.is_ok() || !was_parked, "an admitted sender was refused");
    match sent {
        Ok(()) => assert_eq!(values, [1, 2], "an admitted value is lost"),
        Err(error) => {
            assert_eq!(error, SendError::Disconnected(2));
            assert_eq!(values, [1], "a refused value arrived");
        }
    }
}

#[test]
fn close_keeps_an_admitted_sender() {
    explore("close against a sender that waits", close_against_sender);
}

#[test]
#[should_panic(expected = "an admitted sender was refused")]
fn mutant_close_that_ends_senders_is_caught() {
    plant(Defect::CloseEndsSenders);
    explore("mutant: close ends senders", close_against_sender);
}

/// A receiver waits while another thread closes.
fn close_against_receiver() {
    let (tx, rx) = bounded::<u32>(0);
    let receiver = thread::spawn(move || rx.recv());
    assert!(tx.close());
    assert_eq!(receiver.join().unwrap(), Err(RecvError::Disconnected));
}

#[test]
fn close_ends_a_receiver() {
    explore("close against a receiver that waits", close_against_receiver);
}

#[test]
#[should_panic(expected = "maximum number of branches")]
fn mutant_link_without_looking_misses_the_close() {
    plant(Defect::LinksWithoutLooking);
    explore("mutant: link without looking, close", close_against_receiver);
}

/// The last receiver goes while a sender waits: the value comes back, or was received.
fn abandon() {
    let (tx, rx) = bounded(0);
    let sender = thread::spawn(move || tx.send(3));
    let got = rx.try_recv();
    drop(rx);
    match sender.join().unwrap() {
        Ok(()) => assert_eq!(got, Ok(3)),
        Err(error) => assert_eq!((error, got.is_err()), (SendError::Disconnected(3), true)),
    }
}

#[test]
fn the_last_receiver_gone_ends_a_sender() {
    explore("abandon", abandon);
}

#[test]
#[should_panic(expected = "maximum number of branches")]
fn mutant_abandon_that_leaves_senders_is_caught() {
    plant(Defect::AbandonsSenders);
    explore("mutant: senders left", abandon);
}

/// A receive times out while a value is handed to it: it is received, or still the sender's.
fn timeout_against_send() {
    let (tx, rx) = bounded(0);
    let sender = thread::spawn(move || tx.try_send(4).is_ok());
    let got = rx.recv_timeout(SOON);
    let is_sent = sender.join().unwrap();
    match got {
        Ok(value) => assert!(is_sent && value == 4),
        Err(error) => {
            assert!(!is_sent, "a value is lost");
            assert!(matches!(error, RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected));
        }
    }
}

#[test]
fn a_timeout_loses_no_value() {
    explore("time-out against send", timeout_against_send);
}

#[test]
#[should_panic(expected = "a value is lost")]
fn mutant_delivery_without_a_decision_is_caught() {
    plant(Defect::DeliversWithoutDeciding);
    explore("mutant: deliver without deciding", timeout_against_send);
}

/// One value for one receiver, or the sender is gone.
fn one_shot() {
    let (tx, rx) = oneshot::channel();
    let receiver = thread::spawn(move || rx.recv());
    tx.send(6).unwrap();
    assert_eq!(receiver.join().unwrap(), Ok(6));
    let (tx, rx) = oneshot::channel::<u8>();
    let receiver = thread::spawn(move || rx.recv());
    drop(tx);
    assert_eq!(receiver.join().unwrap(), Err(RecvError::Disconnected));
}

#[test]
fn oneshot_arrives_or_comes_back() {
    explore("oneshot", one_shot);
}

#[test]
#[should_panic(expected = "maximum number of branches")]
fn mutant_link_without_looking_misses_the_one_value() {
    plant(Defect::LinksWithoutLooking);
    explore("mutant: link without looking, oneshot", one_shot);
}
