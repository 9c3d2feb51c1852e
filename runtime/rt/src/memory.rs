//! Memory beyond what the program declares: pages of the process's own.
//!
//! ```ignore
//! let memory = Memory::of(&env.caps)?;
//! let pages = memory.map(&env.io, 4 * PAGE_BYTES)?;
//! pages.words()[0].store(1, Ordering::Relaxed);
//! memory.unmap(&env.io, pages)?;
//! ```
//!
//! Pages are given back by [`unmap`](Memory::unmap), or stay until the process ends. What is done with addresses alone
//! (guards, other access, fixed places) is the client's of the interface: `schema::virtual_memory`.

use core::sync::atomic::AtomicU64;

use abi_ring::Memory as RingMemory;
use abi_types::{CapSlot, Status};
use schema::memory_capnp::MemoryAccess;
use schema::virtual_memory;
use schema_wire::CallError;

use crate::capset::{CapSet, NoCap};
use crate::io::Io;
use crate::ring::Enter;

/// Bytes of a page: lengths are multiples of it.
pub const PAGE_BYTES: usize = 4096;

/// Lies in the program: new pages are mapped after it, where there are page tables already.
static HERE: u8 = 0;

/// The authority over the process's address space.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    slot: CapSlot,
}

/// Pages of zeros that the process may write, its own until it gives them back.
#[derive(Debug)]
#[must_use = "pages that are dropped stay mapped"]
pub struct Pages {
    address: usize,
    bytes: usize,
}

impl Memory {
    /// What the process was granted.
    pub fn of(caps: &CapSet) -> Result<Self, NoCap> {
        Ok(Self { slot: caps.first(virtual_memory::INTERFACE_ID)? })
    }

    /// The same from a slot that holds a VirtualMemory.
    pub const fn from_slot(slot: CapSlot) -> Self {
        Self { slot }
    }

    /// The slot.
    pub(crate) const fn slot(self) -> CapSlot {
        self.slot
    }

    /// Maps so many bytes of zeros, a multiple of [`PAGE_BYTES`], wherever there is room.
    pub fn map<M: RingMemory, K: Enter>(
        self,
        io: &Io<M, K>,
        bytes: usize,
    ) -> Result<Pages, CallError> {
        let mut client = virtual_memory::Client::new(io.caller(), self.slot);
        let hint = core::ptr::from_ref(&HERE).expose_provenance() & !(PAGE_BYTES - 1);
        let mapped = client.map(hint as u64, bytes as u64, MemoryAccess::Write, false)?.mapped;
        let address = usize::try_from(mapped).map_err(|_| Status::BadAddress)?;
        Ok(Pages { address, bytes })
    }

    /// Gives pages back. If that fails they stay mapped.
    pub fn unmap<M: RingMemory, K: Enter>(
        self,
        io: &Io<M, K>,
        pages: Pages,
    ) -> Result<(), CallError> {
        let mut client = virtual_memory::Client::new(io.caller(), self.slot);
        client.unmap(pages.address as u64, pages.bytes as u64).map(|_| ())
    }
}

impl Pages {
    /// Where they are.
    pub const fn address(&self) -> u64 {
        self.address as u64
    }

    /// How many bytes they have.
    pub const fn length(&self) -> usize {
        self.bytes
    }

    /// Their memory, for all threads.
    pub fn words(&self) -> &[AtomicU64] {
        let start = core::ptr::with_exposed_provenance::<AtomicU64>(self.address);
        // SAFETY: the kernel mapped so many bytes there for this process, readable and writable, where nothing was;
        // they stay while this value does, and nothing else was told of them.
        unsafe { core::slice::from_raw_parts(start, self.bytes / size_of::<AtomicU64>()) }
    }

    /// Their memory, for who has them alone.
    pub fn bytes(&mut self) -> &mut [u8] {
        let start = core::ptr::with_exposed_provenance_mut::<u8>(self.address);
        // SAFETY: as in `words`, and the borrow is exclusive.
        unsafe { core::slice::from_raw_parts_mut(start, self.bytes) }
    }
}
