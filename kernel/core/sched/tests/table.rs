//! Every activity of a thread against every operation of a queue: what it becomes, or the error
//! that leaves queue and thread as they were.
use core_sched::{
    Activity, Authority, CpuId, DirectOffer, Entity, Entry, Error, MayRun, Ordered, Pick, Queue,
    Refusal, Requeue,
};
use core_sched_policy::{Lag, LatencyClass, QUANTUM_NS, Share, Weight, Wfq};

/// The model of a sorted set: a list, sorted at each insertion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct List(Vec<(u32, Entry)>);

impl Ordered for List {
    type Item = u32;

    fn insert(&mut self, item: u32, entry: Entry) {
        assert!(self.entry(item).is_none());
        self.0.push((item, entry));
        self.0.sort_by(|a, b| a.1.order(&b.1));
    }

    fn remove(&mut self, item: u32) -> Option<Entry> {
        let at = self.0.iter().position(|e| e.0 == item)?;
        Some(self.0.remove(at).1)
    }

    fn first(&self) -> Option<(u32, Entry)> {
        self.0.first().copied()
    }

    fn after(&self, item: u32) -> Option<(u32, Entry)> {
        let at = self.0.iter().position(|e| e.0 == item)?;
        self.0.get(at + 1).copied()
    }

    fn entry(&self, item: u32) -> Option<Entry> {
        self.0.iter().find(|e| e.0 == item).map(|e| e.1)
    }
}

type Q = Queue<Wfq, List>;

const SUBJECT: u32 = 1;
const OTHER: u32 = 2;
const T0: u64 = 1_000;
const T1: u64 = 5_000;

fn new_queue() -> Q {
    Queue::new(CpuId::new(0).unwrap(), Wfq::default(), List::default(), 0)
}

fn run(queue: &mut Q, item: u32, entity: &mut Entity, now_ns: u64) {
    let _ = queue.enqueue(item, entity, Lag::ZERO, now_ns).unwrap();
    assert_eq!(queue.pick(now_ns, |_| MayRun::Yes), Ok(Pick::Run { item, direct: false }));
    let _ = queue.start(item, entity, now_ns).unwrap();
}

/// A queue where the subject does that and nobody else is there.
fn scene(activity: Activity) -> (Q, Entity) {
    let mut queue = new_queue();
    let mut subject = Entity::new(Share::default());
    match activity {
        Activity::Resting => {}
        Activity::Queued => {
            let _ = queue.enqueue(SUBJECT, &mut subject, Lag::ZERO, T0).unwrap();
        }
        Activity::Direct => {
            let offer = queue.offer_direct(SUBJECT, &mut subject, Lag::ZERO, T0).unwrap();
            assert!(matches!(offer, DirectOffer::Taken { .. }));
        }
        Activity::Running => run(&mut queue, SUBJECT, &mut subject, T0),
        Activity::Moving => {
            let _ = queue.enqueue(SUBJECT, &mut subject, Lag::ZERO, T0).unwrap();
            let _ = queue.depart(SUBJECT, &mut subject, T0).unwrap();
        }
        Activity::Dead => {
            run(&mut queue, SUBJECT, &mut subject, T0);
            let _ = queue.exit(SUBJECT, &mut subject, T0).unwrap();
        }
    }
    assert_eq!(subject.activity(), activity);
    (queue, subject)
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Event {
    Enqueue,
    OfferDirect,
    SettleDirect,
    PickAndStart,
    Depart,
    SetAside,
    DropDead,
    DropResting,
    Preempt,
    Yield,
    Block,
    Suspend,
    Exit,
    Charge,
    HandOffTo,
}

const EVENTS: [Event; 15] = [
    Event::Enqueue,
    Event::OfferDirect,
    Event::SettleDirect,
    Event::PickAndStart,
    Event::Depart,
    Event::SetAside,
    Event::DropDead,
    Event::DropResting,
    Event::Preempt,
    Event::Yield,
    Event::Block,
    Event::Suspend,
    Event::Exit,
    Event::Charge,
    Event::HandOffTo,
];

fn apply(event: Event, queue: &mut Q, subject: &mut Entity) -> Result<(), Error> {
    let mut other = Entity::new(Share::default());
    match event {
        Event::Enqueue => queue.enqueue(SUBJECT, subject, Lag::ZERO, T1).map(drop),
        Event::OfferDirect => queue.offer_direct(SUBJECT, subject, Lag::ZERO, T1).map(drop),
        Event::SettleDirect => queue.settle_direct(SUBJECT, subject).map(drop),
        Event::PickAndStart => match queue.pick(T1, |_| MayRun::Yes)? {
            Pick::Run { item, .. } => queue.start(item, subject, T1).map(drop),
            _ => Ok(()),
        },
        Event::Depart => queue.depart(SUBJECT, subject, T1).map(drop),
        Event::SetAside => queue.set_aside(SUBJECT, subject, T1),
        Event::DropDead => queue.drop_dead(SUBJECT, subject, T1),
        Event::DropResting => queue.drop_resting(subject),
        Event::Preempt => queue.requeue(SUBJECT, subject, Requeue::Preempted, T1).map(drop),
        Event::Yield => queue.requeue(SUBJECT, subject, Requeue::Yielded, T1).map(drop),
        Event::Block => queue.block(SUBJECT, subject, T1).map(drop),
        Event::Suspend => queue.suspend(SUBJECT, subject, T1).map(drop),
        Event::Exit => queue.exit(SUBJECT, subject, T1).map(drop),
        Event::Charge => queue.charge(SUBJECT, subject, Authority::Weight, T1).map(drop),
        Event::HandOffTo => {
            let to = (OTHER, &mut other);
            queue.hand_off((SUBJECT, subject), to, Lag::ZERO, T1).map(drop)
        }
    }
}

fn expected(event: Event, activity: Activity) -> Result<Activity, Error> {
    use Activity::*;
    let refused = Err(Error::Activity { is: activity });
    match (event, activity) {
        (Event::Enqueue, Resting | Moving) => Ok(Queued),
        (Event::OfferDirect, Resting | Moving) => Ok(Direct),
        (Event::Enqueue | Event::OfferDirect, _) => refused,
        (Event::SettleDirect, Direct) => Ok(Queued),
        (Event::SettleDirect, _) => Err(Error::NotHere),
        (Event::PickAndStart, Queued | Direct) => Ok(Running),
        (Event::PickAndStart, Running) => Err(Error::Occupied),
        (Event::PickAndStart, _) => Ok(activity),
        (Event::Depart, Queued | Direct) => Ok(Moving),
        (Event::SetAside, Queued | Direct) => Ok(Resting),
        (Event::DropDead, Queued | Direct) => Ok(Dead),
        (Event::Depart | Event::SetAside | Event::DropDead, _) => refused,
        (Event::Preempt | Event::Yield, Running) => Ok(Queued),
        (Event::Block | Event::Suspend | Event::HandOffTo, Running) => Ok(Resting),
        (Event::DropResting, Resting) => Ok(Dead),
        (Event::DropResting, is) => Err(Error::Activity { is }),
        (Event::Exit, Running) => Ok(Dead),
        (Event::Charge, Running) => Ok(Running),
        (_, _) => Err(Error::NotCurrent),
    }
}

#[test]
fn every_activity_and_event() {
    for activity in Activity::ALL {
        for event in EVENTS {
            let (mut queue, mut subject) = scene(activity);
            let (queue_before, subject_before) = (queue.clone(), subject);
            let got = apply(event, &mut queue, &mut subject).map(|()| subject.activity());
            assert_eq!(got, expected(event, activity), "{event:?} while {activity:?}");
            if got.is_err() {
                assert_eq!(queue, queue_before, "{event:?} while {activity:?}");
                assert_eq!(subject, subject_before, "{event:?} while {activity:?}");
            }
            if event != Event::HandOffTo {
                queue.check_invariants(|_| subject).unwrap();
            }
        }
    }
}

#[test]
fn a_hand_off_target_is_resting_or_moving() {
    for activity in Activity::ALL {
        let mut queue = new_queue();
        let mut from = Entity::new(Share::default());
        run(&mut queue, OTHER, &mut from, T0);
        let mut to = Entity::new(Share::default());
        match activity {
            Activity::Resting => {}
            Activity::Queued => {
                let _ = queue.enqueue(SUBJECT, &mut to, Lag::ZERO, T0).unwrap();
            }
            Activity::Direct => {
                let _ = queue.offer_direct(SUBJECT, &mut to, Lag::ZERO, T0).unwrap();
            }
            // On another CPU, or nowhere.
            Activity::Running | Activity::Moving | Activity::Dead => to = scene(activity).1,
        }
        let before = (queue.clone(), from, to);
        let got = queue.hand_off((OTHER, &mut from), (SUBJECT, &mut to), Lag::ZERO, T1);
        match activity {
            Activity::Resting | Activity::Moving => {
                assert!(got.is_ok());
                assert_eq!(
                    (from.activity(), to.activity()),
                    (Activity::Resting, Activity::Running)
                );
                assert_eq!(queue.current(), Some(SUBJECT));
            }
            is => {
                assert_eq!(got, Err(Error::Activity { is }));
                assert_eq!((queue, from, to), before);
            }
        }
    }
}

/// A queue where `OTHER` runs and two wait, the subject first; and their states.
fn two_wait() -> (Q, [Entity; 3]) {
    let mut queue = new_queue();
    let [mut from, mut first, mut second] = [Entity::new(Share::default()); 3];
    run(&mut queue, OTHER, &mut from, T0);
    let _ = queue.enqueue(SUBJECT, &mut first, Lag::ZERO, T0).unwrap();
    let _ = queue.enqueue(3, &mut second, Lag::ZERO, T0).unwrap();
    (queue, [from, first, second])
}

#[test]
fn a_yield_changes_places_with_the_first() {
    let (mut queue, [mut from, mut first, second]) = two_wait();
    let turn = queue.turn(OTHER, &from, |_| Some(first.activity())).unwrap();
    assert_eq!(turn.item(), SUBJECT);
    let yielded = turn.take(&mut from, &mut first, T1);
    assert_eq!((yielded.charge.elapsed_ns, yielded.slice_end_ns), (T1 - T0, T1 + QUANTUM_NS));
    assert_eq!((from.activity(), first.activity()), (Activity::Queued, Activity::Running));
    let waiting: Vec<_> = queue.order().0.iter().map(|e| e.0).collect();
    assert_eq!((queue.current(), waiting), (Some(SUBJECT), vec![3, OTHER]));
    let states = |item| match item {
        OTHER => from,
        SUBJECT => first,
        _ => second,
    };
    queue.check_invariants(states).unwrap();
}

#[test]
fn a_turn_is_refused_and_what_is_refused_changes_nothing() {
    fn check(queue: &mut Q, from: u32, leaving: &Entity, to: Option<Activity>, want: Error) {
        let before = queue.clone();
        assert_eq!(queue.turn(from, leaving, |_| to).map(|turn| turn.item()), Err(want));
        assert_eq!(*queue, before);
    }
    let queued = Some(Activity::Queued);
    let (mut queue, [mut from, first, _]) = two_wait();
    check(&mut queue, SUBJECT, &first, queued, Error::NotCurrent);
    check(&mut queue, OTHER, &first, queued, Error::Activity { is: Activity::Queued });
    check(&mut queue, OTHER, &from, None, Error::NotHere);
    for is in Activity::ALL.into_iter().filter(|is| *is != Activity::Queued) {
        check(&mut queue, OTHER, &from, Some(is), Error::Activity { is });
    }
    let same = from.share();
    from.set_share(Share::new(Weight::MAX, LatencyClass::Normal));
    check(&mut queue, OTHER, &from, queued, Error::OutOfTurn);
    from.set_share(same);
    // A turn that is not taken leaves everything as it was.
    let before = queue.clone();
    assert!(queue.turn(OTHER, &from, |_| queued).is_ok());
    assert_eq!(queue, before);
    let mut slot = Entity::new(Share::default());
    let _ = queue.offer_direct(4, &mut slot, Lag::ZERO, T0).unwrap();
    check(&mut queue, OTHER, &from, queued, Error::OutOfTurn);
    let (mut alone, subject) = scene(Activity::Running);
    check(&mut alone, SUBJECT, &subject, queued, Error::NotHere);
}

#[test]
fn a_span_of_being_runnable_is_counted_once_on_every_way() {
    // Runnable from T0 to T1, and looked at in the middle.
    let middle = (T0 + T1) / 2;
    for activity in [Activity::Queued, Activity::Direct, Activity::Moving] {
        let (mut queue, mut subject) = scene(activity);
        let looked = queue.snapshot(SUBJECT, &mut subject, middle);
        assert_eq!(looked.runnable_accumulated_ns, middle - T0, "{activity:?}");
        match activity {
            Activity::Moving => {
                // Another queue takes it over: by its order, or in the place of a thread that waits.
                let mut from = Entity::new(Share::default());
                run(&mut queue, OTHER, &mut from, T0);
                let to = (SUBJECT, &mut subject);
                let _ = queue.hand_off((OTHER, &mut from), to, Lag::ZERO, T1).unwrap();
            }
            _ => {
                let _ = queue.pick(T1, |_| MayRun::Yes).unwrap();
                let _ = queue.start(SUBJECT, &mut subject, T1).unwrap();
            }
        }
        assert_eq!(subject.snapshot().runnable_accumulated_ns, T1 - T0, "{activity:?}");
        let later = queue.snapshot(SUBJECT, &mut subject, T1 + 50);
        assert_eq!((later.runnable_accumulated_ns, later.runtime_ns), (T1 - T0, 50));
        assert_eq!(subject.snapshot().runtime_ns, 0, "a look closes nothing");
    }
}

#[test]
fn the_most_that_waited_are_those_who_came_and_not_those_who_go_on() {
    let (mut queue, [mut from, mut first, _]) = two_wait();
    assert_eq!((queue.waiting_max(), queue.runnable()), (2, 3));
    let _ = queue.requeue(OTHER, &mut from, Requeue::Preempted, T1).unwrap();
    let _ = queue.pick(T1, |_| MayRun::Yes).unwrap();
    let _ = queue.start(SUBJECT, &mut first, T1).unwrap();
    assert_eq!((queue.waiting_max(), queue.runnable()), (2, 3));
    let _ = queue.enqueue(9, &mut Entity::new(Share::default()), Lag::ZERO, T1).unwrap();
    assert_eq!((queue.waiting_max(), queue.runnable()), (3, 4));
}

#[test]
fn an_idle_cpu_is_idle_up_to_the_look() {
    let mut queue = new_queue();
    assert_eq!((queue.idle_ns_until(T0 - 10), queue.busy_and_idle_ns().1), (T0 - 10, 0));
    // The clock of whoever looks is ahead of that of the CPU, which starts a thread.
    assert_eq!(queue.idle_ns_until(T0 + 10), T0 + 10);
    run(&mut queue, SUBJECT, &mut Entity::new(Share::default()), T0);
    assert_eq!((queue.idle_ns_until(T1), queue.busy_and_idle_ns().1), (T0 + 10, T0));
}

#[test]
fn a_taken_slot_refuses_a_hand_off() {
    let mut queue = new_queue();
    let [mut from, mut to, mut slot] = [Entity::new(Share::default()); 3];
    run(&mut queue, OTHER, &mut from, T0);
    let _ = queue.offer_direct(SUBJECT, &mut slot, Lag::ZERO, T0).unwrap();
    let before = (queue.clone(), from, to);
    let got = queue.hand_off((OTHER, &mut from), (3, &mut to), Lag::ZERO, T1);
    assert_eq!(got, Err(Error::SlotTaken));
    assert_eq!((queue, from, to), before);
}

#[test]
fn a_taken_slot_queues_the_second_target_once() {
    let (mut queue, first) = scene(Activity::Direct);
    let mut second = Entity::new(Share::default());
    let offer = queue.offer_direct(OTHER, &mut second, Lag::ZERO, T1).unwrap();
    assert!(matches!(offer, DirectOffer::Queued(_)));
    assert_eq!((queue.direct(), second.activity()), (Some(SUBJECT), Activity::Queued));
    assert_eq!(queue.order().0.len(), 1);
    queue.check_invariants(|item| if item == SUBJECT { first } else { second }).unwrap();
}

#[test]
fn the_slot_is_refused_when_the_slice_is_over_and_others_wait() {
    let mut queue = new_queue();
    let [mut a, mut b, mut c] = [Entity::new(Share::default()); 3];
    run(&mut queue, 10, &mut a, 0);
    let _ = queue.enqueue(12, &mut c, Lag::ZERO, 0).unwrap();
    let hand_off = |queue: &mut Q, a: &mut Entity, b: &mut Entity, at| {
        queue.hand_off((10, a), (11, b), Lag::ZERO, at)
    };
    assert_eq!(hand_off(&mut queue, &mut a, &mut b, QUANTUM_NS), Err(Error::SliceOver));
    let handed = hand_off(&mut queue, &mut a, &mut b, QUANTUM_NS - 1).unwrap();
    assert_eq!(handed.slice_end_ns, Some(QUANTUM_NS), "the slice is shared, not renewed");
    assert_eq!(handed.charge.elapsed_ns, QUANTUM_NS - 1);
    // Through the slot it is the same: over, the target is queued and the order decides.
    let _ = queue.block(11, &mut b, QUANTUM_NS).unwrap();
    let offer = queue.offer_direct(10, &mut a, Lag::ZERO, QUANTUM_NS).unwrap();
    assert!(matches!(offer, DirectOffer::Taken { .. }));
    assert_eq!(queue.pick(QUANTUM_NS, |_| MayRun::Yes), Ok(Pick::QueueDirect { item: 10 }));
    let _ = queue.settle_direct(10, &mut a).unwrap();
    assert_eq!(queue.pick(QUANTUM_NS, |_| MayRun::Yes), Ok(Pick::Run { item: 12, direct: false }));
}

#[test]
fn vetoes_pass_over_or_take_out() {
    let mut queue = new_queue();
    let mut entities = [Entity::new(Share::default()); 3];
    for (n, entity) in entities.iter_mut().enumerate() {
        let _ = queue.enqueue(n as u32, entity, Lag::ZERO, n as u64).unwrap();
    }
    let before = queue.clone();
    let later = |item: u32| if item == 0 { MayRun::Later } else { MayRun::Yes };
    assert_eq!(queue.clone().pick(9, later), Ok(Pick::Run { item: 1, direct: false }));
    assert_eq!(queue.clone().pick(9, |_| MayRun::Later), Ok(Pick::Idle));
    for why in [Refusal::Throttled, Refusal::Elsewhere, Refusal::Dead] {
        let veto = |item: u32| if item == 0 { MayRun::No(why) } else { MayRun::Yes };
        assert_eq!(queue.pick(9, veto), Ok(Pick::Refused { item: 0, why }));
        assert_eq!(queue, before, "a refused thread stays until it is taken out");
    }
    queue.set_aside(0, &mut entities[0], 9).unwrap();
    assert_eq!(queue.pick(9, |_| MayRun::Yes), Ok(Pick::Run { item: 1, direct: false }));
}

#[test]
fn every_charge_names_who_pays() {
    let (mut queue, mut subject) = scene(Activity::Running);
    let context = Authority::Context { id: 9, generation: 2 };
    assert_eq!(
        subject.set_authority(context),
        Err(Error::Activity { is: Activity::Running }),
        "an open interval belongs to the old authority"
    );
    let own = queue.charge(SUBJECT, &mut subject, context, T0 + 30).unwrap();
    assert_eq!((own.authority, own.elapsed_ns), (Authority::Weight, 30));
    let theirs = queue.block(SUBJECT, &mut subject, T0 + 100).unwrap().charge;
    assert_eq!((theirs.authority, theirs.elapsed_ns), (context, 70));
    assert_eq!(subject.snapshot().runtime_ns, 100);
    assert_eq!(subject.set_authority(Authority::Weight), Ok(()));
}

#[test]
fn the_slice_is_armed_when_somebody_waits() {
    let mut queue = new_queue();
    let [mut a, mut b, mut c] = [Entity::new(Share::default()); 3];
    let woken = queue.enqueue(1, &mut a, Lag::ZERO, 0).unwrap();
    assert!(woken.resched, "an idle CPU looks");
    assert_eq!(queue.pick(0, |_| MayRun::Yes), Ok(Pick::Run { item: 1, direct: false }));
    assert_eq!(queue.start(1, &mut a, 0).unwrap().slice_end_ns, None, "alone: no slice");
    // It ran alone through two slices and half of the third.
    let now_ns = QUANTUM_NS * 5 / 2;
    let second = queue.enqueue(2, &mut b, Lag::ZERO, now_ns).unwrap();
    assert_eq!(second.arm_slice_ns, Some(3 * QUANTUM_NS));
    assert!(!second.resched, "equals wait for the end of the slice");
    let third = queue.enqueue(3, &mut c, Lag::ZERO, now_ns).unwrap();
    assert_eq!(third.arm_slice_ns, None, "it is armed already");
}
