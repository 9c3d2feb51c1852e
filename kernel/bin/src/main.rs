//! The kernel: boots, says what it found, and waits.
#![no_std]
#![no_main]

use kernel_arch::{cpu, println};
use kernel_sys::{Machine, boot, report, start};

kernel_sys::kernel_main!(main);

fn main(machine: &'static Machine) -> ! {
    boot::print_summary(machine);
    if machine.options.run_summary && machine.options.exit_debug {
        report::leave(machine);
    }
    println!();
    // Comes back only if the image has no manifest.
    let _ = start::run(machine);
    println!("capOS is up. There is nothing to run yet: Ctrl-A X leaves QEMU.");
    loop {
        cpu::wait_for_interrupt();
    }
}
