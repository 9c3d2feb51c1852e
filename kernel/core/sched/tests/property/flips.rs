//! A thread that asks for another weight and class whenever it likes gets no more than one that always has the most
//! it may ask for; and one that others weigh down runs all the same.

use core_sched::{CpuId, Entity, MayRun, Pick, Queue, Requeue};
use core_sched_policy::{AnyPolicy, LatencyClass, PolicyKind, QUANTUM_NS, Share, Weight};
use test_property::prelude::*;

use crate::map::Map;

type Q = Queue<AnyPolicy, Map>;

const ATTACKER: usize = 0;

/// What the attacker does next: for how long it runs, and what it asks for before.
#[derive(Clone, Copy, Debug)]
struct Move {
    runs_ns: u64,
    weight: u16,
    class: usize,
    stop: Stop,
    /// What it asks for after it has stopped to run, as somebody else might for it.
    then: Option<(u16, usize)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Stop {
    /// Runs on until it is preempted.
    None,
    Yields,
    /// Waits for so long.
    Sleeps(u64),
}

fn one_move() -> impl Strategy<Value = Move> {
    let weight = prop_oneof![Just(1u16), Just(64), Just(1024), 1u16..=1024];
    let runs_ns = prop_oneof![Just(1_000u64), 1u64..100_000, 1u64..12_000_000, Just(9_999_999)];
    let stop = prop_oneof![
        2 => Just(Stop::None),
        1 => Just(Stop::Yields),
        2 => prop_oneof![Just(1_000u64), 1u64..20_000_000].prop_map(Stop::Sleeps),
    ];
    let then = prop::option::of((weight.clone(), 0usize..4));
    (runs_ns, weight, 0usize..4, stop, then).prop_map(|(runs_ns, weight, class, stop, then)| Move {
        runs_ns,
        weight,
        class,
        stop,
        then,
    })
}

/// One CPU, the attacker and threads that compute: what each of them ran until the end.
struct Machine {
    queue: Q,
    entities: Vec<Entity>,
    now_ns: u64,
    /// When the attacker wakes, if it sleeps.
    wakes_ns: Option<u64>,
    /// How long each of the others waited at most for its next turn.
    longest_ns: Vec<u64>,
    since_ns: Vec<u64>,
}

impl Machine {
    fn new(kind: PolicyKind, others: &[u16]) -> Self {
        let cpu = CpuId::new(0).unwrap();
        let share = |weight: &u16| Share::new(Weight::new(*weight).unwrap(), LatencyClass::Normal);
        let entities: Vec<_> = [Entity::new(Share::default())]
            .into_iter()
            .chain(others.iter().map(|weight| Entity::new(share(weight))))
            .collect();
        let count = entities.len();
        let mut machine = Self {
            queue: Queue::new(cpu, AnyPolicy::new(kind, Default::default()), Map::default(), 0),
            entities,
            now_ns: 0,
            wakes_ns: None,
            longest_ns: vec![0; count],
            since_ns: vec![0; count],
        };
        for who in 0..count {
            machine.wake(who);
        }
        machine
    }

    fn wake(&mut self, who: usize) -> bool {
        let entity = &mut self.entities[who];
        let lag = self.queue.rest_lag(entity);
        self.queue.enqueue(who, entity, lag, self.now_ns).unwrap().resched
    }

    fn choose(&mut self) -> Option<usize> {
        match self.queue.pick(self.now_ns, |_| MayRun::Yes).unwrap() {
            Pick::Run { item, .. } => {
                let _ = self.queue.start(item, &mut self.entities[item], self.now_ns).unwrap();
                let waited = self.now_ns - self.since_ns[item];
                self.longest_ns[item] = self.longest_ns[item].max(waited);
                Some(item)
            }
            Pick::Idle => None,
            other => panic!("{other:?}"),
        }
    }

    fn requeue(&mut self, who: usize, why: Requeue) {
        let _ = self.queue.requeue(who, &mut self.entities[who], why, self.now_ns).unwrap();
        self.since_ns[who] = self.now_ns;
    }

    /// Runs until `until_ns`; the attacker makes its moves, again and again, none of them above `ceiling`.
    fn run(&mut self, moves: &[Move], ceiling: u16, until_ns: u64) {
        let mut next = moves.iter().cycle();
        let mut turn = *next.next().unwrap();
        let mut left_ns = turn.runs_ns;
        let ask = |entity: &mut Entity, weight: u16, class: usize| {
            let weight = Weight::new(weight.min(ceiling)).unwrap();
            entity.set_share(Share::new(weight, LatencyClass::ALL[class]));
        };
        while self.now_ns < until_ns {
            let Some(who) = self.choose() else { panic!("the others never wait") };
            loop {
                // To the end of the slice, the attacker's next stop or its wake, whichever is first.
                let slice_end = self.queue.slice_end_if_shared().unwrap_or(u64::MAX);
                let own_end = if who == ATTACKER { self.now_ns + left_ns } else { u64::MAX };
                let wake = self.wakes_ns.unwrap_or(u64::MAX);
                let stop = slice_end.min(own_end).min(wake).min(self.now_ns + QUANTUM_NS);
                if who == ATTACKER {
                    left_ns -= stop - self.now_ns;
                }
                self.now_ns = stop;
                let mut is_due = stop >= slice_end;
                if self.wakes_ns == Some(stop) {
                    self.wakes_ns = None;
                    self.since_ns[ATTACKER] = stop;
                    is_due |= self.wake(ATTACKER);
                }
                if who == ATTACKER && left_ns == 0 {
                    let done = turn;
                    turn = *next.next().unwrap();
                    left_ns = turn.runs_ns;
                    ask(&mut self.entities[ATTACKER], turn.weight, turn.class);
                    let entity = &mut self.entities[ATTACKER];
                    match done.stop {
                        Stop::None => {}
                        Stop::Yields => self.requeue(who, Requeue::Yielded),
                        Stop::Sleeps(ns) => {
                            let _ = self.queue.block(who, entity, self.now_ns).unwrap();
                            self.wakes_ns = Some(self.now_ns + ns);
                        }
                    }
                    if let Some((weight, class)) = done.then {
                        ask(&mut self.entities[ATTACKER], weight, class);
                    }
                    if done.stop != Stop::None {
                        break;
                    }
                }
                if is_due {
                    self.requeue(who, Requeue::Preempted);
                    break;
                }
            }
            self.queue.check_invariants(|item| self.entities[item]).unwrap();
        }
    }

    fn ran_ns(&mut self, who: usize) -> u64 {
        self.queue.snapshot(who, &mut self.entities[who], self.now_ns).runtime_ns
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Whatever it asks for and when: beside others it has its share by the ceiling, and eight slices.
    #[test]
    fn nobody_gains_by_changing_shares(
        kind in prop::sample::select(PolicyKind::ALL.to_vec()),
        moves in prop::collection::vec(one_move(), 1..12),
        ceiling in prop::sample::select(vec![1u16, 64, 200, 1024]),
        others in prop::collection::vec(prop::sample::select(vec![16u16, 64, 200]), 1..4),
    ) {
        const UNTIL_NS: u64 = 400 * QUANTUM_NS;
        let mut machine = Machine::new(kind, &others);
        machine.run(&moves, ceiling, UNTIL_NS);
        let weights: u64 = others.iter().map(|weight| u64::from(*weight)).sum();
        // It began with the default weight.
        let ceiling = u64::from(ceiling.max(64));
        let share_ns = machine.now_ns * ceiling / (ceiling + weights);
        let ran_ns = machine.ran_ns(ATTACKER);
        prop_assert!(
            ran_ns <= share_ns + 8 * QUANTUM_NS,
            "{ran_ns} ns of {}, a share is {share_ns}", machine.now_ns
        );
    }

    /// However it changes its own, each of the others runs within Σ weights / its weight × 8 slices.
    #[test]
    fn nobody_is_starved_by_one_that_changes_shares(
        kind in prop::sample::select(PolicyKind::ALL.to_vec()),
        moves in prop::collection::vec(one_move(), 1..12),
        others in prop::collection::vec(prop::sample::select(vec![8u16, 64, 200]), 1..4),
    ) {
        let mut machine = Machine::new(kind, &others);
        machine.run(&moves, 1024, 1_500 * QUANTUM_NS);
        let weights: u64 = others.iter().map(|weight| u64::from(*weight)).sum::<u64>() + 1024;
        for (who, weight) in (1..).zip(&others) {
            let allowed_ns = weights * 8 * QUANTUM_NS / u64::from(*weight);
            let waits_ns = machine.now_ns - machine.since_ns[who];
            let is_waiting = machine.queue.current() != Some(who);
            let longest_ns = machine.longest_ns[who].max(if is_waiting { waits_ns } else { 0 });
            prop_assert!(longest_ns <= allowed_ns, "{longest_ns} of {allowed_ns} ns");
        }
    }
}

/// A thread that is weighed down to the least while all others have the greatest weight: its turn comes within the
/// bound, whoever asks again in the meantime.
#[test]
fn the_least_weight_runs_beside_the_greatest_whatever_is_asked_while_it_waits() {
    for kind in PolicyKind::ALL {
        let mut machine = Machine::new(kind, &[1024, 1024]);
        let least = |class| Share::new(Weight::MIN, class);
        machine.entities[ATTACKER].set_share(least(LatencyClass::Batch));
        let mut turns = Vec::new();
        let until_ns = 3 * 2049 * 8 * QUANTUM_NS;
        let mut round = 0;
        while machine.now_ns < until_ns {
            let who = machine.choose().unwrap();
            if who == ATTACKER {
                turns.push(machine.now_ns);
            }
            machine.now_ns += QUANTUM_NS;
            machine.requeue(who, Requeue::Preempted);
            // As often as anybody can: the key of a thread that waits is what it was.
            round += 1;
            let class = LatencyClass::ALL[round % 4];
            machine.entities[ATTACKER].set_share(least(class));
        }
        assert!(turns.len() >= 4, "{kind:?}: {turns:?}");
        let longest = turns.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
        assert!(longest <= 2049 * 8 * QUANTUM_NS, "{kind:?}: {longest}");
    }
}
