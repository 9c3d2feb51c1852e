//! The kernel with devices that interrupt: the HPET's comparators, each on a line of its own, every millisecond.
//!
//! Two are by edge. The third is by level, and nobody ever serves it: its line is active for good.
#![no_std]
#![no_main]

use kernel_sys::{Machine, start};

kernel_sys::kernel_main!(main);

/// Comparators, their lines, and which are by level.
const DEVICES: [(usize, u8, bool); 3] = [(0, 22, false), (1, 20, false), (2, 21, true)];

fn main(machine: &'static Machine) -> ! {
    let Some(hpet) = machine.hpet else { panic!("a machine without an HPET") };
    let ticks = (hpet.hz() / 1_000) as u32;
    for (comparator, line, is_level) in DEVICES {
        assert!(
            hpet.interrupt_every(comparator, line, is_level, ticks),
            "comparator {comparator} cannot interrupt on line {line}"
        );
    }
    let _ = start::run(machine);
    panic!("there is no manifest")
}
