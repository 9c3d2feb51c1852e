//! What user mode leads to by itself: system calls and faults.

use crate::enter;
use crate::process::Process;
use crate::sched;
use crate::system;
use crate::thread::Thread;
use crate::{fatal, section, symbols};
use abi_types::{Syscall, UNKNOWN_SYSCALL};
use core::sync::atomic::Ordering;
use kernel_arch::console;
use kernel_arch::trap::TrapFrame;

/// A process that a fault ended has this exit code, less the exception's number.
pub const FAULT_EXIT_CODE: i64 = -256;

/// A process whose thread or fiber overflowed its stack has this exit code: one that no exception has.
pub const STACK_OVERFLOW_EXIT_CODE: i64 = FAULT_EXIT_CODE - 32;

/// A syscall.
#[inline]
pub fn syscall(number: u64, a0: u64, a1: u64) -> u64 {
    section::begin();
    let result = match Syscall::from_number(number) {
        Some(Syscall::CapEnter) => enter::cap_enter(a0, a1),
        Some(Syscall::Exit) => exit(a0.cast_signed()),
        None => UNKNOWN_SYSCALL,
    };
    section::end("the return of a system call");
    result
}

fn current() -> &'static Thread {
    match sched::here().current() {
        Some(thread) => thread,
        None => system::defect("user mode without a thread"),
    }
}

/// `exit`: the process ends, with all its threads.
fn exit(code: i64) -> ! {
    let thread = current();
    close_and_end(thread, thread.process(), code)
}

/// Closes the process, which kills its other threads, and ends the thread that runs.
fn close_and_end(thread: &'static Thread, process: &'static Process, code: i64) -> ! {
    thread.exit_code.store(code, Ordering::Relaxed);
    process.close(code);
    sched::end(thread)
}

/// A fault in user mode ends the process, with a report.
pub fn fault(frame: &TrapFrame) -> ! {
    if system::get().is_none() {
        fatal::fault(frame);
    }
    let thread = current();
    let process = thread.process();
    let vector = frame.vector();
    let address = (vector == core_fault::Vector::PAGE_FAULT).then(|| frame.fault_address());
    let (name, overflow) = {
        let members = process.members.lock();
        (members.name, address.and_then(|address| members.guards.overflow(address)))
    };
    let (short, long) = vector.name();
    console::print(format_args!(
        "\n---- process \"{}\" ended: {short} {long} ----\n",
        name.as_str()
    ));
    if vector.has_error_code() {
        console::print(format_args!("{}\n", frame.error_code()));
    }
    if let Some(address) = address {
        console::print(format_args!("address {address:#018x}\n"));
    }
    if let Some(overflow) = overflow {
        console::print(format_args!("{overflow}\n"));
    }
    console::print(format_args!("thread {}\n{frame}", thread.slot()));
    console::print(format_args!("backtrace\n"));
    symbols::print_user_backtrace(&process.space, frame);
    // What a person is told does not count.
    section::begin();
    let code = match overflow {
        Some(_) => STACK_OVERFLOW_EXIT_CODE,
        None => FAULT_EXIT_CODE - i64::from(vector.0),
    };
    close_and_end(thread, process, code)
}
