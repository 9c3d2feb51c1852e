//! VirtualMemory: the caller's own address space.

use crate::refuse;
use abi_types::limits::MAX_BUFFER_BYTES;
use core_vm::{Access, Backing, PageRange, Region, Use};
use kernel_ops::object::Calling;
use kernel_process::memory::{self, NotNow, Place, Refused, pages_of};
use kernel_process::{Machine, buffers};
use schema::memory::Region as Told;
use schema::memory_capnp::{MemoryAccess, RegionKind};
use schema::virtual_memory::{
    MapParams, MapResults, ProtectParams, RegionParams, RegionResults, RegisterParams,
    RegisterResults, ReserveParams, ReserveResults, Server, UnmapParams, UnregisterParams,
};
use schema_wire::{Answer, ExceptionKind, NoResult};

/// What it needs of the kernel. Lengths are in pages, and a change that is not refused takes place as a whole.
pub trait Host {
    /// Maps pages of zeros; where.
    fn map(&mut self, place: Place, pages: u64, access: Access) -> Result<u64, NotNow>;
    /// Frees pages.
    fn unmap(&mut self, address: u64, pages: u64) -> Result<(), NotNow>;
    /// Changes what may be done with pages.
    fn protect(&mut self, address: u64, pages: u64, access: Access) -> Result<(), NotNow>;
    /// Keeps pages without access; where.
    fn reserve(&mut self, place: Place, pages: u64) -> Result<u64, Refused>;
    /// The region that holds a page, or the free pages around it.
    fn region(&mut self, page: u64) -> Result<Result<Region, PageRange>, Refused>;
    /// Registers pages as a buffer; its number.
    fn register(&mut self, address: u64, pages: u64, is_written: bool) -> Result<u16, Refused>;
    /// Gives a buffer up.
    fn unregister(&mut self, buffer: u16) -> Result<(), NotNow>;
}

impl<M: Machine> Host for Calling<'_, M> {
    fn map(&mut self, place: Place, pages: u64, access: Access) -> Result<u64, NotNow> {
        memory::map(self, place, pages, access)
    }

    fn unmap(&mut self, address: u64, pages: u64) -> Result<(), NotNow> {
        memory::unmap(self, address, pages, None)
    }

    fn protect(&mut self, address: u64, pages: u64, access: Access) -> Result<(), NotNow> {
        memory::protect(self, address, pages, access, None)
    }

    fn reserve(&mut self, place: Place, pages: u64) -> Result<u64, Refused> {
        memory::reserve(self, place, pages)
    }

    fn region(&mut self, page: u64) -> Result<Result<Region, PageRange>, Refused> {
        memory::region(self, page)
    }

    fn register(&mut self, address: u64, pages: u64, is_written: bool) -> Result<u16, Refused> {
        buffers::register(self, address, pages, is_written)
    }

    fn unregister(&mut self, buffer: u16) -> Result<(), NotNow> {
        buffers::unregister(self, buffer)
    }
}

/// The server.
#[derive(Debug)]
pub struct VirtualMemory<'h, H>(pub &'h mut H);

/// The exception of a refusal.
pub(crate) fn refused(why: impl Into<Refused>) -> NoResult {
    let (kind, why) = why.into().exception();
    refuse(kind, why)
}

/// What a call without results is answered.
pub(crate) fn not_now(why: NotNow) -> NoResult {
    match why {
        NotNow::Refused(why) => refused(why),
        NotNow::Later => NoResult::Later,
    }
}

/// An access, as page tables say it.
pub(crate) const fn access_of(asked: MemoryAccess) -> Access {
    match asked {
        MemoryAccess::Read => Access::Read,
        MemoryAccess::Write => Access::Write,
        MemoryAccess::Execute => Access::Execute,
    }
}

/// Where pages are to be.
pub(crate) const fn place_of(address: u64, fixed: bool) -> Place {
    if fixed { Place::At(address) } else { Place::From(address) }
}

const fn asked_of(access: Access) -> MemoryAccess {
    match access {
        Access::Read => MemoryAccess::Read,
        Access::Write => MemoryAccess::Write,
        Access::Execute => MemoryAccess::Execute,
    }
}

/// A region as the interface says it; what is in transit, as what it is behind.
fn told(region: &Region) -> Told {
    let access = match region.usage {
        Use::Mapped { access, .. }
        | Use::Settling { access, .. }
        | Use::Registered { access, .. } => access,
        Use::Reserved | Use::Leaving(_) => Access::Read,
    };
    let (kind, object_offset) = match region.usage.backing() {
        None => (RegionKind::Reserved, 0),
        Some(Backing::Own) => (RegionKind::Own, 0),
        Some(Backing::Object { first_page, .. }) => (RegionKind::Object, first_page * PAGE_BYTES),
    };
    told_of(region.range, kind, access, object_offset)
}

const PAGE_BYTES: u64 = 4096;

fn told_of(range: PageRange, kind: RegionKind, access: Access, offset: u64) -> Told {
    Told {
        address: range.address(),
        bytes: range.pages() * PAGE_BYTES,
        kind,
        access: asked_of(access),
        object_offset: offset,
    }
}

impl<H: Host> Server for VirtualMemory<'_, H> {
    fn map(&mut self, params: MapParams) -> Answer<MapResults> {
        let pages = pages_of(params.bytes).map_err(refused)?;
        let place = place_of(params.address, params.fixed);
        let mapped = self.0.map(place, pages, access_of(params.access)).map_err(not_now)?;
        Ok(MapResults { mapped })
    }

    fn unmap(&mut self, params: UnmapParams) -> Answer<()> {
        let pages = pages_of(params.bytes).map_err(refused)?;
        self.0.unmap(params.address, pages).map_err(not_now)
    }

    fn protect(&mut self, params: ProtectParams) -> Answer<()> {
        let pages = pages_of(params.bytes).map_err(refused)?;
        self.0.protect(params.address, pages, access_of(params.access)).map_err(not_now)
    }

    fn reserve(&mut self, params: ReserveParams) -> Answer<ReserveResults> {
        let pages = pages_of(params.bytes).map_err(refused)?;
        let place = place_of(params.address, params.fixed);
        let reserved = self.0.reserve(place, pages).map_err(refused)?;
        Ok(ReserveResults { reserved })
    }

    fn region(&mut self, params: RegionParams) -> Answer<RegionResults> {
        let region = match self.0.region(params.address / PAGE_BYTES).map_err(refused)? {
            Ok(region) => told(&region),
            Err(free) => told_of(free, RegionKind::Free, Access::Read, 0),
        };
        Ok(RegionResults { region })
    }

    fn register(&mut self, params: RegisterParams) -> Answer<RegisterResults> {
        let pages = pages_of(params.bytes).map_err(refused)?;
        if params.bytes > MAX_BUFFER_BYTES {
            let why = "bytes is more than a buffer's 1048576; register several";
            return Err(refuse(ExceptionKind::InvalidArgument, why));
        }
        let buffer = self.0.register(params.address, pages, params.write).map_err(refused)?;
        Ok(RegisterResults { buffer })
    }

    fn unregister(&mut self, params: UnregisterParams) -> Answer<()> {
        self.0.unregister(params.buffer).map_err(not_now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core_ledger::ChargeError;
    use core_vm::{Ceiling, RangeError, VmError};
    use kernel_ops::paid::NoMemory;

    /// Answers everything alike, and remembers what it was asked.
    struct One {
        answer: Result<u64, NotNow>,
        asked: Option<(Place, u64, Option<Access>)>,
        region: Result<Region, PageRange>,
    }

    impl One {
        fn new(answer: Result<u64, NotNow>) -> Self {
            Self { answer, asked: None, region: Err(PageRange::from_page(7, 3).unwrap()) }
        }
    }

    impl Host for One {
        fn map(&mut self, place: Place, pages: u64, access: Access) -> Result<u64, NotNow> {
            self.asked = Some((place, pages, Some(access)));
            self.answer
        }
        fn unmap(&mut self, address: u64, pages: u64) -> Result<(), NotNow> {
            self.asked = Some((Place::At(address), pages, None));
            self.answer.map(|_| ())
        }
        fn protect(&mut self, address: u64, pages: u64, access: Access) -> Result<(), NotNow> {
            self.asked = Some((Place::At(address), pages, Some(access)));
            self.answer.map(|_| ())
        }
        fn reserve(&mut self, place: Place, pages: u64) -> Result<u64, Refused> {
            self.asked = Some((place, pages, None));
            Ok(self.answer.unwrap())
        }
        fn region(&mut self, _: u64) -> Result<Result<Region, PageRange>, Refused> {
            Ok(self.region)
        }
        fn register(&mut self, address: u64, pages: u64, is_written: bool) -> Result<u16, Refused> {
            self.asked = Some((Place::At(address), pages, is_written.then_some(Access::Write)));
            Ok(7)
        }
        fn unregister(&mut self, buffer: u16) -> Result<(), NotNow> {
            self.asked = Some((Place::At(buffer.into()), 0, None));
            self.answer.map(|_| ())
        }
    }

    fn kind_of<T: core::fmt::Debug>(answer: Answer<T>) -> ExceptionKind {
        match answer {
            Err(NoResult::Exception(exception)) => exception.kind(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_asked_arrives() {
        let mut host = One::new(Ok(0x5000));
        let params =
            MapParams { address: 0x2000, bytes: 0x3000, access: MemoryAccess::Write, fixed: true };
        assert_eq!(VirtualMemory(&mut host).map(params), Ok(MapResults { mapped: 0x5000 }));
        assert_eq!(host.asked, Some((Place::At(0x2000), 3, Some(Access::Write))));
        let params = MapParams { fixed: false, access: MemoryAccess::Execute, ..params };
        assert!(VirtualMemory(&mut host).map(params).is_ok());
        assert_eq!(host.asked, Some((Place::From(0x2000), 3, Some(Access::Execute))));
        let params = UnmapParams { address: 0x1000, bytes: 0x1000 };
        assert_eq!(VirtualMemory(&mut host).unmap(params), Ok(()));
        let params = ProtectParams { address: 0x1000, bytes: 0x1000, access: MemoryAccess::Read };
        assert_eq!(VirtualMemory(&mut host).protect(params), Ok(()));
        assert_eq!(host.asked, Some((Place::At(0x1000), 1, Some(Access::Read))));
        let params = ReserveParams { address: 0, bytes: 0x1000, fixed: false };
        assert_eq!(
            VirtualMemory(&mut host).reserve(params),
            Ok(ReserveResults { reserved: 0x5000 })
        );
    }

    #[test]
    fn lengths_that_are_no_pages_are_refused_before_anything_happens() {
        let mut host = One::new(Ok(0));
        for bytes in [0, 1, 4095, 4097, u64::MAX] {
            let access = MemoryAccess::Read;
            let mut server = VirtualMemory(&mut host);
            let map = server.map(MapParams { address: 0x1000, bytes, access, fixed: true });
            assert_eq!(kind_of(map), ExceptionKind::InvalidArgument);
            let unmap = server.unmap(UnmapParams { address: 0x1000, bytes });
            assert_eq!(kind_of(unmap), ExceptionKind::InvalidArgument);
            let protect = server.protect(ProtectParams { address: 0x1000, bytes, access });
            assert_eq!(kind_of(protect), ExceptionKind::InvalidArgument);
            let reserve = server.reserve(ReserveParams { address: 0x1000, bytes, fixed: true });
            assert_eq!(kind_of(reserve), ExceptionKind::InvalidArgument);
        }
        assert_eq!(host.asked, None);
    }

    /// C10: each refusal has its kind and a sentence of its own; later is no refusal.
    #[test]
    fn each_refusal_has_its_kind() {
        use ExceptionKind::{Failed, InvalidArgument, Overloaded};
        let all = [
            (Refused::Range(RangeError::Empty), InvalidArgument),
            (Refused::Range(RangeError::Misaligned), InvalidArgument),
            (Refused::Range(RangeError::NotUser), InvalidArgument),
            (Refused::Range(RangeError::Kernel), InvalidArgument),
            (Refused::Vm(VmError::Occupied), Failed),
            (Refused::Vm(VmError::NotMapped), Failed),
            (Refused::Vm(VmError::Busy), Failed),
            (Refused::Vm(VmError::NotOfObject), Failed),
            (Refused::Vm(VmError::AboveCeiling), Failed),
            (Refused::Vm(VmError::ObjectTooShort), InvalidArgument),
            (Refused::Vm(VmError::Full), Overloaded),
            (Refused::Vm(VmError::NoRoom), Overloaded),
            (Refused::ObjectGone, ExceptionKind::Disconnected),
            (Refused::ObjectTooLarge, InvalidArgument),
            (Refused::TooManyObjects, Overloaded),
            (Refused::Slots, Overloaded),
            (Refused::Memory(NoMemory::Machine), Overloaded),
            (Refused::Memory(NoMemory::Account(ChargeError::Closed)), Failed),
        ];
        let params = UnmapParams { address: 0x1000, bytes: 0x1000 };
        for (n, (why, kind)) in all.iter().enumerate() {
            let mut host = One::new(Err(NotNow::Refused(*why)));
            assert_eq!(kind_of(VirtualMemory(&mut host).unmap(params)), *kind);
            let said = |(why, _): &(Refused, _)| why.exception().1;
            assert!(!all[..n].iter().any(|other| said(other) == said(&all[n])), "{why:?}");
        }
        let mut host = One::new(Err(NotNow::Later));
        assert_eq!(VirtualMemory(&mut host).unmap(params), Err(NoResult::Later));
    }

    #[test]
    fn regions_are_told_as_they_are() {
        let mut host = One::new(Ok(0));
        let mut ask = |region| {
            host.region = region;
            VirtualMemory(&mut host).region(RegionParams { address: 0x7123 }).unwrap().region
        };
        let range = PageRange::from_page(7, 3).unwrap();
        let free = ask(Err(range));
        assert_eq!((free.address, free.bytes, free.kind), (0x7000, 0x3000, RegionKind::Free));
        let backing = Backing::Object { id: 3, first_page: 5 };
        let usage = Use::Mapped { access: Access::Execute, ceiling: Ceiling::ANY, backing };
        let object = ask(Ok(Region { range, usage }));
        assert_eq!((object.kind, object.object_offset), (RegionKind::Object, 0x5000));
        assert_eq!(object.access, MemoryAccess::Execute);
        assert_eq!(ask(Ok(Region { range, usage: Use::Reserved })).kind, RegionKind::Reserved);
        let leaving = Use::Leaving(Some(Backing::Own));
        assert_eq!(ask(Ok(Region { range, usage: leaving })).kind, RegionKind::Own);
    }
}
