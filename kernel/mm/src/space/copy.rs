//! Reading and writing user memory through the direct map.
//!
//! The address is walked in the space's own tables and the copy goes to the frame found, under the
//! space's lock, but for a single word of the space that is loaded: it never faults, whatever is mapped, and a page cannot be taken away in between.
//! One copy is at most a page long, so the lock is held for a bounded time; a longer one is made of
//! several, and user memory may change between them, as it may at any time.

use super::{AddressSpace, BufferPages, Detached, SpaceError};
use crate::shared::SharedFrames;
use crate::tables::Store;
use core::arch::asm;
use core::sync::atomic::{AtomicU32, Ordering};
use core_address::{Frame, PAGE_SIZE, PhysAddr, VirtAddr, is_lower_half};
use core_ledger::Ledger;
use core_paging::{Access, tree};
use core_vm::PageRange;
use kernel_arch::{paging, user};
use kernel_ops::paid::NoMemory;

pub use kernel_ops::machine::{MAX_COPY_BYTES, NotMapped};

// A copy crosses one page boundary at most.
const _: () = assert!(MAX_COPY_BYTES as u64 == PAGE_SIZE);

/// What a copy may touch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Want {
    /// Any user page.
    Read,
    /// A page the user may write.
    Write,
    /// Any page, because the kernel fills it for the user.
    Fill,
}

/// A part of user memory inside one page, seen through the direct map.
struct Piece {
    at: *mut u8,
    bytes: usize,
}

fn piece(root: Frame, address: u64, bytes: usize, want: Want) -> Result<Piece, NotMapped> {
    let virt = VirtAddr::new(address).filter(|v| !v.is_upper_half()).ok_or(NotMapped)?;
    let inside = (PAGE_SIZE - virt.page_offset()) as usize;
    let found = tree::translate(&Store, root, virt).ok_or(NotMapped)?;
    let allowed = match want {
        Want::Read | Want::Fill => true,
        Want::Write => found.rights.access == Access::Write,
    };
    if !found.rights.user || !allowed {
        return Err(NotMapped);
    }
    Ok(Piece { at: paging::direct(found.phys), bytes: bytes.min(inside) })
}

/// The one or two pieces of a range no longer than a page.
fn pieces(root: Frame, address: u64, bytes: usize, want: Want) -> Result<[Piece; 2], NotMapped> {
    if bytes > MAX_COPY_BYTES {
        return Err(NotMapped);
    }
    let first = piece(root, address, bytes, want)?;
    let rest = bytes - first.bytes;
    if rest == 0 {
        let at = first.at;
        return Ok([first, Piece { at, bytes: 0 }]);
    }
    let next = address.checked_add(first.bytes as u64).ok_or(NotMapped)?;
    Ok([first, piece(root, next, rest, want)?])
}

/// Copies bytes that another party may change meanwhile: one instruction that the compiler does not
/// look into, words first.
///
/// # Safety
/// Both ranges are valid memory. If they overlap, as only two of a user's own may, some of their bytes are written there.
pub(crate) unsafe fn copy(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: by the contract; the direction flag is clear in the kernel.
    unsafe {
        asm!(
            "rep movsq",
            "mov ecx, {rest:e}",
            "rep movsb",
            rest = in(reg) bytes % 8,
            inout("rcx") bytes / 8 => _,
            inout("rdi") to => _,
            inout("rsi") from => _,
            options(nostack, preserves_flags),
        );
    }
}

impl AddressSpace {
    fn with_root<T>(
        &self,
        body: impl FnOnce(Frame) -> Result<T, NotMapped>,
    ) -> Result<T, NotMapped> {
        let root = self.root.lock();
        body(root.in_use().ok_or(NotMapped)?)
    }

    /// Reads user memory, at most [`MAX_COPY_BYTES`].
    pub fn copy_in(&self, to: &mut [u8], from: u64) -> Result<(), NotMapped> {
        self.with_root(|root| {
            let mut target = to.as_mut_ptr();
            for part in pieces(root, from, to.len(), Want::Read)? {
                // SAFETY: the pieces together are as long as `to`; frames that users have mapped are
                // memory in the direct map, never the kernel's own, and stay while the lock is held.
                unsafe {
                    copy(target, part.at, part.bytes);
                    target = target.add(part.bytes);
                }
            }
            Ok(())
        })
    }

    /// Writes user memory that the user could write, at most [`MAX_COPY_BYTES`].
    pub fn copy_out(&self, to: u64, from: &[u8]) -> Result<(), NotMapped> {
        self.put(to, from, Want::Write)
    }

    /// Writes what user memory is to hold from the start, whatever its access: code, constants.
    pub fn fill(&self, to: u64, from: &[u8]) -> Result<(), NotMapped> {
        let mut to = to;
        for part in from.chunks(MAX_COPY_BYTES) {
            self.put(to, part, Want::Fill)?;
            to = to.checked_add(part.len() as u64).ok_or(NotMapped)?;
        }
        Ok(())
    }

    fn put(&self, to: u64, from: &[u8], want: Want) -> Result<(), NotMapped> {
        self.with_root(|root| {
            let mut source = from.as_ptr();
            for part in pieces(root, to, from.len(), want)? {
                // SAFETY: as in `copy_in`, the other way round.
                unsafe {
                    copy(part.at, source, part.bytes);
                    source = source.add(part.bytes);
                }
            }
            Ok(())
        })
    }

    /// Whether every byte of a range could be read now.
    pub fn is_readable(&self, from: u64, bytes: u64) -> bool {
        let Some(end) = from.checked_add(bytes) else { return false };
        let mut at = from;
        while at < end {
            let page = self.with_root(|root| piece(root, at, 1, Want::Read).map(|_| ()));
            if page.is_err() {
                return false;
            }
            at = (at | (PAGE_SIZE - 1)) + 1;
        }
        true
    }

    /// Reads an aligned 32-bit word of user memory in one access. Acquire, pairs with the release
    /// of whoever in user space stored it. In place, without the lock, if this CPU has the space loaded, as it
    /// has for a thread's own operations.
    #[inline(always)]
    pub fn load_u32(&self, address: u64) -> Result<u32, NotMapped> {
        if self.machine.is_loaded_here() {
            return user::load_u32(address).ok_or(NotMapped);
        }
        self.load_u32_by_walk(address)
    }

    #[inline(never)]
    fn load_u32_by_walk(&self, address: u64) -> Result<u32, NotMapped> {
        if !address.is_multiple_of(4) || !is_lower_half(address) {
            return Err(NotMapped);
        }
        self.with_root(|root| {
            let part = piece(root, address, 4, Want::Read)?;
            // SAFETY: aligned, so inside its page; as in `copy_in`.
            Ok(unsafe { AtomicU32::from_ptr(part.at.cast()) }.load(Ordering::Acquire))
        })
    }

    /// Which frame and offset a user address leads to: what names a word of shared memory.
    pub fn translate(&self, address: u64) -> Result<PhysAddr, NotMapped> {
        self.with_root(|root| {
            let virt = VirtAddr::new(address).filter(|v| !v.is_upper_half()).ok_or(NotMapped)?;
            tree::translate(&Store, root, virt).map(|found| found.phys).ok_or(NotMapped)
        })
    }
}

/// Why free pages of user memory could not be mapped.
fn no_memory(error: SpaceError) -> NoMemory {
    match error {
        SpaceError::Account(error) => NoMemory::Account(error),
        other => {
            debug_assert_eq!(other, SpaceError::OutOfMemory, "pages in transit are free");
            NoMemory::Machine
        }
    }
}

impl kernel_ops::machine::Space for AddressSpace {
    fn copy_in(&self, to: &mut [u8], from: u64) -> Result<(), NotMapped> {
        AddressSpace::copy_in(self, to, from)
    }

    fn copy_out(&self, to: u64, from: &[u8]) -> Result<(), NotMapped> {
        AddressSpace::copy_out(self, to, from)
    }

    fn is_readable(&self, from: u64, bytes: u64) -> bool {
        AddressSpace::is_readable(self, from, bytes)
    }

    #[inline(always)]
    fn load_u32(&self, address: u64) -> Result<u32, NotMapped> {
        AddressSpace::load_u32(self, address)
    }

    type Taken = Detached;

    fn map_new(&self, range: PageRange, access: Access) -> Result<(), NoMemory> {
        let mapped = AddressSpace::map_new(self, range.address(), range.pages(), access);
        mapped.map_err(no_memory)
    }

    type Pages = BufferPages;

    fn new_pages(ledger: &'static Ledger, count: u64) -> Result<BufferPages, NoMemory> {
        BufferPages::with_room(ledger, count)
    }

    fn add_pages(&self, pages: &mut BufferPages, part: PageRange) -> Result<(), NotMapped> {
        self.add_to_buffer(pages, part)
    }

    type Shared = SharedFrames;

    fn map_shared(
        &self,
        range: PageRange,
        access: Access,
        from: &SharedFrames,
        first: u64,
    ) -> Result<(), NoMemory> {
        AddressSpace::map_object(self, range, access, from, first).map_err(no_memory)
    }

    fn unmap(&self, range: PageRange) -> Option<Detached> {
        let taken = AddressSpace::unmap(self, range.address(), range.pages());
        debug_assert!(matches!(taken, Ok(_) | Err(SpaceError::TooManyFlushes)), "{taken:?}");
        taken.ok()
    }

    fn protect(&self, range: PageRange, access: Access) -> Option<Detached> {
        let taken = AddressSpace::protect(self, range.address(), range.pages(), access);
        debug_assert!(matches!(taken, Ok(_) | Err(SpaceError::TooManyFlushes)), "{taken:?}");
        taken.ok()
    }
}
