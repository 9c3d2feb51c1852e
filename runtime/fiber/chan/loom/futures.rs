//! Futures at channels, which may be dropped at any moment: no value is lost, doubled or left with one
//! that is gone, and who is polled last is woken.
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use abi_sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use abi_sync::{explore, thread};
use fiber_chan::{RecvError, Select, bounded};
use fiber_rt::{Defect, ModelFiber, block_on, plant};

/// Notes that it was woken.
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, SeqCst);
    }
}

fn flag() -> (Arc<Flag>, Waker) {
    let flag = Arc::new(Flag(AtomicBool::new(false)));
    (flag.clone(), flag.into())
}

fn poll<F: Future>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(waker))
}

fn poll_once<F: Future>(future: F) -> Poll<F::Output> {
    poll(pin!(future), &flag().1)
}

/// A receive is dropped while a value is handed to it: that is there for the next, or still the
/// sender's.
fn dropped_receive() {
    let (tx, rx) = bounded(0);
    let sender = thread::spawn(move || tx.try_send(1).is_ok());
    let polled = poll_once(rx.recv_async());
    let is_sent = sender.join().unwrap();
    let got = [polled == Poll::Ready(Ok(1)), rx.try_recv() == Ok(1)];
    assert_eq!(got.into_iter().filter(|got| *got).count(), usize::from(is_sent), "a value is lost");
}

#[test]
fn a_receive_that_is_dropped_loses_no_value() {
    explore("dropped receive", dropped_receive);
}

#[test]
#[should_panic(expected = "a value is lost")]
fn mutant_drop_that_keeps_the_value() {
    plant(Defect::DropsWhatItHolds);
    explore("mutant: value kept", dropped_receive);
}

/// The same, while another receiver waits and the last sender goes: it gets the value.
fn passed_on() {
    let (tx, rx) = bounded(0);
    let other = rx.clone();
    let receiver = thread::spawn(move || other.recv());
    let sender = thread::spawn(move || tx.send(2));
    let polled = poll_once(rx.recv_async());
    assert_eq!(sender.join().unwrap(), Ok(()));
    match (polled, receiver.join().unwrap()) {
        (Poll::Ready(Ok(2)), Err(RecvError::Disconnected)) => {}
        (Poll::Pending | Poll::Ready(Err(_)), Ok(2)) => {}
        other => panic!("the value found nobody: {other:?}"),
    }
}

#[test]
fn what_a_dropped_receive_held_goes_to_the_next() {
    explore("passed on", passed_on);
}

#[test]
#[should_panic(expected = "maximum number of branches")]
fn mutant_drop_that_passes_nothing_on() {
    plant(Defect::DropsWhatItHolds);
    explore("mutant: nothing passed on", passed_on);
}

#[test]
#[should_panic(expected = "the value found nobody")]
fn mutant_channel_drained_too_early() {
    plant(Defect::ForgetsWhatIsInHand);
    explore("mutant: drained early", passed_on);
}

/// A receive is polled with one waker and then with another: the later one is woken.
fn two_wakers() {
    let (tx, rx) = bounded(0);
    let sender = thread::spawn(move || tx.send(3));
    let mut future = pin!(rx.recv_async());
    let mut got = poll(future.as_mut(), &flag().1);
    for _ in 0..2 {
        let (flag, waker) = flag();
        if got.is_pending() {
            got = poll(future.as_mut(), &waker);
        }
        // The second time it must have been the last waker that was woken.
        while got.is_pending() && !flag.0.load(SeqCst) {
            thread::yield_now();
        }
    }
    assert_eq!(got, Poll::Ready(Ok(3)), "woken too early");
    assert_eq!(sender.join().unwrap(), Ok(()));
}

#[test]
fn the_last_waker_is_woken() {
    explore("two wakers", two_wakers);
}

#[test]
#[should_panic(expected = "maximum number of branches")]
fn mutant_look_before_the_waker_is_set() {
    plant(Defect::LooksBeforeItRegisters);
    explore("mutant: look, then register", two_wakers);
}

/// A sender that selects has committed itself to a receive that is dropped: another one gets the value.
fn renounced() {
    let (tx, rx) = bounded(0);
    let sender = thread::spawn(move || {
        let mut set = Select::new();
        set.send(&tx);
        set.select().unwrap().send(&tx, 4)
    });
    let got = match poll_once(rx.recv_async()) {
        Poll::Ready(got) => got,
        Poll::Pending => rx.recv(),
    };
    assert_eq!(got, Ok(4));
    assert_eq!(sender.join().unwrap(), Ok(()));
}

#[test]
fn a_promise_to_a_dropped_receive_is_anybodys() {
    explore("renounced", renounced);
}

#[test]
#[should_panic(expected = "maximum number of branches")]
fn mutant_promise_that_is_kept() {
    plant(Defect::KeepsItsPromise);
    explore("mutant: promise kept", renounced);
}

struct Counted(Arc<AtomicU32>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// A send is dropped while its value is taken: it is dropped once, by whoever has it.
fn dropped_send() {
    let drops = Arc::new(AtomicU32::new(0));
    let (tx, rx) = bounded(0);
    let receiver = thread::spawn(move || drop(rx.try_recv()));
    let _ = poll_once(tx.send_async(Counted(drops.clone())));
    receiver.join().unwrap();
    assert_eq!(drops.load(SeqCst), 1, "dropped once");
}

#[test]
fn a_send_that_is_dropped_has_sent_or_has_its_value() {
    explore("dropped send", dropped_send);
}

#[test]
#[should_panic(expected = "dropped once")]
fn mutant_drop_of_what_was_taken() {
    plant(Defect::DropsWhatWasTaken);
    explore("mutant: taken and dropped", dropped_send);
}

/// A fiber runs both ends' futures to their end.
fn run() {
    let (tx, rx) = bounded(0);
    let sender = thread::spawn(move || block_on(tx.send_async(5)));
    assert_eq!(block_on(rx.recv_async()), Ok(Ok(5)));
    assert_eq!(sender.join().unwrap(), Ok(Ok(())));
}

#[test]
fn futures_meet() {
    explore("futures meet", run);
}

#[test]
#[should_panic(expected = "maximum number of branches")]
fn mutant_wait_without_a_look_at_the_bell() {
    plant(Defect::LinksWithoutLooking);
    explore("mutant: bell not looked at", run);
}

/// A fiber that runs a future is cancelled: the value it was to get is there for the next.
fn cancelled() {
    let (tx, rx) = bounded(0);
    let receiver = rx.clone();
    let (fiber, running) = ModelFiber::spawn(move || block_on(receiver.recv_async()));
    let sender = thread::spawn(move || tx.try_send(6).is_ok());
    fiber.cancel();
    let is_sent = sender.join().unwrap();
    let got = running.join().unwrap();
    let got = [got == Ok(Ok(6)), rx.try_recv() == Ok(6)];
    assert_eq!(got.into_iter().filter(|got| *got).count(), usize::from(is_sent), "a value is lost");
}

#[test]
fn a_cancelled_fiber_drops_its_future_and_no_value() {
    explore("cancelled while it runs a future", cancelled);
}

#[test]
#[should_panic(expected = "a value is lost")]
fn mutant_cancelled_fiber_whose_future_keeps_the_value() {
    plant(Defect::DropsWhatItHolds);
    explore("mutant: cancelled, value kept", cancelled);
}
