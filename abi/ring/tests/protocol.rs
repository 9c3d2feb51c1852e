//! Both halves over plain memory, one promise a test.
use abi_ring::*;
use abi_ring_testing::{LIMIT, PlainMemory};
use abi_types::limits::{RING_BATCH_SQPOLL, RING_BATCH_TIMER};
use abi_types::{Opcode, RingFlags, RingWord, Sqe, Status};

type Ring = KernelRing<PlainMemory>;

fn ring(entries: u32) -> (Ring, CqProducer) {
    KernelRing::new(PlainMemory::zeroed(entries), LIMIT, LIMIT)
}

fn nop(user_data: u64) -> Sqe {
    Sqe { user_data, ..Sqe::default() }
}

fn with_opcode(opcode: Opcode, user_data: u64) -> Sqe {
    Sqe { opcode: opcode as u8, user_data, ..Sqe::default() }
}

/// Completes everything a pass takes at once; how many, and why it stopped.
fn serve(ring: &Ring, cq: &mut CqProducer, mut pass: Pass<'_, PlainMemory>) -> (u32, Stop) {
    let mut taken = 0;
    while let Some(Accepted { credit, request }) = pass.next() {
        let status = request.map_or_else(|status| status, |_| Status::Ok);
        let _ = ring.post(cq, credit, &Outcome::plain(status));
        taken += 1;
    }
    (taken, pass.stop())
}

fn enter(ring: &Ring, cq: &mut CqProducer) -> (u32, Stop) {
    serve(ring, cq, ring.begin(Visitor::Syscall).unwrap())
}

#[test]
fn nothing_is_seen_before_it_is_published() {
    let (ring, mut cq) = ring(4);
    let mut user = UserRing::new(ring.memory());
    user.push(nop(1)).unwrap();
    user.push(nop(2)).unwrap();
    assert_eq!(enter(&ring, &mut cq), (0, Stop::Drained));
    user.publish();
    assert_eq!(enter(&ring, &mut cq), (2, Stop::Drained));
    assert_eq!((user.completions(), ring.count()), (2, 2));
    assert_eq!(user.pop().unwrap().take().user_data, 1);
    assert_eq!(user.pop().unwrap().take().user_data, 2);
    assert!(user.pop().is_none());
    assert_eq!(ring.count(), 0);
}

#[test]
fn a_full_submission_queue_says_so_until_the_kernel_consumes() {
    let (ring, mut cq) = ring(4);
    let mut user = UserRing::new(ring.memory());
    for n in 0..4 {
        user.push(nop(n)).unwrap();
    }
    assert_eq!(user.push(nop(4)), Err(SqFull));
    user.publish();
    assert_eq!(user.unconsumed(), 4);
    assert_eq!(enter(&ring, &mut cq), (4, Stop::Drained));
    assert_eq!((user.unconsumed(), user.push(nop(4))), (0, Ok(())));
}

#[test]
fn a_client_that_never_drains_loses_nothing_over_ten_queues() {
    let (ring, mut cq) = ring(4);
    let mut user = UserRing::new(ring.memory());
    let (mut pushed, mut refused, mut next) = (0_u64, 0, 0);
    while pushed < 10 * 8 {
        while user.push(nop(pushed)).is_ok() {
            pushed += 1;
        }
        user.publish();
        if let (_, Stop::CqFull) = enter(&ring, &mut cq) {
            refused += 1;
            assert_eq!(ring.count(), 8);
            assert_eq!(enter(&ring, &mut cq), (0, Stop::CqFull), "and nothing moves");
            // It looks at one completion only, when it cannot go on.
            assert_eq!(user.pop().unwrap().take().user_data, next);
            next += 1;
        }
    }
    assert!(refused > 10);
    loop {
        let (taken, _) = enter(&ring, &mut cq);
        while let Some(completion) = user.pop() {
            assert_eq!(completion.take().user_data, next);
            next += 1;
        }
        if taken == 0 && user.unconsumed() == 0 {
            break;
        }
    }
    assert_eq!(next, pushed);
}

#[test]
fn a_place_is_reserved_for_what_completes_later() {
    let (ring, mut cq) = ring(4);
    let mut user = UserRing::new(ring.memory());
    let mut credits = Vec::new();
    for n in 0..8 {
        user.push(nop(n)).unwrap();
        user.publish();
        credits.push(ring.begin(Visitor::Syscall).unwrap().next().unwrap().credit);
    }
    user.push(nop(8)).unwrap();
    user.publish();
    assert_eq!((ring.count(), ring.in_flight()), (0, 8));
    assert_eq!(enter(&ring, &mut cq), (0, Stop::CqFull), "all places are promised");
    while let Some(credit) = credits.pop() {
        let posted = ring.post(&mut cq, credit, &Outcome::plain(Status::Ok));
        assert_eq!(posted.count, 8 - credits.len() as u32);
    }
    let order: Vec<u64> = std::iter::from_fn(|| Some(user.pop()?.take().user_data)).collect();
    assert_eq!(order, [7, 6, 5, 4, 3, 2, 1, 0]);
    assert_eq!(enter(&ring, &mut cq), (1, Stop::Drained));
}

#[test]
fn passes_are_bounded_by_who_runs_them() {
    let (ring, mut cq) = ring(16);
    let mut user = UserRing::new(ring.memory());
    for n in 0..16 {
        user.push(nop(n)).unwrap();
    }
    user.publish();
    let timer = ring.begin(Visitor::Timer).unwrap();
    assert_eq!(serve(&ring, &mut cq, timer), (RING_BATCH_TIMER, Stop::Limit));
    let token = ring.begin(Visitor::Syscall).unwrap().hand_over().unwrap();
    let poll = ring.begin_poll(&token).unwrap();
    assert_eq!(serve(&ring, &mut cq, poll), (RING_BATCH_SQPOLL, Stop::Limit));
    let borrowed = ring.borrow().unwrap();
    assert_eq!(serve(&ring, &mut cq, borrowed), (RING_BATCH_SQPOLL, Stop::Limit));
    assert_eq!(ring.release(token), Ended::Now);
    assert_eq!(enter(&ring, &mut cq), (16 - 8, Stop::Drained));
}

#[test]
fn a_pass_looks_at_the_tail_once() {
    let (ring, _cq) = ring(4);
    let mut user = UserRing::new(ring.memory());
    user.push(nop(1)).unwrap();
    user.publish();
    let mut pass = ring.begin(Visitor::Syscall).unwrap();
    user.push(nop(2)).unwrap();
    user.publish();
    assert!(pass.next().is_some());
    assert!(pass.next().is_none());
    assert_eq!(pass.stop(), Stop::Drained);
}

#[test]
fn only_its_own_thread_takes_a_call_or_a_park() {
    for opcode in [Opcode::Call, Opcode::Park] {
        let (ring, mut cq) = ring(4);
        let mut user = UserRing::new(ring.memory());
        user.push(nop(1)).unwrap();
        user.push(with_opcode(opcode, 2)).unwrap();
        user.push(nop(3)).unwrap();
        user.publish();
        let timer = ring.begin(Visitor::Timer).unwrap();
        assert_eq!(serve(&ring, &mut cq, timer), (1, Stop::ThreadOwned));
        let token = ring.begin(Visitor::Syscall).unwrap().hand_over().unwrap();
        let poll = ring.begin_poll(&token).unwrap();
        assert_eq!(serve(&ring, &mut cq, poll), (0, Stop::ThreadOwned));
        assert_eq!(user.unconsumed(), 2);
        let borrowed = ring.borrow().unwrap();
        assert_eq!(serve(&ring, &mut cq, borrowed), (2, Stop::Drained));
        let _ = ring.release(token);
    }
}

#[test]
fn looking_at_the_head_consumes_nothing() {
    let (ring, _cq) = ring(4);
    let mut user = UserRing::new(ring.memory());
    user.push(nop(7)).unwrap();
    user.publish();
    let mut pass = ring.begin(Visitor::Syscall).unwrap();
    let head = pass.head().unwrap();
    assert_eq!(head.decode(&ring), Ok(Request::Nop));
    drop(pass);
    assert_eq!(user.unconsumed(), 1);
    let mut pass = ring.begin(Visitor::Syscall).unwrap();
    let head = pass.head().unwrap();
    assert_eq!(pass.take(&head).user_data(), 7);
    assert_eq!(user.unconsumed(), 0);
}

#[test]
fn a_message_goes_from_slot_to_slot_and_no_further_than_its_length() {
    let (client, mut client_cq) = ring(4);
    let (server, mut server_cq) = ring(4);
    let mut from = UserRing::new(client.memory());
    let mut to = UserRing::new(server.memory());
    from.push(nop(1)).unwrap();
    from.publish();
    to.push(nop(2)).unwrap();
    to.publish();
    let secret = [0x5ec7_e75e_c7e7_5ec7; 16];
    for (length, words) in [(20, 3), (64, 8), (128, 16), (0, 0)] {
        from.write_inline(3, &secret);
        let outcome = Outcome { length, ..Outcome::plain(Status::Ok) };
        let credit = server.begin(Visitor::Syscall).unwrap().next().unwrap().credit;
        let _ = server.post_from_slot(&mut server_cq, credit, &outcome, &client, 3);
        let completion = to.pop().unwrap();
        assert_eq!((completion.cqe().user_data, completion.cqe().length), (2, length));
        let got: Vec<u64> = (0..16).map(|word| completion.inline_word(word)).collect();
        let full = length as usize / 8;
        assert!(got[..full].iter().all(|word| *word == secret[0]));
        assert!(got[words..].iter().all(|word| *word == 0), "{length}");
        if length % 8 != 0 {
            assert_eq!(got[full], secret[0] & 0xffff_ffff);
        }
        drop(completion);
        to.push(nop(2)).unwrap();
        to.publish();
    }
    let _ = enter(&client, &mut client_cq);
}

#[test]
fn kernel_words_and_slots_travel_both_ways() {
    let (ring, mut cq) = ring(4);
    let mut user = UserRing::new(ring.memory());
    user.write_inline(1, &[11, 22, 33]);
    user.push(nop(1)).unwrap();
    user.publish();
    let mut words = [0; INLINE_WORDS];
    ring.read_inline(1, 17, &mut words);
    assert_eq!(words[..4], [11, 22, 33, 0]);
    let credit = ring.begin(Visitor::Syscall).unwrap().next().unwrap().credit;
    let kept = CreditCell::default();
    kept.put(credit);
    assert_eq!(kept.user_data(), 1);
    let credit = kept.take();
    ring.write_next_inline(&mut cq, 15, 99);
    let outcome = Outcome { length: 24, badge: 5, ..Outcome::plain(Status::Ok) };
    let _ = ring.post_words(&mut cq, credit, &outcome, &[1, 2]);
    let completion = user.pop().unwrap();
    let mut words = [7; INLINE_WORDS];
    completion.read_inline(completion.cqe().length, &mut words);
    assert_eq!((words[..4].to_vec(), completion.inline_word(15)), (vec![1, 2, 0, 7], 99));
}

#[test]
fn a_head_that_cannot_be_true_frees_nothing_and_counts_as_full() {
    for lie in [1, 3, u32::MAX - 8, 0x8000_0000] {
        let (ring, mut cq) = ring(4);
        let mut user = UserRing::new(ring.memory());
        user.push(nop(1)).unwrap();
        user.publish();
        ring.memory().store_relaxed(RingWord::CqHead, lie);
        assert_eq!(enter(&ring, &mut cq), (0, Stop::CqFull), "{lie}");
        assert_eq!(ring.count(), 8);
        ring.memory().store_relaxed(RingWord::CqHead, 0);
        assert_eq!(enter(&ring, &mut cq), (1, Stop::Drained));
    }
}

#[test]
fn a_tail_too_far_ahead_is_no_more_than_a_full_queue() {
    let (ring, mut cq) = ring(4);
    ring.memory().store_relaxed(RingWord::SqTail, 1_000_000);
    assert_eq!(enter(&ring, &mut cq), (4, Stop::Drained));
}

#[test]
fn user_space_is_told_to_enter_whenever_nobody_polls() {
    let (ring, mut cq) = ring(4);
    let mut user = UserRing::new(ring.memory());
    assert!(user.publish_polled(), "no poller yet");
    let token = ring.begin(Visitor::Syscall).unwrap().hand_over().unwrap();
    let id = token.id();
    assert!(user.publish_polled() && ring.is_asleep(id), "it has not begun");
    drop(ring.begin_poll(&token).unwrap());
    assert!(!user.publish_polled() && !ring.is_asleep(id) && ring.is_live(id));
    assert_eq!(ring.fall_asleep(&token), Ok(Sleep::Now));
    user.push(nop(1)).unwrap();
    assert!(user.publish_polled() && ring.is_asleep(id));
    assert!(ring.wake_poller() && !ring.wake_poller() && !ring.is_asleep(id));
    assert_eq!(serve(&ring, &mut cq, ring.begin_poll(&token).unwrap()), (1, Stop::Drained));
    user.push(nop(2)).unwrap();
    assert!(!user.publish_polled(), "awake again, though another woke it");
    assert_eq!(ring.fall_asleep(&token), Ok(Sleep::Work));
    assert_eq!(serve(&ring, &mut cq, ring.begin_poll(&token).unwrap()), (1, Stop::Drained));
    assert!(!user.publish_polled());
    // Asked to stop within a pass, it stops with it.
    let pass = ring.begin_poll(&token).unwrap();
    assert_eq!(ring.revoke(id), Ended::WithPass);
    assert!(!ring.is_live(id) && !user.publish_polled());
    drop(pass);
    assert!(user.publish_polled());
    assert_eq!(ring.begin_poll(&token).err(), Some(Refusal::Stale));
    assert_eq!(ring.fall_asleep(&token), Err(Refusal::Stale));
    assert_eq!(ring.release(token), Ended::Stale);
    assert_eq!(ring.memory().load_relaxed(RingWord::Flags), RingFlags::NEED_WAKEUP);
}

#[test]
fn a_new_ring_says_how_large_it_is() {
    let (ring, _) = ring(16);
    assert_eq!(ring.memory().load_relaxed(RingWord::SqEntries), 16);
    assert_eq!(ring.memory().load_relaxed(RingWord::CqEntries), 32);
}

#[test]
fn a_batch_is_seen_when_it_is_published_or_dropped() {
    let (ring, mut cq) = ring(4);
    let mut user = UserRing::new(ring.memory());
    for round in 0..2 {
        for n in 0..3 {
            user.push(nop(n)).unwrap();
        }
        user.publish();
        let mut pass = ring.begin(Visitor::Syscall).unwrap();
        let mut batch = ring.batch(&mut cq);
        for _ in 0..3 {
            batch.post(pass.next().unwrap().credit, &Outcome::plain(Status::Ok));
            assert!(user.pop().is_none());
        }
        if round == 0 {
            assert_eq!(batch.publish().count, 3);
        } else {
            drop(batch);
        }
        let got: Vec<u64> = std::iter::from_fn(|| Some(user.pop()?.take().user_data)).collect();
        assert_eq!(got, [0, 1, 2]);
    }
}

#[test]
#[should_panic(expected = "a completion without an SQE")]
fn a_checked_build_finds_a_completion_too_many() {
    let (ring, mut cq) = ring(4);
    // Nobody put one in.
    let credit = CreditCell::default().take();
    let _ = ring.post(&mut cq, credit, &Outcome::plain(Status::Ok));
}

#[test]
fn a_run_of_nops_completes_like_one_by_one() {
    let (ring, mut cq) = ring(8);
    let mut user = UserRing::new(ring.memory());
    for n in 0..3 {
        user.push(nop(n)).unwrap();
    }
    user.push(Sqe { flags: 1, ..nop(3) }).unwrap();
    user.push(nop(4)).unwrap();
    user.publish();
    let mut pass = ring.begin(Visitor::Syscall).unwrap();
    assert!(pass.finish_nops(&mut cq));
    assert_eq!((user.unconsumed(), ring.count(), pass.is_over()), (2, 3, false));
    assert!(!pass.finish_nops(&mut cq), "a NOP with flags is none");
    assert_eq!((user.unconsumed(), ring.count()), (2, 3));
    let Accepted { credit, request } = pass.next().unwrap();
    assert_eq!((credit.user_data(), request), (3, Err(Status::InvalidArgument)));
    ring.post_unawaited(&mut cq, credit, &Outcome::plain(Status::InvalidArgument));
    assert!(pass.finish_nops(&mut cq) && pass.is_over());
    drop(pass);
    ring.check_invariants().unwrap();
    for n in 0..5 {
        let status = if n == 3 { Status::InvalidArgument } else { Status::Ok };
        let cqe = user.pop().unwrap().take();
        assert_eq!((cqe.user_data, cqe.status), (n, status as u8));
    }
    assert!(user.pop().is_none());
}

#[test]
fn a_sole_sqe_is_found_only_if_it_is_the_threads_to_consume() {
    let (ring, mut cq) = ring(4);
    let mut user = UserRing::new(ring.memory());
    assert!(ring.sole().is_none(), "nothing waits");
    // Looking leaves nothing behind: each look is followed by a pass or another look.
    for n in 0..8 {
        user.push(nop(n)).unwrap();
        user.publish();
        if n % 2 == 0 {
            let pass = ring.begin(Visitor::Syscall).unwrap();
            assert!(ring.sole().is_none(), "a pass runs");
            assert_eq!(serve(&ring, &mut cq, pass), (1, Stop::Drained));
        } else {
            let sole = ring.sole().unwrap();
            assert!(sole.head().is_nop() && sole.head().user_data() == n);
            let credit = sole.take(n);
            assert!(ring.sole().is_none(), "it is consumed");
            ring.post_unawaited(&mut cq, credit, &Outcome::plain(Status::Ok));
        }
    }
    user.push(nop(8)).unwrap();
    user.publish();
    assert!(ring.sole().is_none(), "no place for its completion");
    assert_eq!(enter(&ring, &mut cq), (0, Stop::CqFull));
    for n in 0..8 {
        assert_eq!(user.pop().unwrap().take().user_data, n);
    }
    let token = ring.begin(Visitor::Syscall).unwrap().hand_over().unwrap();
    assert!(ring.sole().is_none(), "a poller owns the queue");
    assert_eq!(ring.release(token), Ended::Now);
    assert!(ring.sole().is_some());
    user.push(nop(9)).unwrap();
    user.publish();
    assert!(ring.sole().is_none(), "two wait");
    assert_eq!(enter(&ring, &mut cq), (2, Stop::Drained));
    user.push(nop(10)).unwrap();
    user.publish();
    ring.only_passes();
    assert!(ring.sole().is_none(), "the ring was made to be consumed in passes");
    assert_eq!(enter(&ring, &mut cq), (1, Stop::Drained));
    let _ = ring.close();
    user.push(nop(11)).unwrap();
    user.publish();
    assert!(ring.sole().is_none(), "it is being torn down");
}
