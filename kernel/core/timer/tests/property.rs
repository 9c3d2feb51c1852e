//! The heap against a plain list, on strings of random operations; depth at ten thousand.
use core_timer::{DeadlineQueue, Error, Expired, Owner, Timer};
use test_property::prelude::*;

const TIMERS: u32 = 20;

/// Whose timer `who` is when it is armed for the so many-th time.
fn owner(who: u32, arrival: usize) -> Owner {
    Owner { thread: u64::from(who) << 33, number: who, arming: arrival as u32 }
}

#[derive(Clone, Debug)]
enum Op {
    Arm { who: u32, deadline_ns: u64 },
    Cancel { who: u32 },
    Expire { step_ns: u64, most: usize },
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0..TIMERS, prop_oneof![0u64..60, Just(u64::MAX)])
            .prop_map(|(who, deadline_ns)| Op::Arm { who, deadline_ns }),
        2 => (0..TIMERS).prop_map(|who| Op::Cancel { who }),
        1 => (0u64..8, 0usize..5).prop_map(|(step_ns, most)| Op::Expire { step_ns, most }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(800))]
    #[test]
    fn heap_is_a_list(ops in prop::collection::vec(op(), 1..150)) {
        let timers: Vec<Timer> = (0..TIMERS).map(|_| Timer::new()).collect();
        let mut queue = DeadlineQueue::new(3, 3);
        let mut other = DeadlineQueue::new(4, 3);
        // (deadline, arrival, who)
        let mut model: Vec<(u64, usize, u32)> = Vec::new();
        let mut now_ns = 0;
        for (arrival, op) in ops.into_iter().enumerate() {
            let before = format!("{queue:?}");
            match op {
                Op::Arm { who, deadline_ns } => {
                    let timer = &timers[who as usize];
                    let got =
                        queue.arm(&timers[..], timer, owner(who, arrival), deadline_ns);
                    let want = if model.iter().any(|t| t.2 == who) {
                        Err(Error::Armed)
                    } else {
                        let first = model.iter().map(|t| t.0).min();
                        model.push((deadline_ns, arrival, who));
                        Ok(first.is_none_or(|first| deadline_ns < first))
                    };
                    prop_assert_eq!(got.map(|armed| armed.is_nearest), want);
                    if want.is_err() {
                        prop_assert_eq!(&format!("{queue:?}"), &before);
                    }
                }
                Op::Cancel { who } => {
                    let at = model.iter().position(|t| t.2 == who);
                    let timer = &timers[who as usize];
                    prop_assert_eq!(other.cancel(&timers[..], timer), Err(Error::NotHere));
                    let got = queue.cancel(&timers[..], timer);
                    match at.map(|at| model.remove(at)) {
                        Some(_) => prop_assert_eq!(got, Ok(())),
                        None => {
                            prop_assert_eq!(got, Err(Error::NotHere));
                            prop_assert_eq!(&format!("{queue:?}"), &before);
                        }
                    }
                }
                Op::Expire { step_ns, most } => {
                    now_ns += step_ns;
                    for _ in 0..most {
                        let due = model.iter().copied().min().filter(|t| t.0 <= now_ns);
                        let got = queue.pop_expired(&timers[..], now_ns);
                        let want = due.map(|(deadline_ns, arrival, who)| Expired {
                            owner: owner(who, arrival),
                            deadline_ns,
                        });
                        prop_assert_eq!(got, want);
                        if let Some(t) = due {
                            model.retain(|m| *m != t);
                        }
                    }
                }
            }
            prop_assert_eq!(queue.check_invariants(&timers[..]), Ok(()));
            for (who, timer) in (0..).zip(&timers) {
                let is_armed = model.iter().any(|t| t.2 == who);
                prop_assert_eq!(timer.queue(), is_armed.then_some(3));
            }
            prop_assert_eq!(queue.len() as usize, model.len());
            prop_assert_eq!(queue.next_deadline_ns(&timers[..]), model.iter().map(|t| t.0).min());
        }
    }
}

#[test]
fn ten_thousand_timers_expire_in_order_once_each() {
    let timers: Vec<Timer> = (0..10_000).map(|_| Timer::new()).collect();
    let mut queue = DeadlineQueue::new(0, 0);
    let mut dice = 7u64;
    for index in 0..10_000 {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let timer = &timers[index as usize];
        let _ = queue.arm(&timers[..], timer, owner(index, 0), dice >> 44).unwrap();
    }
    queue.check_invariants(&timers[..]).unwrap();
    let mut seen = vec![false; 10_000];
    let mut last_ns = 0;
    while let Some(deadline_ns) = queue.next_deadline_ns(&timers[..]) {
        if deadline_ns > 0 {
            assert_eq!(queue.pop_expired(&timers[..], deadline_ns - 1), None, "never early");
        }
        let expired = queue.pop_expired(&timers[..], deadline_ns).unwrap();
        let who = expired.owner.number as usize;
        assert!(expired.deadline_ns >= last_ns && !seen[who]);
        last_ns = expired.deadline_ns;
        seen[who] = true;
    }
    assert!(seen.iter().all(|&s| s));
}
