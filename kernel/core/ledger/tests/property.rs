//! The account against plain numbers, over random operations.

use core_ledger::*;
use test_property::prelude::*;

const OWN: Profile = Profile {
    cap_slots: 6,
    threads: 4,
    kernel_stack_pages: 9,
    frames: 12,
    sleep_waiters: 3,
    ring_entries: 64,
    ring_scratch_limit_bytes: 4096,
    in_flight_call_limit: 32,
    endpoint_queue_limit: 32,
    kernel_bytes: 7,
    registered_buffers: 2,
};

/// Lines of two types stand for all: the code is the same.
enum Held<'l> {
    ReservedFrames(Reservation<'l, Frames>),
    Frames(Charge<'l, Frames>),
    ReservedThreads(Reservation<'l, Threads>),
    Threads(Charge<'l, Threads>),
    /// So many in the pool.
    Pooled(u32),
    Loan(Loan<'l>),
}

impl Held<'_> {
    /// What it takes from each line: (line, used, lent).
    fn takes(&self) -> Vec<(Line, u32, u32)> {
        match self {
            Held::ReservedFrames(r) => vec![(Line::Frames, r.count(), 0)],
            Held::Frames(c) => vec![(Line::Frames, c.count(), 0)],
            Held::ReservedThreads(r) => vec![(Line::Threads, r.count(), 0)],
            Held::Threads(c) => vec![(Line::Threads, c.count(), 0)],
            Held::Pooled(n) => vec![(Line::Threads, *n, 0)],
            Held::Loan(l) => Line::ALL.map(|line| (line, 0, l.profile().counted(line))).to_vec(),
        }
    }
}

#[derive(Clone, Debug)]
enum Op {
    Frames(u32),
    Threads(u32),
    Commit(usize),
    CommitPart(usize, u32),
    Drop(usize),
    Split(usize, u32),
    Merge(usize, usize),
    Put(usize),
    Take(u32),
    Lend([u32; Line::COUNT]),
    LendTooMuch(u8),
    Close,
    Reopen,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (0_u32..8).prop_map(Op::Frames),
        8 => (0_u32..4).prop_map(Op::Threads),
        6 => any::<usize>().prop_map(Op::Commit),
        4 => (any::<usize>(), 0_u32..5).prop_map(|(at, n)| Op::CommitPart(at, n)),
        8 => any::<usize>().prop_map(Op::Drop),
        4 => (any::<usize>(), 0_u32..5).prop_map(|(at, n)| Op::Split(at, n)),
        4 => any::<(usize, usize)>().prop_map(|(a, b)| Op::Merge(a, b)),
        4 => any::<usize>().prop_map(Op::Put),
        4 => (0_u32..4).prop_map(Op::Take),
        4 => [0_u32..4, 0..3, 0..4, 0..6, 0..2, 0..4, 0..2].prop_map(Op::Lend),
        1 => any::<u8>().prop_map(Op::LendTooMuch),
        1 => Just(Op::Close),
        2 => Just(Op::Reopen),
    ]
}

fn child(lines: [u32; Line::COUNT]) -> Profile {
    let [cap_slots, threads, kernel_stack_pages, frames, sleep_waiters, kernel_bytes, buffers] =
        lines;
    Profile {
        cap_slots,
        threads,
        kernel_stack_pages,
        frames,
        sleep_waiters,
        kernel_bytes,
        registered_buffers: buffers,
        ..OWN
    }
}

/// The sums over everything held are the whole model.
fn sums(held: &[Held<'_>]) -> [(u32, u32); Line::COUNT] {
    let mut sums = [(0, 0); Line::COUNT];
    for (line, used, lent) in held.iter().flat_map(Held::takes) {
        sums[line.index()].0 += used;
        sums[line.index()].1 += lent;
    }
    sums
}

fn free(held: &[Held<'_>], line: Line) -> u32 {
    let (used, lent) = sums(held)[line.index()];
    OWN.counted(line) - used - lent
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]
    #[test]
    fn the_account_is_the_sum_of_what_is_held(ops in prop::collection::vec(op(), 1..60)) {
        let ledger = Ledger::new(&OWN);
        let mut held: Vec<Held<'_>> = Vec::new();
        let pool = Pool::new();
        let mut closed = false;
        for op in ops {
            match op {
                Op::Frames(n) => {
                    let fits = !closed && n <= free(&held, Line::Frames);
                    let got = ledger.reserve(Frames, n);
                    prop_assert_eq!(got.is_ok(), fits);
                    match got {
                        Ok(got) => held.push(Held::ReservedFrames(got)),
                        Err(ChargeError::Closed) => prop_assert!(closed),
                        Err(ChargeError::Exhausted { line, wanted, reading }) => {
                            prop_assert_eq!((line, wanted), (Line::Frames, n));
                            prop_assert_eq!(reading.free(), free(&held, line));
                        }
                    }
                }
                Op::Threads(n) => {
                    let fits = !closed && n <= free(&held, Line::Threads);
                    let got = ledger.reserve(Threads, n);
                    prop_assert_eq!(got.is_ok(), fits);
                    held.extend(got.ok().map(Held::ReservedThreads));
                }
                Op::Commit(at) if !held.is_empty() => {
                    let at = at % held.len();
                    let one = held.swap_remove(at);
                    held.push(match one {
                        Held::ReservedFrames(r) => Held::Frames(r.commit()),
                        Held::ReservedThreads(r) => Held::Threads(r.commit()),
                        other => other,
                    });
                }
                Op::CommitPart(at, n) if !held.is_empty() => {
                    let at = at % held.len();
                    if let Held::ReservedFrames(r) = &mut held[at] {
                        let had = r.count();
                        let part = r.commit_part(n);
                        prop_assert_eq!(part.is_some(), n <= had);
                        held.extend(part.map(Held::Frames));
                    }
                }
                Op::Drop(at) if !held.is_empty() => {
                    let at = at % held.len();
                    match held.swap_remove(at) {
                        Held::Frames(charge) => charge.release(),
                        Held::Loan(loan) => loan.give_back(),
                        Held::Pooled(n) => held.push(Held::Pooled(n)),
                        other => drop(other),
                    }
                }
                Op::Split(at, n) if !held.is_empty() => {
                    let at = at % held.len();
                    if let Held::Frames(c) = &mut held[at] {
                        let had = c.count();
                        let part = c.split(n);
                        prop_assert_eq!(part.is_some(), n <= had);
                        held.extend(part.map(Held::Frames));
                    }
                }
                Op::Merge(a, b) if !held.is_empty() => {
                    let b = held.swap_remove(b % held.len());
                    let at = a % held.len().max(1);
                    match (held.get_mut(at), b) {
                        (Some(Held::Frames(a)), Held::Frames(b)) => a.merge(b).unwrap(),
                        (_, b) => held.push(b),
                    }
                }
                Op::Put(at) if !held.is_empty() => match held.swap_remove(at % held.len()) {
                    Held::Threads(charge) => {
                        held.push(Held::Pooled(charge.count()));
                        pool.put(charge);
                    }
                    other => held.push(other),
                },
                Op::Take(n) => {
                    let pooled = |one: &Held<'_>| matches!(one, Held::Pooled(_));
                    let all: u32 = held.extract_if(.., |one| pooled(one)).map(|one| one.takes()[0].1).sum();
                    prop_assert_eq!(pool.count(), all);
                    let got = pool.take(&ledger, n);
                    prop_assert_eq!(got.as_ref().map(Charge::count), (n <= all).then_some(n));
                    held.push(Held::Pooled(all - got.as_ref().map_or(0, Charge::count)));
                    held.extend(got.map(Held::Threads));
                }
                Op::Lend(lines) => {
                    let child = child(lines);
                    let lacking = Line::ALL.into_iter().find(|l| child.counted(*l) > free(&held, *l));
                    match ledger.lend(&OWN, &child) {
                        Ok(loan) => {
                            prop_assert!(!closed && lacking.is_none());
                            held.push(Held::Loan(loan));
                        }
                        Err(LendError::Line(ChargeError::Closed)) => prop_assert!(closed),
                        Err(LendError::Line(ChargeError::Exhausted { line, .. })) => {
                            prop_assert_eq!(Some(line), lacking);
                        }
                        Err(LendError::Above(_)) => prop_assert!(false, "no such limit is above"),
                    }
                }
                Op::LendTooMuch(which) => {
                    let mut child = child([0; Line::COUNT]);
                    let (field, limit) = match which % 4 {
                        0 => (&mut child.ring_entries, Limit::RingEntries),
                        1 => (&mut child.ring_scratch_limit_bytes, Limit::RingScratchBytes),
                        2 => (&mut child.in_flight_call_limit, Limit::InFlightCalls),
                        _ => (&mut child.endpoint_queue_limit, Limit::EndpointQueue),
                    };
                    *field += 1;
                    prop_assert_eq!(ledger.lend(&OWN, &child).err(), Some(LendError::Above(limit)));
                }
                Op::Close => {
                    ledger.close();
                    closed = true;
                }
                Op::Reopen => {
                    let settled = sums(&held) == [(0, 0); Line::COUNT];
                    prop_assert_eq!(ledger.reopen(&OWN).is_ok(), closed && settled);
                    closed = closed && !settled;
                }
                _ => {}
            }
            prop_assert_eq!(ledger.check_invariants(), Ok(()));
            let sums = sums(&held);
            for line in Line::ALL {
                let (used, lent) = sums[line.index()];
                prop_assert_eq!(ledger.reading(line), Reading { used, lent, limit: OWN.counted(line) });
            }
            prop_assert_eq!(ledger.is_zero(), sums.iter().all(|(used, _)| *used == 0));
            prop_assert_eq!(ledger.is_settled(), sums == [(0, 0); Line::COUNT]);
        }
        drop(held);
        drop(pool.take(&ledger, pool.count()));
        prop_assert!(ledger.is_settled(), "something stayed behind");
    }
}
