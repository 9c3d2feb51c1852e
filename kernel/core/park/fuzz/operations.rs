//! Fuzzes a park bucket by strings of operations, three bytes each: who, where, what. Whoever
//! waits is woken or unlinked once, in the order of arrival at its key.
#![no_main]

use core_park::{Bucket, Key, Parked, Waiter, WaiterRef};
use libfuzzer_sys::fuzz_target;

const THREADS: u32 = 8;
const KEYS: u64 = 4;

fuzz_target!(|input: &[u8]| {
    let waiters: Vec<Waiter> = (0..THREADS).map(|_| Waiter::new()).collect();
    let mut bucket = Bucket::new(0);
    // Who waits where, in order of arrival.
    let mut model: Vec<(Key, WaiterRef)> = Vec::new();
    for step in input.chunks_exact(3) {
        let (who, place, what) = (u32::from(step[0]) % (THREADS + 1), u64::from(step[1]), step[2]);
        let key = match place & 1 {
            0 => Key::private(1 + place / 2 % 2, place % KEYS * 4),
            _ => Key::shared(1 + place / 2 % 2, place % KEYS * 4),
        };
        match what % 4 {
            0 | 1 => {
                let waits = model.iter().any(|(_, waiter)| waiter.index == who);
                let equal = what & 4 == 0;
                let deadline_ns = (what & 8 != 0).then_some(u64::from(what >> 4));
                let parked =
                    bucket.park(&waiters, who, key, deadline_ns, 7, |_| Ok::<_, ()>(equal));
                match parked {
                    Ok(Parked::Waiting { waiter, .. }) => {
                        assert!(!waits && equal && deadline_ns.is_none_or(|at| at > 7));
                        model.push((key, waiter));
                    }
                    Ok(Parked::Mismatch) => assert!(!waits && !equal),
                    Ok(Parked::TimedOut) => {
                        assert!(!waits && deadline_ns.is_some_and(|at| at <= 7))
                    }
                    Err(_) => assert!(waits || who >= THREADS),
                }
            }
            2 => {
                let mut woken = Vec::new();
                let limit = u32::from(what >> 2) % 4;
                let verdict = bucket.unpark(&waiters, key, limit, |waiter| woken.push(waiter));
                let mut expected = Vec::new();
                model.retain(|(at, waiter)| {
                    let takes = *at == key && (expected.len() as u32) < limit;
                    if takes {
                        expected.push(*waiter);
                    }
                    !takes
                });
                assert_eq!(woken, expected);
                assert_eq!(verdict.woken as usize, expected.len());
            }
            _ => {
                let at = model.iter().position(|(_, waiter)| waiter.index == who);
                let stale = what & 4 != 0;
                let mut waiter = match at {
                    Some(at) => model[at].1,
                    None => WaiterRef { index: who, ticket: what.into() },
                };
                if stale {
                    waiter.ticket = waiter.ticket.wrapping_sub(1);
                }
                let unlinked = bucket.unlink(&waiters, waiter);
                assert_eq!(unlinked, at.is_some() && !stale);
                if let (true, Some(at)) = (unlinked, at) {
                    model.remove(at);
                }
            }
        }
        bucket.check_invariants(&waiters).unwrap();
    }
});
