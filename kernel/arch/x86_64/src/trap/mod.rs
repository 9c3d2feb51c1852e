//! Exceptions and interrupts: entry, the saved registers, and faults provoked on purpose.

mod entry;
mod frame;
pub mod probe;

pub(crate) use entry::{entry_address, trap_return};
pub use frame::{Fault, Registers, TrapFrame};

/// The vector on which one CPU asks another for attention.
pub const IPI_VECTOR: u8 = 49;
/// The vector of the local APIC's timer.
pub const TIMER_VECTOR: u8 = 48;
/// The vector the local APIC reports an interrupt on that went away.
pub const SPURIOUS_VECTOR: u8 = 255;

use crate::cpu::{self, KERNEL_CODE, KERNEL_DATA};
use crate::{apic, hooks, irq, paging, stop, time, user};
use core::sync::atomic::Ordering;
use core_fault::Vector;

/// What every trap does once its registers are saved; `true` if the frame now resumes elsewhere in
/// the kernel.
pub(crate) extern "C" fn dispatch(frame: &mut TrapFrame) -> bool {
    let vector = frame.vector();
    if vector == Vector::NMI && stop::is_requested() {
        stop::stop_here(frame);
    }
    if vector.0 < 32 {
        if vector == Vector::PAGE_FAULT && !frame.is_from_user() && fix_up(frame) {
            return true;
        }
        if recover(frame) {
            return true;
        }
        // These three are about the machine, whoever ran when they came.
        let is_machines =
            matches!(vector, Vector::NMI | Vector::DOUBLE_FAULT | Vector::MACHINE_CHECK);
        if frame.is_from_user() && !is_machines {
            hooks::user_fault(frame);
        }
        hooks::fault(frame);
    }
    match vector.0 {
        SPURIOUS_VECTOR => {
            // The local APIC wants no end of interrupt for it (Intel SDM vol. 3, 10.9).
            cpu::this().spurious.fetch_add(1, Ordering::Relaxed);
        }
        TIMER_VECTOR => {
            // Before the hook: it may switch to another context and come back much later.
            apic::end_of_interrupt();
            if time::timer_fired() {
                hooks::timer(frame);
            }
        }
        IPI_VECTOR => {
            apic::end_of_interrupt();
            paging::flush_if_requested();
            hooks::interrupt(frame);
        }
        _ => irq::take(frame),
    }
    false
}

/// Goes on after a read of user memory that found none.
fn fix_up(frame: &mut TrapFrame) -> bool {
    match user::fixup_for(frame.rip()) {
        Some(after) => {
            frame.go_on_at(after);
            true
        }
        None => false,
    }
}

/// Sends a fault that was provoked back to where it was provoked from.
fn recover(frame: &mut TrapFrame) -> bool {
    let cpu = cpu::this();
    let stack = cpu.recovery.load(Ordering::Relaxed);
    let vector = frame.vector();
    // Double fault and machine check are never provoked this way: what they interrupted cannot be
    // gone on with.
    if stack == 0 || matches!(vector, Vector::DOUBLE_FAULT | Vector::MACHINE_CHECK) {
        return false;
    }
    cpu.recovery.store(0, Ordering::Relaxed);
    // SAFETY: written by the owning CPU with interrupts off, read by `probe` after it returns.
    unsafe { *cpu.last_fault.get() = Some(Fault::from_frame(frame)) };
    frame.resume_at(probe::landing_address(), stack, KERNEL_CODE, KERNEL_DATA);
    true
}
