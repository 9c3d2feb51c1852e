//! Who gets how much, and how soon, by weight and class.

use crate::bench::{
    Bench, Order, QUANTUM_NS, Said, compute_for, goes_on, own, said, set_times, timer,
};
use abi_types::CapSlot;
use capos_rt::now_ns;
use core::sync::atomic::{AtomicU64, Ordering};
use schema::scheduling_policy_capnp::LatencyClass;
use test_bare::raw::Child;
use test_kit::{Outcome, T, check, check_eq, require_ok, require_some};

type Test<'a> = T<'a, Bench>;

/// Siblings with these orders compete for so long; what each counted.
fn compete<const COUNT: usize>(
    t: &mut Test<'_>,
    orders: [Order; COUNT],
    for_ns: u64,
) -> Option<[Said; COUNT]> {
    set_times(for_ns);
    let mut handles = [CapSlot::NONE; COUNT];
    for (number, (handle, order)) in handles.iter_mut().zip(orders).enumerate() {
        *handle = t.env.start(number, order)?;
    }
    for handle in handles {
        if t.env.program.finish(handle) != Ok(0) {
            return None;
        }
    }
    Some(core::array::from_fn(said))
}

/// Whether `part` is so much of `whole`, in thousandths, within `off` of them.
fn is_about(part: u64, whole: u64, thousandths: u64, off: u64) -> bool {
    (part * 1000 / whole.max(1)).abs_diff(thousandths) <= off
}

/// A thread that asks for twice the default weight and sleeps has it from then on: it runs twice as much as one that
/// asked for nothing, and virtual time passes half as fast for it.
pub fn weight_change(t: &mut Test<'_>) -> Outcome {
    let orders = [Order::weigh(128), Order::COMPUTE];
    let [heavy, light] = require_some!(t, compete(t, orders, 40 * QUANTUM_NS));
    check_eq!(t, (heavy.weight, light.weight), (128, 64));
    check!(t, is_about(heavy.virtual_ns, heavy.runtime_ns, 500, 1), "{heavy:?}");
    check!(t, is_about(light.virtual_ns, light.runtime_ns, 1000, 1), "{light:?}");
    if t.env.program.cpus() == 1 {
        let ratio = heavy.runtime_ns * 1000 / light.runtime_ns;
        check!(t, (1800..=2200).contains(&ratio), "{ratio} thousandths: {heavy:?} {light:?}");
        t.metric("heavy to light", ratio / 10, "%");
    }
    Ok(())
}

/// Two seconds of two equal threads and one of twice their weight: a quarter each, and a half.
pub fn equal_and_double(t: &mut Test<'_>) -> Outcome {
    if t.env.program.cpus() > 1 {
        return t.skip("one CPU, for three threads");
    }
    let orders = [Order::COMPUTE, Order::COMPUTE, Order::weigh(128)];
    let [one, other, double] = require_some!(t, compete(t, orders, 2_000_000_000));
    let (less, more) = (one.runtime_ns.min(other.runtime_ns), one.runtime_ns.max(other.runtime_ns));
    check!(t, more * 100 <= less * 105, "{less} and {more}");
    let whole = one.runtime_ns + other.runtime_ns + double.runtime_ns;
    check!(t, whole >= 1_980_000_000, "{whole}");
    check!(t, is_about(double.runtime_ns, whole, 500, 25), "{double:?} of {whole}");
    t.metric("equal", more * 1000 / less, "thousandths");
    t.metric("double to one", double.runtime_ns * 1000 / one.runtime_ns, "thousandths");
    Ok(())
}

/// A hog, one that works a little and sleeps, and one that sleeps most of the time: who is preempted, who gives the
/// CPU up, who waits how long.
pub fn hog_and_light_worker(t: &mut Test<'_>) -> Outcome {
    if t.env.program.cpus() > 1 {
        return t.skip("one CPU, for three threads");
    }
    let light = Order { weight: 0, computes_ns: 12_000_000 };
    let sleeper = Order { weight: 0, computes_ns: 50_000 };
    let orders = [Order::COMPUTE, light, sleeper];
    let [hog, light, sleeper] = require_some!(t, compete(t, orders, 60 * QUANTUM_NS));
    check!(
        t,
        hog.runtime_ns > light.runtime_ns && light.runtime_ns > sleeper.runtime_ns,
        "{hog:?}"
    );
    check!(t, hog.blocks <= 1, "{hog:?}");
    check!(t, light.preemptions > 0 && light.waited_ns > 0, "{light:?}");
    check!(t, sleeper.blocks > 10, "{sleeper:?}");
    for one in [hog, light, sleeper] {
        check!(t, one.runtime_ns + one.waited_ns <= one.for_ns, "{one:?}");
    }
    // It never sleeps: all of its time it runs or wants to.
    let known = hog.runtime_ns + hog.waited_ns;
    check!(t, hog.for_ns - known < 50_000, "{hog:?}");
    // Within a quantum of each wake, one with another.
    check!(t, sleeper.waited_ns <= sleeper.blocks * QUANTUM_NS, "{sleeper:?}");
    Ok(())
}

/// Wakes of the thread that is measured.
const WAKES: usize = 40;
static LATE_NS: [AtomicU64; WAKES] = [const { AtomicU64::new(0) }; WAKES];
static CLASS: AtomicU64 = AtomicU64::new(0);

const CLASSES: [LatencyClass; 3] =
    [LatencyClass::Interactive, LatencyClass::Normal, LatencyClass::Batch];

/// Takes its class, then sleeps for odd times and works a little, and notes how late it is each time.
fn wake_often(child: &Child) -> i64 {
    let class = CLASSES[CLASS.load(Ordering::Relaxed) as usize];
    if own(child).set_latency_class(class).is_err() || timer(child).sleep(1_000_000).is_err() {
        return 1;
    }
    for (number, late) in (0..).zip(&LATE_NS) {
        // Lengths that have nothing to do with a slice's.
        let due = now_ns() + 4_000_000 + number * 7_919_000 % 17_000_000;
        if timer(child).sleep_until(due).is_err() {
            return 1;
        }
        late.store(now_ns().saturating_sub(due), Ordering::Relaxed);
        compute_for(1_000_000);
    }
    0
}

/// From wake to run, against one hog: an interactive thread is there first, a batch thread last; and all of them get
/// what they need.
pub fn classes_by_latency(t: &mut Test<'_>) -> Outcome {
    if t.env.program.cpus() > 1 {
        return t.skip("one CPU, for a hog and a thread that wakes");
    }
    let mut medians = [0; 3];
    for (number, median) in medians.iter_mut().enumerate() {
        CLASS.store(number as u64, Ordering::Relaxed);
        set_times(1_000 * QUANTUM_NS);
        let hog = require_some!(t, t.env.start(0, Order::COMPUTE));
        // The hog has begun to compute.
        t.env.program.sleep(5 * QUANTUM_NS);
        let waker = require_ok!(t, t.env.program.spawn(1, wake_often, 0));
        check!(t, goes_on(), "too slow for the hog");
        check_eq!(t, t.env.program.finish(waker), Ok(0));
        check!(t, t.env.finish(&[hog]), "the hog failed");
        let mut late: [u64; WAKES] = core::array::from_fn(|n| LATE_NS[n].load(Ordering::Relaxed));
        late.sort_unstable();
        *median = late[WAKES / 2];
        if CLASSES[number] != LatencyClass::Batch {
            let longest = late[WAKES - 1];
            check!(t, longest <= QUANTUM_NS + 100_000, "{longest} ns after a wake");
        }
    }
    let [interactive, normal, batch] = medians;
    check!(t, interactive < normal && normal < batch, "{medians:?}");
    t.metric("interactive", interactive, "ns");
    t.metric("normal", normal, "ns");
    t.metric("batch", batch, "ns");
    Ok(())
}
