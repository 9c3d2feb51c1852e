//! capOS: threads of the process, PARK and UNPARK, and for every worker its ring.
//!
//! A worker's thread lends its ring to the worker for its whole life ([`Port`]): what fibers ask of the
//! system and the worker's own PARK are operations of one ring, so that an idle worker waits for
//! whichever completes first.
//!
//! Stacks are those the program declares, with guards: see `stacks`. A panic ends the process, with a
//! report that names the fiber.

mod local;
mod port;
pub mod stacks;
mod thread;

use core::fmt::Write;
use core::sync::atomic::AtomicU32;

use alloc::boxed::Box;
use alloc::string::String;

use abi_types::{CapSlot, NEVER};
use capos_rt::caller::{Exchange, LARGE_WORDS};
use capos_rt::panic::Who;
use capos_rt::{CapSet, park, thread as threads};
use schema::{console, park_space, system_info};

use super::{PanicPayload, StackGroup, Substrate, SystemError};
use crate::worker;

pub use super::operation::{Operation, Stage};
use super::submissions::LEAST_ENTRIES;
pub use super::submissions::{AGAIN, DONE};
pub use local::run;
pub use port::Port;

/// The capOS substrate.
#[derive(Debug)]
pub struct Capos;

/// The program's park space.
fn space(caps: &CapSet) -> Option<CapSlot> {
    caps.first(park_space::INTERFACE_ID).ok()
}

/// Who panics on a worker's thread.
static WHO: Who = Who { seize_ring: local::seize_ring, describe };

/// Says which fiber it was.
fn describe(out: &mut dyn Write) {
    if let Some(frame) = worker::current_fiber() {
        let id = frame.id.load(core::sync::atomic::Ordering::Relaxed);
        let number = worker::current().map_or(0, |worker| worker.index);
        let _ = write!(out, "fiber {id:x}");
        // The lock of the name may be this very fiber's: then there is none to tell.
        if let Some(name) = frame.name.try_with(|name| *name).filter(|name| !name.is_empty()) {
            let _ = write!(out, " ({name})");
        }
        let _ = write!(out, " on worker {number}: ");
    }
}

impl Substrate for Capos {
    type Thread = thread::Running;
    type Port = Port;

    // As many as the program declares. One at a time: one that lies idle is missed elsewhere.
    const STACK_GROUP: usize = 1;
    const STACKS_ARE_FEW: bool = true;

    fn admit() -> Result<(), SystemError> {
        // All threads of a process have rings of one size, and a worker's was looked at before.
        let entries = local::env()
            .filter(|_| local::port().is_none())
            .map_or(LEAST_ENTRIES, |env| env.io.with_ring(|ring| ring.sq_entries()));
        let is_enough = entries >= LEAST_ENTRIES;
        is_enough.then_some(()).ok_or(SystemError::RingEntries { entries, least: LEAST_ENTRIES })
    }

    #[inline(never)]
    fn current() -> *const () {
        local::current()
    }

    #[inline(never)]
    fn set_current(pointer: *const ()) {
        local::set_current(pointer);
    }

    #[inline(never)]
    fn foreign(make: fn() -> *const (), retire: fn(*const ())) -> *const () {
        local::foreign(make, retire)
    }

    fn park(word: &AtomicU32, expected: u32, deadline_ns: Option<u64>) {
        let timeout_ns = deadline_ns.map_or(NEVER, |at| at.saturating_sub(Self::now_ns()));
        // A worker does not come here; a thread that has no park space looks again and again.
        let parked = local::env().filter(|_| local::port().is_none()).and_then(|env| {
            let space = space(&env.caps)?;
            park::park(&env.io, space, word, expected, timeout_ns).ok()
        });
        if parked.is_none() {
            threads::rest();
        }
    }

    fn unpark(word: &AtomicU32) {
        let Some(space) = local::env().and_then(|env| space(&env.caps)) else { return };
        let sqe = park::unpark_sqe(space, word, 1);
        match local::port() {
            Some(port) => port.send(sqe),
            None => {
                let _ = local::env().map(|env| env.io.run_plain(sqe));
            }
        }
    }

    fn attach(port: &Port, life: impl FnOnce()) {
        local::attach(port, life);
    }

    fn sleep(port: &Port, _word: &AtomicU32, deadline_ns: Option<u64>) {
        // At the word its PARK has been at since it was attached.
        port.sleep(deadline_ns.map_or(NEVER, |at| at.saturating_sub(Self::now_ns())));
    }

    fn has_come(port: &Port) -> bool {
        port.has_come()
    }

    fn poll(port: &Port) {
        port.poll();
    }

    fn flush(port: &Port) {
        port.flush();
    }

    fn hand_over(port: &Port) {
        port.hand_over();
    }

    fn has_room(port: &Port) -> bool {
        port.has_room()
    }

    fn is_crowded(port: &Port) -> bool {
        port.is_crowded()
    }

    fn hand_over_first(port: &Port) -> bool {
        port.hand_over_first()
    }

    fn is_awaited(port: &Port) -> bool {
        port.is_awaited()
    }

    fn relax() {
        threads::rest();
    }

    fn now_ns() -> u64 {
        capos_rt::now_ns()
    }

    fn spawn(_name: &str, f: Box<dyn FnOnce() + Send>) -> Result<Self::Thread, SystemError> {
        capos_rt::panic::on_stacks_of(&WHO);
        threads::at_end(local::end);
        thread::spawn(f)
    }

    fn is_current(thread: &Self::Thread) -> bool {
        thread.is_current()
    }

    fn join(thread: Self::Thread) {
        thread.join();
    }

    fn cpus() -> usize {
        let Some(info) =
            local::env().and_then(|env| env.caps.first(system_info::INTERFACE_ID).ok())
        else {
            return 1;
        };
        let mut client =
            system_info::Client::new(local::Calls(Exchange::<LARGE_WORDS>::large()), info);
        client.machine().map_or(1, |found| found.machine.cpus as usize)
    }

    fn catch<R>(f: impl FnOnce() -> R) -> Result<R, PanicPayload> {
        // A panic does not come back.
        Ok(f())
    }

    fn resume(payload: PanicPayload) -> ! {
        // Nobody has a payload here: `catch` gives none. Whoever made one ends as a panic does.
        drop(payload);
        capos_rt::panic::end(capos_rt::PANIC_EXIT, format_args!("a fiber's panic goes on"))
    }

    fn warn(text: core::fmt::Arguments<'_>) {
        let Some(console) =
            local::env().and_then(|env| env.cap("console", console::INTERFACE_ID).ok())
        else {
            return;
        };
        let mut line = String::from("fiber: ");
        let _ = writeln!(line, "{text}");
        let mut client =
            console::Client::new(local::Calls(Exchange::<LARGE_WORDS>::new()), console);
        let mut rest = line.as_bytes();
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(512));
            match client.write(now) {
                Ok(written) if written.written as usize >= now.len() => rest = later,
                Ok(written) if written.written > 0 => {
                    rest = rest.get(written.written as usize..).unwrap_or_default();
                }
                // A console that takes nothing cannot be told about.
                _ => return,
            }
        }
    }

    fn stack_bytes(asked: Option<usize>) -> Result<usize, SystemError> {
        stacks::fiber_bytes(asked)
    }

    fn map_stacks(_stack_bytes: usize, _count: usize) -> Result<StackGroup, SystemError> {
        // Of the only size there is, and one of them, which is the group asked for.
        stacks::map()
    }

    unsafe fn unmap_stacks(group: &StackGroup) {
        // SAFETY: by the caller.
        unsafe { stacks::unmap(group) }
    }

    fn used_bytes(top: usize, stack_bytes: usize) -> usize {
        stacks::used_bytes(top, stack_bytes)
    }

    fn watch_overflow() {}
}
