//! A node has one home and one owner, and serves one thread after another.
use core_sched::{Activity, CpuId, Error, MayRun};
use core_sched_policy::{Lag, LatencyClass, Share, Weight};
use smp_rq::{Next, Node, RunQueue, lock_home};

fn cpu(n: usize) -> CpuId {
    CpuId::new(n).unwrap()
}

#[test]
fn only_the_home_queue_touches_a_node() {
    let node = Node::new(1, Share::default(), cpu(0));
    let queues = [RunQueue::new(cpu(0), 0), RunQueue::new(cpu(1), 0)];
    assert_eq!(queues[1].lock().wake(&node, 0), Err(Error::NotHere));
    assert_eq!(queues[1].lock().send(&node, cpu(0), 0), Err(Error::NotHere));
    let lag = queues[0].lock().send(&node, cpu(1), 0).unwrap();
    assert_eq!((lag, node.home()), (Lag::ZERO, Some(cpu(1))));
    assert_eq!(queues[0].lock().wake(&node, 0), Err(Error::NotHere));
    let _ = queues[1].lock().with(&node, |q, i, e| q.enqueue(i, e, lag, 0)).unwrap();
    assert_eq!((queues[0].hint().waiting, queues[1].hint().waiting), (0, 1));
    let home = lock_home(&queues, &node).unwrap();
    assert_eq!(home.look().cpu(), cpu(1));
}

#[test]
fn a_thread_is_queued_once_and_runs_on_one_cpu() {
    let node = Node::new(1, Share::default(), cpu(0));
    let queue = RunQueue::new(cpu(0), 0);
    let mut guard = queue.lock();
    let _ = guard.wake(&node, 0).unwrap();
    assert_eq!(guard.wake(&node, 0), Err(Error::Activity { is: Activity::Queued }));
    assert!(matches!(guard.next(0, |_| MayRun::Yes), Ok(Next::Run(..))));
    assert_eq!(guard.wake(&node, 0), Err(Error::Activity { is: Activity::Running }));
    assert_eq!(guard.send(&node, cpu(1), 0), Err(Error::Activity { is: Activity::Running }));
    assert_eq!(guard.next(0, |_| MayRun::Yes), Err(Error::Occupied));
    guard.check_invariants().unwrap();
}

#[test]
fn a_dead_thread_s_node_serves_the_next_one() {
    let node = Node::new(1, Share::default(), cpu(0));
    let heavy = Share::new(Weight::MAX, LatencyClass::Batch);
    let queue = RunQueue::new(cpu(0), 0);
    let mut guard = queue.lock();
    assert_eq!(guard.renew(&node, 2, heavy), Err(Error::Activity { is: Activity::Resting }));
    let _ = guard.wake(&node, 0).unwrap();
    let _ = guard.next(0, |_| MayRun::Yes).unwrap();
    assert!(guard.renew(&node, 2, heavy).is_err());
    let _ = guard.with(&node, |q, i, e| q.exit(i, e, 7)).unwrap();
    assert_eq!(guard.wake(&node, 8), Err(Error::Activity { is: Activity::Dead }));
    guard.renew(&node, 2, heavy).unwrap();
    let fresh = guard.with(&node, |_, _, e| Ok(*e)).unwrap();
    assert_eq!((node.thread(), fresh.share(), fresh.snapshot().runtime_ns), (2, heavy, 0));
    let _ = guard.wake(&node, 9).unwrap();
    guard.check_invariants().unwrap();
}
