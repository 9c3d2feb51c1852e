//! Eight threads on two channels, some of which use futures, run them, drop them after a poll or are
//! cancelled while they run one; beside them plain waits, selects and a close. What was accepted arrives
//! once, and everybody gets done.
#[path = "common/parties.rs"]
mod parties;

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};

use abi_sync::{explore, thread};
use fiber_chan::{Receiver, Sender, bounded};
use fiber_rt::{Defect, ModelFiber, block_on, plant};
use parties::{accept, select_send, sorted};

/// Random schedules of a model.
const SCHEDULES: u64 = 3000;
/// Those that failed once: 0 found the promise that is kept, 2 the value, 72 the channel that is drained.
const KEPT: [u64; 3] = [0, 2, 72];

/// Wakes nobody: its future is polled once.
struct Nobody;

impl Wake for Nobody {
    fn wake(self: Arc<Self>) {}
}

fn poll_once<F: Future>(future: F) -> Poll<F::Output> {
    let waker = Arc::new(Nobody).into();
    let mut future = pin!(future);
    let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
    // Something may be handed to it before it is dropped.
    thread::yield_now();
    polled
}

/// Sends by turns as a future and as a thread does.
fn send(first: u32, a: &Sender<u32>, b: &Sender<u32>) -> Vec<u32> {
    let mut sent = Vec::new();
    for value in first..first + 3 {
        let to = if value % 2 == 0 { a } else { b };
        let result = match value % 3 {
            0 => to.send(value),
            _ => block_on(to.send_async(value)).unwrap(),
        };
        accept(&mut sent, value, result);
    }
    sent
}

/// Drops a receive after its first poll, and then waits for another.
fn drops(from: &Receiver<u32>) -> Vec<u32> {
    let mut got = Vec::new();
    loop {
        if let Poll::Ready(Ok(value)) = poll_once(from.recv_async()) {
            got.push(value);
        }
        match block_on(from.recv_async()).unwrap() {
            Ok(value) => got.push(value),
            Err(_) => return got,
        }
    }
}

fn until_cancelled(from: &Receiver<u32>) -> Vec<u32> {
    let mut got = Vec::new();
    while let Ok(Ok(value)) = block_on(from.recv_async()) {
        got.push(value);
    }
    got
}

fn plain(from: &Receiver<u32>) -> Vec<u32> {
    from.iter().collect()
}

fn futures() {
    let (atx, arx) = bounded(0);
    let (btx, brx) = bounded(1);
    let mut senders = Vec::new();
    for (first, by) in [(10, send as fn(u32, &_, &_) -> _), (20, send), (30, select_send)] {
        let (a, b) = (atx.clone(), btx.clone());
        senders.push(thread::spawn(move || by(first, &a, &b)));
    }
    drop((atx, btx));
    let receiver = |from: &Receiver<u32>, by: fn(&Receiver<u32>) -> Vec<u32>| {
        let from = from.clone();
        ModelFiber::spawn(move || by(&from))
    };
    let (fiber, cancelled) = receiver(&arx, until_cancelled);
    let others = [receiver(&arx, drops), receiver(&arx, plain), receiver(&brx, drops)];
    thread::yield_now();
    fiber.cancel();
    brx.close();
    drop((arx, brx));
    let receivers = others.map(|(_, thread)| thread).into_iter().chain([cancelled]);
    assert_eq!(sorted(senders), sorted(receivers), "what was accepted arrives once");
}

#[test]
fn what_is_accepted_arrives_once_with_futures() {
    explore("channels, futures", &KEPT, SCHEDULES, futures);
}

#[test]
#[should_panic(expected = "exceeded max_steps")]
fn mutant_drop_that_keeps_the_value() {
    plant(Defect::DropsWhatItHolds);
    explore("mutant: value kept", &[], SCHEDULES, futures);
}

#[test]
#[should_panic(expected = "exceeded max_steps")]
fn mutant_promise_that_is_kept() {
    plant(Defect::KeepsItsPromise);
    explore("mutant: promise kept", &[], SCHEDULES, futures);
}

#[test]
#[should_panic(expected = "what was accepted arrives once")]
fn mutant_channel_drained_too_early() {
    plant(Defect::ForgetsWhatIsInHand);
    explore("mutant: drained early", &[], SCHEDULES, futures);
}
