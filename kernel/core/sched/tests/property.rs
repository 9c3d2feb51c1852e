//! A queue against an independent model with unbounded virtual time, on random operations.
//!
//! The model keeps every thread in one list, looks through all of it for each answer, divides
//! exactly, and counts virtual time in numbers that do not wrap; the queue starts just below its
//! wrap. One model for both policies: where they differ, it asks which one it is.
use core_sched::{Activity, CpuId, DirectOffer, Entity, Entry, Error, MayRun, Ordered, Pick};
use core_sched::{Queue, Requeue, balance};
use core_sched_policy::{AnyPolicy, LatencyClass, PolicyKind, QUANTUM_NS, Share};
use core_sched_policy::{VirtualTime, Weight};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A sorted set over a map, eligible ones first; times are unwrapped by their distance from the
/// start of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Map {
    sorted: BTreeMap<(bool, i64, u64), (usize, Entry)>,
}

const BASE: u64 = u64::MAX - 30_000_000;

fn key(entry: &Entry, is_early: bool) -> (bool, i64, u64) {
    let at = if is_early { entry.tag.start } else { entry.tag.finish };
    (is_early, at.since(VirtualTime::from_bits(BASE)), entry.sequence)
}

impl Map {
    fn key_of(&self, item: usize) -> Option<(bool, i64, u64)> {
        self.sorted.iter().find(|e| e.1.0 == item).map(|e| *e.0)
    }
}

impl Ordered for Map {
    type Item = usize;

    fn insert(&mut self, item: usize, entry: Entry) {
        assert!(self.sorted.insert(key(&entry, false), (item, entry)).is_none());
    }

    fn insert_early(&mut self, item: usize, entry: Entry) {
        assert!(self.sorted.insert(key(&entry, true), (item, entry)).is_none());
    }

    fn is_early(&self, item: usize) -> bool {
        self.key_of(item).is_some_and(|key| key.0)
    }

    fn settle(&mut self, now: VirtualTime) {
        let early: Vec<_> = self.sorted.range((true, i64::MIN, 0)..).map(|e| *e.1).collect();
        for (item, entry) in early {
            if !now.is_before(entry.tag.start) {
                self.remove(item);
                self.insert(item, entry);
            }
        }
    }

    fn remove(&mut self, item: usize) -> Option<Entry> {
        let key = self.key_of(item)?;
        self.sorted.remove(&key).map(|e| e.1)
    }

    fn first(&self) -> Option<(usize, Entry)> {
        self.sorted.values().next().copied()
    }

    fn after(&self, item: usize) -> Option<(usize, Entry)> {
        let from = self.key_of(item)?;
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
    /// The request: where it starts and ends, and whether it waits to become eligible.
    request_start: i128,
    finish: i128,
    is_early: bool,
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
    kind: PolicyKind,
    threads: Vec<Slow>,
    now_v: i128,
    arrivals: u64,
    slice_end_ns: u64,
    /// The request the current thread is on.
    current_start: i128,
    current_finish: i128,
    /// Virtual time it has been served since its last charge, in whole slices.
    current_ran: i128,
    passing: i128,
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

    /// How much of its request a patient thread is owed before it is eligible.
    fn patience(&self, share: &Share) -> i128 {
        match (self.kind, share.class()) {
            (PolicyKind::Eevdf, LatencyClass::Batch) => {
                Self::request(share) - Self::request(share) / 4
            }
            _ => 0,
        }
    }

    /// Sum over all competitors of weight times distance from virtual time, and of weights. The
    /// running one stands where it was at the end of its last whole slice.
    fn pulls(&self) -> (i128, i128) {
        let mut sums = (0, 0);
        for t in &self.threads {
            let at = match t.activity {
                Activity::Queued | Activity::Direct => t.start,
                Activity::Running => t.start + self.current_ran,
                _ => continue,
            };
            let weight = i128::from(t.share.weight().get());
            sums.0 += weight * (at - self.now_v);
            sums.1 += weight;
        }
        sums
    }

    /// Under EEVDF virtual time is the mean, unless that lies behind it.
    fn follow_mean(&mut self) {
        let (pulls, weights) = self.pulls();
        if self.kind == PolicyKind::Eevdf && weights > 0 {
            self.now_v += pulls.div_euclid(weights).max(0);
        }
    }

    /// Where a newcomer with that lag goes.
    fn place(&self, lag: i128, share: &Share) -> i128 {
        self.now_v - lag.clamp(-Self::limit(share), Self::limit(share))
    }

    fn is_eligible(&self, request_start: i128) -> bool {
        self.kind == PolicyKind::Wfq || request_start <= self.now_v
    }

    /// A thread alone on the CPU is chosen again each time its slice would have ended.
    fn pass_time(&mut self, now_ns: u64) {
        let Some(who) = self.who(Activity::Running).filter(|_| self.alone()) else { return };
        let t = self.threads[who];
        let mut last = None;
        while self.slice_end_ns <= now_ns {
            let ran = Self::virtual_of(&t.share, self.slice_end_ns - t.since_ns, 0).0;
            match self.kind {
                PolicyKind::Wfq => self.now_v = self.now_v.max(t.start + ran),
                PolicyKind::Eevdf => last = Some(ran),
            }
            self.current_start = t.start + ran + self.patience(&t.share);
            self.current_finish = t.start + ran + Self::request(&t.share);
            self.slice_end_ns += QUANTUM_NS;
        }
        if let Some(ran) = last {
            let more = ran - self.current_ran;
            self.current_ran = ran;
            self.serve(more, &t.share);
        }
    }

    /// Virtual time passes by the mean, or by seven eighths of what was served, divided by
    /// weight, if that is more.
    fn serve(&mut self, virtual_ns: i128, share: &Share) {
        let served = virtual_ns * i128::from(share.weight().get());
        self.passing += served - served / 8;
        let (pulls, weights) = self.pulls();
        if self.kind == PolicyKind::Wfq || weights == 0 {
        } else if pulls >= self.passing {
            self.passing = 0;
            self.follow_mean();
        } else {
            let step = self.passing / weights;
            self.now_v += step;
            self.passing -= step * weights;
        }
    }

    fn join(&mut self, who: usize, lag: i128, to: Activity, now_ns: u64) {
        self.pass_time(now_ns);
        let start = self.place(lag, &self.threads[who].wanted);
        let request_start = start + self.patience(&self.threads[who].wanted);
        let is_early = !self.is_eligible(request_start);
        self.arrivals += 1;
        let t = &mut self.threads[who];
        if t.activity == Activity::Resting {
            t.since_ns = now_ns;
        }
        t.share = t.wanted;
        t.start = start;
        t.request_start = request_start;
        t.is_early = is_early;
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
        t.since_ns = now_ns;
        let (more, share) = (ran - self.current_ran, t.share);
        self.current_ran = 0;
        self.serve(more, &share);
        elapsed_ns
    }

    /// A thread ends: under WFQ what it had in advance passes as virtual time. Its running time.
    fn end(&mut self, who: usize, now_ns: u64) -> u64 {
        if self.threads[who].activity == Activity::Running {
            self.stop(who, now_ns);
        }
        let t = self.threads[who];
        if t.activity != Activity::Resting && self.kind == PolicyKind::Wfq {
            let ahead = (t.start - self.now_v) * i128::from(t.share.weight().get());
            self.now_v += ahead.max(0) / self.pulls().1;
        }
        t.runtime_ns
    }

    fn requeue(&mut self, who: usize, yields: bool, now_ns: u64) -> u64 {
        let elapsed_ns = self.stop(who, now_ns);
        let first = self.first().map(|w| self.threads[w].finish);
        self.arrivals += 1;
        let old = self.threads[who];
        self.threads[who].activity = Activity::Resting;
        if old.share.weight() != old.wanted.weight() {
            let limit = Self::limit(&old.wanted);
            let lag = (self.now_v - old.start).clamp(-limit, limit);
            self.threads[who].start = self.place(lag, &old.wanted);
        }
        let patience = self.patience(&old.wanted);
        let t = &mut self.threads[who];
        t.share = t.wanted;
        t.request_start = t.start + patience;
        t.finish = t.start + Self::request(&t.share);
        let goes_on = self.kind == PolicyKind::Eevdf && old.share == t.share;
        if yields {
            t.finish = t.finish.max(first.unwrap_or(t.finish));
        } else {
            t.preemptions += 1;
            if goes_on && t.start < self.current_finish {
                (t.request_start, t.finish) = (self.current_start, self.current_finish);
            }
        }
        t.arrival = self.arrivals;
        t.since_ns = now_ns;
        t.activity = Activity::Queued;
        let request_start = t.request_start;
        self.threads[who].is_early = !self.is_eligible(request_start);
        elapsed_ns
    }

    fn first(&self) -> Option<usize> {
        let queued = |w: &usize| self.threads[*w].activity == Activity::Queued;
        let all = (0..self.threads.len()).filter(queued);
        all.min_by_key(|w| {
            let t = &self.threads[*w];
            (t.is_early, if t.is_early { t.request_start } else { t.finish }, t.arrival)
        })
    }

    fn choose(&mut self) -> Option<usize> {
        self.follow_mean();
        for who in 0..self.threads.len() {
            let request_start = self.threads[who].request_start;
            self.threads[who].is_early &= !self.is_eligible(request_start);
        }
        self.first()
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
        (self.current_start, self.current_finish) = (t.request_start, t.finish);
        if self.kind == PolicyKind::Wfq && (!direct || waiting == 0) {
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
    YieldTo { takes: bool },
    Block,
    MoveAndBack { who: usize },
    SetAside { who: usize },
    End { who: usize },
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
