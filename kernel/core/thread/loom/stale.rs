//! Stale names: a waker of an earlier wait, or of an earlier thread, ends nothing.
//!
//! The thread waits twice; the first wait ends by other means while its waker is still on the
//! way. The mutants check the name in one step and claim in another.

use abi_sync::explore;
use core_thread::*;
use loom::sync::Arc;
use loom::sync::atomic::Ordering::*;
use loom::thread;

const GENERATION: u32 = 1;

fn in_first_wait() -> Arc<StateWord> {
    let parked = Word::compose(State::Waiting, GENERATION, Ticket::new(1), false, false);
    Arc::new(StateWord::starting_at(parked))
}

/// The real compare-and-swap loop around a mutant's idea of a wake.
fn step(
    word: &StateWord,
    f: impl Fn(Word) -> Result<(Word, WakeVerdict), Stale>,
) -> Result<WakeVerdict, Stale> {
    let mut now = word.load();
    loop {
        let (next, verdict) = f(now)?;
        match word.bits().compare_exchange(now.to_bits(), next.to_bits(), AcqRel, Acquire) {
            Ok(_) => return Ok(verdict),
            Err(other) => now = Word::from_bits(other),
        }
    }
}

type Wake = fn(&StateWord) -> Result<WakeVerdict, Stale>;

fn real(word: &StateWord) -> Result<WakeVerdict, Stale> {
    word.wake(GENERATION, Ticket::new(1))
}

/// Checks the ticket, then claims whatever wait it finds.
fn checks_then_claims(word: &StateWord) -> Result<WakeVerdict, Stale> {
    if word.load().ticket() != Ticket::new(1) {
        return Err(Stale);
    }
    step(word, |now| now.wake(now.generation(), now.ticket()))
}

/// A late waker of wait 1 against its end by another cause and wait 2.
fn two_waits(late_wake: Wake) {
    let word = in_first_wait();
    let late = {
        let word = word.clone();
        thread::spawn(move || late_wake(&word))
    };
    // This CPU ends wait 1, unless the late waker was first, and carries the thread into wait 2.
    let mine = word.wake(GENERATION, Ticket::new(1)).is_ok();
    if mine {
        assert_eq!(word.dispatch(GENERATION), Ok(DispatchVerdict::Run));
        let parking = word.begin_wait();
        assert_eq!(parking, Ok(WaitVerdict::AboutToWait(Ticket::new(2))));
        let committed = word.commit_wait().unwrap();
        assert_eq!(committed, CommitVerdict::Waits, "a late waker ended the next wait");
    }
    let late = late.join().unwrap().is_ok();
    assert!(mine || late, "lost wake");
    if mine {
        assert_eq!(word.load().state(), State::Waiting, "a late waker ended the next wait");
        assert_eq!(word.wake(GENERATION, Ticket::new(2)), Ok(WakeVerdict::Enqueue));
    }
}

#[test]
fn a_late_waker_spares_the_next_wait() {
    explore("late waker", || two_waits(real));
}

#[test]
#[should_panic(expected = "a late waker ended the next wait")]
fn mutant_ticket_checked_apart_from_the_claim_ends_the_next_wait() {
    explore("mutant: ticket checked apart", || two_waits(checks_then_claims));
}

/// Claims by ticket alone: the thread that now has the record has the same number of waits.
fn forgets_the_generation(word: &StateWord) -> Result<WakeVerdict, Stale> {
    step(word, |now| now.wake(now.generation(), Ticket::new(1)))
}

/// A late waker against the thread's end and the reuse of its record.
fn reuse(late_wake: Wake) {
    let word = in_first_wait();
    let late = {
        let word = word.clone();
        thread::spawn(move || late_wake(&word))
    };
    let mine = word.kill(GENERATION) == Ok(KillVerdict::Enqueue);
    if mine {
        assert_eq!(word.dispatch(GENERATION), Ok(DispatchVerdict::Finalise));
        assert_eq!(word.recycle(), Ok(RecycleVerdict::Free));
        // The record's next thread, already in a wait with the same number.
        let next = Word::compose(State::Waiting, GENERATION + 1, Ticket::new(1), false, false);
        word.bits().store(next.to_bits(), Release);
    }
    late.join().unwrap().ok();
    if mine {
        assert_eq!(word.load().state(), State::Waiting, "a waker reached the next thread");
    }
}

#[test]
fn a_late_waker_spares_the_next_thread() {
    explore("record reused", || reuse(real));
}

#[test]
#[should_panic(expected = "a waker reached the next thread")]
fn mutant_without_generation_wakes_the_next_thread() {
    explore("mutant: no generation", || reuse(forgets_the_generation));
}
