//! Memory of the kernel's heap beside the charge that pays for it.

use alloc::vec::Vec;
use core_fallible::{OutOfMemory, try_collect, try_push, try_reserve_exact};
use core_ledger::{Charge, ChargeError, KernelBytes, Ledger};

/// Why there is no memory for a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoMemory {
    /// The machine has none.
    Machine,
    /// The process has used what it may, or is ending.
    Account(ChargeError),
}

impl From<OutOfMemory> for NoMemory {
    fn from(_: OutOfMemory) -> Self {
        Self::Machine
    }
}

impl From<ChargeError> for NoMemory {
    fn from(error: ChargeError) -> Self {
        Self::Account(error)
    }
}

/// Charges a process for so many items of the kernel's heap.
pub fn pay_for<T>(
    ledger: &'static Ledger,
    count: usize,
) -> Result<Charge<'static, KernelBytes>, NoMemory> {
    pay_for_bytes(ledger, count.checked_mul(size_of::<T>()).ok_or(NoMemory::Machine)?)
}

/// Charges a process for so many bytes of the kernel's heap.
pub fn pay_for_bytes(
    ledger: &'static Ledger,
    bytes: usize,
) -> Result<Charge<'static, KernelBytes>, NoMemory> {
    let bytes = u32::try_from(bytes).map_err(|_| NoMemory::Machine)?;
    Ok(ledger.reserve(KernelBytes, bytes)?.commit())
}

/// A vector whose memory a process has paid for: always as much as its capacity.
#[derive(Debug)]
pub struct PaidVec<T> {
    // Before the charge: the memory goes back first.
    items: Vec<T>,
    paid: Charge<'static, KernelBytes>,
}

impl<T> PaidVec<T> {
    /// An empty vector with room for so many.
    #[cfg_attr(not(target_os = "none"), track_caller)]
    pub fn with_room(ledger: &'static Ledger, count: usize) -> Result<Self, NoMemory> {
        let paid = pay_for::<T>(ledger, count)?;
        let mut items = Vec::new();
        try_reserve_exact(&mut items, count)?;
        Ok(Self { items, paid })
    }

    /// A vector of so many items, each made by its number.
    #[cfg_attr(not(target_os = "none"), track_caller)]
    pub fn of(
        ledger: &'static Ledger,
        count: usize,
        item: impl FnMut(usize) -> T,
    ) -> Result<Self, NoMemory> {
        let paid = pay_for::<T>(ledger, count)?;
        Ok(Self { items: try_collect((0..count).map(item))?, paid })
    }

    /// Makes room for so many more than there is room for now.
    #[cfg_attr(not(target_os = "none"), track_caller)]
    pub fn grow(&mut self, more: usize) -> Result<(), NoMemory> {
        let bytes = more.checked_mul(size_of::<T>()).and_then(|bytes| u32::try_from(bytes).ok());
        let reserved = self.paid.reserve_more(bytes.ok_or(NoMemory::Machine)?)?;
        let room = self.items.capacity().checked_add(more).ok_or(NoMemory::Machine)?;
        let missing = room - self.items.len();
        try_reserve_exact(&mut self.items, missing)?;
        // Of one account: it was reserved through this very charge.
        if self.paid.merge(reserved.commit()).is_err() {
            return Err(NoMemory::Machine);
        }
        Ok(())
    }

    /// Items it has room for.
    pub fn room(&self) -> usize {
        self.items.capacity()
    }

    /// The bytes that are paid for.
    pub fn paid_bytes(&self) -> u32 {
        self.paid.count()
    }

    /// Adds an item at the end, if there is room.
    pub fn push(&mut self, item: T) -> Result<(), OutOfMemory> {
        if self.items.len() == self.items.capacity() {
            return Err(OutOfMemory);
        }
        try_push(&mut self.items, item)
    }

    /// Takes the last item out.
    pub fn pop(&mut self) -> Option<T> {
        self.items.pop()
    }

    /// Takes an item out, in whose place the last one comes.
    pub fn swap_remove(&mut self, at: usize) -> T {
        self.items.swap_remove(at)
    }
}

impl<T> AsRef<[T]> for PaidVec<T> {
    #[inline(always)]
    fn as_ref(&self) -> &[T] {
        &self.items
    }
}

impl<T> AsMut<[T]> for PaidVec<T> {
    #[inline(always)]
    fn as_mut(&mut self) -> &mut [T] {
        &mut self.items
    }
}
