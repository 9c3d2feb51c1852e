//! The drain: the thread that brings what processes wrote to the console, turn by turn.
//!
//! It is a thread of the kernel's own, as the reaper is, with a weight and an account like any other: nobody is
//! billed for another's text, or for the screen it shows on. A piece of its work is a portion of text or some cells of
//! the screen, with a preemption point after each. It waits if there is no output, or if the console has no room.
//! Decided in ADR 258.

use crate::end;
use crate::machine::Machine;
use crate::thread::Thread;
use abi_ring::INLINE_WORDS;
use core_output::TURN_BYTES;
use core_thread::{ResumeVerdict, WaitVerdict};
use kernel_dispatch::{self as dispatch, Here, preemption_point};
use kernel_ops::{deadlines, output};
use schema::console::WriteResults;
use schema_wire::Encode;
use zerocopy::IntoBytes;

/// Writes let in between two preemption points: as many as fit a section of kernel code (`section`), each with a
/// completion and a wake.
const ADMITTED_PER_PREEMPTION_POINT: u32 = 4;
/// Portions of text after which the screen is painted, however much text there is: a screen full of lines.
const PORTIONS_PER_PAINT: u32 = 16;
/// How long a console without room is waited for before somebody looks after it: a port of 115,200 baud sends
/// 11,520 bytes meanwhile.
const LOOK_AFTER_NS: u64 = 1_000_000_000;

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// A portion went out.
    Made,
    /// There is no output.
    NoOutput,
    /// There is, and the console has no room.
    NoRoom,
}

/// Wakes the drain if it waits. For whoever wrote something, and for the console when it has room again.
pub fn wake<M: Machine>(m: M) {
    if let Some(drain) = m.records().drain() {
        let word = drain.state.observe();
        if word.is_waiting() {
            dispatch::wake(m, drain, word.generation(), word.ticket(), false);
        }
    }
}

/// What the drain does, for good.
pub fn run_drain<M: Machine>(m: M, me: &'static Thread<M>) -> ! {
    loop {
        let mut portions = 0;
        let progress = loop {
            let progress = step(m);
            portions += 1;
            if progress != Progress::Made || portions == PORTIONS_PER_PAINT {
                break progress;
            }
            preemption_point(m);
        };
        while m.console_paint() {
            preemption_point(m);
        }
        preemption_point(m);
        if progress != Progress::Made {
            wait(m, me, progress == Progress::NoRoom);
        }
    }
}

/// Whether a step would come to something.
fn has_work<M: Machine>(m: M) -> bool {
    m.tables().outputs.has_output() && m.console_has_room()
}

/// Waits for output, or for room.
fn wait<M: Machine>(m: M, me: &'static Thread<M>, for_room: bool) {
    let look_at_ns = for_room.then(|| m.clock().saturating_add(LOOK_AFTER_NS));
    me.ops.want.announce(1);
    match me.state.begin_wait() {
        Ok(WaitVerdict::AboutToWait(_)) => {}
        Ok(WaitVerdict::Die) | Err(_) => m.defect("the drain was killed"),
    }
    // After the announcement: who writes now, or makes room, sees it.
    if has_work(m) {
        if me.state.cancel_wait() != Ok(ResumeVerdict::Resume) {
            m.defect("the drain was killed");
        }
        return;
    }
    let Some(timer) = m.tables().outputs.timer() else { m.defect("a drain without a timer") };
    if let Some(at_ns) = look_at_ns {
        deadlines::start_wait(m, timer, me.key(), at_ns);
    }
    dispatch::block(m, me);
    if let Some(at_ns) = look_at_ns {
        deadlines::stop(m, timer);
        if m.clock() >= at_ns {
            m.console_look_after();
        }
    }
}

/// Brings one portion to the console, and lets in the writes that fit then.
fn step<M: Machine>(m: M) -> Progress {
    let outputs = &m.tables().outputs;
    let mut portion = [0; TURN_BYTES];
    let Some((process, count)) = outputs.peek(&mut portion) else { return Progress::NoOutput };
    if !m.console_has_room() {
        return Progress::NoRoom;
    }
    let taken = m.console_submit(portion.get(..count).unwrap_or_default());
    if taken == 0 {
        return Progress::NoRoom;
    }
    preemption_point(m);
    if outputs.sent(process, taken) {
        end::output_is_out(m, process);
    }
    let mut admitted = 0_u32;
    while let Some(write) = outputs.admit(process) {
        let mut words = [0; INLINE_WORDS];
        let results = WriteResults { written: write.length as u32 };
        // An answer of one number always fits.
        let length = results.encode(words.as_mut_bytes()).unwrap_or(0);
        output::answer(m, write.party, &words, length);
        admitted += 1;
        if admitted.is_multiple_of(ADMITTED_PER_PREEMPTION_POINT) {
            preemption_point(m);
        }
    }
    Progress::Made
}

/// Lets the drain finish, for the end of the system: nothing more is taken, and what has been goes out, or the time
/// is up. For a thread.
pub fn finish<M: Machine>(m: M, me: &'static Thread<M>, at_most_ns: u64) {
    let outputs = &m.tables().outputs;
    outputs.shut();
    let until_ns = m.clock().saturating_add(at_most_ns);
    while outputs.has_output() && m.clock() < until_ns {
        dispatch::yield_cpu(m, Here::now(m), me);
        preemption_point(m);
    }
}
