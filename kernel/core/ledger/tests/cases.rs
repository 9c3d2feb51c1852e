//! The account by hand: every short history of a small line, the cases with a name, a family
//! of processes.

use core_ledger::*;

const NOTHING: Profile = Profile {
    cap_slots: 0,
    threads: 0,
    kernel_stack_pages: 0,
    frames: 0,
    sleep_waiters: 0,
    ring_entries: 64,
    ring_scratch_limit_bytes: 4096,
    in_flight_call_limit: 32,
    endpoint_queue_limit: 32,
    kernel_bytes: 0,
    registered_buffers: 0,
};

fn profile(counted: u32) -> Profile {
    Profile {
        cap_slots: counted,
        threads: counted,
        kernel_stack_pages: counted,
        frames: counted,
        sleep_waiters: counted,
        kernel_bytes: counted,
        registered_buffers: counted,
        ..NOTHING
    }
}

/// Every history of six steps over a line of 0 to 3: the line never exceeds its limit, refuses
/// exactly when it has to, and is as full as the values that are left.
#[test]
fn every_short_history() {
    const STEPS: u32 = 6;
    const CHOICES: u32 = 6;
    let mut histories = 0_u32;
    for limit in 0..=3 {
        for history in 0..CHOICES.pow(STEPS) {
            let ledger = Ledger::new(&profile(limit));
            let (mut reserved, mut charged) = (Vec::new(), Vec::new());
            let mut code = history;
            for _ in 0..STEPS {
                let taken = reserved.iter().map(Reservation::<SleepWaiters>::count).sum::<u32>()
                    + charged.iter().map(Charge::<SleepWaiters>::count).sum::<u32>();
                match code % CHOICES {
                    wanted @ 0..=2 => match ledger.reserve(SleepWaiters, wanted + 1) {
                        Ok(got) => reserved.push(got),
                        Err(error) => {
                            assert!(taken + wanted + 1 > limit, "{error:?}");
                        }
                    },
                    3 => charged.extend(reserved.pop().map(Reservation::commit)),
                    4 => drop(reserved.pop()),
                    _ => drop(charged.pop().map(Charge::release)),
                }
                code /= CHOICES;
                let used = reserved.iter().map(Reservation::count).sum::<u32>()
                    + charged.iter().map(Charge::count).sum::<u32>();
                let reading = ledger.reading(Line::SleepWaiters);
                assert_eq!(reading, Reading { used, lent: 0, limit });
                assert!(used <= limit);
                ledger.check_invariants().unwrap();
            }
            histories += 1;
        }
    }
    assert_eq!(histories, 4 * 6_u32.pow(6));
}

/// T4: each way a thread creation can run out has its own message, and leaves every line as it
/// was, because the reservations before it are dropped on the way out.
#[test]
fn thread_creation_is_all_or_nothing() {
    const STACK_PAGES: u32 = 32;
    fn create(ledger: &Ledger) -> Result<(Charge<'_, Threads>, Charge<'_, CapSlots>), ChargeError> {
        let record = ledger.reserve(Threads, 1)?;
        let stack = ledger.reserve(KernelStackPages, STACK_PAGES)?;
        let slot = ledger.reserve(CapSlots, 1)?;
        drop(stack);
        Ok((record.commit(), slot.commit()))
    }
    let enough = Profile { cap_slots: 1, threads: 1, kernel_stack_pages: 32, ..NOTHING };
    let ledger = Ledger::new(&enough);
    let made = create(&ledger).unwrap();
    assert_eq!(ledger.reading(Line::Threads).used, 1);
    drop(made);
    assert!(ledger.is_zero());
    for (short, line) in [
        (Profile { threads: 0, ..enough }, Line::Threads),
        (Profile { kernel_stack_pages: 31, ..enough }, Line::KernelStackPages),
        (Profile { cap_slots: 0, ..enough }, Line::CapSlots),
    ] {
        let ledger = Ledger::new(&short);
        let error = create(&ledger).unwrap_err();
        assert_eq!(error.message(), line.exhausted());
        assert!(ledger.is_zero());
    }
}

#[test]
fn a_closed_account_refuses_and_falls_to_zero() {
    let ledger = Ledger::new(&profile(4));
    let charge = ledger.reserve(Frames, 3).unwrap().commit();
    ledger.close();
    assert_eq!(ledger.reserve(Frames, 1).unwrap_err(), ChargeError::Closed);
    assert_eq!(ledger.reserve(Frames, 0).unwrap_err(), ChargeError::Closed);
    assert_eq!(
        ledger.lend(&profile(4), &NOTHING).unwrap_err(),
        LendError::Line(ChargeError::Closed)
    );
    assert!(!ledger.is_zero());
    assert_eq!(ledger.reopen(&profile(4)), Err(Unsettled));
    charge.release();
    assert!(ledger.is_zero());
    assert_eq!(ledger.reopen(&profile(2)), Ok(()));
    assert_eq!(ledger.reading(Line::Frames).limit, 2);
    assert_eq!(ledger.reopen(&profile(2)), Err(Unsettled), "an open account is somebody's");
}

#[test]
fn charges_of_two_accounts_do_not_mix() {
    let (one, other) = (Ledger::new(&profile(4)), Ledger::new(&profile(4)));
    let mut mine = one.reserve(Frames, 1).unwrap().commit();
    let theirs = other.reserve(Frames, 2).unwrap().commit();
    let OtherAccount(theirs) = mine.merge(theirs).unwrap_err();
    assert_eq!((mine.count(), theirs.count()), (1, 2));
    drop(mine);
    assert!(one.is_zero() && !other.is_zero());
}

#[test]
fn the_largest_limits_do_not_overflow() {
    let all = profile(u32::MAX);
    let ledger = Ledger::new(&all);
    let most = ledger.reserve(Frames, MAX_LIMIT).unwrap();
    assert!(ledger.reserve(Frames, 1).is_err());
    assert!(ledger.reserve(Frames, u32::MAX).is_err());
    ledger.check_invariants().unwrap();
    drop(most);
    assert!(ledger.lend(&all, &all).is_err());
    let loan = ledger.lend(&all, &profile(MAX_LIMIT)).unwrap();
    assert_eq!(ledger.reading(Line::Frames).free(), 0);
    assert!(ledger.reserve(Frames, 1).is_err());
    ledger.check_invariants().unwrap();
    drop(loan);
    assert!(ledger.is_settled());
}

/// C6, PB20: a family of processes never has more than its head, however it spawns, and a head
/// that ends first gets everything back before its own loan is returned.
#[test]
fn a_spawn_bomb_has_no_more_than_its_head() {
    let head_profile = profile(8);
    let head = Ledger::new(&head_profile);
    let half = profile(4);
    let first_loan = head.lend(&head_profile, &half).unwrap();
    let _second_loan = head.lend(&head_profile, &half).unwrap();
    assert!(matches!(
        head.lend(&head_profile, &profile(1)),
        Err(LendError::Line(ChargeError::Exhausted { line: Line::CapSlots, wanted: 1, .. }))
    ));
    assert!(head.reserve(Threads, 1).is_err(), "what is lent cannot be used");

    let first = Ledger::new(first_loan.profile());
    let grand_loan = first.lend(&half, &half).unwrap();
    let grandchild = Ledger::new(grand_loan.profile());
    let used = grandchild.reserve(Frames, 4).unwrap().commit();
    // The middle one ends. It uses nothing, but its account stays while the grandchild lives.
    first.close();
    assert!(first.is_zero() && !first.is_settled());
    assert_eq!(first.reopen(&half), Err(Unsettled));
    used.release();
    grandchild.close();
    assert!(grandchild.is_settled());
    grand_loan.give_back();
    assert!(first.is_settled());
    first_loan.give_back();
    assert_eq!(head.reading(Line::Frames).lent, 4);
    assert!(head.lend(&head_profile, &half).is_ok());
}

/// C6: a line of the child that is too large takes nothing from the lines before it.
#[test]
fn a_refused_loan_leaves_every_line() {
    let own = Profile { sleep_waiters: 1, ..profile(8) };
    let ledger = Ledger::new(&own);
    let before = Line::ALL.map(|line| ledger.reading(line));
    let child = profile(2);
    assert!(matches!(
        ledger.lend(&own, &child),
        Err(LendError::Line(ChargeError::Exhausted { line: Line::SleepWaiters, .. }))
    ));
    assert_eq!(Line::ALL.map(|line| ledger.reading(line)), before);
}

#[test]
fn a_childs_record_stays_lent_until_it_is_nobodys() {
    let all = profile(100);
    let ledger = Ledger::new(&all);
    let mut loan = ledger.lend(&all, &profile(60)).unwrap();
    loan.keep(&Profile { kernel_bytes: 7, ..NOTHING });
    for line in Line::ALL {
        let kept = if line == Line::KernelBytes { 7 } else { 0 };
        assert_eq!(ledger.reading(line).lent, kept, "{line:?}");
    }
    loan.keep(&profile(1000));
    assert_eq!(ledger.reading(Line::KernelBytes).lent, 7, "no more than was lent");
    loan.give_back();
    assert!(Line::ALL.into_iter().all(|line| ledger.reading(line).lent == 0));
}
