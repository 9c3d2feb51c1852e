//! MemoryObject: memory that several processes map.

use crate::refuse;
use crate::virtual_memory::{access_of, not_now, place_of, refused};
use core_vm::{Access, Ceiling};
use kernel_ops::object::Calling;
use kernel_ops::shared::{MemoryFacet, ObjectInfo};
use kernel_process::Machine;
use kernel_process::memory::{self, NotNow, Place, Refused, pages_of};
use kernel_process::{attach, shared};
use schema::memory_object::{
    InfoResults, MapParams, MapResults, ProtectParams, RestrictParams, RestrictResults, Server,
    UnmapParams,
};
use schema_wire::{Answer, CapSlot, ExceptionKind};

/// What it needs of the kernel. Lengths are in pages, and a change that is not refused takes place as a whole.
pub trait Host {
    /// Maps pages of it from number `first` on; where.
    fn map(&mut self, place: Place, first: u64, pages: u64, access: Access) -> Result<u64, NotNow>;
    /// Frees pages, all of which are its.
    fn unmap(&mut self, address: u64, pages: u64) -> Result<(), NotNow>;
    /// Changes what may be done with pages, all of which are its.
    fn protect(&mut self, address: u64, pages: u64, access: Access) -> Result<(), NotNow>;
    /// What it is.
    fn info(&mut self) -> Result<ObjectInfo, Refused>;
    /// What this facet allows.
    fn ceiling(&self) -> Ceiling;
    /// A facet that allows less, in the caller's table.
    fn restrict(&mut self, ceiling: Ceiling) -> Result<CapSlot, Refused>;
}

/// A memory object, in a call.
pub struct Facet<'c, 'r, M: Machine> {
    /// The call on it.
    pub calling: &'c mut Calling<'r, M>,
    /// The object, and what this facet of it allows.
    pub of: MemoryFacet,
}

impl<M: Machine> Host for Facet<'_, '_, M> {
    fn map(&mut self, place: Place, first: u64, pages: u64, access: Access) -> Result<u64, NotNow> {
        attach::map(self.calling, self.of, place, first, pages, access)
    }

    fn unmap(&mut self, address: u64, pages: u64) -> Result<(), NotNow> {
        let object = attach::identity_of(self.calling.caller.m, self.of)?;
        memory::unmap(self.calling, address, pages, Some(object))
    }

    fn protect(&mut self, address: u64, pages: u64, access: Access) -> Result<(), NotNow> {
        let object = attach::identity_of(self.calling.caller.m, self.of)?;
        memory::protect(self.calling, address, pages, access, Some(object))
    }

    fn info(&mut self) -> Result<ObjectInfo, Refused> {
        shared::info(self.calling.caller.m, self.of)
    }

    fn ceiling(&self) -> Ceiling {
        self.of.ceiling
    }

    fn restrict(&mut self, ceiling: Ceiling) -> Result<CapSlot, Refused> {
        shared::restrict(self.calling, self.of, ceiling)
    }
}

/// The server.
#[derive(Debug)]
pub struct MemoryObject<'h, H>(pub &'h mut H);

const PAGE_BYTES: u64 = 4096;

impl<H: Host> MemoryObject<'_, H> {
    /// Whether this facet allows that access.
    fn check(&self, access: Access) -> Answer<()> {
        if self.0.ceiling().permits(access) {
            return Ok(());
        }
        Err(refuse(ExceptionKind::Failed, "the memory object's facet does not allow this access"))
    }
}

impl<H: Host> Server for MemoryObject<'_, H> {
    fn map(&mut self, params: MapParams) -> Answer<MapResults> {
        let pages = pages_of(params.bytes).map_err(refused)?;
        if !params.offset.is_multiple_of(PAGE_BYTES) {
            return Err(refuse(
                ExceptionKind::InvalidArgument,
                "offset has to be a multiple of 4096",
            ));
        }
        let (access, first) = (access_of(params.access), params.offset / PAGE_BYTES);
        self.check(access)?;
        let place = place_of(params.address, params.fixed);
        let mapped = self.0.map(place, first, pages, access).map_err(not_now)?;
        Ok(MapResults { mapped })
    }

    fn unmap(&mut self, params: UnmapParams) -> Answer<()> {
        let pages = pages_of(params.bytes).map_err(refused)?;
        self.0.unmap(params.address, pages).map_err(not_now)
    }

    fn protect(&mut self, params: ProtectParams) -> Answer<()> {
        let pages = pages_of(params.bytes).map_err(refused)?;
        let access = access_of(params.access);
        self.check(access)?;
        self.0.protect(params.address, pages, access).map_err(not_now)
    }

    fn info(&mut self) -> Answer<InfoResults> {
        let ObjectInfo { pages, mapped_pages, .. } = self.0.info().map_err(refused)?;
        let Ceiling { write, execute } = self.0.ceiling();
        Ok(InfoResults {
            bytes: pages * PAGE_BYTES,
            mapped_pages,
            can_write: write,
            can_execute: execute,
        })
    }

    fn restrict(&mut self, params: RestrictParams) -> Answer<RestrictResults> {
        let Ceiling { write, execute } = self.0.ceiling();
        let ceiling = Ceiling { write: write && params.write, execute: execute && params.execute };
        let facet = self.0.restrict(ceiling).map_err(refused)?;
        Ok(RestrictResults {
            facet_index: facet.index() as u16,
            facet_generation: facet.generation(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core_vm::VmError;
    use schema::memory_capnp::MemoryAccess;
    use schema_wire::NoResult;

    /// Answers everything alike, and remembers what it was asked.
    struct One {
        answer: Result<u64, NotNow>,
        asked: Option<(Place, u64, u64, Option<Access>)>,
        ceiling: Ceiling,
        made: Option<Ceiling>,
    }

    fn one(answer: Result<u64, NotNow>) -> One {
        One { answer, asked: None, ceiling: Ceiling::ANY, made: None }
    }

    impl Host for One {
        fn map(
            &mut self,
            place: Place,
            first: u64,
            pages: u64,
            access: Access,
        ) -> Result<u64, NotNow> {
            self.asked = Some((place, first, pages, Some(access)));
            self.answer
        }
        fn unmap(&mut self, address: u64, pages: u64) -> Result<(), NotNow> {
            self.asked = Some((Place::At(address), 0, pages, None));
            self.answer.map(|_| ())
        }
        fn protect(&mut self, address: u64, pages: u64, access: Access) -> Result<(), NotNow> {
            self.asked = Some((Place::At(address), 0, pages, Some(access)));
            self.answer.map(|_| ())
        }
        fn info(&mut self) -> Result<ObjectInfo, Refused> {
            Ok(ObjectInfo { pages: 3, mapped_pages: 2, identity: 7 })
        }
        fn ceiling(&self) -> Ceiling {
            self.ceiling
        }
        fn restrict(&mut self, ceiling: Ceiling) -> Result<CapSlot, Refused> {
            self.made = Some(ceiling);
            match self.answer {
                Ok(index) => Ok(CapSlot::new(index as u32, 9)),
                Err(_) => Err(Refused::Slots),
            }
        }
    }

    const MAP: MapParams = MapParams {
        address: 0x2000,
        fixed: true,
        offset: 0x4000,
        bytes: 0x3000,
        access: MemoryAccess::Write,
    };

    fn kind_of<T: core::fmt::Debug>(answer: Answer<T>) -> ExceptionKind {
        match answer {
            Err(NoResult::Exception(exception)) => exception.kind(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_asked_arrives() {
        let mut host = one(Ok(0x5000));
        assert_eq!(MemoryObject(&mut host).map(MAP), Ok(MapResults { mapped: 0x5000 }));
        assert_eq!(host.asked, Some((Place::At(0x2000), 4, 3, Some(Access::Write))));
        let unmap = UnmapParams { address: 0x1000, bytes: 0x1000 };
        assert_eq!(MemoryObject(&mut host).unmap(unmap), Ok(()));
        assert_eq!(host.asked, Some((Place::At(0x1000), 0, 1, None)));
        let protect =
            ProtectParams { address: 0x1000, bytes: 0x2000, access: MemoryAccess::Execute };
        assert_eq!(MemoryObject(&mut host).protect(protect), Ok(()));
        assert_eq!(host.asked, Some((Place::At(0x1000), 0, 2, Some(Access::Execute))));
    }

    #[test]
    fn what_are_no_pages_is_refused_before_anything_happens() {
        let mut host = one(Ok(0));
        let mut server = MemoryObject(&mut host);
        for bytes in [0, 1, 4095, 4097, u64::MAX] {
            let map = server.map(MapParams { bytes, ..MAP });
            let unmap = server.unmap(UnmapParams { address: 0, bytes });
            let access = MemoryAccess::Read;
            let protect = server.protect(ProtectParams { address: 0, bytes, access });
            assert_eq!(kind_of(map), ExceptionKind::InvalidArgument);
            assert_eq!(kind_of(unmap), ExceptionKind::InvalidArgument);
            assert_eq!(kind_of(protect), ExceptionKind::InvalidArgument);
        }
        let map = server.map(MapParams { offset: 1, ..MAP });
        assert_eq!(kind_of(map), ExceptionKind::InvalidArgument);
        assert_eq!(host.asked, None);
    }

    /// C2, C11: a facet that allows less is a narrower object, and never a wider one.
    #[test]
    fn a_facet_allows_what_it_allows() {
        let mut host = one(Ok(4));
        host.ceiling = Ceiling { write: false, execute: true };
        let mut server = MemoryObject(&mut host);
        assert_eq!(kind_of(server.map(MAP)), ExceptionKind::Failed);
        let protect = ProtectParams { address: 0, bytes: 4096, access: MemoryAccess::Write };
        assert_eq!(kind_of(server.protect(protect)), ExceptionKind::Failed);
        assert!(server.map(MapParams { access: MemoryAccess::Execute, ..MAP }).is_ok());
        let told = server.info().unwrap();
        assert_eq!((told.bytes, told.mapped_pages), (0x3000, 2));
        assert_eq!((told.can_write, told.can_execute), (false, true));
        for (write, execute) in [(false, false), (true, true), (true, false), (false, true)] {
            let made = MemoryObject(&mut host).restrict(RestrictParams { write, execute });
            assert_eq!(made, Ok(RestrictResults { facet_index: 4, facet_generation: 9 }));
            assert_eq!(host.made, Some(Ceiling { write: false, execute }));
        }
    }

    #[test]
    fn refusals_are_told_and_later_is_none() {
        let mut host = one(Err(NotNow::Refused(Refused::Vm(VmError::ObjectTooShort))));
        assert_eq!(kind_of(MemoryObject(&mut host).map(MAP)), ExceptionKind::InvalidArgument);
        let full = MemoryObject(&mut host).restrict(RestrictParams { write: true, execute: true });
        assert_eq!(kind_of(full), ExceptionKind::Overloaded);
        let mut host = one(Err(NotNow::Refused(Refused::ObjectGone)));
        let unmap = UnmapParams { address: 0x1000, bytes: 0x1000 };
        assert_eq!(kind_of(MemoryObject(&mut host).unmap(unmap)), ExceptionKind::Disconnected);
        let mut host = one(Err(NotNow::Later));
        assert_eq!(MemoryObject(&mut host).unmap(unmap), Err(NoResult::Later));
    }
}
