//! Those who wait to be told that a channel is ready: each of them is told, and nothing is taken.
use abi_sync::{explore, thread};
use fiber_chan::{Receiver, Select, Sender, bounded};
use fiber_rt::{Defect, plant};

fn receivable(end: &Receiver<u32>) -> usize {
    let mut set = Select::new();
    set.recv(end);
    set.ready().unwrap()
}

fn sendable(end: &Sender<u32>) -> usize {
    let mut set = Select::new();
    set.send(end);
    set.ready().unwrap()
}

/// Two are told of one value, which stays where it is.
fn two_watch() {
    let (tx, rx) = bounded(1);
    let ends = [rx.clone(), rx.clone()];
    let watches = ends.map(|end| thread::spawn(move || receivable(&end)));
    tx.send(1).unwrap();
    watches.into_iter().for_each(|watch| assert_eq!(watch.join().unwrap(), 0));
    assert_eq!(rx.try_recv(), Ok(1), "a look took the value");
}

#[test]
fn everybody_is_told_of_a_value() {
    explore("two watch", two_watch);
}

#[test]
#[should_panic(expected = "maximum number of branches")]
fn mutant_news_that_is_not_passed_on() {
    plant(Defect::KeepsNewsToItself);
    explore("mutant: news not passed on", two_watch);
}

#[test]
#[should_panic(expected = "maximum number of branches")]
fn mutant_link_without_looking_misses_the_value() {
    plant(Defect::LinksWithoutLooking);
    explore("mutant: link without looking, watch", two_watch);
}

/// Somebody who comes to the other side of a rendezvous is news.
fn rendezvous() {
    let (tx, rx) = bounded(0);
    let sender = thread::spawn(move || tx.send(1));
    assert_eq!(receivable(&rx), 0);
    assert_eq!(rx.try_recv(), Ok(1), "told without reason");
    assert_eq!(sender.join().unwrap(), Ok(()));
    let (tx, rx) = bounded(0);
    let receiver = thread::spawn(move || rx.recv());
    assert_eq!(sendable(&tx), 0);
    assert_eq!(tx.try_send(2), Ok(()), "told without reason");
    assert_eq!(receiver.join().unwrap(), Ok(2));
}

#[test]
fn who_comes_to_a_rendezvous_is_news() {
    explore("watch, rendezvous", rendezvous);
}

/// A place that gets free, and the end.
fn place_and_close() {
    let (tx, rx) = bounded(1);
    tx.send(1).unwrap();
    let other = rx.clone();
    let taker = thread::spawn(move || {
        assert_eq!(other.recv(), Ok(1));
        other.close();
    });
    assert_eq!(sendable(&tx), 0);
    assert_eq!(receivable(&rx), 0);
    assert!(rx.try_recv().is_err() || !rx.is_closed());
    taker.join().unwrap();
}

#[test]
fn a_place_and_the_end_are_news() {
    explore("watch, place and close", place_and_close);
}
