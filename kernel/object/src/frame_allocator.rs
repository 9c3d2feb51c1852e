//! FrameAllocator: makes memory objects, and says what memory there is.

use crate::virtual_memory::refused;
use core_ledger::Line;
use kernel_ops::object::Calling;
use kernel_process::Machine;
use kernel_process::memory::{Refused, pages_of};
use kernel_process::shared;
use schema::frame_allocator::{CreateObjectParams, CreateObjectResults, Server, UsageResults};
use schema_wire::{Answer, CapSlot};

/// What it needs of the kernel.
pub trait Host {
    /// Makes a memory object of so many pages; its capability in the caller's table.
    fn create(&mut self, pages: u64) -> Result<CapSlot, Refused>;
    /// Frames that the caller's process uses and may use, and how many the machine has left.
    fn usage(&mut self) -> UsageResults;
}

impl<M: Machine> Host for Calling<'_, M> {
    fn create(&mut self, pages: u64) -> Result<CapSlot, Refused> {
        shared::create(self, pages)
    }

    fn usage(&mut self) -> UsageResults {
        let reading = self.caller.ring.shared.process.ledger.reading(Line::Frames);
        UsageResults {
            used: u64::from(reading.used),
            limit: u64::from(reading.limit),
            machine_free: self.caller.m.free_frames(),
        }
    }
}

/// The server.
#[derive(Debug)]
pub struct FrameAllocator<'h, H>(pub &'h mut H);

impl<H: Host> Server for FrameAllocator<'_, H> {
    fn create_object(&mut self, params: CreateObjectParams) -> Answer<CreateObjectResults> {
        let pages = pages_of(params.bytes).map_err(refused)?;
        let object = self.0.create(pages).map_err(refused)?;
        Ok(CreateObjectResults {
            object_index: object.index() as u16,
            object_generation: object.generation(),
        })
    }

    fn usage(&mut self) -> Answer<UsageResults> {
        Ok(self.0.usage())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel_ops::paid::NoMemory;
    use schema_wire::{ExceptionKind, NoResult};

    struct One(Result<CapSlot, Refused>, Option<u64>);

    const USAGE: UsageResults = UsageResults { used: 1, limit: 2, machine_free: 3 };

    impl Host for One {
        fn create(&mut self, pages: u64) -> Result<CapSlot, Refused> {
            self.1 = Some(pages);
            self.0
        }
        fn usage(&mut self) -> UsageResults {
            USAGE
        }
    }

    #[test]
    fn an_object_is_told_by_slot_and_generation() {
        let mut host = One(Ok(CapSlot::new(0xffff, 7)), None);
        let made = FrameAllocator(&mut host).create_object(CreateObjectParams { bytes: 0x3000 });
        assert_eq!(made, Ok(CreateObjectResults { object_index: 0xffff, object_generation: 7 }));
        assert_eq!(host.1, Some(3));
        assert_eq!(FrameAllocator(&mut host).usage(), Ok(USAGE));
    }

    #[test]
    fn what_are_no_pages_is_refused_before_anything_happens() {
        let mut host = One(Ok(CapSlot::new(1, 1)), None);
        for bytes in [0, 1, 4095, 4097, u64::MAX] {
            let made = FrameAllocator(&mut host).create_object(CreateObjectParams { bytes });
            let Err(NoResult::Exception(exception)) = made else { panic!("accepted") };
            assert_eq!(exception.kind(), ExceptionKind::InvalidArgument);
        }
        assert_eq!(host.1, None);
    }

    #[test]
    fn each_refusal_has_its_kind() {
        for (why, kind) in [
            (Refused::ObjectTooLarge, ExceptionKind::InvalidArgument),
            (Refused::TooManyObjects, ExceptionKind::Overloaded),
            (Refused::Slots, ExceptionKind::Overloaded),
            (Refused::Memory(NoMemory::Machine), ExceptionKind::Overloaded),
        ] {
            let mut host = One(Err(why), None);
            let made = FrameAllocator(&mut host).create_object(CreateObjectParams { bytes: 4096 });
            let Err(NoResult::Exception(exception)) = made else { panic!("accepted") };
            assert_eq!(exception.kind(), kind);
        }
    }
}
