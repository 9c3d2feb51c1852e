//! Exceptions and interrupts: entry, the saved registers, and faults provoked on purpose.

mod entry;
mod frame;
pub mod probe;

pub(crate) use entry::entry_address;
pub use frame::{Fault, Registers, TrapFrame};

/// The vector on which one CPU asks another for attention.
pub const IPI_VECTOR: u8 = 49;
/// The vector of the local APIC's timer.
pub const TIMER_VECTOR: u8 = 48;
/// The vector the local APIC reports an interrupt on that went away.
pub const SPURIOUS_VECTOR: u8 = 255;

use crate::cpu::{self, KERNEL_CODE, KERNEL_DATA};
use crate::{apic, hooks, stop};
use core::sync::atomic::Ordering;
use core_fault::Vector;

/// What every trap does once its registers are saved; `true` if the frame now resumes elsewhere in
/// the kernel.
extern "C" fn dispatch(frame: &mut TrapFrame) -> bool {
    let vector = frame.vector();
    if vector == Vector::NMI && stop::is_requested() {
        stop::stop_here(frame);
    }
    if vector.0 < 32 {
        if recover(frame) {
            return true;
        }
        hooks::fault(frame);
    }
    match vector.0 {
        SPURIOUS_VECTOR => {
            // The local APIC wants no end of interrupt for it (Intel SDM vol. 3, 10.9).
            cpu::this().spurious.fetch_add(1, Ordering::Relaxed);
        }
        _ => {
            hooks::interrupt(frame);
            apic::end_of_interrupt();
        }
    }
    false
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
