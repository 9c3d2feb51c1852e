//! The shipped kernel's own word to a harness: it came up, with every CPU.
//!
//! Only with `exit=debug run=summary` on the command line. It proves the very kernel that is
//! handed out; what test kernels prove is in their suites.

use crate::Machine;
use crate::fatal;
use abi_report::{Encoder, Exit, Record, Sink};
use kernel_arch::{console, cpu};

/// The one test this kernel runs by itself.
const ID: &str = "boot.summary";

struct Records;

impl Sink for Records {
    fn write(&mut self, byte: u8) {
        console::send_records(&[byte]);
    }
}

/// Reports and leaves.
pub fn leave(machine: &Machine) -> ! {
    let online = cpu::online_count();
    let whole = machine.missing_cpus == 0 && online == cpu::all().len();
    let (outcome, exit) = if whole {
        (Record::Ok { id: ID }, Exit::Pass)
    } else {
        let message = "a CPU that the firmware reports is not in the kernel";
        (Record::Fail { id: ID, line: line!(), file: file!(), message }, Exit::Fail)
    };
    let records = [
        Record::Plan { index: 0, total: 1, id: ID },
        Record::Run { id: ID },
        Record::Metric { id: ID, name: "cpus", value: online as u64, unit: "cpus" },
        outcome,
        Record::Done { passed: u32::from(whole), failed: u32::from(!whole), skipped: 0 },
    ];
    let mut encoder = Encoder::new();
    for record in &records {
        encoder.send(&mut Records, record);
    }
    fatal::leave(exit)
}
