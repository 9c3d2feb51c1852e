//! Fuzzes a thread's lifecycle by strings of operations, a byte each. Whatever the order of exit,
//! join, detach and handles, the charge ends once, a joiner is answered once, and an error changes
//! nothing.
#![no_main]

use core_thread::{JoinVerdict, Joiner, Lifecycle, ThreadKey};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let own = ThreadKey { slot: 1, generation: 1 };
    let joiner = |n: u8| Joiner {
        thread: ThreadKey { slot: u32::from(n % 3), generation: 1 },
        user_data: 0,
    };
    let mut life = Lifecycle::new(own);
    let (mut charges, mut pending, mut exited) = (1_u32, None, false);
    for step in input {
        let before = life;
        let (operation, argument) = (step % 7, step / 7);
        let ended = match operation {
            0 => match life.exit(i64::from(argument)) {
                Ok(verdict) => {
                    assert!(!exited, "exited twice");
                    exited = true;
                    assert_eq!(verdict.complete, pending.take());
                    Some(verdict.ends_charge)
                }
                Err(_) => None,
            },
            1 => match life.join(joiner(argument)) {
                Ok(JoinVerdict::Done { .. }) => {
                    assert!(exited && pending.is_none());
                    Some(true)
                }
                Ok(JoinVerdict::Pending) => {
                    assert!(!exited && pending.is_none());
                    pending = Some(joiner(argument));
                    Some(false)
                }
                Err(_) => None,
            },
            2 => match life.cancel_join(joiner(argument)) {
                Ok(()) => {
                    assert_eq!(pending.take(), Some(joiner(argument)));
                    Some(false)
                }
                Err(_) => None,
            },
            3 => life.detach().ok().map(|verdict| verdict.ends_charge),
            4 => life.add_handle().ok().map(|()| false),
            5 => life.release_handle().ok().map(|verdict| verdict.ends_charge),
            _ => {
                let _ = life.exit_code();
                Some(false)
            }
        };
        match ended {
            None => assert_eq!(life, before, "an error changed something"),
            Some(true) => charges = charges.checked_sub(1).expect("the charge ended twice"),
            Some(false) => {}
        }
        assert_eq!(life.is_charged(), charges == 1);
        life.check_invariants().unwrap();
    }
});
