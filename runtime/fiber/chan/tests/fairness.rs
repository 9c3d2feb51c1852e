//! Who gets the worker: the operation budget, the LIFO slot, the global queue.
//!
//! One worker and no others, so that everything is counted and nothing is a matter of time.
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use fiber_chan::{Receiver, Select, Sender, bounded, oneshot, select, tick, unbounded};
use fiber_nursery::nursery;
use fiber_rt::{Runtime, yield_now};

/// Operations of a fiber before it has to yield.
const BUDGET: u64 = 128;
/// Picks after which the global queue has its turn.
const GLOBAL_INTERVAL: u64 = 61;
/// Runs out of the LIFO slot before the queue has its turn.
const LIFO_RUNS: u64 = 3;

fn one_worker() -> Runtime {
    Runtime::builder().workers(1).elastic(false).build().unwrap()
}

/// Counts what happens between two runs of a fiber that waits its turn.
#[derive(Default)]
struct Between {
    now: AtomicU64,
    most: AtomicU64,
    is_over: AtomicBool,
}

impl Between {
    fn count(&self) {
        let now = self.now.fetch_add(1, SeqCst) + 1;
        self.most.fetch_max(now, SeqCst);
    }

    /// The fiber that waits its turn, over and over.
    fn take_turns(&self) {
        while !self.is_over.load(SeqCst) {
            self.now.store(0, SeqCst);
            yield_now().unwrap();
        }
    }
}

/// Runs `busy` beside a fiber that takes turns; the most that happened between two of these.
fn most_between(busy: impl Fn(&Between) + Sync) -> u64 {
    let between = Between::default();
    one_worker().run(|| {
        nursery(|n| {
            n.spawn(|| between.take_turns());
            n.spawn(|| {
                busy(&between);
                between.is_over.store(true, SeqCst);
            });
        });
    });
    between.most.load(SeqCst)
}

/// Operations that never wait: there is always room, and always a value.
fn operations(between: &Between, operate: impl Fn(&Sender<u32>, &Receiver<u32>, u32)) {
    let (tx, rx) = bounded(64);
    (0..8).for_each(|n| tx.try_send(n).unwrap());
    for n in 0..4000 {
        operate(&tx, &rx, n);
        between.count();
    }
}

#[test]
fn a_fiber_that_never_waits_yields_within_its_budget_of_operations() {
    let send_and_receive = most_between(|between| {
        operations(between, |tx, rx, n| match n % 2 {
            0 => tx.send(n).unwrap(),
            _ => assert!(rx.recv().is_ok()),
        });
    });
    let tries = most_between(|between| {
        operations(between, |tx, rx, n| match n % 2 {
            0 => tx.try_send(n).unwrap(),
            _ => assert!(rx.try_recv().is_ok()),
        });
    });
    let selects = most_between(|between| {
        operations(between, |tx, rx, n| {
            select! {
                recv(rx) -> value => assert!(value.is_ok()),
            }
            tx.try_send(n).unwrap();
        });
    });
    let looks = most_between(|between| {
        operations(between, |_, rx, _| {
            let mut set = Select::new();
            set.recv(rx);
            assert_eq!(set.ready(), Ok(0));
        });
    });
    let timers = most_between(|between| {
        let ticks = tick(Duration::ZERO);
        operations(between, |_, _, _| assert!(ticks.recv().is_ok()));
    });
    let oneshots = most_between(|between| {
        operations(between, |_, _, n| {
            let (tx, rx) = oneshot::channel();
            tx.send(n).unwrap();
            assert_eq!(rx.recv(), Ok(n));
        });
    });
    for (what, most) in [
        ("send and receive", send_and_receive),
        ("tries", tries),
        ("selects", selects),
        ("looks", looks),
        ("timers", timers),
        ("oneshots", oneshots),
    ] {
        assert!(most <= BUDGET, "{what}: {most} operations without a yield");
        assert!(most >= BUDGET / 4, "{what}: {most} operations: the budget is not what ends it");
    }
}

/// Two fibers that wake each other out of the LIFO slot leave the queue its turn.
#[test]
fn the_lifo_slot_runs_three_times_in_a_row_at_most() {
    let most = most_between(|between| {
        let ((there, here), (back, again)) = (bounded(1), bounded(1));
        nursery(|n| {
            n.spawn(|| {
                for _ in 0..2000 {
                    let ball: u32 = here.recv().unwrap();
                    between.count();
                    back.send(ball + 1).unwrap();
                }
            });
            let mut ball = 0;
            for _ in 0..2000 {
                there.send(ball).unwrap();
                ball = again.recv().unwrap();
                between.count();
            }
            assert_eq!(ball, 2000);
        });
    });
    assert!(most <= LIFO_RUNS, "{most} runs out of the slot in a row");
    assert!(most >= 2, "{most}: the slot was not used");
}

/// What a thread outside wakes waits in the global queue; the worker's own queue is never empty.
#[test]
fn the_global_queue_is_looked_at_every_61st_pick() {
    let (picks, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let (tx, rx) = unbounded::<()>();
    let (seen, answers) = (AtomicU64::new(0), AtomicU64::new(0));
    let worst = AtomicU64::new(0);
    let runtime = one_worker();
    std::thread::scope(|threads| {
        threads.spawn(|| {
            for round in 1..=300 {
                tx.send(()).unwrap();
                // The fiber is in the queue by now, or has run already.
                let queued_at = picks.load(SeqCst);
                while answers.load(SeqCst) < round {
                    std::thread::yield_now();
                }
                let waited = seen.load(SeqCst).saturating_sub(queued_at);
                worst.fetch_max(waited, SeqCst);
            }
            is_over.store(true, SeqCst);
            tx.close();
        });
        runtime.run(|| {
            nursery(|n| {
                for _ in 0..3 {
                    n.spawn(|| {
                        while !is_over.load(SeqCst) {
                            picks.fetch_add(1, SeqCst);
                            yield_now().unwrap();
                        }
                    });
                }
                n.spawn(|| {
                    while rx.recv().is_ok() {
                        seen.store(picks.load(SeqCst), SeqCst);
                        answers.fetch_add(1, SeqCst);
                    }
                });
            });
        });
    });
    let worst = worst.load(SeqCst);
    assert!(worst <= GLOBAL_INTERVAL, "{worst} picks before the global queue had its turn");
}
