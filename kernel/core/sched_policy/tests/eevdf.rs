//! EEVDF against a model that keeps every competitor's place as an exact number and divides.
use core_sched_policy::{Eevdf, Lag, LatencyClass, Policy, QUANTUM_NS, Share, VirtualTime, Weight};
use test_property::prelude::*;

fn share(weight: u16, class: LatencyClass) -> Share {
    Share::new(Weight::new(weight).unwrap(), class)
}

fn class() -> impl Strategy<Value = LatencyClass> {
    prop::sample::select(LatencyClass::ALL.to_vec())
}

/// A queue of EEVDF beside the model: places unwrapped, the mean a fraction.
#[derive(Debug)]
struct Both {
    policy: Eevdf,
    base: u64,
    now: i128,
    passing: i128,
    /// Weight and place of each competitor; the first one runs.
    all: Vec<(Share, i128)>,
}

impl Both {
    fn new(base: u64) -> Self {
        Self {
            policy: Eevdf::new(VirtualTime::from_bits(base)),
            base,
            now: 0,
            passing: 0,
            all: Vec::new(),
        }
    }

    fn wrapped(&self, place: i128) -> VirtualTime {
        VirtualTime::from_bits(self.base.wrapping_add(place as u64))
    }

    /// Σ w (v − now) and Σ w.
    fn sums(&self) -> (i128, i128) {
        let weight = |s: &Share| i128::from(s.weight().get());
        let pulls = self.all.iter().map(|(s, v)| weight(s) * (v - self.now)).sum();
        (pulls, self.all.iter().map(|(s, _)| weight(s)).sum())
    }

    fn follow(&mut self) {
        let (pulls, weights) = self.sums();
        if weights > 0 {
            self.now += pulls.div_euclid(weights).max(0);
        }
    }

    fn join(&mut self, s: Share, lag_ns: i64) {
        let start = self.policy.place(Lag::new(lag_ns), &s);
        let limit = s.lag_limit_virtual_ns();
        let place = self.now - i128::from(lag_ns.clamp(-limit, limit));
        assert_eq!(start, self.wrapped(place));
        self.policy.joined(start, s.weight());
        self.all.push((s, place));
    }

    fn leave(&mut self, who: usize) -> Lag {
        let (s, place) = self.all.remove(who);
        self.policy.left(self.wrapped(place), s.weight());
        self.policy.lag(self.wrapped(place), &s)
    }

    /// By the mean, or by seven eighths of what was served, divided by weight.
    fn pass(&mut self, served: i128) {
        self.passing += served - served / 8;
        let (pulls, weights) = self.sums();
        if pulls >= self.passing {
            self.passing = 0;
            self.follow();
        } else {
            self.now += self.passing / weights;
            self.passing %= weights;
        }
    }

    fn serve(&mut self, elapsed_ns: u64, in_two: bool) {
        let Some((s, place)) = self.all.first_mut() else { return };
        let ran_ns = s.step(elapsed_ns, 0).order_ns();
        let weight = s.weight();
        let start = *place;
        // What is reported while it runs is not counted again when it is charged.
        for part in [if in_two { ran_ns / 2 } else { 0 }, ran_ns] {
            match part == ran_ns {
                true => self.policy.served(ran_ns, weight),
                false => self.policy.running(part, weight),
            }
            let before = self.all[0].1;
            self.all[0].1 = start + i128::from(part);
            self.pass((self.all[0].1 - before) * i128::from(weight.get()));
            if part == ran_ns {
                break;
            }
        }
    }

    fn check(&mut self) {
        assert_eq!(self.policy.virtual_now(), self.wrapped(self.now));
        let pulls: i128 =
            self.all.iter().map(|(s, v)| self.policy.pull(self.wrapped(*v), s.weight())).sum();
        assert_eq!(self.policy.pulls(), pulls);
        for (s, place) in &self.all {
            let tag = self.policy.tag(self.wrapped(*place), s);
            let opens = place + i128::from(s.patience_virtual_ns());
            assert_eq!(self.policy.is_eligible(tag), opens <= self.now);
        }
    }
}

#[derive(Clone, Debug)]
enum Op {
    Join { weight: u16, class: LatencyClass, lag_ns: i64 },
    Leave { who: usize },
    Serve { elapsed_ns: u64, in_two: bool },
    Choose,
}

fn op() -> impl Strategy<Value = Op> {
    let weight = prop_oneof![Just(1u16), Just(64), Just(1024), 1u16..=1024];
    let elapsed = prop_oneof![0u64..100, Just(QUANTUM_NS), 0..30 * QUANTUM_NS];
    prop_oneof![
        3 => (weight, class(), -4_000_000_000i64..4_000_000_000)
            .prop_map(|(weight, class, lag_ns)| Op::Join { weight, class, lag_ns }),
        2 => (0usize..64).prop_map(|who| Op::Leave { who }),
        5 => (elapsed, any::<bool>())
            .prop_map(|(elapsed_ns, in_two)| Op::Serve { elapsed_ns, in_two }),
        3 => Just(Op::Choose),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn virtual_time_is_the_mean_and_never_goes_back(
        base in prop_oneof![Just(0), Just(u64::MAX - 1000), any::<u64>()],
        ops in prop::collection::vec(op(), 1..200),
    ) {
        let mut both = Both::new(base);
        for op in ops {
            let before = both.policy.virtual_now();
            match op {
                Op::Join { weight, class, lag_ns } => both.join(share(weight, class), lag_ns),
                Op::Leave { who } if !both.all.is_empty() => {
                    let _ = both.leave(who % both.all.len());
                }
                Op::Leave { .. } => {}
                Op::Serve { elapsed_ns, in_two } => both.serve(elapsed_ns, in_two),
                Op::Choose => {
                    prop_assert!(both.policy.choosing().is_some());
                    both.follow();
                    let (pulls, weights) = both.sums();
                    prop_assert!(pulls < weights.max(1), "the mean is at most a fraction ahead");
                }
            }
            both.check();
            prop_assert!(!both.policy.virtual_now().is_before(before));
        }
    }

    #[test]
    fn lag_survives_a_move(
        crowd in prop::collection::vec((1u16..=1024, -10_000_000i64..10_000_000), 1..20),
        weight in 1u16..=1024, class in class(), lag_ns in -3_000_000_000i64..3_000_000_000,
        base in any::<u64>(),
    ) {
        let mut there = Both::new(base);
        for (weight, lag_ns) in crowd {
            there.join(share(weight, LatencyClass::Normal), lag_ns);
        }
        let _ = there.policy.choosing();
        there.follow();
        let s = share(weight, class);
        there.join(s, lag_ns);
        let limit = s.lag_limit_virtual_ns();
        let carried = lag_ns.clamp(-limit, limit);
        let (last, joined) = (there.all.len() - 1, there.all[there.all.len() - 1].1);
        let start = there.wrapped(joined);
        prop_assert_eq!(there.policy.lag(start, &s).virtual_ns(), carried);
        // Credit stays what it is. Debt moves the mean, so some of it becomes the credit of the
        // others: as much as it gets less.
        let _ = there.policy.choosing();
        there.follow();
        there.check();
        let found = there.leave(last).virtual_ns();
        match carried >= 0 {
            true => prop_assert_eq!(found, carried),
            false => prop_assert!((carried..=0).contains(&found), "{carried} became {found}"),
        }
    }

    #[test]
    fn coming_and_going_makes_no_credit(
        crowd in prop::collection::vec(1u16..=1024, 1..10), weight in 1u16..=1024,
        debt_ns in 0i64..700_000_000,
    ) {
        let mut here = Both::new(5);
        for weight in crowd {
            here.join(share(weight, LatencyClass::Normal), 0);
        }
        let s = share(weight, LatencyClass::Normal);
        let mut lag_ns = -debt_ns.min(s.lag_limit_virtual_ns());
        let owed = i128::from(-lag_ns) * i128::from(weight);
        for _ in 0..50 {
            here.join(s, lag_ns);
            let _ = here.policy.choosing();
            here.follow();
            let last = here.all.len() - 1;
            lag_ns = here.leave(last).virtual_ns();
        }
        // What the others are owed by now is at most what was owed to them.
        let credit = -here.sums().0;
        prop_assert!(credit <= owed, "{credit} of {owed}");
    }

    #[test]
    fn a_request_goes_on_until_it_is_served(
        weight in 1u16..=1024, class in class(), ran in 0u64..100_000_000, base in any::<u64>()
    ) {
        let s = share(weight, class);
        let policy = Eevdf::new(VirtualTime::from_bits(base));
        let start = VirtualTime::from_bits(base);
        let tag = policy.tag(start, &s);
        let at = start.after(s.step(ran, 0).virtual_ns);
        let again = policy.tag_again(Some(&tag), at, &s);
        match at.is_before(tag.finish) {
            true => prop_assert_eq!(again, tag),
            false => prop_assert_eq!(again, policy.tag(at, &s)),
        }
        prop_assert_eq!(policy.tag_again(None, at, &s), policy.tag(at, &s));
        prop_assert!(policy.is_tag_of(again, at));
    }
}

#[test]
fn a_century_alone_and_then_company() {
    let century_ns = 100 * 365 * 24 * 3600 * 1_000_000_000u64;
    for weight in [1, 2, 64, 1023, 1024] {
        let mut both = Both::new(u64::MAX - 7);
        both.join(share(weight, LatencyClass::Normal), 0);
        for _ in 0..3 {
            both.serve(century_ns, true);
            both.check();
        }
        // Alone, it is the mean.
        assert_eq!(both.now, both.all[0].1);
        both.join(share(1024, LatencyClass::Interactive), 0);
        both.serve(QUANTUM_NS, false);
        both.check();
    }
}

#[test]
fn a_million_of_the_heaviest() {
    let mut both = Both::new(3);
    let heavy = share(1024, LatencyClass::Batch);
    for _ in 0..1_000 {
        both.join(heavy, heavy.lag_limit_virtual_ns());
    }
    let extra = 999_000;
    let start = both.policy.place(Lag::ZERO, &heavy);
    for _ in 0..extra {
        both.policy.joined(start, heavy.weight());
    }
    both.policy.served(u64::MAX, heavy.weight());
    for _ in 0..extra {
        both.policy.left(start, heavy.weight());
    }
    assert!(!both.policy.virtual_now().is_before(VirtualTime::from_bits(3)));
}
