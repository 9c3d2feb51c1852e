//! The system starts: tables, processes, and every CPU looks for threads to run.

use crate::loader::{self, MANIFEST_MODULE};
use crate::{Machine, boot, object, section, shutdown, smp, system, under};
use core::convert::Infallible;
use kernel_arch::{console, entropy, println};

/// Starts the system of the boot manifest and never comes back; `None` if there is no manifest.
pub fn run(machine: &'static Machine) -> Option<Infallible> {
    let manifest = machine.module(MANIFEST_MODULE)?;
    if machine.clock.is_none() {
        boot::give_up("processes need a clock, and this machine has none that can be read");
    }
    let options = &machine.options;
    if let Some(ticks) = options.section_ticks {
        section::limit(ticks);
    }
    let secret = entropy::words();
    if system::create(under::clock(), options, secret).is_err() {
        boot::give_up("not enough memory for the system's tables");
    }
    console::on_input(object::console::input_has_arrived);
    console::on_room(object::console::room_has_come);
    if let Err(refusal) = loader::start_all(machine, manifest.data) {
        boot::give_up(refusal);
    }
    println!("capOS is up, with {} processes. (Ctrl-A X leaves QEMU.)", shutdown::live());
    smp::release_to_scheduler();
    // What a person is told does not count, and no program has run yet.
    section::begin();
    under::idle()
}
