//! may's part of the fiber runtime's benchmark.

use std::process::ExitCode;
use std::sync::Arc;

use fiber_bench_meter::{FIBERS, Job, Measured, Part, contestant};
use may::coroutine::yield_now;
use may::go;
use may::sync::{Mutex, mpsc, spsc};

fn measure(job: &Job, body: fn(u64) -> u64) -> Measured {
    may::config().set_workers(job.workers);
    job.measure(|count| go!(move || body(count)).join().unwrap())
}

fn spawn_join(count: u64) -> u64 {
    (0..count).map(|i| go!(move || i).join().unwrap()).sum()
}

fn yields(count: u64) -> u64 {
    let one = move || {
        for _ in 0..count / FIBERS {
            yield_now();
        }
        count / FIBERS
    };
    let fibers: Vec<_> = (0..FIBERS).map(|_| go!(one)).collect();
    fibers.into_iter().map(|fiber| fiber.join().unwrap()).sum()
}

fn mutex(count: u64) -> u64 {
    let total = Arc::new(Mutex::new(0));
    let fibers = (0..FIBERS).map(|_| {
        let total = total.clone();
        go!(move || {
            for _ in 0..count / FIBERS {
                let mut total = total.lock().unwrap();
                *total += 1;
                yield_now();
            }
        })
    });
    for fiber in fibers.collect::<Vec<_>>() {
        fiber.join().unwrap();
    }
    let total = total.lock().unwrap();
    *total
}

fn requests(count: u64) -> u64 {
    let (ask, asked) = mpsc::channel::<(u64, spsc::Sender<u64>)>();
    let server = go!(move || {
        for (value, answer) in asked {
            answer.send(value + 1).unwrap();
        }
    });
    let mut sum = 0;
    for i in 0..count {
        let (answer, answered) = spsc::channel();
        ask.send((i, answer)).unwrap();
        sum += answered.recv().unwrap();
    }
    drop(ask);
    server.join().unwrap();
    sum
}

const UNBOUNDED: Part = Part::Lacks("its channels are unbounded");

fn main() -> ExitCode {
    contestant(&[
        ("spawn_join", Part::Runs(|job| measure(job, spawn_join))),
        ("yield", Part::Runs(|job| measure(job, yields))),
        ("unbuffered", UNBOUNDED),
        ("bounded1", UNBOUNDED),
        ("bounded1024_1to1", UNBOUNDED),
        ("bounded1024_4to4", UNBOUNDED),
        ("select4", UNBOUNDED),
        ("mutex", Part::Runs(|job| measure(job, mutex))),
        ("oneshot", Part::Runs(|job| measure(job, requests))),
        (
            "timer_1ms",
            Part::Lacks("a hundred thousand of its stacks are more mappings than Linux allows"),
        ),
    ])
}
