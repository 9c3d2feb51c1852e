//! What user mode leads to by itself: system calls and faults.

use crate::kernel::{Here, Kernel, Thread};
use crate::system;
use crate::{fatal, section, symbols};
use abi_types::{Syscall, UNKNOWN_SYSCALL};
use kernel_arch::console;
use kernel_arch::trap::TrapFrame;
use kernel_ops::enter;
use kernel_process::end::{exit_process, fault_process};
use kernel_process::machine::process_of;

/// A process that a fault ended has this exit code, less the exception's number.
pub const FAULT_EXIT_CODE: i64 = -256;

/// A process whose thread or fiber overflowed its stack has this exit code: one that no exception has.
pub const STACK_OVERFLOW_EXIT_CODE: i64 = FAULT_EXIT_CODE - 32;

/// A syscall.
#[inline]
pub fn syscall(number: u64, a0: u64, a1: u64) -> u64 {
    section::begin();
    let result = match Syscall::from_number(number) {
        Some(Syscall::CapEnter) => cap_enter(a0, a1),
        Some(Syscall::Exit) => exit_process(Kernel, current(), a0.cast_signed()),
        None => UNKNOWN_SYSCALL,
    };
    section::end("the return of a system call");
    result
}

fn cap_enter(min_complete: u64, timeout_ns: u64) -> u64 {
    let here = Here::on(system::here());
    here.own().counters.syscalls.bump();
    enter::cap_enter(Kernel, here, min_complete, timeout_ns)
}

fn current() -> &'static Thread {
    match system::here().current() {
        Some(thread) => thread,
        None => system::defect("user mode without a thread"),
    }
}

/// A fault in user mode ends the process, with a report.
pub fn fault(frame: &TrapFrame) -> ! {
    if !system::is_up() {
        fatal::fault(frame);
    }
    let thread = current();
    let process = process_of(Kernel, thread);
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
    symbols::print_user_backtrace(&process.ops.space, frame);
    // What a person is told does not count.
    section::begin();
    let code = match overflow {
        Some(_) => STACK_OVERFLOW_EXIT_CODE,
        None => FAULT_EXIT_CODE - i64::from(vector.0),
    };
    fault_process(Kernel, thread, code)
}
