//! The conformance kernel: prints the handover it was given, in a form that only depends on
//! the protocol, so that both front ends can be compared with one expected text.
//!
//! Needs the hhdm, memory map and executable address answers for the checks of memory; where
//! a test blanks those requests, the lines that need them are left out.
#![no_std]
#![no_main]

mod answers;
mod devices;
mod entry;
mod mapping;
mod memory;
mod processors;
mod report;
mod requests;

use abi_report::Exit;
use entry::{State, registers};
use memory::{hhdm, kind_of_direct, word};
use processors::state_lines;
use report::yes;
use requests::{ALL, Answer, BASE, MEMORY_MAP};

/// Entered with the registers kept.
extern "sysv64" fn main() -> ! {
    let state = State::read();
    // Firmware may have used this port as a console of its own.
    say!("\nbegin");
    let (used, left) = BASE.words();
    say!("base-revision used {used} left {left}");
    let registers = registers();
    let entered = if registers.other_entry == 1 { "request" } else { "file" };
    say!("first entry-from {entered}");
    say!("first registers-zero {}", yes(registers.general.iter().all(|r| *r == 0)));
    say!("first flags {:#x} return-address {}", registers.flags, word(registers.stack));
    say!("first stack ends-on-page {}", yes(processors::is_top(registers.stack)));
    state_lines("first", &state);
    for index in 1..7 {
        say!("gdt {index} {:#018x}", word(state.gdt.1 + index * 8));
    }
    let (first, second) = devices::pic_masks();
    say!("pic masks {first:#x} {second:#x}");
    for (name, request) in ALL {
        if request.is_asked() {
            match request.response() {
                Some(response) => say!("answer {name} revision {}", word(response)),
                None => say!("answer {name} none"),
            }
        } else if request.response().is_some() {
            say!("answer {name} unasked");
        }
    }
    answers::lines();
    if hhdm().is_some() && MEMORY_MAP.response().is_some() {
        say!("kind stack {}", kind_of_direct(registers.stack));
        say!("kind gdt {}", kind_of_direct(state.gdt.1));
        for (name, request) in ALL {
            if let Some(response) = request.response() {
                say!("kind {name} {}", kind_of_direct(response));
            }
        }
        mapping::lines(&state);
    }
    devices::map(&state);
    if let Some((spurious, priority, masked)) = devices::local_apic() {
        let masked = yes(masked);
        say!("first local-apic spurious {spurious:#x} priority {priority} masked {masked}");
        say!("first nmi-pin {}", devices::nmi_pin());
        say!("io-apic masked {}", yes(devices::io_apic_masked()));
    }
    processors::lines(state.cr3);
    say!("end");
    report::exit(Exit::Pass)
}
