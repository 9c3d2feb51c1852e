//! The part of crossbeam-channel and the operating system's threads in the fiber runtime's benchmark.

use std::process::ExitCode;
use std::sync::Mutex;
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded, select};
use fiber_bench_meter::{FIBERS, Job, LARGE, Measured, Part, contestant};

/// Threads need no runtime; that there are as many CPUs as workers is the driver's doing.
fn measure(job: &Job, body: fn(u64) -> u64) -> Measured {
    job.measure(body)
}

fn spawn_join(count: u64) -> u64 {
    (0..count).map(|i| thread::spawn(move || i).join().unwrap()).sum()
}

fn yields(count: u64) -> u64 {
    let one = move || {
        for _ in 0..count / FIBERS {
            thread::yield_now();
        }
        count / FIBERS
    };
    let threads: Vec<_> = (0..FIBERS).map(|_| thread::spawn(one)).collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).sum()
}

fn round_trips(count: u64, capacity: usize) -> u64 {
    let (ask, asked) = bounded::<u64>(capacity);
    let (answer, answers) = bounded(capacity);
    thread::scope(|scope| {
        scope.spawn(move || {
            for value in asked {
                answer.send(value + 1).unwrap();
            }
        });
        let sum = (0..count).map(|i| {
            ask.send(i).unwrap();
            answers.recv().unwrap()
        });
        let sum = sum.sum();
        drop(ask);
        sum
    })
}

fn send_all(sender: Sender<u64>, count: u64) {
    for i in 0..count {
        sender.send(i).unwrap();
    }
}

fn throughput(count: u64, pairs: u64) -> u64 {
    let (sender, receiver) = bounded(LARGE);
    thread::scope(|scope| {
        for _ in 0..pairs {
            let sender = sender.clone();
            scope.spawn(move || send_all(sender, count / pairs));
        }
        drop(sender);
        let sum = |receiver: Receiver<u64>| move || receiver.iter().sum::<u64>();
        let receivers: Vec<_> = (0..pairs).map(|_| scope.spawn(sum(receiver.clone()))).collect();
        receivers.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}

fn select4(count: u64) -> u64 {
    thread::scope(|scope| {
        // A sender stays: a channel without one would be ready for ever.
        let [(_a, a), (_b, b), (_c, c), (_d, d)] = std::array::from_fn(|_| {
            let (sender, receiver) = bounded(1);
            let its = sender.clone();
            scope.spawn(move || send_all(its, count / FIBERS));
            (sender, receiver)
        });
        let mut sum = 0;
        for _ in 0..count {
            sum += select! {
                recv(a) -> value => value.unwrap(),
                recv(b) -> value => value.unwrap(),
                recv(c) -> value => value.unwrap(),
                recv(d) -> value => value.unwrap(),
            };
        }
        sum
    })
}

fn mutex(count: u64) -> u64 {
    let total = Mutex::new(0);
    thread::scope(|scope| {
        for _ in 0..FIBERS {
            scope.spawn(|| {
                for _ in 0..count / FIBERS {
                    let mut total = total.lock().unwrap();
                    *total += 1;
                    thread::yield_now();
                }
            });
        }
    });
    total.into_inner().unwrap()
}

fn requests(count: u64) -> u64 {
    let (ask, asked) = bounded::<(u64, Sender<u64>)>(1);
    thread::scope(|scope| {
        scope.spawn(move || {
            for (value, answer) in asked {
                answer.send(value + 1).unwrap();
            }
        });
        let mut sum = 0;
        for i in 0..count {
            let (answer, answered) = bounded(1);
            ask.send((i, answer)).unwrap();
            sum += answered.recv().unwrap();
        }
        drop(ask);
        sum
    })
}

fn main() -> ExitCode {
    contestant(&[
        ("spawn_join", Part::Runs(|job| measure(job, spawn_join))),
        ("yield", Part::Runs(|job| measure(job, yields))),
        ("unbuffered", Part::Runs(|job| measure(job, |count| round_trips(count, 0)))),
        ("bounded1", Part::Runs(|job| measure(job, |count| round_trips(count, 1)))),
        ("bounded1024_1to1", Part::Runs(|job| measure(job, |count| throughput(count, 1)))),
        ("bounded1024_4to4", Part::Runs(|job| measure(job, |count| throughput(count, FIBERS)))),
        ("select4", Part::Runs(|job| measure(job, select4))),
        ("mutex", Part::Runs(|job| measure(job, mutex))),
        ("oneshot", Part::Runs(|job| measure(job, requests))),
        ("timer_1ms", Part::Lacks("a hundred thousand threads are not an ordinary program")),
    ])
}
