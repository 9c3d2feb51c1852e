//! Whose the trace is: two that want it, one that cannot pay, and ends.

use abi_types::{CapSlot, ExceptionKind, Status};
use capos_rt::caller::call;
use capos_rt::io::status_of;
use capos_rt::now_ns;
use plain_schema::plain::INTERFACE_TAG as PLAIN;
use schema::trace_capnp::TraceCategory;
use test_bare::program::is_exception;
use test_kit::{Outcome, check, check_eq, require_ok};

use crate::holder::{DONE, END, MARKS, START, STOP};
use crate::records::bit;
use crate::{Run, Shared};

const USER: u32 = bit(TraceCategory::User);
/// What a holder says of a refusal.
const OVERLOADED: u64 = 1 + ExceptionKind::Overloaded as u64;
const FAILED: u64 = 1 + ExceptionKind::Failed as u64;

/// Tells a holder to do something; what it answers.
fn tell(shared: &Shared, holder: &str, what: u16, word: u64) -> Result<u64, Status> {
    let mut words = [0; 16];
    let sqe = call(shared.named(holder), PLAIN, what, 8);
    match status_of(&shared.program.io().run(sqe, &[word], &mut words)?) {
        Status::Ok => Ok(words[0]),
        status => Err(status),
    }
}

/// Another process records: it is refused here, and what it records can be read here.
pub fn another_records(t: &mut Run<'_>) -> Outcome {
    check_eq!(t, tell(t.env, "first", START, USER.into()), Ok(DONE));
    let started = t.env.trace().start(1);
    check!(t, is_exception(&started, ExceptionKind::Overloaded, "another process"), "it started");
    let stopped = t.env.trace().stop().map(|stopped| stopped.events);
    check!(t, is_exception(&stopped, ExceptionKind::Failed, "another process"), "it stopped");
    check_eq!(t, tell(t.env, "second", START, 1), Ok(OVERLOADED));
    check_eq!(t, tell(t.env, "second", STOP, 0), Ok(FAILED));
    check_eq!(t, t.env.trace().info().map(|info| info.categories), Ok(USER));
    require_ok!(t, t.env.trace().mark(77));
    check_eq!(t, t.env.count(|event| event.a == 77), 1);
    // Who has it may start again, and that empties it.
    check_eq!(t, tell(t.env, "first", START, USER.into()), Ok(DONE));
    check_eq!(t, t.env.count(|_| true), 0);
    Ok(())
}

/// What is stopped may be taken over, and then nothing is left of it.
pub fn taken_over(t: &mut Run<'_>) -> Outcome {
    check_eq!(t, tell(t.env, "first", MARKS, 10), Ok(DONE));
    check_eq!(t, tell(t.env, "first", STOP, 0), Ok(DONE));
    check_eq!(t, t.env.count(|_| true), 10);
    check_eq!(t, tell(t.env, "second", START, USER.into()), Ok(DONE));
    check_eq!(t, t.env.count(|_| true), 0);
    check_eq!(t, tell(t.env, "first", START, USER.into()), Ok(OVERLOADED));
    check_eq!(t, tell(t.env, "second", STOP, 0), Ok(DONE));
    Ok(())
}

/// A process that cannot pay for the buffers is told so, and the trace stays as it is.
pub fn too_poor(t: &mut Run<'_>) -> Outcome {
    require_ok!(t, t.env.trace().start(USER));
    require_ok!(t, t.env.trace().mark(5));
    require_ok!(t, t.env.trace().stop());
    check_eq!(t, tell(t.env, "poor", START, USER.into()), Ok(OVERLOADED));
    check_eq!(t, t.env.count(|event| event.a == 5), 1);
    Ok(())
}

/// A process ends while it records: it is over, nothing of it can be read, and others may start. Its account reads
/// zero, or the kernel says so.
pub fn end_while_recording(t: &mut Run<'_>) -> Outcome {
    check_eq!(t, tell(t.env, "first", START, 0xff), Ok(DONE));
    check_eq!(t, tell(t.env, "first", END, 0), Err(Status::Disconnected));
    let until = now_ns() + 2_000_000_000;
    while t.env.trace().info().map(|info| info.categories) != Ok(0) && now_ns() < until {
        t.env.program.sleep(100_000);
    }
    check_eq!(t, t.env.trace().info().map(|info| info.categories), Ok(0));
    check_eq!(t, t.env.count(|_| true), 0);
    require_ok!(t, t.env.trace().start(USER));
    require_ok!(t, t.env.trace().mark(1));
    require_ok!(t, t.env.trace().stop());
    check_eq!(t, t.env.count(|_| true), 1);
    Ok(())
}

/// Another floods the buffers with marks: they are full, and nobody has less memory or a slower call.
pub fn flood_of_marks(t: &mut Run<'_>) -> Outcome {
    require_ok!(t, t.env.trace().start(USER | bit(TraceCategory::Ipc)));
    let before = t.env.program.settled_frames();
    check_eq!(t, tell(t.env, "second", MARKS, 20_000), Ok(DONE));
    check_eq!(t, t.env.call_echo(), Status::Ok);
    let stopped = require_ok!(t, t.env.trace().stop());
    check!(t, stopped.lost > 0, "{} events, none lost", stopped.events);
    check_eq!(t, t.env.program.settled_frames(), before);
    Ok(())
}

/// Who lets go of its capability lets go of the trace.
pub fn released(t: &mut Run<'_>) -> Outcome {
    require_ok!(t, t.env.trace().start(USER));
    check_eq!(t, tell(t.env, "second", START, USER.into()), Ok(OVERLOADED));
    check_eq!(t, t.env.program.release(t.env.trace), Ok(()));
    check_eq!(t, tell(t.env, "second", START, USER.into()), Ok(DONE));
    check_eq!(t, tell(t.env, "second", STOP, 0), Ok(DONE));
    let gone = t.env.trace().info().map(|info| info.cpus);
    check!(t, gone.is_err(), "a capability that was released: {gone:?}");
    t.env.trace = CapSlot::NONE;
    Ok(())
}
