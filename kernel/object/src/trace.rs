//! Trace: what each CPU did, recorded while somebody asks for it.
//!
//! Recording itself is the composition's (`kernel_dispatch::trace`), and so is whose it is (`kernel_ops::trace`).

use crate::refuse;
use core_ledger::Line;
use kernel_ops::object::{Calling, Objects};
use kernel_ops::paid::NoMemory;
use kernel_ops::trace::{self, BUFFER_BYTES, Busy};
use schema::trace::{
    InfoResults, MarkParams, ReadParams, ReadResults, Server, StartParams, StartResults,
    StopResults,
};
use schema::trace_capnp::TraceCategory;
use schema_wire::{Answer, ExceptionKind, NoResult};
use smp_trace::{Portion, RECORD_BYTES, Record};
use zerocopy::IntoBytes;

/// Records that one `read` gives at most: half of what a call's results may be.
pub const READ_RECORDS: usize = 64;

/// Every category there is.
const ALL: u32 = (1 << (TraceCategory::User as u16 + 1)) - 1;

/// What it needs of the kernel.
pub trait Host {
    /// Empties the buffers and records these categories.
    fn start(&mut self, categories: u32) -> Result<(), Busy>;
    /// Records no more; how many events there are, and how many were lost.
    fn stop(&mut self) -> Result<(u64, u64), Busy>;
    /// Copies records of a CPU from that position on, as many as fit; `None` if there is no such CPU.
    fn read(&self, cpu: u32, position: u64, into: &mut [Record]) -> Option<Portion>;
    /// Records a mark.
    fn mark(&mut self, value: u64);
    /// What is recorded.
    fn categories(&self) -> u32;
    /// CPUs there are.
    fn cpus(&self) -> u32;
}

impl<M: Objects> Host for Calling<'_, M> {
    fn start(&mut self, categories: u32) -> Result<(), Busy> {
        trace::start(self, categories)
    }

    fn stop(&mut self) -> Result<(u64, u64), Busy> {
        trace::stop(self)
    }

    fn read(&self, cpu: u32, position: u64, into: &mut [Record]) -> Option<Portion> {
        trace::read(self.caller.m, cpu, position, into)
    }

    fn mark(&mut self, value: u64) {
        trace::mark(self.caller.m, value);
    }

    fn categories(&self) -> u32 {
        trace::categories(self.caller.m)
    }

    fn cpus(&self) -> u32 {
        self.caller.m.cpus().len() as u32
    }
}

/// The server, with room for what is read.
#[derive(Debug)]
pub struct Trace<'h, H> {
    host: &'h mut H,
    records: [Record; READ_RECORDS],
}

impl<'h, H: Host> Trace<'h, H> {
    /// A server over `host`.
    pub fn new(host: &'h mut H) -> Self {
        Self { host, records: [Record::default(); READ_RECORDS] }
    }
}

/// The exception that says why; `another` is its kind if another process records.
fn refused(busy: Busy, another: ExceptionKind) -> NoResult {
    match busy {
        Busy::Another => refuse(
            another,
            "another process records: it is free when that one stops, releases its trace, or ends",
        ),
        Busy::Memory(NoMemory::Account(_)) => {
            refuse(ExceptionKind::Overloaded, Line::KernelBytes.exhausted())
        }
        Busy::Memory(NoMemory::Machine) => refuse(
            ExceptionKind::Overloaded,
            "no memory for the trace's buffers: it may work when others have ended",
        ),
        Busy::Absent => refuse(ExceptionKind::Unimplemented, "this machine records nothing"),
    }
}

impl<H: Host> Server for Trace<'_, H> {
    fn start(&mut self, params: StartParams) -> Answer<StartResults> {
        if params.categories == 0 || params.categories & !ALL != 0 {
            return Err(refuse(
                ExceptionKind::InvalidArgument,
                "categories has one bit or more of TraceCategory, 0 to 7",
            ));
        }
        let started = self.host.start(params.categories);
        started.map_err(|busy| refused(busy, ExceptionKind::Overloaded))?;
        Ok(StartResults { buffer_bytes: BUFFER_BYTES as u32 })
    }

    fn stop(&mut self) -> Answer<StopResults> {
        let stopped = self.host.stop();
        let (events, lost) = stopped.map_err(|busy| refused(busy, ExceptionKind::Failed))?;
        Ok(StopResults { events, lost })
    }

    fn read(&mut self, params: ReadParams, room: usize) -> Answer<ReadResults<'_>> {
        let wanted = (params.capacity as usize).min(room) / RECORD_BYTES;
        if wanted == 0 {
            return Err(refuse(
                ExceptionKind::InvalidArgument,
                "a record has 32 bytes: let capacity and the room for results hold one or more",
            ));
        }
        let into = self.records.get_mut(..wanted.min(READ_RECORDS)).unwrap_or_default();
        match self.host.read(params.cpu, params.position, into) {
            Some(Portion { copied, next, lost }) => {
                let events = self.records.get(..copied).unwrap_or_default().as_bytes();
                Ok(ReadResults { events, next, lost })
            }
            None => Err(refuse(
                ExceptionKind::InvalidArgument,
                "no such CPU; they are numbered from 0 to cpus - 1, which info says",
            )),
        }
    }

    fn mark(&mut self, params: MarkParams) -> Answer<()> {
        self.host.mark(params.value);
        Ok(())
    }

    fn info(&mut self) -> Answer<InfoResults> {
        Ok(InfoResults {
            categories: self.host.categories(),
            buffer_bytes: BUFFER_BYTES as u32,
            cpus: self.host.cpus(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core_ledger::ChargeError;
    extern crate std;
    use std::vec::Vec;

    /// Two CPUs with a hundred records each, which tell whose they are.
    struct Two {
        on: u32,
        busy: Option<Busy>,
        marks: Vec<u64>,
    }

    impl Two {
        fn new() -> Self {
            Self { on: 0, busy: None, marks: Vec::new() }
        }
    }

    impl Host for Two {
        fn start(&mut self, categories: u32) -> Result<(), Busy> {
            self.on = categories;
            self.busy.map_or(Ok(()), Err)
        }
        fn stop(&mut self) -> Result<(u64, u64), Busy> {
            self.busy.map_or(Ok((200, 3)), Err)
        }
        fn read(&self, cpu: u32, position: u64, into: &mut [Record]) -> Option<Portion> {
            let copied = into.len().min(100_usize.saturating_sub(position as usize));
            for (record, number) in into.iter_mut().zip(position..100) {
                *record = Record { time_ns: number, thread: cpu, ..Record::default() };
            }
            (cpu < 2).then_some(Portion { copied, next: position + copied as u64, lost: 1 })
        }
        fn mark(&mut self, value: u64) {
            self.marks.push(value);
        }
        fn categories(&self) -> u32 {
            self.on
        }
        fn cpus(&self) -> u32 {
            2
        }
    }

    fn kind_of<T: core::fmt::Debug>(answer: Answer<T>) -> ExceptionKind {
        match answer {
            Err(NoResult::Exception(exception)) => exception.kind(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn categories_that_are_none_or_unknown_start_nothing() {
        let mut host = Two::new();
        for categories in [0, 1 << 8, u32::MAX, ALL + 1] {
            let answer = Trace::new(&mut host).start(StartParams { categories });
            assert_eq!(kind_of(answer), ExceptionKind::InvalidArgument);
            assert_eq!(host.on, 0, "nothing was asked of the kernel");
        }
        for categories in [1, ALL, 1 << 7, 1 << 6] {
            let answer = Trace::new(&mut host).start(StartParams { categories });
            assert_eq!(answer, Ok(StartResults { buffer_bytes: 65536 }));
            assert_eq!(host.on, categories);
        }
    }

    #[test]
    fn each_refusal_has_its_kind() {
        use ExceptionKind::{Failed, Overloaded, Unimplemented};
        for (busy, starting, stopping) in [
            (Busy::Another, Overloaded, Failed),
            (Busy::Memory(NoMemory::Machine), Overloaded, Overloaded),
            (Busy::Memory(NoMemory::Account(ChargeError::Closed)), Overloaded, Overloaded),
            (Busy::Absent, Unimplemented, Unimplemented),
        ] {
            let mut host = Two { busy: Some(busy), ..Two::new() };
            let started = Trace::new(&mut host).start(StartParams { categories: 1 });
            assert_eq!(kind_of(started), starting);
            assert_eq!(kind_of(Trace::new(&mut host).stop()), stopping);
        }
        assert_eq!(Trace::new(&mut Two::new()).stop(), Ok(StopResults { events: 200, lost: 3 }));
    }

    /// What a read gives: how many records, of which CPU, from which on, and what it says.
    fn read(cpu: u32, position: u64, capacity: u32, room: usize) -> (usize, u64, u64) {
        let mut host = Two::new();
        let mut server = Trace::new(&mut host);
        let read = server.read(ReadParams { cpu, position, capacity }, room).unwrap();
        for (record, number) in read.events.chunks(RECORD_BYTES).zip(position..) {
            assert_eq!(record.get(..8), Some(&number.to_le_bytes()[..]));
            assert_eq!(record.get(12..16), Some(&cpu.to_le_bytes()[..]));
        }
        (read.events.len(), read.next, read.lost)
    }

    #[test]
    fn records_are_read_page_by_page_and_whole() {
        assert_eq!(read(0, 0, 4096, 4096), (64 * 32, 64, 1));
        assert_eq!(read(1, 64, 4096, 4096), (36 * 32, 100, 1));
        assert_eq!(read(1, 100, 4096, 4096), (0, 100, 1));
        assert_eq!(read(1, 98, 95, 4096), (2 * 32, 100, 1), "no half of a third");
        assert_eq!(read(0, 7, u32::MAX, 32), (32, 8, 1), "as much as the caller has room for");
        assert_eq!(read(0, u64::MAX, 64, 64), (0, u64::MAX, 1));
    }

    #[test]
    fn a_read_without_room_or_of_no_cpu_is_an_invalid_argument() {
        let mut host = Two::new();
        for (cpu, capacity, room) in [(0, 0, 4096), (0, 31, 4096), (0, 4096, 31), (2, 32, 32)] {
            let answer = Trace::new(&mut host)
                .read(ReadParams { cpu, position: 0, capacity }, room)
                .map(|read| read.next);
            assert_eq!(kind_of(answer), ExceptionKind::InvalidArgument);
        }
    }

    #[test]
    fn marks_and_info_are_the_kernels() {
        let mut host = Two::new();
        assert_eq!(Trace::new(&mut host).mark(MarkParams { value: 9 }), Ok(()));
        assert_eq!(host.marks, [9]);
        host.on = 5;
        let info = Trace::new(&mut host).info();
        assert_eq!(info, Ok(InfoResults { categories: 5, buffer_bytes: 65536, cpus: 2 }));
    }
}
