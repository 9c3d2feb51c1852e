//! Seven threads on two channels: sends, receives, selects on both sides, time-outs and a close. What
//! was accepted arrives once; what was refused comes back.
#[path = "common/parties.rs"]
mod parties;

use abi_sync::{explore, thread};
use fiber_chan::{Receiver, Select, SelectTimeoutError, Sender, bounded};
use fiber_rt::{Defect, plant};
use parties::{accept, select_send, sorted};

const SOON: core::time::Duration = core::time::Duration::from_nanos(1);
/// Random schedules of a model.
const SCHEDULES: u64 = 3000;
/// Those that failed once: 21 found the commitment nobody hears of.
const KEPT: [u64; 1] = [21];

fn send(first: u32, a: &Sender<u32>, b: &Sender<u32>) -> Vec<u32> {
    let mut sent = Vec::new();
    for value in first..first + 3 {
        let result = if value % 2 == 0 { a.send(value) } else { b.send(value) };
        accept(&mut sent, value, result);
    }
    sent
}

fn receive(from: &Receiver<u32>) -> Vec<u32> {
    let mut got = Vec::new();
    // Time-outs in between: what is on its way then is not lost.
    for _ in 0..3 {
        got.extend(from.recv_timeout(SOON));
    }
    got.extend(from.iter());
    got
}

fn select_receive(a: &Receiver<u32>, b: &Receiver<u32>) -> Vec<u32> {
    let (mut got, mut open, mut tries) = (Vec::new(), vec![a, b], 0);
    while !open.is_empty() {
        let mut set = Select::new();
        open.iter().for_each(|channel| _ = set.recv(channel));
        tries += 1;
        let chosen = match tries {
            0..4 => set.select_timeout(SOON),
            _ => set.select(),
        };
        match chosen {
            Ok(chosen) => {
                let index = chosen.index();
                let result = chosen.recv(open[index]);
                drop(set);
                match result {
                    Ok(value) => got.push(value),
                    Err(_) => _ = open.remove(index),
                }
            }
            Err(SelectTimeoutError::Timeout) => {}
            Err(other) => panic!("{other:?}"),
        }
    }
    got
}

fn mixed() {
    let (atx, arx) = bounded(0);
    let (btx, brx) = bounded(1);
    let mut senders = Vec::new();
    for (first, by) in [(10, send as fn(u32, &_, &_) -> _), (20, send), (30, select_send)] {
        let (a, b) = (atx.clone(), btx.clone());
        senders.push(thread::spawn(move || by(first, &a, &b)));
    }
    drop((atx, btx));
    let mut receivers = Vec::new();
    for from in [arx.clone(), brx.clone()] {
        receivers.push(thread::spawn(move || receive(&from)));
    }
    let (a, b) = (arx.clone(), brx.clone());
    receivers.push(thread::spawn(move || select_receive(&a, &b)));
    // While all of them are at it.
    thread::yield_now();
    arx.close();
    drop((arx, brx));
    assert_eq!(sorted(senders), sorted(receivers), "what was accepted arrives once");
}

#[test]
fn what_is_accepted_arrives_once() {
    explore("channels, mixed", &KEPT, SCHEDULES, mixed);
}

#[test]
#[should_panic(expected = "exceeded max_steps")]
fn mutant_commitment_that_is_kept() {
    plant(Defect::CommitsUndecided);
    explore("mutant: commitment kept", &[], SCHEDULES, mixed);
}

#[test]
#[should_panic(expected = "what was accepted arrives once")]
fn mutant_delivery_without_a_decision() {
    plant(Defect::DeliversWithoutDeciding);
    explore("mutant: deliver without deciding", &[], SCHEDULES, mixed);
}

#[test]
#[should_panic(expected = "exceeded max_steps")]
fn mutant_commitment_nobody_hears_of() {
    plant(Defect::CommitsWithoutWaking);
    explore("mutant: silent commitment", &[], SCHEDULES, mixed);
}
