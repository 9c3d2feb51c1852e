//! The functions of other crates that the machine calls: a kernel names them once.
//!
//! They are linked by name because the machine's code lies below theirs. The macros give each
//! function its exact type, so a wrong one does not compile, and make it possible for crates that
//! may not contain `unsafe` to define a symbol.
//!
//! Decided in ADR 21.

use crate::boot::Handover;
use crate::cpu::PerCpu;
use crate::trap::TrapFrame;

unsafe extern "Rust" {
    fn capos_boot(handover: Handover) -> !;
    fn capos_cpu(cpu: &'static PerCpu) -> !;
    fn capos_fault(frame: &TrapFrame) -> !;
    fn capos_interrupt(frame: &TrapFrame);
}

/// Defines what the machine calls: `boot` on the first CPU, `cpu` on every other one, `fault`
/// for an exception nobody expects, `interrupt` for vectors from 32 on.
#[macro_export]
#[allow_internal_unsafe]
macro_rules! kernel_hooks {
    (boot = $boot:path, cpu = $cpu:path, fault = $fault:path, interrupt = $interrupt:path $(,)?) => {
        const _: () = {
            #[unsafe(no_mangle)]
            fn capos_boot(handover: $crate::boot::Handover) -> ! {
                $boot(handover)
            }
            #[unsafe(no_mangle)]
            fn capos_cpu(cpu: &'static $crate::cpu::PerCpu) -> ! {
                $cpu(cpu)
            }
            #[unsafe(no_mangle)]
            fn capos_fault(frame: &$crate::trap::TrapFrame) -> ! {
                $fault(frame)
            }
            #[unsafe(no_mangle)]
            fn capos_interrupt(frame: &$crate::trap::TrapFrame) {
                $interrupt(frame)
            }
        };
    };
}

pub(crate) fn boot(handover: Handover) -> ! {
    // SAFETY: kernel_hooks! is the only definition of this name and gives it this type.
    unsafe { capos_boot(handover) }
}

pub(crate) fn cpu(cpu: &'static PerCpu) -> ! {
    // SAFETY: as for `boot`.
    unsafe { capos_cpu(cpu) }
}

pub(crate) fn fault(frame: &TrapFrame) -> ! {
    // SAFETY: as for `boot`.
    unsafe { capos_fault(frame) }
}

pub(crate) fn interrupt(frame: &TrapFrame) {
    // SAFETY: as for `boot`.
    unsafe { capos_interrupt(frame) }
}

unsafe extern "C" {
    /// By the C convention, because entry code calls it: the arguments come first, where a syscall
    /// has them.
    pub(crate) fn capos_syscall(a0: u64, a1: u64, number: u64) -> u64;
}

unsafe extern "Rust" {
    fn capos_user_fault(frame: &TrapFrame) -> !;
    fn capos_timer(frame: &TrapFrame);
}

/// Defines what user mode leads to: `syscall(number, a0, a1) -> u64`; `user_fault(&TrapFrame) -> !`
/// for an exception that is the user's doing; `timer(&TrapFrame)` when the deadline armed with
/// [`time::arm`](crate::time::arm) has passed. Interrupts are off in all of them. Each may switch to
/// another context.
#[macro_export]
#[allow_internal_unsafe]
macro_rules! user_hooks {
    (syscall = $syscall:path, user_fault = $fault:path, timer = $timer:path $(,)?) => {
        const _: () = {
            #[unsafe(no_mangle)]
            extern "C" fn capos_syscall(a0: u64, a1: u64, number: u64) -> u64 {
                $syscall(number, a0, a1)
            }
            #[unsafe(no_mangle)]
            fn capos_user_fault(frame: &$crate::trap::TrapFrame) -> ! {
                $fault(frame)
            }
            #[unsafe(no_mangle)]
            fn capos_timer(frame: &$crate::trap::TrapFrame) {
                $timer(frame)
            }
        };
    };
}

pub(crate) fn user_fault(frame: &TrapFrame) -> ! {
    // SAFETY: user_hooks! is the only definition of this name and gives it this type.
    unsafe { capos_user_fault(frame) }
}

pub(crate) fn timer(frame: &TrapFrame) {
    // SAFETY: as for `user_fault`.
    unsafe { capos_timer(frame) }
}

/// Declares a function that another crate defines with [`export_main!`], of the same type.
#[macro_export]
#[allow_internal_unsafe]
macro_rules! import_main {
    ($(#[$doc:meta])* $vis:vis fn $name:ident($argument:ident: $type:ty) -> !;) => {
        $(#[$doc])*
        $vis fn $name($argument: $type) -> ! {
            unsafe extern "Rust" {
                fn capos_main(argument: $type) -> !;
            }
            // SAFETY: export_main! is the only definition of this name; the crate that imports it
            // also hands out the macro that exports it, with this type.
            unsafe { capos_main($argument) }
        }
    };
}

/// Defines the function that [`import_main!`] declares.
#[macro_export]
#[allow_internal_unsafe]
macro_rules! export_main {
    ($function:path, $type:ty) => {
        const _: () = {
            #[unsafe(no_mangle)]
            fn capos_main(argument: $type) -> ! {
                $function(argument)
            }
        };
    };
}
