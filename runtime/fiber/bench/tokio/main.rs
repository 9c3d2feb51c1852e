//! Tokio's part of the fiber runtime's benchmark: its multi-threaded runtime with as many workers as
//! asked for, or, built with `cfg(local)`, its runtime for one thread.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fiber_bench_meter::{FIBERS, Job, LARGE, Measured, Part, SLEEPERS, contestant};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::yield_now;

fn runtime(job: &Job) -> Runtime {
    if cfg!(local) {
        Builder::new_current_thread().enable_time().build().unwrap()
    } else {
        Builder::new_multi_thread().worker_threads(job.workers).enable_time().build().unwrap()
    }
}

fn measure<F>(job: &Job, body: impl Fn(u64) -> F) -> Measured
where
    F: Future<Output = u64> + Send + 'static,
{
    let runtime = runtime(job);
    // As a task of its own, so that it runs on a worker.
    job.measure(|count| runtime.block_on(runtime.spawn(body(count))).unwrap())
}

async fn spawn_join(count: u64) -> u64 {
    let mut sum = 0;
    for i in 0..count {
        sum += tokio::spawn(async move { i }).await.unwrap();
    }
    sum
}

async fn yields(count: u64) -> u64 {
    let one = || async move {
        for _ in 0..count / FIBERS {
            yield_now().await;
        }
        count / FIBERS
    };
    let tasks: Vec<_> = (0..FIBERS).map(|_| tokio::spawn(one())).collect();
    let mut sum = 0;
    for task in tasks {
        sum += task.await.unwrap();
    }
    sum
}

async fn round_trips(count: u64) -> u64 {
    let (ask, mut asked) = mpsc::channel::<u64>(1);
    let (answer, mut answers) = mpsc::channel(1);
    let server = tokio::spawn(async move {
        while let Some(value) = asked.recv().await {
            answer.send(value + 1).await.unwrap();
        }
    });
    let mut sum = 0;
    for i in 0..count {
        ask.send(i).await.unwrap();
        sum += answers.recv().await.unwrap();
    }
    drop(ask);
    server.await.unwrap();
    sum
}

async fn send_all(sender: mpsc::Sender<u64>, count: u64) {
    for i in 0..count {
        sender.send(i).await.unwrap();
    }
}

async fn throughput(count: u64) -> u64 {
    let (sender, mut receiver) = mpsc::channel(LARGE);
    tokio::spawn(send_all(sender, count));
    let mut sum = 0;
    while let Some(value) = receiver.recv().await {
        sum += value;
    }
    sum
}

async fn select4(count: u64) -> u64 {
    let [mut a, mut b, mut c, mut d] = std::array::from_fn(|_| {
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(send_all(sender, count / FIBERS));
        receiver
    });
    let mut sum = 0;
    for _ in 0..count {
        sum += tokio::select! {
            Some(value) = a.recv() => value,
            Some(value) = b.recv() => value,
            Some(value) = c.recv() => value,
            Some(value) = d.recv() => value,
        };
    }
    sum
}

async fn mutex(count: u64) -> u64 {
    let total = Arc::new(Mutex::new(0));
    let tasks = (0..FIBERS).map(|_| {
        let total = total.clone();
        tokio::spawn(async move {
            for _ in 0..count / FIBERS {
                let mut total = total.lock().await;
                *total += 1;
                yield_now().await;
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let total = total.lock().await;
    *total
}

async fn requests(count: u64) -> u64 {
    let (ask, mut asked) = mpsc::channel::<(u64, oneshot::Sender<u64>)>(1);
    let server = tokio::spawn(async move {
        while let Some((value, answer)) = asked.recv().await {
            answer.send(value + 1).unwrap();
        }
    });
    let mut sum = 0;
    for i in 0..count {
        let (answer, answered) = oneshot::channel();
        ask.send((i, answer)).await.unwrap();
        sum += answered.await.unwrap();
    }
    drop(ask);
    server.await.unwrap();
    sum
}

async fn timers(count: u64) -> u64 {
    const LENGTH: Duration = Duration::from_millis(1);
    let sleepers = SLEEPERS.min(count);
    let one = || async move {
        let mut sleeps = 0;
        for _ in 0..count / sleepers {
            let start = Instant::now();
            tokio::time::sleep(LENGTH).await;
            sleeps += u64::from(start.elapsed() >= LENGTH);
        }
        sleeps
    };
    let tasks: Vec<_> = (0..sleepers).map(|_| tokio::spawn(one())).collect();
    let mut sum = 0;
    for task in tasks {
        sum += task.await.unwrap();
    }
    sum
}

fn main() -> ExitCode {
    contestant(&[
        ("spawn_join", Part::Runs(|job| measure(job, spawn_join))),
        ("yield", Part::Runs(|job| measure(job, yields))),
        ("unbuffered", Part::Lacks("its channels have at least one place")),
        ("bounded1", Part::Runs(|job| measure(job, round_trips))),
        ("bounded1024_1to1", Part::Runs(|job| measure(job, throughput))),
        ("bounded1024_4to4", Part::Lacks("its bounded channel has one receiver")),
        ("select4", Part::Runs(|job| measure(job, select4))),
        ("mutex", Part::Runs(|job| measure(job, mutex))),
        ("oneshot", Part::Runs(|job| measure(job, requests))),
        ("timer_1ms", Part::Runs(|job| measure(job, timers))),
    ])
}
