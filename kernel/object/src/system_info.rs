//! SystemInfo: what the machine is and counts.

use crate::refuse;
use schema::system_info::{CpuCounters, CpuParams, CpuResults, Machine, MachineResults, Server};
use schema_wire::{Answer, ExceptionKind};

/// What it needs of the kernel.
pub trait Host {
    /// The machine as a whole.
    fn machine(&self) -> Machine;
    /// What one CPU counts; `None` if there is no such CPU.
    fn cpu(&self, cpu: u32) -> Option<CpuCounters>;
}

/// The server.
#[derive(Debug)]
pub struct SystemInfo<'h, H>(pub &'h H);

impl<H: Host> Server for SystemInfo<'_, H> {
    fn machine(&mut self) -> Answer<MachineResults> {
        Ok(MachineResults { machine: self.0.machine() })
    }

    fn cpu(&mut self, params: CpuParams) -> Answer<CpuResults> {
        match self.0.cpu(params.cpu) {
            Some(counters) => Ok(CpuResults { counters }),
            None => Err(refuse(
                ExceptionKind::InvalidArgument,
                "no such CPU; they are numbered from 0 to machine.cpus - 1",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schema_wire::{Message, NoResult};

    /// A machine whose only CPU is number 0.
    struct One;

    impl Host for One {
        fn machine(&self) -> Machine {
            // No bytes are a message with every field at its default.
            let nothing: MachineResults = Message::new(&[]).unwrap().get().unwrap();
            Machine { cpus: 1, ..nothing.machine }
        }
        fn cpu(&self, cpu: u32) -> Option<CpuCounters> {
            let nothing: CpuResults = Message::new(&[]).unwrap().get().unwrap();
            (cpu == 0).then_some(CpuCounters { switches: 5, ..nothing.counters })
        }
    }

    #[test]
    fn the_machine_and_its_cpus_are_the_hosts() {
        assert_eq!(SystemInfo(&One).machine().map(|results| results.machine.cpus), Ok(1));
        let seen = SystemInfo(&One).cpu(CpuParams { cpu: 0 });
        assert_eq!(seen.map(|results| results.counters.switches), Ok(5));
    }

    #[test]
    fn a_cpu_that_is_not_there_is_an_invalid_argument() {
        let Err(NoResult::Exception(exception)) = SystemInfo(&One).cpu(CpuParams { cpu: 1 }) else {
            panic!("accepted")
        };
        assert_eq!(exception.kind(), ExceptionKind::InvalidArgument);
        assert!(exception.message().contains("numbered from 0"));
    }
}
