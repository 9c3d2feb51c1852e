//! Registered buffers of a process: what each is, and its place in the process's table.
//!
//! How messages go through them is in `buffers.rs`; how one ends, with its last use, in `complete.rs`. Decided in ADR 361.

use crate::party::Party;
use abi_sync::mask_below;
use abi_types::limits::MAX_BUFFERS;
use alloc::boxed::Box;
use core_address::PAGE_SIZE;
use core_ledger::{Charge, KernelBytes, RegisteredBuffers};
use core_vm::PageRange;
use smp_buffers::{Cleared, Left, Place};

/// The pages behind a registered buffer. They stay mapped, to the same process and for the same access, as long as the
/// value exists. Offsets and lengths are inside of it.
pub trait Pages: Send + Sync + 'static {
    /// Copies bytes out, at most `MAX_COPY_BYTES`.
    fn read(&self, offset: u64, to: &mut [u8]);
    /// Copies bytes in, at most `MAX_COPY_BYTES`; of a buffer that may be written.
    fn write(&self, offset: u64, from: &[u8]);
    /// Copies bytes to another buffer that may be written, or to this one; at most `MAX_COPY_BYTES`.
    fn copy_to(&self, offset: u64, to: &Self, to_offset: u64, bytes: usize);
}

/// A registered buffer.
pub struct Registered<P> {
    /// What is behind it.
    pub pages: P,
    /// Where it is in the process's memory.
    pub range: PageRange,
    /// Whether what comes in may go there.
    pub is_written: bool,
    /// Pays for it.
    pub paid: Charge<'static, RegisteredBuffers>,
    /// Pays for this record.
    pub record: Charge<'static, KernelBytes>,
}

impl<P> Registered<P> {
    /// Whether so many bytes from an offset on are inside.
    pub(crate) fn holds(&self, offset: u64, bytes: u64) -> bool {
        offset.checked_add(bytes).is_some_and(|end| end <= self.range.pages() * PAGE_SIZE)
    }
}

/// A place of the table: a buffer, and the call that gives it up.
pub type BufferPlace<P> = Place<Box<Registered<P>>, Party>;

/// The registered buffers of a process, by number.
pub struct BufferTable<P>([BufferPlace<P>; MAX_BUFFERS as usize]);

impl<P: Pages> BufferTable<P> {
    /// None.
    pub fn new() -> Self {
        Self(core::array::from_fn(|_| Place::new()))
    }

    /// The place of a number.
    #[inline]
    pub fn get(&self, number: u16) -> Option<&BufferPlace<P>> {
        // The number is a program's: not even a guess reads past the table.
        let index = usize::from(number) & mask_below(number.into(), self.0.len()) as usize;
        if number < MAX_BUFFERS { self.0.get(index) } else { None }
    }

    /// Puts a buffer into a free place; its number.
    pub fn open(&self, buffer: Box<Registered<P>>) -> Result<u16, Box<Registered<P>>> {
        let mut left = buffer;
        for (number, place) in (0..).zip(&self.0) {
            match place.fill(left) {
                Ok(()) => return Ok(number),
                Err(again) => left = again,
            }
        }
        Err(left)
    }

    /// Empties the places of a process without threads; `false` if another CPU still looks at one.
    pub fn clear(&self) -> bool {
        self.0.iter().all(|place| match place.clear() {
            Cleared::Free => true,
            Cleared::Busy => false,
            Cleared::Was(buffer) => {
                // Its pages go with the memory of the process.
                drop(buffer);
                place.free();
                true
            }
        })
    }

    /// Shows the bytes of the kernel's heap that each open buffer's record takes, its pages not counted: for who counts.
    pub fn each_open(&self, mut visit: impl FnMut(&P, usize)) {
        for look in self.0.iter().filter_map(Place::look) {
            if let Some(buffer) = look.buffer() {
                visit(&buffer.pages, buffer.record.count() as usize);
            }
            let left = look.leave();
            debug_assert_eq!(left, Left::Used, "who counts does so when nothing is under way");
        }
    }
}

impl<P: Pages> Default for BufferTable<P> {
    fn default() -> Self {
        Self::new()
    }
}
