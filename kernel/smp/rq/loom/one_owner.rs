//! One owner per thread: enqueue, steal and removal race on two CPUs, and a thread that was
//! made runnable once is started once or removed once, never both, never neither.
use abi_sync::atomic::{AtomicU32, Ordering};
use abi_sync::{Arc, thread};
use core_sched::{Activity, CpuId, Error, MayRun};
use core_sched_policy::Share;
use smp_rq::{Next, Node, RunQueue, lock_home};

fn cpu(n: usize) -> CpuId {
    CpuId::new(n).unwrap()
}

struct World {
    queues: [RunQueue<'static>; 2],
    node: &'static Node,
    /// Times the thread was started or taken out to die.
    ends: AtomicU32,
}

impl World {
    fn new() -> Arc<Self> {
        let node: &'static Node = Box::leak(Box::new(Node::new(7, Share::default(), cpu(0))));
        Arc::new(Self {
            queues: [RunQueue::new(cpu(0), 0), RunQueue::new(cpu(1), 0)],
            node,
            ends: AtomicU32::new(0),
        })
    }

    /// A CPU looks into its own queue.
    fn run(&self, on: usize) {
        if let Next::Run(..) = self.queues[on].lock().next(2, |_| MayRun::Yes).unwrap() {
            self.ends.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// CPU 1 steals from CPU 0, remove before publish.
    fn steal(&self) {
        let mut source = self.queues[0].lock();
        let Some(item) = source.view().to_steal(|item| item.0.thread() == self.node.thread())
        else {
            return;
        };
        let lag = source.send(item.0, cpu(1), 1).unwrap();
        drop(source);
        let _ = self.queues[1].lock().with(item.0, |q, i, e| q.enqueue(i, e, lag, 1)).unwrap();
    }

    /// The mutant: what it saw in the other queue it starts, without taking it out.
    fn start_what_it_saw(&self) {
        let is_it = |item: smp_rq::NodeRef<'_>| item.0.thread() == self.node.thread();
        let seen = self.queues[0].lock().view().to_steal(is_it).is_some();
        if seen {
            self.ends.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A dying process takes its queued thread out, wherever it is; while the thread is between
    /// two queues or not yet queued there is nothing to take, so it tries again.
    fn remove(&self) {
        loop {
            let mut guard = lock_home(&self.queues, self.node).unwrap();
            let removed = guard.with(self.node, |q, i, e| q.drop_dead(i, e, 3));
            drop(guard);
            match removed {
                Ok(()) => {
                    self.ends.fetch_add(1, Ordering::Relaxed);
                    return;
                }
                Err(Error::Activity { is: Activity::Moving }) => abi_sync::spin_hint(),
                Err(_) => return,
            }
        }
    }

    /// The mutant: looks only where the thread was when it started looking.
    fn remove_without_following(&self) {
        let home = self.node.home().unwrap();
        abi_sync::spin_hint();
        let mut guard = self.queues[home.index()].lock();
        if guard.with(self.node, |q, i, e| q.drop_dead(i, e, 3)).is_ok() {
            self.ends.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn check(&self, ends: u32) {
        for queue in &self.queues {
            queue.lock().check_invariants().unwrap();
        }
        assert_eq!(self.ends.load(Ordering::Relaxed), ends, "started or removed once");
    }
}

fn enqueue_steal_and_run(steal: fn(&World)) {
    abi_sync::model(move || {
        let world = World::new();
        let (a, b) = (world.clone(), world.clone());
        let owner = thread::spawn(move || {
            let _ = a.queues[0].lock().wake(a.node, 0).unwrap();
            a.run(0);
        });
        let thief = thread::spawn(move || {
            steal(&b);
            b.run(1);
        });
        owner.join().unwrap();
        thief.join().unwrap();
        world.check(1);
    });
}

#[test]
fn enqueue_steal_and_run_start_it_once() {
    enqueue_steal_and_run(World::steal);
}

#[test]
#[should_panic(expected = "started or removed once")]
fn a_mutant_thief_that_does_not_take_it_out_is_caught() {
    enqueue_steal_and_run(World::start_what_it_saw);
}

/// The current thread of CPU 0 yields to the one that waits while CPU 1 takes that one away.
fn yield_and_steal(steal: fn(&World)) {
    abi_sync::model(move || {
        let world = World::new();
        let yielder: &'static Node = Box::leak(Box::new(Node::new(8, Share::default(), cpu(0))));
        let _ = world.queues[0].lock().wake(yielder, 0).unwrap();
        let Next::Run(..) = world.queues[0].lock().next(0, |_| MayRun::Yes).unwrap() else {
            panic!("it waits alone");
        };
        let _ = world.queues[0].lock().wake(world.node, 0).unwrap();
        let (a, b) = (world.clone(), world.clone());
        let owner = thread::spawn(move || match a.queues[0].lock().turn(yielder) {
            Ok(turn) => {
                assert_eq!(turn.node().thread(), 7);
                let _ = turn.take(1);
                a.ends.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => assert_eq!(error, Error::NotHere, "nobody waits any more"),
        });
        let thief = thread::spawn(move || {
            steal(&b);
            b.run(1);
        });
        owner.join().unwrap();
        thief.join().unwrap();
        world.check(1);
    });
}

#[test]
fn a_yield_and_a_steal_start_it_once() {
    yield_and_steal(World::steal);
}

#[test]
#[should_panic(expected = "started or removed once")]
fn a_mutant_thief_of_the_one_yielded_to_is_caught() {
    yield_and_steal(World::start_what_it_saw);
}

fn removal(remove: fn(&World)) {
    abi_sync::model(move || {
        let world = World::new();
        let _ = world.queues[0].lock().wake(world.node, 0).unwrap();
        let (a, b) = (world.clone(), world.clone());
        let thief = thread::spawn(move || b.steal());
        let killer = thread::spawn(move || remove(&a));
        thief.join().unwrap();
        killer.join().unwrap();
        world.check(1);
        for queue in &world.queues {
            assert_eq!(queue.lock().view().hint().waiting, 0, "exit leaves no residue");
        }
    });
}

#[test]
fn removal_follows_a_stolen_thread() {
    removal(World::remove);
}

#[test]
#[should_panic(expected = "started or removed once")]
fn a_mutant_that_does_not_follow_is_caught() {
    removal(World::remove_without_following);
}

#[test]
#[should_panic(expected = "already linked")]
fn a_mutant_that_publishes_before_it_removes_is_caught() {
    abi_sync::model(|| {
        let world = World::new();
        let _ = world.queues[0].lock().wake(world.node, 0).unwrap();
        let b = world.clone();
        let thief = thread::spawn(move || {
            let entry = {
                let source = b.queues[0].lock();
                let Some((item, entry)) = core_sched::Ordered::first(source.view().order()) else {
                    return;
                };
                (item, entry)
            };
            let mut tree = smp_rq::Tree::new(cpu(1));
            core_sched::Ordered::insert(&mut tree, entry.0, entry.1);
        });
        world.run(0);
        thief.join().unwrap();
    });
}
