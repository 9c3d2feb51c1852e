//! PARK and UNPARK: threads wait at a word of their process's memory, or of a memory object it maps.

use crate::caller::{Caller, Finish};
use crate::capability::Object;
use crate::complete::complete;
use crate::deadlines;
use crate::machine::{Machine, NotMapped, ProcessPart, Record, Space};
use crate::party::{Fit, Party};
use abi_ring::{Credit, Outcome, Park, Room, Unpark};
use abi_sync::atomic::Ordering;
use abi_types::{CapSlot, NEVER, Status};
use core_cap::Cap;
use core_park::{Key, Named, NotAdmitted, ParkError, Parked, WaiterRef, admit};
use core_thread::ThreadKey;
use kernel_dispatch::preemption_point;
use smp_pending::{Limit, Target};

/// PARK: the operation is pending while the word has the expected value.
#[inline(never)]
pub fn park<M: Machine>(caller: &Caller<'_, M>, credit: Credit, request: Park) -> Finish {
    let process = caller.ring.shared.process;
    let address = request.word_address();
    if let Err(status) = check(process, request.space(), address) {
        return Finish::Plain(credit, status);
    }
    let thread = caller.thread.ops();
    // A thread waits at one place at a time: whoever wakes it finds its cell here until then.
    if thread.park_cell.load(Ordering::Relaxed) != 0 {
        return Finish::Plain(credit, Status::Overloaded);
    }
    let timeout_ns = request.timeout_ns();
    let (now, deadline_ns) = if timeout_ns == NEVER {
        (0, None)
    } else {
        let now = caller.m.clock();
        (now, Some(now.saturating_add(timeout_ns)))
    };
    let mut credit = Some(credit);
    let mut kept = None;
    let mut is_nearest = false;
    // Under the lock of the word's waiters: who wakes this one finds what it keeps.
    let is_expected = |waiter: WaiterRef| {
        let is_expected = process.space.load_u32(address)? == request.expected();
        if is_expected && let Some(credit) = credit.take() {
            let party = caller.keep_for(credit, Room::Inline);
            caller.aim(party, Target::Park { ticket: waiter.ticket });
            thread.park_cell.store(named(party), Ordering::Relaxed);
            kept = Some(party);
            if let Some(at) = deadline_ns.filter(|at| *at > now) {
                // Before anyone can wake it: who does finds the timer to disarm.
                let armed = deadlines::bound_quietly(caller.m, caller.ring, Limit::Park, party, at);
                is_nearest = armed.is_nearest;
            }
        }
        Ok(is_expected)
    };
    let key = key_of(process, address);
    let status =
        match caller.m.tables().park.park(thread.slot(), key, deadline_ns, now, is_expected) {
            Ok(Parked::Waiting { deadline_ns, .. }) => {
                if let Some(at) = deadline_ns.filter(|_| is_nearest) {
                    deadlines::nearest_is(caller.m, at);
                }
                return Finish::Later;
            }
            Ok(Parked::Mismatch) => Status::Mismatch,
            Ok(Parked::TimedOut) => Status::TimedOut,
            Err(ParkError::Word(NotMapped)) => Status::BadAddress,
            // Not reached: its cell would be in the way.
            Err(ParkError::Waits | ParkError::NoSuchWaiter) => Status::Overloaded,
        };
    if let Some(party) = kept {
        thread.park_cell.store(0, Ordering::Relaxed);
        credit = Some(caller.unkeep(party));
    }
    credit.map_or(Finish::Later, |credit| Finish::Plain(credit, status))
}

/// Whether the process may park at this address at all.
#[inline(always)]
fn check<M: Machine>(process: &ProcessPart<M>, space: CapSlot, address: u64) -> Result<(), Status> {
    // Looked at in its place: a capability is larger than what is asked of it here.
    let caps = process.caps.lock();
    let named = match caps.as_ref().ok_or(Status::Disconnected)?.get(space) {
        Ok(Cap { object: Object::ParkSpace, .. }) => Named::ParkSpace,
        Ok(_) => Named::Another,
        Err(_) => Named::Nothing,
    };
    admit(named, address).map_err(|refused| match refused {
        NotAdmitted::NoSpace => Status::Disconnected,
        NotAdmitted::NotASpace => Status::Unimplemented,
        NotAdmitted::Misaligned => Status::BadAddress,
    })
}

/// What threads meet at who name this word: a word of a memory object is the same for every process that maps it.
#[inline(always)]
fn key_of<M: Machine>(process: &ProcessPart<M>, address: u64) -> Key {
    match process.map.shared_word(address) {
        None => Key::private(process.identity(), address),
        Some((object, offset)) => Key::shared(object, offset),
    }
}

/// Threads woken between two preemption points: as many as fit a section of kernel code (`section`), each
/// with a completion, a queue and an interrupt for an idle CPU.
const WAKES_PER_PREEMPTION_POINT: u32 = 8;

/// UNPARK: wakes waiters in order of arrival.
#[inline(always)]
pub fn unpark<M: Machine>(caller: &Caller<'_, M>, credit: Credit, request: Unpark) -> Finish {
    let process = caller.ring.shared.process;
    let address = request.word_address();
    let mapped = check(process, request.space(), address)
        .and_then(|()| process.space.load_u32(address).map_err(|NotMapped| Status::BadAddress));
    let outcome = match mapped {
        Ok(_) => {
            let key = key_of(process, address);
            let woken = match request.count() {
                1 => wake_one(caller.m, key),
                limit => wake(caller.m, key, limit),
            };
            Outcome { length: woken, ..Outcome::plain(Status::Ok) }
        }
        Err(status) => Outcome::plain(status),
    };
    Finish::Now(credit, outcome)
}

#[inline(always)]
fn wake_one<M: Machine>(m: M, key: Key) -> u32 {
    match m.tables().park.unpark_one(key) {
        Some(waiter) => {
            finish(m, waiter, Status::Woken);
            1
        }
        None => 0,
    }
}

#[inline(never)]
fn wake<M: Machine>(m: M, key: Key, limit: u32) -> u32 {
    let mut total = 0;
    while total < limit {
        let mut claimed = [None; WAKES_PER_PREEMPTION_POINT as usize];
        let mut places = claimed.iter_mut();
        let batch = (limit - total).min(WAKES_PER_PREEMPTION_POINT);
        let unparked = m.tables().park.unpark(key, batch, |waiter| {
            if let Some(place) = places.next() {
                *place = Some(waiter);
            }
        });
        for waiter in claimed.into_iter().flatten() {
            finish(m, waiter, Status::Woken);
        }
        total += unparked.woken;
        // Also after the last: other operations of the pass follow.
        if unparked.woken > WAKES_PER_PREEMPTION_POINT / 2 {
            preemption_point(m);
        }
        if unparked.woken < batch {
            break;
        }
    }
    total
}

/// A pending PARK as its thread's record keeps it: the thread's generation and the cell, never 0.
const fn named(party: Party) -> u64 {
    (party.thread.generation as u64) << 32 | (party.cell as u64 + 1)
}

/// Takes the name of a claimed wait out of its thread's record: from then on the thread may park again.
fn take_name<M: Machine>(thread: &'static M::Thread) -> Option<Party> {
    let thread = thread.ops();
    let name = thread.park_cell.load(Ordering::Relaxed);
    // A plain store: only who claimed the wait comes here, once, before the thread can know of it.
    thread.park_cell.store(0, Ordering::Relaxed);
    let cell = (name as u32).checked_sub(1)?;
    let key = ThreadKey { slot: thread.slot(), generation: (name >> 32) as u32 };
    Some(Party { thread: key, cell, room: Fit::NONE })
}

/// Completes a claimed wait.
#[inline(never)]
fn finish<M: Machine>(m: M, waiter: WaiterRef, status: Status) {
    let Some(thread) = m.thread(waiter.index) else { return };
    if let Some(party) = take_name::<M>(thread) {
        complete(m, party, &Outcome::plain(status));
    }
}

/// The time limit of a thread's PARK has passed.
pub fn time_is_up<M: Machine>(m: M, thread: &'static M::Thread, ticket: u32) {
    // By its ticket: the thread may have been woken since, and be in another wait.
    let waiter = WaiterRef { index: thread.ops().slot(), ticket };
    if m.tables().park.unlink(waiter) {
        finish(m, waiter, Status::TimedOut);
    }
}

/// Claims a thread's pending PARK for its cancel or end.
pub fn give_up<M: Machine>(m: M, thread: &'static M::Thread, ticket: u32) -> bool {
    let is_ours = m.tables().park.unlink(WaiterRef { index: thread.ops().slot(), ticket });
    if is_ours {
        take_name::<M>(thread);
    }
    is_ours
}
