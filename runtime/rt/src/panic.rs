//! The end nobody wanted: a report on the console, then the process ends.
//!
//! Works whatever the thread was doing: it takes the ring over as it is (what was pushed and not
//! published is gone, completions that wait are dropped) and uses neither [`Io`](crate::Io) nor
//! much of a stack. A thread without a console ends without a report.
//!
//! A library that runs code on stacks of its own says with [`on_stacks_of`] how a report from there
//! finds the thread's ring, and what is said of whoever panicked.
//!
//! Decided in ADR 82.

use core::fmt::{self, Write};
use core::panic::PanicInfo;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use abi_ring::{Completion, INLINE_WORDS};
use abi_sync::BlockMemory;
use abi_types::{CapSlot, NEVER, Status};
use schema::console;
use schema_wire::{Encode, Message};
use zerocopy::IntoBytes;

use crate::caller::call_of;
use crate::capset::CapSet;
use crate::env::ring_at;
use crate::ring::Ring;
use crate::{syscall, thread};

/// The exit code of a process that panicked.
pub const PANIC_EXIT: i64 = 101;

/// Names the report's own operations among all others of the ring.
const USER_DATA: u64 = u64::MAX;

/// Text of one inline message.
const PIECE_BYTES: usize = INLINE_WORDS * 8 - 24;

/// The ring of the thread that reports, once one does.
static REPORTER: AtomicU64 = AtomicU64::new(0);
static WHO: AtomicPtr<Who> = AtomicPtr::new(ptr::null_mut());

/// How a report finds out where it comes from, on stacks that are no thread's.
#[derive(Debug)]
pub struct Who {
    /// The address of the calling thread's ring, if it is on such a stack or has the ring in use; from
    /// then on nobody else may touch the ring. Takes no lock it could wait for.
    pub seize_ring: fn() -> Option<u64>,
    /// Says who it is, before everything else.
    pub describe: fn(&mut dyn Write),
}

/// Has reports ask `who`. One for the whole program: the last one counts.
pub fn on_stacks_of(who: &'static Who) {
    // Release pairs with the acquire of a report.
    WHO.store(ptr::from_ref(who).cast_mut(), Ordering::Release);
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    end(PANIC_EXIT, format_args!("{info}"))
}

/// Reports `text` and ends the process with `code`.
pub fn end(code: i64, text: fmt::Arguments<'_>) -> ! {
    // SAFETY: null or what `on_stacks_of` stored, which is static.
    let who = unsafe { WHO.load(Ordering::Acquire).as_ref() };
    let seized = who.and_then(|who| (who.seize_ring)());
    let (own, capset) = thread::own_ring_and_capset();
    let ring = seized.unwrap_or(own);
    match REPORTER.compare_exchange(0, ring, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => {}
        // A panic in the report: there is nothing more to tell.
        Err(reporter) if reporter == ring => syscall::exit(code),
        // Of two threads that panic the first one is told, and ends the process.
        Err(_) => loop {
            thread::rest();
        },
    }
    // SAFETY: the kernel gave this process the page.
    let caps = unsafe { CapSet::at(capset) };
    if let Ok(console) = caps.find("console", console::INTERFACE_ID) {
        // SAFETY: this thread's own ring; its other user never runs again, since this
        // function does not return.
        let ring = unsafe { ring_at(ring) };
        let mut report = Report { ring, console, piece: [0; PIECE_BYTES], used: 0 };
        if let Some(who) = who {
            (who.describe)(&mut report);
        }
        let _ = writeln!(report, "{text}");
        report.flush();
    }
    syscall::exit(code)
}

/// Text in inline messages.
struct Report {
    ring: Ring,
    console: CapSlot,
    piece: [u8; PIECE_BYTES],
    used: usize,
}

impl Write for Report {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            if self.used == PIECE_BYTES {
                self.flush();
            }
            if let Some(place) = self.piece.get_mut(self.used) {
                *place = byte;
                self.used += 1;
            }
        }
        Ok(())
    }
}

impl Report {
    /// Writes what was collected, in as many calls as the console wants; gives up if it takes
    /// nothing.
    fn flush(&mut self) {
        let mut from = 0;
        while from < self.used {
            match self.write(from) {
                0 => break,
                written => from += written,
            }
        }
        self.used = 0;
    }

    /// Writes what was collected from `from` on; how much of it the console took. Completions of
    /// others are dropped on the way.
    fn write(&mut self, from: usize) -> usize {
        let bytes = self.piece.get(from..self.used).unwrap_or_default();
        let mut words = [0u64; INLINE_WORDS];
        let Ok(length) = console::WriteParams { bytes }.encode(words.as_mut_bytes()) else {
            return 0;
        };
        let mut sqe = call_of::<console::methods::Write>(self.console, length as u32);
        sqe.user_data = USER_DATA;
        // Slot 0 may be in use by an operation that no longer matters.
        self.ring.write_inline(sqe.buffer, &words);
        while self.ring.push(sqe).is_err() {
            while self.ring.pop().is_some() {}
            let _ = self.ring.enter(0, 0);
        }
        loop {
            let _ = self.ring.enter(1, NEVER);
            while let Some(completion) = self.ring.pop() {
                if completion.cqe().user_data == USER_DATA {
                    return written(&completion);
                }
            }
        }
    }
}

/// What a `Console.write` took; 0 if it failed.
fn written(completion: &Completion<'_, BlockMemory>) -> usize {
    let cqe = completion.cqe();
    let mut words = [0; INLINE_WORDS];
    completion.read_inline(cqe.length, &mut words);
    let bytes = words.as_bytes().get(..cqe.length as usize).unwrap_or_default();
    let results = Message::new(bytes);
    let results = results.as_ref().map(Message::get::<console::WriteResults>);
    match (cqe.status(), results) {
        (Some(Status::Ok), Ok(Ok(results))) => results.written as usize,
        _ => 0,
    }
}
