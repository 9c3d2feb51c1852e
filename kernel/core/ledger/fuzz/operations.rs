//! Fuzzes an account by strings of operations: byte 0 the limit of each line, then an operation
//! and an argument each. Whatever the string, the account is the sum of what is held.
#![no_main]

use core_ledger::*;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let [limit, steps @ ..] = input else { return };
    let limit = u32::from(limit % 8);
    let own = Profile {
        cap_slots: limit,
        threads: limit,
        kernel_stack_pages: limit,
        frames: limit,
        sleep_waiters: limit,
        kernel_bytes: limit,
        registered_buffers: limit,
        ring_entries: 64,
        ..Profile::NONE
    };
    let ledger = Ledger::new(&own);
    let mut reserved: Vec<Reservation<'_, Frames>> = Vec::new();
    let mut charged: Vec<Charge<'_, Frames>> = Vec::new();
    let mut loans: Vec<Loan<'_>> = Vec::new();
    for step in steps.chunks_exact(2) {
        let (operation, argument) = (step[0], usize::from(step[1]));
        let count = (argument % 5) as u32;
        match operation % 10 {
            0 => reserved.extend(ledger.reserve(Frames, count)),
            1 if !reserved.is_empty() => {
                let one = reserved.swap_remove(argument % reserved.len());
                charged.push(one.commit());
            }
            2 if !reserved.is_empty() => {
                let at = argument % reserved.len();
                let part = reserved[at].commit_part(count);
                charged.extend(part);
            }
            3 if !reserved.is_empty() => drop(reserved.swap_remove(argument % reserved.len())),
            4 if !charged.is_empty() => charged.swap_remove(argument % charged.len()).release(),
            5 if !charged.is_empty() => {
                let at = argument % charged.len();
                let part = charged[at].split(count);
                charged.extend(part);
            }
            6 if charged.len() > 1 => {
                let one = charged.pop().unwrap();
                let at = argument % charged.len();
                charged[at].merge(one).unwrap();
            }
            7 => loans.extend(ledger.lend(&own, &Profile { frames: count, ..Profile::NONE })),
            8 if !loans.is_empty() => loans.swap_remove(argument % loans.len()).give_back(),
            9 if argument % 16 == 0 => {
                ledger.close();
                let is_free = reserved.is_empty() && charged.is_empty() && loans.is_empty();
                if is_free {
                    ledger.reopen(&own).unwrap();
                }
            }
            _ => {}
        }
        ledger.check_invariants().unwrap();
        let used = reserved.iter().map(Reservation::count).sum::<u32>()
            + charged.iter().map(Charge::count).sum::<u32>();
        let lent = loans.iter().map(|loan| loan.profile().frames).sum::<u32>();
        assert_eq!(ledger.reading(Line::Frames), Reading { used, lent, limit });
    }
    drop((reserved, charged, loans));
    assert!(ledger.is_settled());
});
