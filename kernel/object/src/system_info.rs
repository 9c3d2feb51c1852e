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
