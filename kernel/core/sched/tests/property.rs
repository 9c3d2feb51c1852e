//! A queue against an independent model with unbounded virtual time, on random operations.
//!
//! The model keeps every thread in one list, looks through all of it for each answer, and
//! counts virtual time in numbers that do not wrap; the queue starts just below its wrap.
use core_sched::{Activity, CpuId, DirectOffer, Entity, Entry, MayRun, Ordered, Pick, Queue};
use core_sched::{Requeue, balance};
use core_sched_policy::{LatencyClass, QUANTUM_NS, Share, VirtualTime, Weight, Wfq};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A sorted set over a map; the finish is unwrapped by its distance from the start of time.
#[derive(Clone, Debug, Default)]
struct Map {
    sorted: BTreeMap<(i64, u64), (usize, Entry)>,
}

const BASE: u64 = u64::MAX - 30_000_000;

fn key(entry: &Entry) -> (i64, u64) {
    (entry.tag.finish.since(VirtualTime::from_bits(BASE)), entry.sequence)
}

impl Ordered for Map {
    type Item = usize;

    fn insert(&mut self, item: usize, entry: Entry) {
        assert!(self.sorted.insert(key(&entry), (item, entry)).is_none());
    }

    fn remove(&mut self, item: usize) -> Option<Entry> {
        let entry = self.entry(item)?;
        self.sorted.remove(&key(&entry)).map(|e| e.1)
    }

    fn first(&self) -> Option<(usize, Entry)> {
        self.sorted.values().next().copied()
    }

    fn after(&self, item: usize) -> Option<(usize, Entry)> {
        let from = key(&self.entry(item)?);
        self.sorted.range(from..).nth(1).map(|e| *e.1)
    }

    fn entry(&self, item: usize) -> Option<Entry> {
        self.sorted.values().find(|e| e.0 == item).map(|e| e.1)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Slow {
    activity: Activity,
    share: Share,
    wanted: Share,
    start: i128,
    fraction: u128,
    kept: i128,
    finish: i128,
    arrival: u64,
    since_ns: u64,
    runtime_ns: u64,
    virtual_ns: u128,
    runnable_ns: u64,
    blocks: u64,
    preemptions: u64,
}

#[derive(Debug, Default)]
struct Model {
    threads: Vec<Slow>,
    now_v: i128,
    arrivals: u64,
    slice_end_ns: u64,
    /// Start of the slice the current thread is in, in virtual time.
    current_finish: i128,
}

impl Model {
    fn who(&self, activity: Activity) -> Option<usize> {
        self.threads.iter().position(|t| t.activity == activity)
    }

    fn waiting(&self) -> usize {
        self.threads.iter().filter(|t| t.activity == Activity::Queued).count()
    }

    fn alone(&self) -> bool {
        self.waiting() == 0 && self.who(Activity::Direct).is_none()
    }

    fn virtual_of(share: &Share, elapsed_ns: u64, fraction: u128) -> (i128, u128) {
        let number = u128::from(share.weight().get());
        let inverse = ((64u128 << 32) + number / 2) / number;
        let exact = u128::from(elapsed_ns) * inverse + fraction;
        ((exact >> 32) as i128, exact & 0xffff_ffff)
    }

    fn limit(share: &Share) -> i128 {
        let halves = match share.class() {
            LatencyClass::Interactive | LatencyClass::Normal | LatencyClass::IpcServer => 2,
            LatencyClass::Batch => 8,
        };
        (QUANTUM_NS / 2 * halves * 64 / u64::from(share.weight().get())).into()
    }

    fn request(share: &Share) -> i128 {
        let halves = match share.class() {
            LatencyClass::Interactive => 1,
            LatencyClass::Normal | LatencyClass::IpcServer => 2,
            LatencyClass::Batch => 8,
        };
        (QUANTUM_NS / 2 * halves * 64 / u64::from(share.weight().get())).into()
    }

    /// A thread alone on the CPU is chosen again each time its slice would have ended.
    fn pass_time(&mut self, now_ns: u64) {
        let Some(who) = self.who(Activity::Running).filter(|_| self.alone()) else { return };
        let t = self.threads[who];
        while self.slice_end_ns <= now_ns {
            let ran = Self::virtual_of(&t.share, self.slice_end_ns - t.since_ns, 0).0;
            self.now_v = self.now_v.max(t.start + ran);
            self.current_finish = t.start + ran + Self::request(&t.share);
            self.slice_end_ns += QUANTUM_NS;
        }
    }

    fn join(&mut self, who: usize, lag: i128, to: Activity, now_ns: u64) {
        self.pass_time(now_ns);
        let now_v = self.now_v;
        self.arrivals += 1;
        let t = &mut self.threads[who];
        if t.activity == Activity::Resting {
            t.since_ns = now_ns;
        }
        t.share = t.wanted;
        let limit = Self::limit(&t.share);
        t.start = now_v - lag.clamp(-limit, limit);
        t.finish = t.start + Self::request(&t.share);
        t.arrival = self.arrivals;
        t.activity = to;
    }

    fn rest_lag(&self, who: usize) -> i128 {
        let t = &self.threads[who];
        let limit = Self::limit(&t.wanted);
        let passed = (self.now_v - (t.start + t.kept)).max(0);
        let kept = t.kept.clamp(-limit, limit);
        kept.signum() * (kept.abs() - passed).max(0)
    }

    fn lag(&self, who: usize) -> i128 {
        let t = &self.threads[who];
        (self.now_v - t.start).clamp(-Self::limit(&t.share), Self::limit(&t.share))
    }

    fn stop(&mut self, who: usize, now_ns: u64) -> u64 {
        self.pass_time(now_ns);
        let t = &mut self.threads[who];
        let elapsed_ns = now_ns - t.since_ns;
        let (ran, fraction) = Self::virtual_of(&t.share, elapsed_ns, t.fraction);
        t.start += ran;
        t.fraction = fraction;
        t.runtime_ns += elapsed_ns;
        t.virtual_ns += ran as u128;
        elapsed_ns
    }

    fn requeue(&mut self, who: usize, yields: bool, now_ns: u64) -> u64 {
        let elapsed_ns = self.stop(who, now_ns);
        let first = self.first().map(|w| self.threads[w].finish);
        self.arrivals += 1;
        let t = &mut self.threads[who];
        t.share = t.wanted;
        t.finish = t.start + Self::request(&t.share);
        if yields {
            t.finish = t.finish.max(first.unwrap_or(t.finish));
        } else {
            t.preemptions += 1;
        }
        t.arrival = self.arrivals;
        t.since_ns = now_ns;
        t.activity = Activity::Queued;
        elapsed_ns
    }

    fn first(&self) -> Option<usize> {
        let queued = |w: &usize| self.threads[*w].activity == Activity::Queued;
        let all = (0..self.threads.len()).filter(queued);
        all.min_by_key(|w| (self.threads[*w].finish, self.threads[*w].arrival))
    }

    fn start(&mut self, who: usize, direct: bool, now_ns: u64) {
        if !direct || now_ns >= self.slice_end_ns {
            self.slice_end_ns = now_ns + QUANTUM_NS;
        }
        let waiting = self.waiting() - usize::from(!direct);
        let t = &mut self.threads[who];
        t.runnable_ns += now_ns - t.since_ns;
        t.since_ns = now_ns;
        t.activity = Activity::Running;
        self.current_finish = t.finish;
        if !direct || waiting == 0 {
            self.now_v = self.now_v.max(t.start);
        }
    }
}

#[derive(Clone, Debug)]
enum Op {
    Wake { who: usize },
    WakeDirect { who: usize },
    Choose,
    Preempt,
    Yield,
    Block,
    MoveAndBack { who: usize },
    SetAside { who: usize },
    SetShare { who: usize, weight: u16, class: usize },
}

const THREADS: usize = 7;

fn op() -> impl Strategy<Value = Op> {
    let who = 0..THREADS;
    prop_oneof![
        5 => who.clone().prop_map(|who| Op::Wake { who }),
        2 => who.clone().prop_map(|who| Op::WakeDirect { who }),
        6 => Just(Op::Choose),
        3 => Just(Op::Preempt),
        1 => Just(Op::Yield),
        2 => Just(Op::Block),
        1 => who.clone().prop_map(|who| Op::MoveAndBack { who }),
        1 => who.clone().prop_map(|who| Op::SetAside { who }),
        1 => (who, 1u16..=1024, 0usize..4)
            .prop_map(|(who, weight, class)| Op::SetShare { who, weight, class }),
    ]
}

fn step() -> impl Strategy<Value = (u64, Op)> {
    let pause_ns = prop_oneof![Just(0u64), 0u64..100, 0u64..30_000_000, Just(10_000_000)];
    (pause_ns, op())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn queue_is_the_model(steps in prop::collection::vec(step(), 1..200)) {
        let home = CpuId::new(0).unwrap();
        let policy = Wfq::new(VirtualTime::from_bits(BASE));
        let mut queue = Queue::new(home, policy, Map::default(), 0);
        let mut entities = vec![Entity::new(Share::default()); THREADS];
        let mut model = Model {
            threads: vec![Slow::default(); THREADS],
            now_v: i128::from(BASE),
            ..Model::default()
        };
        let mut now_ns = 0;
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
                        let urgent = model.threads[who].finish < model.current_finish;
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
                            model.threads[who].activity = Activity::Queued;
                        } else {
                            prop_assert_eq!(pick, Ok(Pick::Run { item: who, direct: true }));
                            let _ = queue.start(who, &mut entities[who], now_ns).unwrap();
                            model.start(who, true, now_ns);
                        }
                    } else if let Some(who) = model.first() {
                        prop_assert_eq!(pick, Ok(Pick::Run { item: who, direct: false }));
                        let started = queue.start(who, &mut entities[who], now_ns).unwrap();
                        model.start(who, false, now_ns);
                        let shared = (!model.alone()).then_some(model.slice_end_ns);
                        prop_assert_eq!(started.slice_end_ns, shared);
                    } else {
                        prop_assert_eq!(pick, Ok(Pick::Idle));
                    }
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
                Op::SetShare { who, weight, class } => {
                    let weight = Weight::new(weight).unwrap();
                    let share = Share::new(weight, LatencyClass::ALL[class]);
                    entities[who].set_share(share);
                    model.threads[who].wanted = share;
                }
            }
            prop_assert_eq!(queue.check_invariants(|item| entities[item]), Ok(()));
            prop_assert_eq!(queue.virtual_now().to_bits(), model.now_v as u64);
            for (e, t) in entities.iter().zip(&model.threads) {
                let s = e.snapshot();
                prop_assert_eq!(e.activity(), t.activity);
                prop_assert_eq!(s.runtime_ns, t.runtime_ns);
                prop_assert_eq!(u128::from(s.virtual_runtime_ns), t.virtual_ns);
                prop_assert_eq!(s.runnable_accumulated_ns, t.runnable_ns);
                prop_assert_eq!(s.voluntary_blocks, t.blocks);
                prop_assert_eq!(s.preemptions, t.preemptions);
            }
            let running: u64 = entities.iter().map(|e| e.snapshot().runtime_ns).sum();
            prop_assert_eq!(queue.busy_and_idle_ns().0, running);
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
