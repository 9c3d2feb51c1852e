//! Buckets against a plain list of who waits where, on strings of random operations.
use core_park::{Bucket, Hash, Key, ParkError, Parked, Unparked, Waiter, WaiterRef};
use test_property::prelude::*;

const THREADS: u32 = 12;
const BITS: u32 = 1;

#[derive(Clone, Debug)]
enum Op {
    Park { who: u32, key: usize, word: Result<bool, u8>, deadline_ns: Option<u64> },
    Unpark { key: usize, limit: u32 },
    UnparkOne { key: usize },
    Unlink { who: u32, stale: bool },
}

fn op() -> impl Strategy<Value = Op> {
    let word = prop_oneof![6 => Just(Ok(true)), 1 => Just(Ok(false)), 1 => Just(Err(9))];
    let deadline = prop_oneof![3 => Just(None), 1 => Just(Some(99)), 2 => Just(Some(101))];
    prop_oneof![
        5 => (0..THREADS + 1, 0..6usize, word, deadline)
            .prop_map(|(who, key, word, deadline_ns)| Op::Park { who, key, word, deadline_ns }),
        2 => (0..6usize, prop_oneof![0..3u32, Just(u32::MAX)])
            .prop_map(|(key, limit)| Op::Unpark { key, limit }),
        1 => (0..6usize).prop_map(|key| Op::UnparkOne { key }),
        2 => (0..THREADS + 1, prop::bool::weighted(0.2))
            .prop_map(|(who, stale)| Op::Unlink { who, stale }),
    ]
}

const NOW_NS: u64 = 100;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]
    #[test]
    fn buckets_are_a_list_of_waits(ops in prop::collection::vec(op(), 1..120)) {
        let waiters: Vec<Waiter> = (0..THREADS).map(|_| Waiter::new()).collect();
        let mut buckets = [Bucket::new(0), Bucket::new(1)];
        let hash = Hash::new([12345, 987_654_321]);
        let keys: Vec<Key> = (0..6u64)
            .map(|n| if n < 4 { Key::private(1 + n / 2, n * 4) } else { Key::shared(1, n * 4) })
            .collect();
        let bucket_of = |key: Key| hash.bucket(key, BITS);
        let mut model: Vec<(u32, Key)> = Vec::new();
        let mut refs = vec![WaiterRef { index: 0, ticket: 0 }; THREADS as usize];
        for op in ops {
            let before = buckets.clone();
            match op {
                Op::Park { who, key, word, deadline_ns } => {
                    let key = keys[key];
                    let mut asked = None;
                    let got = buckets[bucket_of(key)].park(
                        &waiters, who, key, deadline_ns, NOW_NS, |named| { asked = Some(named); word },
                    );
                    let waits = model.iter().any(|w| w.0 == who);
                    match (who >= THREADS, waits, word, deadline_ns) {
                        (true, ..) => prop_assert_eq!(got, Err(ParkError::NoSuchWaiter)),
                        (_, true, ..) => prop_assert_eq!(got, Err(ParkError::Waits)),
                        (_, _, Err(e), _) => prop_assert_eq!(got, Err(ParkError::Word(e))),
                        (_, _, Ok(false), _) => prop_assert_eq!(got, Ok(Parked::Mismatch)),
                        (_, _, _, Some(99)) => prop_assert_eq!(got, Ok(Parked::TimedOut)),
                        _ => match got {
                            Ok(Parked::Waiting { waiter, deadline_ns: armed, .. }) => {
                                prop_assert_eq!((waiter.index, armed), (who, deadline_ns));
                                prop_assert_eq!(asked, Some(waiter), "it is told its name");
                                prop_assert!(waiter != refs[who as usize]);
                                refs[who as usize] = waiter;
                                model.push((who, key));
                            }
                            other => prop_assert!(false, "{:?}", other),
                        },
                    }
                    prop_assert_eq!(asked.is_some(), who < THREADS && !waits);
                    if !matches!(got, Ok(Parked::Waiting { .. })) {
                        prop_assert_eq!(&buckets, &before);
                    }
                }
                Op::Unpark { key, limit } => {
                    let key = keys[key];
                    let mut got = Vec::new();
                    let verdict: Unparked =
                        buckets[bucket_of(key)].unpark(&waiters, key, limit, |w| got.push(w));
                    let mut want = Vec::new();
                    model.retain(|w| {
                        let take = w.1 == key && (want.len() as u64) < u64::from(limit);
                        if take {
                            want.push(refs[w.0 as usize]);
                        }
                        !take
                    });
                    prop_assert_eq!(verdict.woken as usize, want.len());
                    prop_assert_eq!(got, want);
                }
                Op::UnparkOne { key } => {
                    let key = keys[key];
                    let got = buckets[bucket_of(key)].unpark_one(&waiters, key);
                    let at = model.iter().position(|w| w.1 == key);
                    prop_assert_eq!(got, at.map(|at| refs[model.remove(at).0 as usize]));
                }
                Op::Unlink { who, stale } => {
                    let mut waiter = WaiterRef { index: who, ticket: 1 };
                    if let Some(known) = refs.get(who as usize) {
                        waiter = *known;
                    }
                    if stale {
                        waiter.ticket = waiter.ticket.wrapping_sub(1);
                    }
                    let at = model.iter().position(|w| w.0 == who).filter(|_| !stale);
                    let bucket = waiters.get(who as usize).map_or(0, Waiter::bucket);
                    prop_assert!(!buckets[1 - bucket].unlink(&waiters, waiter));
                    prop_assert_eq!(buckets[bucket].unlink(&waiters, waiter), at.is_some());
                    if let Some(at) = at {
                        model.remove(at);
                    } else {
                        prop_assert_eq!(&buckets, &before);
                    }
                }
            }
            for bucket in &buckets {
                prop_assert_eq!(bucket.check_invariants(&waiters), Ok(()));
            }
        }
    }
}
