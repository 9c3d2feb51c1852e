//! Fibers beside Tokio: what it runs uses our channels, sleeps and joins, and fibers run its futures.
use std::future::pending;
use std::thread;
use std::time::Duration;

use fiber::channel::{Receiver, Sender, bounded};
use fiber::future::block_on;
use fiber::{Cancelled, Instant, Runtime, nursery, oneshot};
use tokio::runtime::{Builder, Runtime as Tokio};
use tokio::sync::mpsc;

const SHORT: Duration = Duration::from_millis(2);

fn fibers() -> Runtime {
    Runtime::builder().workers(2).build().unwrap()
}

/// Tokio with its own threads, and within one thread.
fn tokios() -> [Tokio; 2] {
    let many = Builder::new_multi_thread().worker_threads(2).enable_time().build();
    let one = Builder::new_current_thread().enable_time().build();
    [many.unwrap(), one.unwrap()]
}

#[test]
fn requests_of_fibers_are_answered_by_tokio() {
    for tokio in tokios() {
        let (ask, asked) = bounded::<(u64, oneshot::Sender<u64>)>(4);
        let client = thread::spawn(move || {
            fibers().run(|| {
                nursery(|n| {
                    for i in 0..50 {
                        let ask = &ask;
                        n.spawn(move || {
                            for j in 0..20 {
                                let (back, answer) = oneshot::channel();
                                ask.send((i * j, back)).unwrap();
                                assert_eq!(answer.recv(), Ok(i * j + 1));
                            }
                        });
                    }
                });
            });
        });
        tokio.block_on(async {
            let serve = |asked: Receiver<(u64, oneshot::Sender<u64>)>| async move {
                let mut count = 0;
                while let Ok((value, back)) = asked.recv_async().await {
                    back.send(value + 1).unwrap();
                    count += 1;
                }
                count
            };
            let (one, two) = (asked.clone(), asked);
            let (one, two) = (tokio::spawn(serve(one)), tokio::spawn(serve(two)));
            assert_eq!(one.await.unwrap() + two.await.unwrap(), 1000);
        });
        client.join().unwrap();
    }
}

/// Adds up what comes, and drops receives all the time: at a time-out, and when another is chosen.
async fn receive(a: Receiver<u64>, b: Receiver<u64>) -> u64 {
    let (mut sum, mut open) = (0, (true, true));
    while open != (false, false) {
        tokio::select! {
            got = a.recv_async(), if open.0 => match got {
                Ok(value) => sum += value,
                Err(_) => open.0 = false,
            },
            got = b.recv_async(), if open.1 => match got {
                Ok(value) => sum += value,
                Err(_) => open.1 = false,
            },
            () = tokio::task::yield_now() => {}
        }
        if let Ok(Ok(value)) = tokio::time::timeout(Duration::ZERO, a.recv_async()).await {
            sum += value;
        }
    }
    sum
}

async fn send(to: Sender<u64>, count: u64) {
    for value in 1..=count {
        to.send_async(value).await.unwrap();
    }
}

#[test]
fn receives_that_lose_a_select_lose_nothing() {
    const COUNT: u64 = 1000;
    for (tokio, capacity) in tokios().into_iter().zip([0, 3]) {
        let (atx, a) = bounded(capacity);
        let (btx, b) = bounded(0);
        let receivers = [(a.clone(), b.clone()), (a, b)].map(|(a, b)| tokio.spawn(receive(a, b)));
        let senders =
            [tokio.spawn(send(atx.clone(), COUNT)), tokio.spawn(send(btx.clone(), COUNT))];
        let client = thread::spawn(move || {
            fibers().run(|| {
                nursery(|n| {
                    for to in [&atx, &btx, &atx, &btx] {
                        n.spawn(|| (1..=COUNT).for_each(|value| to.send(value).unwrap()));
                    }
                });
            });
        });
        let sum: u64 = tokio.block_on(async {
            for sender in senders {
                sender.await.unwrap();
            }
            let [one, two] = receivers;
            one.await.unwrap() + two.await.unwrap()
        });
        client.join().unwrap();
        assert_eq!(sum, 6 * (1..=COUNT).sum::<u64>());
    }
}

#[test]
fn fibers_run_tokios_futures() {
    let [tokio, _] = tokios();
    let handle = tokio.handle().clone();
    fibers().run(move || {
        let (tx, mut rx) = mpsc::channel(1);
        nursery(|n| {
            // Its channel, and what its own threads run.
            n.spawn(|| {
                for value in 0..100 {
                    block_on(tx.send(value)).unwrap().unwrap();
                }
                drop(tx);
            });
            let sum = block_on(async {
                let mut sum = 0;
                while let Some(value) = rx.recv().await {
                    sum += value;
                }
                sum
            });
            assert_eq!(sum, Ok(4950));
            let slept = handle.spawn(async {
                tokio::time::sleep(SHORT).await;
                7
            });
            assert_eq!(block_on(slept).unwrap().unwrap(), 7);
        });
        // Cancelled: the future is dropped, which its other end sees.
        let (tx, mut rx) = mpsc::channel::<u32>(1);
        nursery(|n| {
            let (begins, begun) = bounded(1);
            let waits = n.spawn(move || {
                begins.send(()).unwrap();
                block_on(async move { rx.recv().await })
            });
            // One that has not run is cancelled without a run.
            begun.recv().unwrap();
            let watches = n.spawn(move || block_on(tx.closed()));
            waits.cancel();
            assert_eq!(waits.join().unwrap(), Err(Cancelled));
            assert_eq!(watches.join().unwrap(), Ok(()));
        });
    });
}

#[test]
fn tokio_waits_for_fibers_and_for_their_timers() {
    for tokio in tokios() {
        let runtime = fibers();
        let (handles, spawned) = bounded(0);
        let (go, wait) = bounded::<()>(0);
        let runtime = &runtime;
        thread::scope(|s| {
            s.spawn(move || {
                runtime.run(move || {
                    let handle = fiber::spawn(move || wait.recv().is_ok());
                    handles.send(handle).unwrap();
                });
            });
            tokio.block_on(async {
                let handle = spawned.recv_async().await.unwrap();
                let began = Instant::now();
                tokio::select! {
                    slept = runtime.sleep(SHORT) => assert_eq!(slept, Ok(())),
                    () = pending() => {}
                }
                assert!(began.elapsed() >= SHORT, "early");
                go.send_async(()).await.unwrap();
                assert!(handle.await.unwrap());
            });
        });
    }
}
