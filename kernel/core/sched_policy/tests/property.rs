//! The fixed-point arithmetic against exact rational arithmetic, at every legal weight.
use core_sched_policy::{
    Lag, LatencyClass, MAX_REQUEST_VIRTUAL_NS, Policy, QUANTUM_NS, Share, VirtualTime, Weight, Wfq,
};
use test_property::prelude::*;

fn share(weight: u16, class: LatencyClass) -> Share {
    Share::new(Weight::new(weight).unwrap(), class)
}

fn class() -> impl Strategy<Value = LatencyClass> {
    prop::sample::select(LatencyClass::ALL.to_vec())
}

/// 2⁻²⁸ of relative error at most, over any time: a decade errs by about a second.
fn close(fixed: u128, exact: u128) -> bool {
    fixed.abs_diff(exact) <= (exact >> 28) + 1
}

#[test]
fn requests_at_every_weight_and_class() {
    for weight in 1..=1024u16 {
        for (class, halves) in [
            (LatencyClass::Interactive, 1u64),
            (LatencyClass::Normal, 2),
            (LatencyClass::IpcServer, 2),
            (LatencyClass::Batch, 8),
        ] {
            let s = share(weight, class);
            let want = QUANTUM_NS / 2 * halves * 64 / u64::from(weight);
            assert_eq!(s.request_virtual_ns(), want);
            assert!(want <= MAX_REQUEST_VIRTUAL_NS && want > 0);
            assert!(s.lag_limit_virtual_ns() as u64 >= want);
        }
    }
    assert_eq!(share(1, LatencyClass::Batch).request_virtual_ns(), MAX_REQUEST_VIRTUAL_NS);
}

#[test]
fn reference_weight_is_real_time_to_the_nanosecond() {
    let s = Share::default();
    for elapsed in [0, 1, 7, QUANTUM_NS, u64::MAX / 2, u64::MAX] {
        let step = s.step(elapsed, 0);
        assert_eq!((step.virtual_ns, step.fraction_q32), (elapsed, 0));
    }
}

#[test]
fn decades_at_the_lightest_weight_saturate_and_never_wrap() {
    let s = share(1, LatencyClass::Normal);
    let century_ns = 100 * 365 * 24 * 3600 * 1_000_000_000u64;
    let step = s.step(century_ns, 0);
    assert_eq!(step.virtual_ns, u64::MAX);
    // An order key moves forward by less than half the range: it stays comparable.
    let v = VirtualTime::from_bits(u64::MAX - 3);
    assert!(v.is_before(v.after(step.order_ns())));
}

proptest! {
    #[test]
    fn step_is_elapsed_times_reference_over_weight(
        weight in 1u16..=1024, elapsed in 0u64..=3_000_000_000_000_000_000
    ) {
        let step = share(weight, LatencyClass::Normal).step(elapsed, 0);
        let exact = u128::from(elapsed) * 64 / u128::from(weight);
        let exact = exact.min(u128::from(u64::MAX));
        prop_assert!(close(u128::from(step.virtual_ns), exact), "{step:?} for {exact}");
    }

    #[test]
    fn many_short_intervals_cost_what_one_long_one_does(
        weight in 1u16..=1024, parts in prop::collection::vec(0u64..2_000, 1..200)
    ) {
        let s = share(weight, LatencyClass::Normal);
        let mut sum = 0u64;
        let mut fraction = 0;
        for &part in &parts {
            let step = s.step(part, fraction);
            sum += step.virtual_ns;
            fraction = step.fraction_q32;
        }
        let whole = s.step(parts.iter().sum(), 0);
        prop_assert_eq!((sum, fraction), (whole.virtual_ns, whole.fraction_q32));
    }

    #[test]
    fn finish_is_never_below_start(
        start in any::<u64>(), weight in 1u16..=1024, class in class()
    ) {
        let start = VirtualTime::from_bits(start);
        let tag = Wfq::default().tag(start, &share(weight, class));
        prop_assert!(start.is_before(tag.finish));
    }

    #[test]
    fn lag_is_bounded_and_survives_a_move(
        here in any::<u64>(), there in any::<u64>(), off in -10_000_000_000i64..10_000_000_000,
        weight in 1u16..=1024, class in class()
    ) {
        let s = share(weight, class);
        let source = Wfq::new(VirtualTime::from_bits(here));
        let target = Wfq::new(VirtualTime::from_bits(there));
        let lag = source.lag(Lag::new(off).start_at(source.virtual_now()), &s);
        prop_assert_eq!(lag.virtual_ns(), off.clamp(-s.lag_limit_virtual_ns(), s.lag_limit_virtual_ns()));
        let start = target.place(lag, &s);
        prop_assert_eq!(target.lag(start, &s), lag);
    }

    #[test]
    fn rest_pays_debt_and_uses_up_credit(
        kept in -3_000_000_000i64..3_000_000_000, passed in 0u64..10_000_000_000,
        base in any::<u64>(), weight in 1u16..=1024
    ) {
        let s = share(weight, LatencyClass::Normal);
        let limit = s.lag_limit_virtual_ns();
        let kept = kept.clamp(-limit, limit);
        let left = VirtualTime::from_bits(base);
        let start = Lag::new(kept).start_at(left);
        let back = Wfq::new(left.after(passed));
        let lag = back.lag_after_rest(start, Lag::new(kept), &s).virtual_ns();
        let left = (i128::from(kept.abs()) - i128::from(passed)).max(0) as i64;
        let model = left * kept.signum();
        prop_assert_eq!(lag, model);
    }

    #[test]
    fn virtual_time_never_goes_back(
        base in any::<u64>(), steps in prop::collection::vec(-50_000_000i64..50_000_000, 1..50)
    ) {
        let mut policy = Wfq::new(VirtualTime::from_bits(base));
        for step in steps {
            let before = policy.virtual_now();
            let start = VirtualTime::from_bits(before.to_bits().wrapping_add(step as u64));
            policy.picked(policy.tag(start, &Share::default()));
            prop_assert_eq!(policy.virtual_now().since(before), step.max(0));
        }
    }
}
