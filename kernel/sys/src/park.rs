//! PARK and UNPARK: threads wait at a word of their process's memory.

use crate::complete::complete;
use crate::enter::Caller;
use crate::object::Object;
use crate::process::{Party, Process};
use crate::sched;
use crate::system::the;
use crate::thread::Thread;
use crate::timers;
use abi_ring::{Credit, Outcome, Park, Unpark};
use abi_types::{CapSlot, NEVER, Status};
use core::sync::atomic::Ordering;
use core_park::{Key, ParkError, Parked, WaiterRef};
use kernel_mm::space::NotMapped;
use smp_pending::Target;

/// PARK: the operation is pending while the word has the expected value.
pub fn park(caller: Caller<'_>, credit: Credit, request: &Park) {
    let process = caller.thread.process();
    let address = request.word_address();
    if let Err(status) = check(process, request.space(), address) {
        return caller.finish(credit, &Outcome::plain(status));
    }
    let thread = caller.thread;
    let now = sched::clock();
    let timeout_ns = request.timeout_ns();
    let deadline_ns = (timeout_ns != NEVER).then(|| now.saturating_add(timeout_ns));
    let party = caller.keep_plain(credit, Target::Park);
    thread.park_cell.store(party.cell, Ordering::Relaxed);
    let is_expected = || process.space.load_u32(address).map(|word| word == request.expected());
    let key = Key::private(process.identity(), address);
    let status = match the().park.park(thread.slot(), key, deadline_ns, now, is_expected) {
        Ok(Parked::Waiting { waiter, deadline_ns, .. }) => {
            thread.park_ticket.store(waiter.ticket, Ordering::Relaxed);
            if let Some(at) = deadline_ns {
                // An earlier wait may have been ended before its timer was armed.
                timers::stop(timers::of_park(thread.slot()));
                timers::start(timers::of_park(thread.slot()), at);
            }
            return;
        }
        Ok(Parked::Mismatch) => Status::Mismatch,
        Ok(Parked::TimedOut) => Status::TimedOut,
        Err(ParkError::Word(NotMapped)) => Status::BadAddress,
        // A thread waits at one place at a time.
        Err(ParkError::Waits | ParkError::NoSuchWaiter) => Status::Overloaded,
    };
    let credit = caller.unkeep(party);
    caller.finish(credit, &Outcome::plain(status));
}

/// Whether the process may park at this address at all.
fn check(process: &Process, space: CapSlot, address: u64) -> Result<(), Status> {
    match process.lookup(space)?.object {
        Object::ParkSpace => {}
        _ => return Err(Status::Unimplemented),
    }
    if address.is_multiple_of(4) { Ok(()) } else { Err(Status::BadAddress) }
}

/// Threads woken in one go; more are woken in turns.
const WAKE_BATCH: u32 = 16;

/// UNPARK: wakes waiters in order of arrival.
pub fn unpark(caller: Caller<'_>, credit: Credit, request: &Unpark) {
    let process = caller.thread.process();
    let address = request.word_address();
    let mapped = check(process, request.space(), address)
        .and_then(|()| process.space.load_u32(address).map_err(|NotMapped| Status::BadAddress));
    if let Err(status) = mapped {
        return caller.finish(credit, &Outcome::plain(status));
    }
    let woken = wake(Key::private(process.identity(), address), request.count());
    caller.finish(credit, &Outcome { length: woken, ..Outcome::plain(Status::Ok) });
}

fn wake(key: Key, limit: u32) -> u32 {
    let mut total = 0;
    while total < limit {
        let mut claimed = [None; WAKE_BATCH as usize];
        let mut places = claimed.iter_mut();
        let batch = (limit - total).min(WAKE_BATCH);
        let unparked = the().park.unpark(key, batch, |waiter| {
            if let Some(place) = places.next() {
                *place = Some(waiter);
            }
        });
        for waiter in claimed.into_iter().flatten() {
            finish(waiter, Status::Woken);
        }
        total += unparked.woken;
        if unparked.woken < batch {
            break;
        }
    }
    total
}

/// Completes a claimed wait. Its thread has the record until then: the operation is pending.
fn finish(waiter: WaiterRef, status: Status) {
    let Some(thread) = the().thread(waiter.index) else { return };
    if status != Status::TimedOut {
        timers::stop(timers::of_park(thread.slot()));
    }
    let cell = thread.park_cell.load(Ordering::Relaxed);
    complete(Party { thread: thread.key(), cell, room: 0 }, &Outcome::plain(status));
}

/// The time limit of a thread's PARK has passed.
pub fn time_is_up(thread: &'static Thread) {
    let ticket = thread.park_ticket.load(Ordering::Relaxed);
    let waiter = WaiterRef { index: thread.slot(), ticket };
    if the().park.unlink(waiter) {
        finish(waiter, Status::TimedOut);
    }
}

/// Claims a thread's pending PARK for its cancel or end.
pub fn give_up(thread: &'static Thread) -> bool {
    let ticket = thread.park_ticket.load(Ordering::Relaxed);
    let is_ours = the().park.unlink(WaiterRef { index: thread.slot(), ticket });
    if is_ours {
        timers::stop(timers::of_park(thread.slot()));
    }
    is_ours
}
