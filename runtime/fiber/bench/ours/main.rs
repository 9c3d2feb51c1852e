//! The fiber runtime's part of its benchmark.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use fiber::channel::{Receiver, Sender, bounded};
use fiber::sync::Mutex;
use fiber::{Runtime, nursery, oneshot, select, yield_now};
use fiber_bench_meter::{FIBERS, Job, LARGE, Measured, Part, SLEEPERS, contestant};

fn measure(job: &Job, body: fn(u64) -> u64) -> Measured {
    let runtime = Runtime::builder().workers(job.workers).build().unwrap();
    job.measure(|count| runtime.run(|| body(count)))
}

fn spawn_join(count: u64) -> u64 {
    nursery(|n| (0..count).map(|i| n.spawn(move || i).join().unwrap()).sum())
}

fn yields(count: u64) -> u64 {
    let one = || {
        for _ in 0..count / FIBERS {
            yield_now().unwrap();
        }
        count / FIBERS
    };
    nursery(|n| {
        let fibers: Vec<_> = (0..FIBERS).map(|_| n.spawn(one)).collect();
        fibers.into_iter().map(|fiber| fiber.join().unwrap()).sum()
    })
}

fn round_trips(count: u64, capacity: usize) -> u64 {
    let (ask, asked) = bounded::<u64>(capacity);
    let (answer, answers) = bounded(capacity);
    nursery(|n| {
        n.spawn(move || {
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
    nursery(|n| {
        for _ in 0..pairs {
            let sender = sender.clone();
            n.spawn(move || send_all(sender, count / pairs));
        }
        drop(sender);
        let sum = |receiver: Receiver<u64>| move || receiver.iter().sum::<u64>();
        let receivers: Vec<_> = (0..pairs).map(|_| n.spawn(sum(receiver.clone()))).collect();
        receivers.into_iter().map(|fiber| fiber.join().unwrap()).sum()
    })
}

fn select4(count: u64) -> u64 {
    nursery(|n| {
        // A sender stays: a channel without one would be ready for ever.
        let [(_a, a), (_b, b), (_c, c), (_d, d)] = std::array::from_fn(|_| {
            let (sender, receiver) = bounded(1);
            let its = sender.clone();
            n.spawn(move || send_all(its, count / FIBERS));
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
    nursery(|n| {
        for _ in 0..FIBERS {
            n.spawn(|| {
                for _ in 0..count / FIBERS {
                    let mut total = total.lock();
                    *total += 1;
                    // The others come to wait for it.
                    yield_now().unwrap();
                }
            });
        }
    });
    total.into_inner()
}

fn requests(count: u64) -> u64 {
    let (ask, asked) = bounded::<(u64, oneshot::Sender<u64>)>(1);
    nursery(|n| {
        n.spawn(move || {
            for (value, answer) in asked {
                answer.send(value + 1).unwrap();
            }
        });
        let mut sum = 0;
        for i in 0..count {
            let (answer, answered) = oneshot::channel();
            ask.send((i, answer)).unwrap();
            sum += answered.recv().unwrap();
        }
        drop(ask);
        sum
    })
}

fn timers(count: u64) -> u64 {
    const LENGTH: Duration = Duration::from_millis(1);
    let sleepers = SLEEPERS.min(count);
    let one = || {
        let sleeps = (0..count / sleepers).filter(|_| {
            let start = Instant::now();
            fiber::sleep(LENGTH).unwrap();
            start.elapsed() >= LENGTH
        });
        sleeps.count() as u64
    };
    nursery(|n| {
        let fibers: Vec<_> = (0..sleepers).map(|_| n.spawn(one)).collect();
        fibers.into_iter().map(|fiber| fiber.join().unwrap()).sum()
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
        ("timer_1ms", Part::Runs(|job| measure(job, timers))),
    ])
}
