//! A queue against an independent model with unbounded virtual time, on random operations.
//!
//! The model keeps every thread in one list, looks through all of it for each answer, divides
//! exactly, and counts virtual time in numbers that do not wrap; the queue starts just below its
//! wrap. One model for both policies: where they differ, it asks which one it is.
#[path = "property/flips.rs"]
mod flips;
#[path = "property/map.rs"]
mod map;
#[path = "property/model.rs"]
mod model;

use core_sched::balance;
use core_sched::{Activity, CpuId, DirectOffer, Entity, Error, MayRun, Pick, Queue, Requeue};
use core_sched_policy::{AnyPolicy, LatencyClass, PolicyKind, Share, VirtualTime, Weight};
use map::{BASE, Map};
use model::{Model, Slow};
use test_property::prelude::*;

#[derive(Clone, Debug)]
enum Op {
    Wake { who: usize },
    WakeDirect { who: usize },
    Choose,
    Preempt,
    Yield,
    YieldTo { takes: bool },
    Block,
    MoveAndBack { who: usize },
    SetAside { who: usize },
    End { who: usize },
    SetShare { who: usize, weight: u16, class: usize },
}

const THREADS: usize = 7;
/// How long after each operation somebody looks.
const LOOK_NS: u64 = 7_777;

fn op() -> impl Strategy<Value = Op> {
    let who = 0..THREADS;
    prop_oneof![
        5 => who.clone().prop_map(|who| Op::Wake { who }),
        2 => who.clone().prop_map(|who| Op::WakeDirect { who }),
        6 => Just(Op::Choose),
        3 => Just(Op::Preempt),
        1 => Just(Op::Yield),
        3 => prop::bool::weighted(0.8).prop_map(|takes| Op::YieldTo { takes }),
        2 => Just(Op::Block),
        1 => who.clone().prop_map(|who| Op::MoveAndBack { who }),
        1 => who.clone().prop_map(|who| Op::SetAside { who }),
        1 => who.clone().prop_map(|who| Op::End { who }),
        1 => (who, 1u16..=1024, 0usize..4)
            .prop_map(|(who, weight, class)| Op::SetShare { who, weight, class }),
    ]
}

fn step() -> impl Strategy<Value = (u64, Op)> {
    let pause_ns = prop_oneof![Just(0u64), 0u64..100, 0u64..30_000_000, Just(10_000_000)];
    (pause_ns, op())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn queue_is_the_model(
        kind in prop::sample::select(PolicyKind::ALL.to_vec()),
        steps in prop::collection::vec(step(), 1..200),
    ) {
        let home = CpuId::new(0).unwrap();
        let policy = AnyPolicy::new(kind, VirtualTime::from_bits(BASE));
        let mut queue = Queue::new(home, policy, Map::default(), 0);
        let mut entities = vec![Entity::new(Share::default()); THREADS];
        let mut model = Model {
            kind,
            threads: vec![Slow::default(); THREADS],
            now_v: i128::from(BASE),
            ..Model::default()
        };
        let mut now_ns = 0;
        let mut ended_ns = 0;
        let mut said = [(0, 0u128, 0); THREADS];
        for (pause_ns, op) in steps {
            now_ns += pause_ns;
            let activity = |who: usize, m: &Model| m.threads[who].activity;
            match op {
                Op::Wake { who } => {
                    let e = &mut entities[who];
                    let was_alone = model.alone();
                    let lag = queue.rest_lag(e);
                    let got = queue.enqueue(who, e, lag, now_ns);
                    prop_assert_eq!(got.is_ok(), activity(who, &model) == Activity::Resting);
                    if let Ok(got) = got {
                        let model_lag = model.rest_lag(who);
                        prop_assert_eq!(i128::from(lag.virtual_ns()), model_lag);
                        model.join(who, model_lag, Activity::Queued, now_ns);
                        let running = model.who(Activity::Running).is_some();
                        let urgent = !model.threads[who].is_early
                            && model.threads[who].finish < model.current_finish;
                        prop_assert_eq!(got.resched, !running || urgent);
                        let arm = (running && was_alone).then_some(model.slice_end_ns);
                        prop_assert_eq!(got.arm_slice_ns, arm);
                    }
                }
                Op::WakeDirect { who } => {
                    let e = &mut entities[who];
                    let lag = queue.rest_lag(e);
                    let got = queue.offer_direct(who, e, lag, now_ns);
                    prop_assert_eq!(got.is_ok(), activity(who, &model) == Activity::Resting);
                    if let Ok(got) = got {
                        let is_free = model.who(Activity::Direct).is_none();
                        prop_assert_eq!(is_free, matches!(got, DirectOffer::Taken { .. }));
                        let to = if is_free { Activity::Direct } else { Activity::Queued };
                        model.join(who, model.rest_lag(who), to, now_ns);
                    }
                }
                Op::Choose => {
                    let pick = queue.pick(now_ns, |_| MayRun::Yes);
                    if model.who(Activity::Running).is_some() {
                        prop_assert!(pick.is_err());
                    } else if let Some(who) = model.who(Activity::Direct) {
                        if model.waiting() > 0 && now_ns >= model.slice_end_ns {
                            prop_assert_eq!(pick, Ok(Pick::QueueDirect { item: who }));
                            let _ = queue.settle_direct(who, &mut entities[who]).unwrap();
                            let request_start = model.threads[who].request_start;
                            model.threads[who].is_early = !model.is_eligible(request_start);
                            model.threads[who].activity = Activity::Queued;
                        } else {
                            prop_assert_eq!(pick, Ok(Pick::Run { item: who, direct: true }));
                            let _ = queue.start(who, &mut entities[who], now_ns).unwrap();
                            model.start(who, true, now_ns);
                        }
                    } else if let Some(who) = model.choose() {
                        prop_assert_eq!(pick, Ok(Pick::Run { item: who, direct: false }));
                        let started = queue.start(who, &mut entities[who], now_ns).unwrap();
                        model.start(who, false, now_ns);
                        let shared = (!model.alone()).then_some(model.slice_end_ns);
                        prop_assert_eq!(started.slice_end_ns, shared);
                    } else {
                        prop_assert_eq!(pick, Ok(Pick::Idle));
                    }
                }
                Op::YieldTo { takes } => {
                    let Some(who) = model.who(Activity::Running) else { continue };
                    let t = model.threads[who];
                    let want = if kind == PolicyKind::Eevdf
                        || t.share != t.wanted
                        || model.who(Activity::Direct).is_some()
                    {
                        Err(Error::OutOfTurn)
                    } else {
                        model.first().ok_or(Error::NotHere)
                    };
                    let before = (queue.clone(), entities.clone());
                    let activity = |item: usize| Some(entities[item].activity());
                    let turn = queue.turn(who, &entities[who], activity);
                    prop_assert_eq!(turn.as_ref().map(|turn| turn.item()), want.as_ref().copied());
                    let (Ok(turn), Ok(to), true) = (turn, want, takes) else {
                        prop_assert_eq!((&queue, &entities), (&before.0, &before.1));
                        continue;
                    };
                    let [from, first] = entities.get_disjoint_mut([who, to]).unwrap();
                    let got = turn.take(from, first, now_ns);
                    let elapsed_ns = model.requeue(who, true, now_ns);
                    prop_assert_eq!(model.choose(), Some(to));
                    model.start(to, false, now_ns);
                    prop_assert_eq!(got.charge.elapsed_ns, elapsed_ns);
                    prop_assert_eq!(got.slice_end_ns, model.slice_end_ns);
                    // And to the last word it is what the ordinary way leaves behind.
                    let (mut ordinary, mut others) = before;
                    let e = &mut others[who];
                    let requeued = ordinary.requeue(who, e, Requeue::Yielded, now_ns).unwrap();
                    prop_assert_eq!(requeued.charge, got.charge);
                    let pick = ordinary.pick(now_ns, |_| MayRun::Yes);
                    prop_assert_eq!(pick, Ok(Pick::Run { item: to, direct: false }));
                    let started = ordinary.start(to, &mut others[to], now_ns).unwrap();
                    prop_assert_eq!(started.slice_end_ns, Some(got.slice_end_ns));
                    prop_assert_eq!((&queue, &entities), (&ordinary, &others));
                }
                Op::Preempt | Op::Yield | Op::Block => {
                    let Some(who) = model.who(Activity::Running) else { continue };
                    let e = &mut entities[who];
                    let (charge, elapsed_ns) = match op {
                        Op::Preempt => (
                            queue.requeue(who, e, Requeue::Preempted, now_ns).unwrap().charge,
                            model.requeue(who, false, now_ns),
                        ),
                        Op::Yield => (
                            queue.requeue(who, e, Requeue::Yielded, now_ns).unwrap().charge,
                            model.requeue(who, true, now_ns),
                        ),
                        _ => {
                            let charge = queue.block(who, e, now_ns).unwrap().charge;
                            let elapsed_ns = model.stop(who, now_ns);
                            model.threads[who].kept = model.lag(who);
                            model.threads[who].activity = Activity::Resting;
                            model.threads[who].blocks += 1;
                            (charge, elapsed_ns)
                        }
                    };
                    prop_assert_eq!(charge.elapsed_ns, elapsed_ns);
                }
                Op::MoveAndBack { who } => {
                    let e = &mut entities[who];
                    let waits = matches!(e.activity(), Activity::Queued | Activity::Direct);
                    let got = queue.depart(who, e, now_ns);
                    prop_assert_eq!(got.is_ok(), waits);
                    if let Ok(departed) = got {
                        let lag = model.lag(who);
                        prop_assert_eq!(i128::from(departed.lag.virtual_ns()), lag);
                        model.threads[who].activity = Activity::Moving;
                        let _ = queue.enqueue(who, e, departed.lag, now_ns).unwrap();
                        model.join(who, lag, Activity::Queued, now_ns);
                    }
                }
                Op::SetAside { who } => {
                    let e = &mut entities[who];
                    let waits = matches!(e.activity(), Activity::Queued | Activity::Direct);
                    prop_assert_eq!(queue.set_aside(who, e, now_ns).is_ok(), waits);
                    if waits {
                        model.threads[who].kept = model.lag(who);
                        model.threads[who].activity = Activity::Resting;
                        let since_ns = model.threads[who].since_ns;
                        model.threads[who].runnable_ns += now_ns - since_ns;
                    }
                }
                Op::End { who } => {
                    let e = &mut entities[who];
                    let got = match e.activity() {
                        Activity::Running => queue.exit(who, e, now_ns).map(|_| ()),
                        Activity::Resting => queue.drop_resting(e),
                        _ => queue.drop_dead(who, e, now_ns),
                    };
                    prop_assert_eq!(got, Ok(()));
                    prop_assert_eq!(entities[who].activity(), Activity::Dead);
                    ended_ns += model.end(who, now_ns);
                    // Another thread gets the record.
                    entities[who] = Entity::new(Share::default());
                    model.threads[who] = Slow::default();
                    said[who] = (0, 0, 0);
                }
                Op::SetShare { who, weight, class } => {
                    let weight = Weight::new(weight).unwrap();
                    let share = Share::new(weight, LatencyClass::ALL[class]);
                    entities[who].set_share(share);
                    model.threads[who].wanted = share;
                }
            }
            prop_assert_eq!(queue.check_invariants(|item| entities[item]), Ok(()));
            prop_assert_eq!(queue.virtual_now().to_bits(), model.now_v as u64);
            let is_between = queue.current().is_none();
            prop_assert!(is_between || queue.waiting_max() >= queue.hint().waiting);
            let runs_or_waits = model.threads.iter().filter(|t| {
                matches!(t.activity, Activity::Queued | Activity::Direct | Activity::Running)
            });
            prop_assert_eq!(queue.runnable() as usize, runs_or_waits.count());
            for (who, (e, t)) in entities.iter_mut().zip(&model.threads).enumerate() {
                // A look in between closes nothing, and sees what is open.
                let s = queue.snapshot(who, e, now_ns + LOOK_NS);
                let open_ns = now_ns + LOOK_NS - t.since_ns;
                let is_running = t.activity == Activity::Running;
                let waits = matches!(t.activity, Activity::Queued | Activity::Direct);
                let ran = Model::virtual_of(&t.share, open_ns, t.fraction).0 as u128;
                let (running, waiting) = (u64::from(is_running), u64::from(waits));
                // Nor does it ever see less than before, though the clock of this one was ahead.
                said[who].0 = said[who].0.max(t.runtime_ns + running * open_ns);
                said[who].1 = said[who].1.max(t.virtual_ns + u128::from(running) * ran);
                said[who].2 = said[who].2.max(t.runnable_ns + waiting * open_ns);
                prop_assert_eq!(
                    (s.runtime_ns, u128::from(s.virtual_runtime_ns), s.runnable_accumulated_ns),
                    said[who]
                );
                let s = e.snapshot();
                prop_assert_eq!(e.activity(), t.activity);
                prop_assert_eq!(s.runtime_ns, t.runtime_ns);
                prop_assert_eq!(u128::from(s.virtual_runtime_ns), t.virtual_ns);
                prop_assert_eq!(s.runnable_accumulated_ns, t.runnable_ns);
                prop_assert_eq!(s.voluntary_blocks, t.blocks);
                prop_assert_eq!(s.preemptions, t.preemptions);
            }
            let running: u64 = entities.iter().map(|e| e.snapshot().runtime_ns).sum();
            prop_assert_eq!(queue.busy_and_idle_ns().0, running + ended_ns);
        }
    }

    #[test]
    fn victim_is_the_latest_head(
        hints in prop::collection::vec((0u32..3, -5i64..5), 1..128), thief in 0usize..128
    ) {
        let thief = thief % hints.len();
        let cpus = core_sched::CpuSet::first_n(hints.len());
        let looked = std::cell::Cell::new(0);
        let got = balance::victim(CpuId::new(thief).unwrap(), cpus, |c| {
            looked.set(looked.get() + 1);
            let (waiting, lateness_ns) = hints[c.index()];
            core_sched::Hint { waiting, load: 64, lateness_ns }
        });
        let mut want: Option<usize> = None;
        for (n, h) in hints.iter().enumerate() {
            if n != thief && h.0 > 0 && want.is_none_or(|w| h.1 > hints[w].1) {
                want = Some(n);
            }
        }
        prop_assert_eq!(got.map(CpuId::index), want);
        prop_assert!(looked.get() < hints.len() + 1, "the scan is bounded by CPUs");
    }
}
