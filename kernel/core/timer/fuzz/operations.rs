//! Fuzzes the deadline queue by strings of operations, three bytes each: what, who, when. What
//! expires is what a sorted list says, never early and once.
#![no_main]

use core_timer::{DeadlineQueue, Owner, Timer};
use libfuzzer_sys::fuzz_target;

const TIMERS: u32 = 24;

fuzz_target!(|input: &[u8]| {
    let timers: Vec<Timer> = (0..TIMERS).map(|_| Timer::new()).collect();
    let mut queue = DeadlineQueue::new(1, 1);
    // (deadline, arrival, who)
    let mut model: Vec<(u64, usize, u32)> = Vec::new();
    let mut now_ns = 0_u64;
    for (arrival, step) in input.chunks_exact(3).enumerate() {
        let [what, who, when] = [step[0], step[1], step[2]];
        let who = u32::from(who) % TIMERS;
        let timer = &timers[who as usize];
        let before = format!("{queue:?}");
        match what % 4 {
            0 | 1 => {
                let deadline_ns = now_ns.saturating_add(u64::from(when));
                let owner = Owner { thread: 7, number: who, arming: arrival as u32 };
                let armed = queue.arm(&timers[..], timer, owner, deadline_ns);
                let refused = model.iter().any(|timer| timer.2 == who);
                assert_eq!(armed.is_err(), refused);
                if refused {
                    assert_eq!(format!("{queue:?}"), before);
                } else {
                    model.push((deadline_ns, arrival, who));
                }
            }
            2 => {
                let at = model.iter().position(|timer| timer.2 == who);
                match (queue.cancel(&timers[..], timer), at.map(|at| model.remove(at))) {
                    (Ok(()), Some(_)) => {}
                    (Err(_), None) => assert_eq!(format!("{queue:?}"), before),
                    (got, expected) => panic!("{got:?} where {expected:?} was armed"),
                }
            }
            _ => {
                now_ns += u64::from(when);
                for _ in 0..what >> 4 {
                    let due = model.iter().copied().min().filter(|timer| timer.0 <= now_ns);
                    let expired = queue.pop_expired(&timers[..], now_ns);
                    let found = expired.map(|e| (e.deadline_ns, e.owner.arming, e.owner.number));
                    assert_eq!(found, due.map(|d| (d.0, d.1 as u32, d.2)));
                    if let Some(timer) = due {
                        model.retain(|other| *other != timer);
                    }
                }
            }
        }
        queue.check_invariants(&timers[..]).unwrap();
        assert_eq!(queue.len() as usize, model.len());
    }
});
