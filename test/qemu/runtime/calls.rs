//! Calls to the kernel's interfaces and to services.

use core::fmt::Write;

use abi_types::{CapSlot, ExceptionKind, Status};
use capos_rt::io::status_of;
use capos_rt::now_ns;
use capos_rt::out::{Out, TEXT_BYTES};
use demo_schema::counter;
use schema::{console, system_info, timer};
use schema_wire::{CallError, Callee, Transport};
use test_kit::{Outcome, T, check, check_eq, require_ok};
use test_user::Env;

pub fn console(t: &mut T<'_, Env>) -> Outcome {
    let slot = require_ok!(t, t.env.cap("console", console::INTERFACE_ID));
    let mut client = console::Client::new(t.env.io.caller(), slot);
    check_eq!(t, require_ok!(t, client.write(b"inline\n")).written, 7);
    let mut out = Out::new(&t.env.io, slot);
    for line in 0..TEXT_BYTES / 16 {
        check_eq!(t, writeln!(out, "by address {line:4}"), Ok(()));
    }
    check_eq!(t, out.flush(), Ok(()));
    Ok(())
}

pub fn clock(t: &mut T<'_, Env>) -> Outcome {
    let slot = require_ok!(t, t.env.cap("timer", timer::INTERFACE_ID));
    let mut timer = timer::Client::new(t.env.io.caller(), slot);
    let before_ns = now_ns();
    let kernel_ns = require_ok!(t, timer.now()).ns;
    let after_ns = now_ns();
    check!(
        t,
        before_ns <= kernel_ns && kernel_ns <= after_ns,
        "{before_ns} {kernel_ns} {after_ns}"
    );
    Ok(())
}

/// A millisecond.
const MS: u64 = 1_000_000;

pub fn sleep(t: &mut T<'_, Env>) -> Outcome {
    let slot = require_ok!(t, t.env.cap("timer", timer::INTERFACE_ID));
    let mut timer = timer::Client::new(t.env.io.caller(), slot);
    let before_ns = now_ns();
    require_ok!(t, timer.sleep(MS));
    let after_ns = now_ns();
    check!(t, after_ns - before_ns >= MS, "{} ns", after_ns - before_ns);
    require_ok!(t, timer.sleep_until(after_ns + MS));
    check!(t, now_ns() >= after_ns + MS);
    t.metric("slept", after_ns - before_ns, "ns");
    Ok(())
}

pub fn under_way(t: &mut T<'_, Env>) -> Outcome {
    let slot = require_ok!(t, t.env.cap("timer", timer::INTERFACE_ID));
    let io = &t.env.io;
    let long = timer::SleepParams { ns: 3 * MS };
    let begun_ns = now_ns();
    let long = require_ok!(t, io.start::<timer::methods::Sleep>(slot, &long));
    let short = require_ok!(t, io.start::<timer::methods::Now>(slot, &timer::NowParams {}));
    let mut timer = timer::Client::new(io.caller(), slot);
    check!(t, require_ok!(t, timer.now()).ns >= begun_ns);
    // Waiting for one keeps what comes for the other, which is there first: it waits for nothing.
    let cqe = io.wait(long, &mut [0; 16]);
    check_eq!(t, status_of(&cqe), Status::Ok);
    check!(t, now_ns() - begun_ns >= 3 * MS);
    check!(t, io.is_done(&short));
    check_eq!(t, io.take(short, &mut [0; 16]).map(|cqe| status_of(&cqe)), Ok(Status::Ok));
    Ok(())
}

pub fn large_results(t: &mut T<'_, Env>) -> Outcome {
    let slot = require_ok!(t, t.env.cap("info", system_info::INTERFACE_ID));
    let mut info = system_info::Client::new(t.env.io.large(), slot);
    let cpus = require_ok!(t, info.machine()).machine.cpus;
    check!(t, cpus >= 1);
    let mut syscalls = 0;
    for cpu in 0..cpus {
        syscalls += require_ok!(t, info.cpu(cpu)).counters.syscalls;
    }
    check!(t, syscalls > 0);
    let mut small = system_info::Client::new(t.env.io.caller(), slot);
    check_eq!(t, small.cpu(0).map(|_| ()), Err(CallError::Status(Status::ResultTooLarge)));
    Ok(())
}

pub fn exception(t: &mut T<'_, Env>) -> Outcome {
    let slot = require_ok!(t, t.env.cap("info", system_info::INTERFACE_ID));
    let mut info = system_info::Client::new(t.env.io.large(), slot);
    match info.cpu(100_000).map(|_| ()) {
        Err(CallError::Exception(exception)) => {
            check_eq!(t, exception.kind(), ExceptionKind::InvalidArgument);
            check!(t, !exception.message().is_empty());
        }
        other => return t.fail(format_args!("an exception is expected, not {other:?}")),
    }
    Ok(())
}

pub fn no_such_capability(t: &mut T<'_, Env>) -> Outcome {
    let mut timer = timer::Client::new(t.env.io.caller(), CapSlot::new(60, 1));
    check_eq!(t, timer.now(), Err(CallError::Status(Status::Disconnected)));
    Ok(())
}

pub fn service(t: &mut T<'_, Env>) -> Outcome {
    let slot = require_ok!(t, t.env.cap("counter", counter::INTERFACE_ID));
    let mut counter = counter::Client::new(t.env.io.caller(), slot);
    for expected in [5, 10, 15] {
        check_eq!(t, require_ok!(t, counter.add(5)).total, expected);
    }
    match counter.add(u64::MAX) {
        Err(CallError::Exception(exception)) => {
            check_eq!(
                t,
                (exception.kind(), exception.message()),
                (ExceptionKind::Failed, "the sum is full")
            );
        }
        other => return t.fail(format_args!("an exception is expected, not {other:?}")),
    }
    // A method the interface does not have, and parameters that are no message.
    let mut caller = t.env.io.caller();
    let params = counter::AddParams { amount: 1 };
    let reply = require_ok!(t, caller.call(callee(slot, 77), &params, &[]));
    check!(t, reply.is_exception);
    check_eq!(t, require_ok!(t, counter.add(0)).total, 15);
    Ok(())
}

/// A method of the counter by its number.
fn callee(target: CapSlot, method: u16) -> Callee {
    Callee { target, interface: counter::INTERFACE_TAG, method, accepts: 0 }
}

pub fn service_panics(t: &mut T<'_, Env>) -> Outcome {
    let slot = require_ok!(t, t.env.cap("doomed", counter::INTERFACE_ID));
    let params = counter::AddParams { amount: 1 };
    let mut caller = t.env.io.caller();
    let ended = caller.call(callee(slot, 3), &params, &[]).map(|_| ());
    check_eq!(t, ended, Err(Status::Disconnected));
    let again = caller.call(callee(slot, 3), &params, &[]).map(|_| ());
    check_eq!(t, again, Err(Status::Disconnected));
    Ok(())
}
