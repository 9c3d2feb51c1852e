//! A thread's operations under way, each with a name.
//!
//! [`Io::submit`] gives an operation a [`Pending`] name; its completion is kept until it is asked
//! for by that name, in whatever order completions come and whoever waits. Nothing is lost: an
//! operation is accepted only if there is a place to keep its completion.
//!
//! One thread's own; methods borrow it for their time only, so clients, services and writers of
//! one thread share it by reference.
//!
//! Decided in ADR 81.

use core::cell::RefCell;

use abi_ring::{INLINE_WORDS, Memory};
use abi_sync::BlockMemory;
use abi_types::{Cqe, CqeFlags, NEVER, Opcode, Sqe, SqeFlags, Status, Transfer};

use crate::ring::{Enter, Kernel, Ring};

/// Operations one thread can have under way through its [`Io`].
pub const PENDING: usize = 16;

/// A thread's ring with a book of what is under way.
#[derive(Debug)]
pub struct Io<M = BlockMemory, K = Kernel> {
    inner: RefCell<Inner<M, K>>,
}

/// An operation under way. Ask for its completion, or [forget](Io::forget) it.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "its completion keeps a place until it is taken or forgotten"]
pub struct Pending(u64);

#[derive(Debug)]
struct Inner<M, K> {
    ring: Ring<M, K>,
    /// The last one is for who waits at once.
    entries: [Entry; PENDING + 1],
    strays: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    state: State,
    /// Counts uses, so that a name is never mistaken for a later one.
    generation: u32,
    /// The inline slot its payload is in.
    slot: Option<u16>,
    cqe: Cqe,
    payload: [u64; INLINE_WORDS],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Waiting,
    /// Nobody will ask.
    Forgotten,
    Done,
}

impl<M: Memory, K: Enter> Io<M, K> {
    /// The book of a ring with nothing under way.
    pub fn new(ring: Ring<M, K>) -> Self {
        let cqe = Cqe::default();
        let entry = Entry {
            state: State::Free,
            generation: 0,
            slot: None,
            cqe,
            payload: [0; INLINE_WORDS],
        };
        Self { inner: RefCell::new(Inner { ring, entries: [entry; PENDING + 1], strays: 0 }) }
    }

    /// Starts an operation: it is dispatched when the thread next enters the kernel. `payload`
    /// goes into an inline slot unless the SQE says it is elsewhere. `sqe.user_data` is not the
    /// caller's to choose.
    ///
    /// `overloaded`: [`PENDING`] operations or all inline slots are in use; nothing was started.
    pub fn submit(&self, sqe: Sqe, payload: &[u64]) -> Result<Pending, Status> {
        self.inner.borrow_mut().submit(sqe, payload)
    }

    /// Whether the operation has completed.
    pub fn is_done(&self, pending: &Pending) -> bool {
        let mut inner = self.inner.borrow_mut();
        inner.drain();
        inner.entry(pending).is_some_and(|entry| entry.state == State::Done)
    }

    /// The completion, if it has come, with its inline payload in `words`; otherwise the name again.
    pub fn take(&self, pending: Pending, words: &mut [u64; INLINE_WORDS]) -> Result<Cqe, Pending> {
        let mut inner = self.inner.borrow_mut();
        inner.drain();
        inner.take(&pending, words).ok_or(pending)
    }

    /// Enters the kernel until the operation has completed.
    pub fn wait(&self, pending: Pending, words: &mut [u64; INLINE_WORDS]) -> Cqe {
        self.inner.borrow_mut().wait(&pending, words)
    }

    /// Enters the kernel until one of the operations has completed; the position of the first that has.
    pub fn wait_any(&self, among: &[&Pending]) -> usize {
        let mut inner = self.inner.borrow_mut();
        loop {
            // All are put aside before any is looked at: what comes later is in the queue, and is waited for there.
            inner.drain();
            let is_done = |pending: &&Pending| {
                inner.entry(pending).is_some_and(|entry| entry.state == State::Done)
            };
            if let Some(position) = among.iter().position(is_done) {
                return position;
            }
            let _ = inner.ring.enter(1, NEVER);
        }
    }

    /// Starts an operation and waits for it. There is always a place for it.
    pub fn run(
        &self,
        sqe: Sqe,
        payload: &[u64],
        words: &mut [u64; INLINE_WORDS],
    ) -> Result<Cqe, Status> {
        let mut inner = self.inner.borrow_mut();
        let pending = inner.start(PENDING, sqe, payload).or_else(|_| {
            // No inline slot is left: the kernel reads the payload where it is.
            let address = payload.as_ptr().expose_provenance() as u64;
            inner.start(
                PENDING,
                Sqe { flags: sqe.flags | SqeFlags::BY_ADDRESS, address, ..sqe },
                &[],
            )
        })?;
        // What was only just submitted cannot have completed: enter before looking.
        loop {
            let _ = inner.ring.enter(1, NEVER);
            if let Some(cqe) = inner.pop_for(&pending, words) {
                return Ok(cqe);
            }
        }
    }

    /// Starts an operation that has neither payload nor results, waits for it and gives its
    /// status and `length`.
    pub fn run_plain(&self, sqe: Sqe) -> Result<(Status, u32), Status> {
        let cqe = self.run(sqe, &[], &mut [0; INLINE_WORDS])?;
        Ok((status_of(&cqe), cqe.length))
    }

    /// Drops the completion when it comes.
    pub fn forget(&self, pending: Pending) {
        let mut inner = self.inner.borrow_mut();
        if let Some(entry) = inner.entry(&pending) {
            entry.state = if entry.state == State::Done { State::Free } else { State::Forgotten };
        }
    }

    /// Gives what was submitted to the kernel without waiting for anything.
    pub fn flush(&self) {
        let _ = self.inner.borrow_mut().ring.enter(0, 0);
    }

    /// Asks for the end of an operation; its completion comes in any case, as cancelled or as done. `NotFound` if it
    /// is done, or cannot be called off.
    pub fn cancel(&self, pending: &Pending) -> Result<(), Status> {
        let cancel = Sqe { opcode: Opcode::Cancel as u8, arg: pending.0, ..Sqe::default() };
        let (status, _) = self.run_plain(cancel)?;
        ok(status)
    }

    /// Lets another thread run.
    pub fn yield_now(&self) -> Result<(), Status> {
        let sqe = Sqe { opcode: Opcode::Yield as u8, ..Sqe::default() };
        ok(self.run_plain(sqe)?.0)
    }

    /// Gives a capability slot back.
    pub fn release(&self, slot: abi_types::CapSlot) -> Result<(), Status> {
        let sqe = Sqe { opcode: Opcode::Release as u8, cap: slot.to_bits(), ..Sqe::default() };
        ok(self.run_plain(sqe)?.0)
    }

    /// Lends the ring to code that pushes and pops by itself. It must have popped the completions
    /// of all it pushed when it returns; one that comes later counts as [stray](Self::strays).
    /// Its user data has the top bit set, which no [`Pending`] has. Nothing else of this `Io` can
    /// be used within `work`.
    pub fn with_ring<R>(&self, work: impl FnOnce(&mut Ring<M, K>) -> R) -> R {
        let mut inner = self.inner.borrow_mut();
        // What has come for others is put aside first: the code sees its own completions.
        inner.drain();
        work(&mut inner.ring)
    }

    /// Completions that came for nobody: 0 in a program that keeps to the contract.
    pub fn strays(&self) -> u64 {
        self.inner.borrow().strays
    }
}

impl<M: Memory, K: Enter> Inner<M, K> {
    fn submit(&mut self, sqe: Sqe, payload: &[u64]) -> Result<Pending, Status> {
        let mut entries = self.entries.iter().take(PENDING);
        let free = entries.position(|entry| entry.state == State::Free);
        self.start(free.ok_or(Status::Overloaded)?, sqe, payload)
    }

    /// Starts an operation in a place that is free.
    fn start(&mut self, index: usize, mut sqe: Sqe, payload: &[u64]) -> Result<Pending, Status> {
        let is_inline =
            sqe.flags & (SqeFlags::BY_ADDRESS | SqeFlags::REGISTERED) == 0 && !payload.is_empty();
        let generation = self.entries.get(index).map_or(0, |entry| entry.generation);
        let generation = generation.wrapping_add(1) & GENERATION_BITS;
        let pending = Pending(name(index, generation));
        let slot = if is_inline {
            let slot = self.ring.take_slot().ok_or(Status::Overloaded)?;
            self.ring.write_inline(slot, payload);
            sqe.buffer = slot;
            Some(slot)
        } else {
            None
        };
        sqe.user_data = pending.0;
        while self.ring.push(sqe).is_err() {
            // The queue is full of what was submitted before: let the kernel take it. It can not
            // if there is no room for completions, so those are put aside.
            self.drain();
            let _ = self.ring.enter(0, 0);
        }
        self.ring.publish();
        if let Some(entry) = self.entries.get_mut(index) {
            entry.state = State::Waiting;
            entry.generation = generation;
            entry.slot = slot;
        }
        Ok(pending)
    }

    /// The entry of an operation under way.
    fn entry(&mut self, pending: &Pending) -> Option<&mut Entry> {
        let (index, generation) = parts(pending.0);
        let entry = self.entries.get_mut(index)?;
        (entry.generation == generation && entry.state != State::Free).then_some(entry)
    }

    fn wait(&mut self, pending: &Pending, words: &mut [u64; INLINE_WORDS]) -> Cqe {
        loop {
            if let Some(cqe) = self.take(pending, words) {
                return cqe;
            }
            if let Some(cqe) = self.pop_for(pending, words) {
                return cqe;
            }
            // Whatever stood in the way (no room for completions, another consumer) is gone when
            // the queue was drained or the kernel is entered again.
            let _ = self.ring.enter(1, NEVER);
        }
    }

    /// A completion that was put aside.
    fn take(&mut self, pending: &Pending, words: &mut [u64; INLINE_WORDS]) -> Option<Cqe> {
        let entry = self.entry(pending)?;
        if entry.state != State::Done {
            return None;
        }
        entry.state = State::Free;
        let used = inline_bytes(&entry.cqe).div_ceil(8);
        words.iter_mut().zip(entry.payload).take(used).for_each(|(to, word)| *to = word);
        Some(entry.cqe)
    }

    /// Puts everything that has come aside.
    fn drain(&mut self) {
        let nobody = Pending(0);
        let _ = self.pop_for(&nobody, &mut [0; INLINE_WORDS]);
    }

    /// Pops completions until `pending`'s comes, which goes straight to `words`; others are put
    /// aside.
    fn pop_for(&mut self, pending: &Pending, words: &mut [u64; INLINE_WORDS]) -> Option<Cqe> {
        let Self { ring, entries, strays } = self;
        loop {
            let completion = ring.pop()?;
            let cqe = *completion.cqe();
            let (index, generation) = parts(cqe.user_data);
            let entry = entries.get_mut(index).filter(|entry| {
                entry.generation == generation
                    && matches!(entry.state, State::Waiting | State::Forgotten)
            });
            let Some(entry) = entry else {
                *strays += 1;
                continue;
            };
            let length = inline_bytes(&cqe) as u32;
            let is_awaited = cqe.user_data == pending.0;
            completion.read_inline(length, if is_awaited { words } else { &mut entry.payload });
            drop(completion);
            if let Some(slot) = entry.slot.take() {
                ring.give_slot(slot);
            }
            if is_awaited {
                entry.state = State::Free;
                return Some(cqe);
            }
            entry.cqe = cqe;
            entry.state = if entry.state == State::Forgotten { State::Free } else { State::Done };
        }
    }
}

/// Bytes of a completion's inline slot that mean something, capabilities included.
pub fn inline_bytes(cqe: &Cqe) -> usize {
    if cqe.flags & CqeFlags::DEADLINE != 0 {
        return abi_types::INLINE_BYTES;
    }
    if cqe.flags & CqeFlags::BY_ADDRESS != 0 {
        return 0;
    }
    let transfers = usize::from(cqe.transfers()) * size_of::<Transfer>();
    let payload = (cqe.length as usize).min(abi_types::INLINE_BYTES);
    if transfers == 0 { payload } else { payload.next_multiple_of(8) + transfers }
}

/// The status of a completion; one this runtime does not know is `unimplemented`.
#[inline]
pub fn status_of(cqe: &Cqe) -> Status {
    cqe.status().unwrap_or(Status::Unimplemented)
}

/// Nothing, or the status of an operation that did not end well.
#[inline]
pub fn ok(status: Status) -> Result<(), Status> {
    if status == Status::Ok { Ok(()) } else { Err(status) }
}

/// Bits of a generation in a name; the top bit of the word stays free for raw operations.
const GENERATION_BITS: u32 = 0x7fff_ffff;

fn name(index: usize, generation: u32) -> u64 {
    // From 1 on: 0 is the name of nothing.
    (index as u64 + 1) | u64::from(generation) << 32
}

fn parts(name: u64) -> (usize, u32) {
    let index = (name as u32).wrapping_sub(1) as usize;
    (index, (name >> 32) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::call_of;
    use crate::testing::{TIMER, with_io};
    use schema::timer::methods::{Now, Sleep};
    use std::vec::Vec;
    use test_property::prelude::*;

    /// `Timer.sleep`, for ever: completes when somebody waits and nothing else is left.
    const FOR_EVER: [u64; 2] = [1 << 32, u64::MAX];

    fn sleep() -> Sqe {
        call_of::<Sleep>(TIMER, 16)
    }

    #[test]
    fn a_completion_is_kept_for_who_asks_for_it() {
        with_io(
            8,
            |kernel| kernel.service.number = 6,
            |io| {
                let mut words = [0; INLINE_WORDS];
                let first = io.submit(call_of::<Now>(TIMER, 0), &[]).unwrap();
                let second = io.submit(sleep(), &FOR_EVER).unwrap();
                assert!(!io.is_done(&first));
                let waited = io.wait(second, &mut words);
                assert_eq!(status_of(&waited), Status::Ok);
                assert!(io.is_done(&first));
                let cqe = io.take(first, &mut words).unwrap();
                assert_eq!((status_of(&cqe), cqe.length, words[1]), (Status::Ok, 16, 6));
            },
            |_, ()| (),
        );
    }

    #[test]
    fn who_waits_for_several_gets_the_first_that_has_come() {
        with_io(
            8,
            |kernel| kernel.service.number = 6,
            |io| {
                let sleeps = [(); 2].map(|()| io.submit(sleep(), &FOR_EVER).unwrap());
                let now = io.submit(call_of::<Now>(TIMER, 0), &[]).unwrap();
                let [one, other] = &sleeps;
                assert_eq!(io.wait_any(&[one, &now, other]), 1);
                // It has come and stays: nobody enters the kernel for it.
                assert_eq!(io.wait_any(&[one, &now]), 1);
                io.wait(now, &mut [0; INLINE_WORDS]);
                // The last one that began is the first that ends.
                assert_eq!(io.wait_any(&[one, other]), 1);
            },
            |kernel, ()| assert_eq!(kernel.entries, 2),
        );
    }

    #[test]
    fn a_name_is_good_for_one_completion() {
        with_io(
            8,
            |_| (),
            |io| {
                let mut words = [0; INLINE_WORDS];
                let first = io.submit(Sqe::default(), &[]).unwrap();
                let stale = Pending(first.0);
                io.wait(first, &mut words);
                let second = io.submit(Sqe::default(), &[]).unwrap();
                io.flush();
                assert!(!io.is_done(&stale) && io.is_done(&second));
                assert_eq!(
                    io.take(stale, &mut words).map(|_| ()),
                    Err(Pending(second.0 - (1 << 32)))
                );
                io.forget(second);
            },
            |_, ()| (),
        );
    }

    #[test]
    fn more_than_can_be_kept_is_refused_and_forgetting_makes_room() {
        with_io(
            64,
            |_| (),
            |io| {
                let mut all: Vec<_> =
                    (0..PENDING).map(|_| io.submit(sleep(), &FOR_EVER).unwrap()).collect();
                assert_eq!(io.submit(sleep(), &FOR_EVER), Err(Status::Overloaded));
                io.forget(all.pop().unwrap());
                assert_eq!(
                    io.submit(sleep(), &FOR_EVER),
                    Err(Status::Overloaded),
                    "still under way"
                );
                for pending in all {
                    io.wait(pending, &mut [0; INLINE_WORDS]);
                }
                let again = io.submit(sleep(), &FOR_EVER).unwrap();
                io.wait(again, &mut [0; INLINE_WORDS]);
            },
            |_, ()| (),
        );
    }

    /// With all places or all inline slots taken, what is waited for at once is done all the same.
    #[test]
    fn who_waits_has_a_place_of_its_own() {
        with_io(
            2,
            |kernel| kernel.service.number = 6,
            |io| {
                let mut words = [0; INLINE_WORDS];
                let sleeps: Vec<_> =
                    (0..2).map(|_| io.submit(sleep(), &FOR_EVER).unwrap()).collect();
                let status = io.run(sleep(), &FOR_EVER, &mut words).map(|cqe| status_of(&cqe));
                assert_eq!(status, Ok(Status::Ok), "without a slot");
                for pending in sleeps {
                    io.wait(pending, &mut words);
                }
                let all: Vec<_> =
                    (0..PENDING).map(|_| io.submit(Sqe::default(), &[]).unwrap()).collect();
                assert_eq!(io.submit(Sqe::default(), &[]), Err(Status::Overloaded));
                assert_eq!(io.run_plain(Sqe::default()), Ok((Status::Ok, 0)), "without a place");
                for pending in all {
                    assert_eq!(status_of(&io.wait(pending, &mut words)), Status::Ok);
                }
                assert_eq!(io.strays(), 0);
            },
            |_, ()| (),
        );
    }

    #[test]
    fn inline_slots_run_out_before_operations_do() {
        with_io(
            2,
            |_| (),
            |io| {
                let first = io.submit(sleep(), &FOR_EVER).unwrap();
                let second = io.submit(sleep(), &FOR_EVER).unwrap();
                assert_eq!(io.submit(sleep(), &FOR_EVER), Err(Status::Overloaded));
                // The queue of two is full: the kernel takes it before the next goes in.
                let nop = io.submit(Sqe::default(), &[]).unwrap();
                for pending in [nop, first, second] {
                    io.wait(pending, &mut [0; INLINE_WORDS]);
                }
                let again = io.submit(sleep(), &FOR_EVER).unwrap();
                io.wait(again, &mut [0; INLINE_WORDS]);
            },
            |_, ()| (),
        );
    }

    #[test]
    fn lent_the_ring_takes_raw_operations() {
        with_io(
            8,
            |_| (),
            |io| {
                let kept = io.submit(Sqe::default(), &[]).unwrap();
                io.flush();
                io.with_ring(|ring| {
                    ring.push(Sqe { user_data: 1 << 63, ..Sqe::default() }).unwrap();
                    assert_eq!(ring.enter(1, NEVER).count(), 1);
                    assert_eq!(ring.pop().unwrap().take().user_data, 1 << 63);
                    assert!(ring.pop().is_none());
                });
                assert!(io.is_done(&kept));
                io.forget(kept);
            },
            |_, ()| (),
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        /// Whatever is started, asked for and forgotten in whatever order, each completion comes
        /// to its name once.
        #[test]
        fn nothing_is_lost(
            entries in prop::sample::select(std::vec![2u32, 4, 64]),
            steps in prop::collection::vec((0u8..6, any::<prop::sample::Index>()), 1..80),
        ) {
            with_io(entries, |_| (), |io| {
                let mut pending: Vec<(Pending, bool)> = Vec::new();
                let mut words = [0; INLINE_WORDS];
                for (step, which) in steps {
                    let started = match step {
                        0 => Some((io.submit(sleep(), &FOR_EVER), false)),
                        1 => Some((io.submit(call_of::<Now>(TIMER, 0), &[]), true)),
                        _ => None,
                    };
                    if let Some((result, is_now)) = started {
                        match result {
                            Ok(name) => pending.push((name, is_now)),
                            Err(status) => assert_eq!(status, Status::Overloaded),
                        }
                        continue;
                    }
                    if pending.is_empty() {
                        continue;
                    }
                    let (name, is_now) = pending.swap_remove(which.index(pending.len()));
                    match step {
                        2 => {
                            let cqe = io.wait(name, &mut words);
                            assert_eq!((cqe.length == 16, status_of(&cqe)), (is_now, Status::Ok));
                        }
                        3 => match io.take(name, &mut words) {
                            Ok(cqe) => assert_eq!(cqe.length == 16, is_now),
                            Err(name) => pending.push((name, is_now)),
                        },
                        4 => io.forget(name),
                        _ => {
                            io.flush();
                            pending.push((name, is_now));
                        }
                    }
                }
                for (name, _) in pending {
                    io.wait(name, &mut words);
                }
            }, |_, ()| ());
        }
    }
}
