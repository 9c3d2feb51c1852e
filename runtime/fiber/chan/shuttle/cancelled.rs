//! Nine threads on two channels, of which four are cancelled while the others go on: a sender, a
//! receiver, and a select on either side. What was accepted arrives once; what was not comes back; and
//! whoever was not cancelled gets done.
use abi_sync::{explore, thread};
use fiber_chan::{
    Receiver, RecvError, Select, SelectTimeoutError, SendError, SendTimeoutError, Sender, bounded,
};
use fiber_rt::{Defect, ModelFiber, plant, shield};

const SOON: core::time::Duration = core::time::Duration::from_nanos(1);
/// Random schedules of a model.
const SCHEDULES: u64 = 3000;
/// Those that failed once: 1 found each of the mutants below.
const KEPT: [u64; 1] = [1];

/// What a sender had accepted; what it was refused has come back to it.
#[derive(Default)]
struct Sent {
    accepted: Vec<u32>,
    is_cancelled: bool,
}

impl Sent {
    fn note(&mut self, value: u32, result: Result<(), SendError<u32>>) {
        match result {
            Ok(()) => self.accepted.push(value),
            Err(SendError::Cancelled(back)) => {
                assert_eq!(back, value, "another value came back");
                self.is_cancelled = true;
            }
            Err(error) => panic!("{error:?}: nobody closes"),
        }
    }
}

fn send(first: u32, a: &Sender<u32>, b: &Sender<u32>) -> Sent {
    let mut sent = Sent::default();
    for value in first..first + 3 {
        let result = if value % 2 == 0 { a.send(value) } else { b.send(value) };
        sent.note(value, result);
    }
    // A time-out and a cancellation are two ends of one wait.
    let value = first + 3;
    match a.send_timeout(value, SOON) {
        Ok(()) => sent.accepted.push(value),
        Err(SendTimeoutError::Timeout(back)) => assert_eq!(back, value),
        Err(SendTimeoutError::Cancelled(back)) => sent.note(value, Err(SendError::Cancelled(back))),
        Err(error) => panic!("{error:?}: nobody closes"),
    }
    // Within a shield it is sent, cancelled or not.
    shield(|| a.send(first + 4)).unwrap();
    sent.accepted.push(first + 4);
    sent
}

fn select_send(first: u32, a: &Sender<u32>, b: &Sender<u32>) -> Sent {
    let mut sent = Sent::default();
    for value in first..first + 3 {
        let mut set = Select::new();
        set.send(a);
        set.send(b);
        match set.select() {
            Ok(chosen) if chosen.index() == 0 => sent.note(value, chosen.send(a, value)),
            Ok(chosen) => sent.note(value, chosen.send(b, value)),
            Err(SelectTimeoutError::Cancelled) => sent.is_cancelled = true,
            Err(other) => panic!("{other:?}"),
        }
    }
    sent
}

fn receive(from: &Receiver<u32>) -> Vec<u32> {
    let mut got = Vec::new();
    loop {
        match from.recv() {
            Ok(value) => got.push(value),
            Err(RecvError::Cancelled) => {
                // Sticky: the next one ends as well, unless it has no need to wait.
                got.extend(from.recv().ok());
                return got;
            }
            Err(RecvError::Disconnected) => return got,
        }
    }
}

fn select_receive(a: &Receiver<u32>, b: &Receiver<u32>) -> Vec<u32> {
    let (mut got, mut open) = (Vec::new(), vec![a, b]);
    while !open.is_empty() {
        let mut set = Select::new();
        open.iter().for_each(|channel| _ = set.recv(channel));
        let Ok(chosen) = set.select() else { return got };
        let index = chosen.index();
        let result = chosen.recv(open[index]);
        drop(set);
        match result {
            Ok(value) => got.push(value),
            Err(RecvError::Cancelled) => return got,
            Err(RecvError::Disconnected) => _ = open.remove(index),
        }
    }
    got
}

fn cancelled() {
    let (atx, arx) = bounded(0);
    let (btx, brx) = bounded(1);
    let mut senders = Vec::new();
    for (first, by) in
        [(10, send as fn(u32, &_, &_) -> _), (20, select_send), (30, send), (40, select_send)]
    {
        let (a, b) = (atx.clone(), btx.clone());
        senders.push(ModelFiber::spawn(move || by(first, &a, &b)));
    }
    drop((atx, btx));
    let mut receivers = Vec::new();
    for from in [arx.clone(), brx.clone()] {
        receivers.push(ModelFiber::spawn(move || receive(&from)));
    }
    for _ in 0..2 {
        let (a, b) = (arx.clone(), brx.clone());
        receivers.push(ModelFiber::spawn(move || select_receive(&a, &b)));
    }
    drop((arx, brx));
    // While all of them are at it. One of each kind stays on either side, so that all gets through.
    thread::yield_now();
    senders[..2].iter().for_each(|(fiber, _)| fiber.cancel());
    [&receivers[0], &receivers[2]].into_iter().for_each(|(fiber, _)| fiber.cancel());
    let sent: Vec<Sent> = senders.into_iter().map(|(_, thread)| thread.join().unwrap()).collect();
    for sent in &sent[2..] {
        assert!(!sent.is_cancelled, "another one was cancelled");
    }
    let lists = receivers.into_iter().map(|(_, thread)| thread.join().unwrap());
    let sorted = |lists: Vec<Vec<u32>>| {
        let mut all = lists.concat();
        all.sort_unstable();
        all
    };
    let accepted = sent.into_iter().map(|sent| sent.accepted).collect();
    assert_eq!(sorted(accepted), sorted(lists.collect()), "what was accepted arrives once");
}

#[test]
fn what_is_accepted_arrives_once_whoever_is_cancelled() {
    explore("channels, cancelled", &KEPT, SCHEDULES, cancelled);
}

#[test]
#[should_panic(expected = "what was accepted arrives once")]
fn mutant_cancellation_without_a_decision() {
    plant(Defect::CancelsWithoutDeciding);
    explore("mutant: cancelled, no decision", &[], SCHEDULES, cancelled);
}

#[test]
#[should_panic(expected = "exceeded max_steps")]
fn mutant_commitment_nobody_hears_of() {
    plant(Defect::CommitsWithoutWaking);
    explore("mutant: commitment without a wake, cancelled", &[], SCHEDULES, cancelled);
}

#[test]
#[should_panic(expected = "exceeded max_steps")]
fn mutant_search_that_ends_at_the_gone() {
    plant(Defect::StopsAtTheGone);
    explore("mutant: search ends at the gone", &[], SCHEDULES, cancelled);
}
