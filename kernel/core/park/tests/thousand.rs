//! A thousand waiters: what an operation costs does not grow with who else waits.
use core_park::{Bucket, Hash, Key, Parked, Waiter, WaiterRef};

const THREADS: u32 = 1000;

fn park(bucket: &mut Bucket, waiters: &[Waiter], who: u32, key: Key) -> (WaiterRef, u32) {
    match bucket.park(waiters, who, key, None, 0, |_| Ok::<_, ()>(true)) {
        Ok(Parked::Waiting { waiter, probes, .. }) => (waiter, probes),
        other => panic!("{other:?}"),
    }
}

#[test]
fn waiters_of_one_key_cost_nothing_to_the_others() {
    let waiters: Vec<Waiter> = (0..THREADS).map(|_| Waiter::new()).collect();
    let mut bucket = Bucket::new(0);
    let (crowded, quiet) = (Key::private(1, 64), Key::private(1, 128));
    let refs: Vec<_> = (0..THREADS - 1)
        .map(|who| {
            let (waiter, probes) = park(&mut bucket, &waiters, who, crowded);
            assert!(probes <= 1, "parking behind {who} others looked at {probes} keys");
            waiter
        })
        .collect();
    let (last, probes) = park(&mut bucket, &waiters, THREADS - 1, quiet);
    assert!(probes <= 1);
    // A wake at the other key of the same bucket passes one key, not 999 waiters.
    let mut woken = Vec::new();
    assert!(bucket.unpark(&waiters, quiet, 1, |w| woken.push(w)).probes <= 2);
    assert_eq!(woken, [last]);
    // Timeouts from the middle, the front and the back leave the order of the rest.
    for who in [500, 0, 998, 499, 501] {
        assert!(bucket.unlink(&waiters, refs[who]));
        assert!(!bucket.unlink(&waiters, refs[who]), "a wait ends once");
        bucket.check_invariants(&waiters).unwrap();
    }
    let mut order = Vec::new();
    let verdict = bucket.unpark(&waiters, crowded, u32::MAX, |w| order.push(w));
    assert_eq!((verdict.woken, verdict.probes), (994, 1));
    assert!(order.windows(2).all(|w| w[0].index < w[1].index), "first come, first woken");
    assert!(bucket.is_empty());
}

#[test]
fn a_thousand_keys_spread_over_the_buckets() {
    const BITS: u32 = 8;
    let waiters: Vec<Waiter> = (0..THREADS).map(|_| Waiter::new()).collect();
    let mut buckets: Vec<Bucket> = (0..1 << BITS).map(Bucket::new).collect();
    let hash = Hash::new([0x1234_5678_9abc_def1, 0x0fed_cba9_8765_4321]);
    let mut sum = 0;
    let mut worst = 0;
    for who in 0..THREADS {
        let key = Key::private(7, 0x10_0000 + u64::from(who) * 64);
        let bucket = &mut buckets[hash.bucket(key, BITS)];
        let (_, probes) = park(bucket, &waiters, who, key);
        sum += probes;
        worst = worst.max(probes);
    }
    // Four waiters a bucket on average: a park looks at two of them on average.
    assert!(sum <= 3 * THREADS && worst <= 16, "sum {sum}, worst {worst}");
}
