//! The two asynchronous ways into the kernel: this CPU's timer, and another CPU.
//!
//! Either comes from user mode, at a preemption point of a thread in the kernel, or out of idle; what
//! follows is the scheduler's (`sched::timer`, `sched::interrupt`). The ways that user mode takes by itself
//! are in `user`.

use crate::{sched, section};
use kernel_arch::trap::{IPI_VECTOR, TrapFrame};
use kernel_arch::{cpu, log};

/// A deadline has passed, or a slice has ended.
pub fn timer(frame: &TrapFrame) {
    section::begin();
    sched::timer(frame.is_from_user());
    section::end("the end of a timer interrupt");
}

/// Another CPU asks for attention; or a device, of which there is none.
pub(crate) fn interrupt(frame: &TrapFrame) {
    if frame.vector().0 != IPI_VECTOR {
        log!(
            "trap",
            "cpu {}: interrupt on vector {} that nobody asked for",
            cpu::this().index(),
            frame.vector().0
        );
        return;
    }
    // Without a running system a request for attention needs no more than the wake it is.
    section::begin();
    sched::interrupt(frame.is_from_user());
    section::end("the end of an interrupt");
}
