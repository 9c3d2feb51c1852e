//! Six threads that all select, three on each side of three channels without a buffer, in any order;
//! some give up what they chose, some wait for no longer than a while. What was sent arrives once.
use abi_sync::{explore, thread};
use fiber_chan::{Receiver, Select, SelectTimeoutError, Sender, bounded};
use fiber_rt::{Defect, plant};

const SOON: core::time::Duration = core::time::Duration::from_nanos(1);
/// Random schedules of a model.
const SCHEDULES: u64 = 3000;
/// What each thread sends or receives.
const EACH: u32 = 3;

/// In place of a value that did not come.
const NOTHING: u32 = 0;

type Ends<E> = Vec<E>;

/// Sends `first` and those after it, each to any of `to`; one of them in two steps.
fn send(first: u32, to: &Ends<Sender<u32>>) {
    for value in first..first + EACH {
        let mut set = Select::new();
        to.iter().for_each(|end| _ = set.send(end));
        let chosen = set.select().unwrap();
        let index = chosen.index();
        if value % 4 == 0 {
            // Whoever was found for it chooses again.
            drop(chosen);
            to[index].send(value).unwrap();
        } else {
            chosen.send(&to[index], value).unwrap();
        }
    }
}

/// Receives from any of `from`.
fn receive(from: &Ends<Receiver<u32>>) -> Vec<u32> {
    let mut got = Vec::new();
    while got.len() < EACH as usize {
        let mut set = Select::new();
        from.iter().for_each(|end| _ = set.recv(end));
        let chosen = if got.len() == 1 { set.select_timeout(SOON) } else { set.select() };
        match chosen {
            Ok(chosen) => {
                let end = &from[chosen.index()];
                // Nobody closes: looked at when all have ended.
                got.push(chosen.recv(end).unwrap_or(NOTHING));
            }
            Err(SelectTimeoutError::Timeout) => thread::yield_now(),
            Err(other) => panic!("{other:?}"),
        }
    }
    got
}

fn opposed() {
    let (senders, receivers): (Ends<_>, Ends<_>) = (0..3).map(|_| bounded(0)).unzip();
    let mut sends = Vec::new();
    let mut receives = Vec::new();
    for first in [10, 20, 30] {
        let (to, from) = (senders.clone(), receivers.clone());
        sends.push(thread::spawn(move || send(first, &to)));
        receives.push(thread::spawn(move || receive(&from)));
    }
    sends.into_iter().for_each(|sends| sends.join().unwrap());
    let mut got: Vec<u32> = receives.into_iter().flat_map(|got| got.join().unwrap()).collect();
    got.sort_unstable();
    assert_eq!(got, [10, 11, 12, 20, 21, 22, 30, 31, 32], "what was sent arrives once");
}

#[test]
fn selects_on_both_sides_meet() {
    explore("selects on both sides", &[], SCHEDULES, opposed);
}

#[test]
#[should_panic(expected = "exceeded max_steps")]
fn mutant_commitment_without_a_decision() {
    plant(Defect::CommitsUndecided);
    explore("mutant: commit undecided", &[], SCHEDULES, opposed);
}

#[test]
#[should_panic(expected = "exceeded max_steps")]
fn mutant_promise_that_is_trusted() {
    plant(Defect::TrustsPromises);
    explore("mutant: promise trusted", &[], SCHEDULES, opposed);
}

#[test]
#[should_panic(expected = "exceeded max_steps")]
fn mutant_commitment_nobody_hears_of() {
    plant(Defect::CommitsWithoutWaking);
    explore("mutant: silent commitment", &[], SCHEDULES, opposed);
}

#[test]
#[should_panic(expected = "exceeded max_steps")]
fn mutant_link_without_looking() {
    plant(Defect::LinksWithoutLooking);
    explore("mutant: link without looking", &[], SCHEDULES, opposed);
}
