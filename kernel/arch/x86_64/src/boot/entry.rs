//! The first instruction of the kernel.

use super::handover::Handover;
use super::requests::BASE_REVISION;
use crate::{console, cpu, exit, hooks, time};

/// Where the loader jumps to: interrupts off, no stack frame above, on a stack of the loader's.
#[unsafe(no_mangle)]
extern "C" fn _start() -> ! {
    time::mark_boot();
    // An older loader answers by older rules: nothing it says can be read before this is known.
    if !BASE_REVISION.is_supported() {
        console::init_serial();
        console::print(format_args!(
            "capOS needs a loader that speaks base revision 6 of the Limine protocol; this one offers {:?}.\n",
            BASE_REVISION.actual_revision()
        ));
        exit::halt();
    }
    cpu::init_boot_cpu();
    console::init_serial();
    match Handover::take() {
        Ok(handover) => hooks::boot(handover),
        Err(missing) => {
            console::print(format_args!(
                "The loader left the {} request unanswered; capOS cannot run without it.\n",
                missing.0
            ));
            exit::halt()
        }
    }
}
