//! User address spaces: page tables of their own over the kernel's half, which all share.
//!
//! An [`AddressSpace`] lies in memory that is never given back; tables and pages come and go with
//! [`create`](AddressSpace::create) and [`destroy`](AddressSpace::destroy). A frame mapped in it is its own
//! unless the entry says that it is shared: the time page, which is one for all, and memory objects. No page is writable and executable. An account pays
//! for every frame that is its own, tables too, from before it is allocated until it is free again.
//!
//! Contract:
//! - an error leaves tables and frames as they were;
//! - pages above [`USER_END`] are never mapped, nor is the null page;
//! - what is unmapped comes back as [`Detached`], which keeps the frames and tables until no CPU
//!   can have a translation of them;
//! - the space is taken apart only once no context is made for it, so no CPU has it loaded.
//!
//! * [`copy`]: reading and writing user memory. [`enter`]: what is mapped. [`detached`]: what was unmapped.
//! * [`pinned`]: ring blocks, which the kernel reaches without a walk. [`buffer`]: registered buffers, alike.

mod buffer;
mod copy;
mod detached;
mod enter;
mod pinned;

pub use buffer::BufferPages;
pub(crate) use copy::copy as copy_between;
pub use copy::{MAX_COPY_BYTES, NotMapped};
pub use detached::{Detached, MAX_PAGES};
pub use enter::NewPages;
pub use pinned::{Pinned, PinnedBlock, PinnedRing, Pinning};

use crate::frames;
use crate::shared::SharedFrames;
use crate::tables::{self, Store};
use crate::{OutOfMemory, time_page};
use abi_types::place::USER_END;
use core::sync::atomic::{AtomicU32, Ordering};
use core_address::{Frame, PAGE_SIZE, VirtAddr};
use core_ledger::{Charge, ChargeError, Frames, Ledger};
pub use core_paging::teardown::Freed;
use core_paging::teardown::{COST_OF_A_RUN, Teardown};
use core_paging::{Access, Caching, MapError, Rights, UnmapError};
use core_vm::PageRange;
use kernel_arch::paging::Space;
use smp_lock::{LockClass, TicketLock};

/// An address space, or room for one.
#[derive(Debug)]
pub struct AddressSpace {
    machine: Space,
    root: TicketLock<Root>,
    /// Pinned blocks that are in use.
    pins: AtomicU32,
}

/// The table that all others of a space hang from.
#[derive(Debug)]
enum Root {
    /// There is no space.
    Absent,
    /// Pages are mapped below it, and CPUs may load it.
    InUse(InUse),
    /// What is below it is being freed.
    Closing(Closing),
}

/// A space that may be used.
#[derive(Debug)]
struct InUse {
    root: Frame,
    /// Pays for the root and everything below it.
    paid: Charge<'static, Frames>,
}

impl Root {
    /// The table, if pages may be mapped and found below it.
    #[inline]
    fn in_use(&self) -> Option<Frame> {
        match self {
            Self::InUse(space) => Some(space.root),
            Self::Absent | Self::Closing(_) => None,
        }
    }

    /// The table and what pays for it, if pages may be mapped below it.
    fn in_use_mut(&mut self) -> Result<&mut InUse, SpaceError> {
        match self {
            Self::InUse(space) => Ok(space),
            Self::Absent | Self::Closing(_) => Err(SpaceError::Absent),
        }
    }
}

/// Why pages could not be mapped. Nothing changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpaceError {
    /// There is no space here: it was not created, or it was destroyed.
    Absent,
    /// There is one already.
    Present,
    /// The range is empty, not page-aligned, holds the null page or reaches beyond user memory.
    BadRange,
    /// Some page of it is mapped, or, for what needs mapped pages, is not.
    Occupied,
    /// No frames.
    OutOfMemory,
    /// More flushes are not over than may be.
    TooManyFlushes,
    /// The account pays for no more.
    Account(ChargeError),
}

impl From<ChargeError> for SpaceError {
    fn from(error: ChargeError) -> Self {
        SpaceError::Account(error)
    }
}

impl From<OutOfMemory> for SpaceError {
    fn from(_: OutOfMemory) -> Self {
        SpaceError::OutOfMemory
    }
}

impl From<MapError> for SpaceError {
    fn from(error: MapError) -> Self {
        match error {
            MapError::BadRange => SpaceError::BadRange,
            MapError::AlreadyMapped => SpaceError::Occupied,
            MapError::OutOfMemory => SpaceError::OutOfMemory,
        }
    }
}

impl From<UnmapError> for SpaceError {
    fn from(error: UnmapError) -> Self {
        match error {
            UnmapError::BadRange => SpaceError::BadRange,
            UnmapError::NotMapped | UnmapError::CutsLargePage => SpaceError::Occupied,
        }
    }
}

/// Why a space cannot be taken apart yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StillInUse {
    /// Contexts are made for it.
    Contexts(u32),
    /// Pinned blocks are in use.
    Pins(u32),
    /// There is none.
    Absent,
}

impl AddressSpace {
    /// Room for a space.
    pub const fn new() -> Self {
        Self {
            machine: Space::new(),
            root: TicketLock::with_class(LockClass::Space, Root::Absent),
            pins: AtomicU32::new(0),
        }
    }

    /// Makes it an empty space, whose frames that account pays for.
    pub fn create(&'static self, ledger: &'static Ledger) -> Result<(), SpaceError> {
        let mut root = self.root.lock();
        if !matches!(*root, Root::Absent) {
            return Err(SpaceError::Present);
        }
        let paid = ledger.reserve(Frames, 1)?;
        let new = tables::new_root()?;
        // SAFETY: the root has the kernel's half (`new_root`) and stays until `destroy` closes it.
        unsafe { self.machine.open(new) };
        *root = Root::InUse(InUse { root: new, paid: paid.commit() });
        Ok(())
    }

    /// What the machine needs of it.
    pub(crate) fn machine_space(&'static self) -> &'static Space {
        &self.machine
    }

    /// The CPUs that have it loaded.
    pub fn resident(&self) -> kernel_arch::paging::CpuSet {
        self.machine.resident()
    }

    fn check_range(start: u64, pages: u64) -> Result<VirtAddr, SpaceError> {
        let bytes = pages.checked_mul(PAGE_SIZE).ok_or(SpaceError::BadRange)?;
        let end = start.checked_add(bytes).ok_or(SpaceError::BadRange)?;
        if pages == 0 || start < PAGE_SIZE || end > USER_END || !start.is_multiple_of(PAGE_SIZE) {
            return Err(SpaceError::BadRange);
        }
        VirtAddr::new(start).ok_or(SpaceError::BadRange)
    }

    /// Maps the page beyond [`USER_END`], executable: for a probe of what happens there.
    pub(crate) fn map_last_page(&self) -> Result<(), SpaceError> {
        let virt = VirtAddr::new(USER_END).ok_or(SpaceError::BadRange)?;
        self.map_zeroed(virt, 1, Access::Execute)
    }

    /// Maps at most [`MAX_PAGES`] new pages of zeros.
    pub fn map_new(&self, start: u64, pages: u64, access: Access) -> Result<(), SpaceError> {
        self.map_zeroed(Self::check_range(start, pages)?, pages, access)
    }

    fn map_zeroed(&self, virt: VirtAddr, pages: u64, access: Access) -> Result<(), SpaceError> {
        if pages > MAX_PAGES {
            return Err(SpaceError::BadRange);
        }
        let paid = self.pay_for(pages)?;
        let mut new = NewPages::new(pages as usize)?;
        let frame_of = |_| new.take().unwrap_or_default();
        self.enter(virt, pages, Rights::user(access), paid, frame_of)
    }

    /// Maps at most [`MAX_PAGES`] pages of a memory object from number `first` on. The caller holds it as long as they
    /// are mapped.
    pub fn map_object(
        &self,
        range: PageRange,
        access: Access,
        from: &SharedFrames,
        first: u64,
    ) -> Result<(), SpaceError> {
        let virt = Self::check_range(range.address(), range.pages())?;
        let mut found = [Frame::default(); MAX_PAGES as usize];
        let found = found.get_mut(..range.pages() as usize).ok_or(SpaceError::BadRange)?;
        from.find(first, found);
        let rights = Rights { shared: true, ..Rights::user(access) };
        let frame_of = |n| found.get(n as usize).copied().unwrap_or_default();
        self.enter(virt, range.pages(), rights, self.pay_for(0)?, frame_of)
    }

    /// Maps the time page, where every program expects it, and the counter it refers to.
    pub fn map_time_page(&self) -> Result<(), SpaceError> {
        let time = time_page::frame()?;
        self.map_shared(abi_types::place::TIME_VADDR, time, Caching::WriteBack)?;
        match time_page::counter_frame() {
            Some(frame) => {
                self.map_shared(abi_types::place::COUNTER_VADDR, frame, Caching::Uncached)
            }
            None => Ok(()),
        }
    }

    /// Maps a frame that is no address space's own, for reading.
    fn map_shared(&self, at: u64, frame: Frame, caching: Caching) -> Result<(), SpaceError> {
        let virt = Self::check_range(at, 1)?;
        let rights = Rights { caching, shared: true, ..Rights::user(Access::Read) };
        self.enter(virt, 1, rights, self.pay_for(0)?, |_| frame)
    }

    /// Takes the space apart, about `max_frames` frames at a time: what was freed, and whether that
    /// was the last of it. From the first call on nothing can be mapped or copied.
    pub fn destroy(&'static self, max_frames: u64) -> Result<Freed, StillInUse> {
        let mut lock = self.root.lock();
        if let Root::InUse(InUse { root, .. }) = *lock {
            // Acquire, pairs with the release when a block is let go.
            let pins = self.pins.load(Ordering::Acquire);
            if pins > 0 {
                return Err(StillInUse::Pins(pins));
            }
            // SAFETY: the root is freed below, and only then.
            unsafe { self.machine.close() }.map_err(StillInUse::Contexts)?;
            if let Root::InUse(InUse { paid, .. }) = core::mem::replace(&mut *lock, Root::Absent) {
                *lock = Root::Closing(Closing { root, paid, teardown: Teardown::new() });
            }
        }
        let Root::Closing(Closing { root, paid, teardown }) = &mut *lock else {
            return Err(StillInUse::Absent);
        };
        let budget = max_frames.max(1).saturating_mul(COST_OF_A_RUN);
        let freed = teardown.step(&Store, *root, budget, |first, count| {
            // SAFETY: each was leaked to the space when it was mapped, or by `new_table`; no CPU uses the tables
            // that led to it, and nothing reads its entry again (`Teardown`).
            unsafe { frames::release_run(first, count) };
        });
        // What was freed just now.
        let given_back = paid.split((freed.pages + freed.tables) as u32);
        debug_assert!(given_back.is_some(), "more frames were freed than were paid for");
        drop(given_back);
        if freed.is_done {
            debug_assert!(paid.count() == 0, "{} frames are lost", paid.count());
            *lock = Root::Absent;
        }
        Ok(freed)
    }
}

impl Default for AddressSpace {
    fn default() -> Self {
        Self::new()
    }
}

/// A space that is being taken apart.
#[derive(Debug)]
struct Closing {
    root: Frame,
    /// Pays for what is left.
    paid: Charge<'static, Frames>,
    /// How far it has got.
    teardown: Teardown,
}
