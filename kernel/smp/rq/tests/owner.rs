//! A node has one home and one owner, and serves one thread after another.
use core_sched::{Activity, CpuId, Entry, Error, MayRun, Ordered, Requeue};
use core_sched_policy::{Lag, LatencyClass, Share, Weight};
use smp_rq::{Next, Node, NodeRef, RunQueue, Tree, lock_home};

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
    assert_eq!(home.view().cpu(), cpu(1));
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

fn started<'n>(next: Next<'n>) -> &'n Node {
    let Next::Run(item, _) = next else { panic!("somebody waits") };
    item.0
}

#[test]
fn yields_go_round_and_others_see_the_queue_as_it_is() {
    let nodes: [_; 4] = std::array::from_fn(|n| Node::new(n as u64, Share::default(), cpu(0)));
    let queue = RunQueue::new(cpu(0), 0);
    for node in &nodes {
        let _ = queue.lock().wake(node, 0).unwrap();
    }
    let mut current = started(queue.lock().next(0, |_| MayRun::Yes).unwrap());
    let before = queue.hint();
    for turn in 1..=20u64 {
        let mut guard = queue.lock();
        let first = guard.turn(current).unwrap();
        let next = first.node();
        let _ = first.take(turn);
        guard.check_invariants().unwrap();
        let fresh = guard.view().hint();
        drop(guard);
        assert_eq!(next.thread(), turn % 4, "each in its turn");
        let hint = queue.hint();
        assert_eq!((hint.waiting, hint.load), (before.waiting, before.load));
        assert_eq!(hint, fresh, "what is published is what is so");
        current = next;
    }
}

#[test]
fn a_yield_that_is_refused_leaves_the_queue_to_the_ordinary_way() {
    let [a, b] = [1, 2].map(|n| Node::new(n, Share::default(), cpu(0)));
    let elsewhere = Node::new(3, Share::default(), cpu(1));
    let queue = RunQueue::new(cpu(0), 0);
    let mut guard = queue.lock();
    let _ = guard.wake(&a, 0).unwrap();
    assert_eq!(started(guard.next(0, |_| MayRun::Yes).unwrap()).thread(), 1);
    assert_eq!(guard.turn(&a).err(), Some(Error::NotHere), "nobody waits");
    let _ = guard.wake(&b, 1).unwrap();
    assert_eq!(guard.turn(&b).err(), Some(Error::NotCurrent));
    assert_eq!(guard.turn(&elsewhere).err(), Some(Error::NotHere));
    assert_eq!(guard.turn(&a).unwrap().node().thread(), 2, "and it is not taken");
    let _ = guard.with(&a, |q, i, e| q.requeue(i, e, Requeue::Yielded, 2)).unwrap();
    let not_b = |node: &Node| if node.thread() == 2 { MayRun::Later } else { MayRun::Yes };
    assert_eq!(started(guard.next(2, not_b).unwrap()).thread(), 1);
    guard.check_invariants().unwrap();
}

#[test]
#[should_panic(expected = "already linked")]
fn a_node_is_in_one_tree() {
    let node = Node::new(1, Share::default(), cpu(0));
    let (mut here, mut there) = (Tree::new(cpu(0)), Tree::new(cpu(1)));
    here.insert(NodeRef(&node), Entry::default());
    there.insert(NodeRef(&node), Entry::default());
}
