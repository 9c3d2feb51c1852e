//! What the pages of a process are used for, as operations and changes reach it.
//!
//! The list is `core_vm`'s; here are its lock and its storage, which grows with the regions and is paid for. The lock is held for
//! the list alone: page tables have their own, and what is in transit is its changer's without any
//! ([`core_vm::Use::Settling`]).

use crate::paid::{NoMemory, PaidVec};
use core_ledger::Ledger;
use core_vm::{PageRange, Region, Regions, VmError};
use smp_lock::{LockClass, TicketLock};

/// The regions of a process.
pub type RegionList = Regions<PaidVec<Region>>;

/// Regions a list has room for when the first is put in: a program's parts, its stack and a few more.
const FIRST_REGIONS: usize = 14;
/// Regions a process may have: making storage for so many fits a section of kernel code (`section`), and so does moving
/// them there, or those above a change.
pub const MAX_REGIONS: usize = 700;
/// Places that a list keeps for a change.
const SPARE: usize = 2;

/// What the pages of a process are used for.
#[derive(Debug)]
pub struct AddressMap {
    regions: TicketLock<Option<RegionList>>,
}

/// Why the list did not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapError {
    /// As the list says.
    Vm(VmError),
    /// There is no memory for a longer list, or nobody who pays for it.
    Memory(NoMemory),
}

impl From<NoMemory> for MapError {
    fn from(error: NoMemory) -> Self {
        Self::Memory(error)
    }
}

impl AddressMap {
    /// The map of a record without a process.
    pub fn new() -> Self {
        Self { regions: TicketLock::with_class(LockClass::Regions, None) }
    }

    /// Changes the list, in storage that is long enough for it unless it has as many regions as may be. `change` is
    /// called again if the list had to grow; `pause` is a preemption point, before and after a longer list is used.
    pub fn change<T>(
        &self,
        ledger: &'static Ledger,
        pause: impl Fn(),
        mut change: impl FnMut(&mut RegionList) -> Result<T, VmError>,
    ) -> Result<T, MapError> {
        loop {
            let limit = match self.regions.lock().as_mut() {
                None => 0,
                Some(regions) => match change(regions) {
                    Err(VmError::Full) if regions.limit() < MAX_REGIONS => regions.limit(),
                    done => return done.map_err(MapError::Vm),
                },
            };
            self.grow(ledger, limit, &pause)?;
            pause();
        }
    }

    /// Makes the list longer than `limit`, if nobody else has.
    fn grow(
        &self,
        ledger: &'static Ledger,
        limit: usize,
        pause: &impl Fn(),
    ) -> Result<(), NoMemory> {
        let longer = (2 * limit).clamp(FIRST_REGIONS, MAX_REGIONS) + SPARE;
        let storage = PaidVec::of(ledger, longer, |_| Region::UNUSED)?;
        pause();
        let mut regions = self.regions.lock();
        let left = match regions.as_mut() {
            None => {
                *regions = Some(Regions::new(storage).map_err(|_| NoMemory::Machine)?);
                None
            }
            Some(list) if list.limit() == limit => {
                Some(list.move_to(storage).map_err(|_| NoMemory::Machine)?)
            }
            Some(_) => Some(storage),
        };
        drop(regions);
        drop(left);
        Ok(())
    }

    /// What was begun for a range is done.
    pub fn settle(&self, range: PageRange) {
        if let Some(regions) = self.regions.lock().as_mut() {
            regions.settle(range);
        }
    }

    /// What was begun to be mapped there is not going to be; only the pages before number `end` are in the tables.
    pub fn abandon(&self, range: PageRange, end: u64) {
        if let Some(regions) = self.regions.lock().as_mut() {
            regions.abandon(range, end);
        }
    }

    /// The region that holds a page, or the free pages around it, as a range.
    pub fn find(&self, page: u64) -> Result<Region, (u64, u64)> {
        let regions = self.regions.lock();
        let all = regions.as_ref().map_or(&[][..], Regions::all);
        let at = all.partition_point(|region| region.range.end() <= page);
        match all.get(at) {
            Some(region) if region.range.first() <= page => Ok(*region),
            after => {
                let before = at.checked_sub(1).and_then(|before| all.get(before));
                let first = before.map_or(0, |region| region.range.end());
                Err((first, after.map_or(u64::MAX, |region| region.range.first())))
            }
        }
    }

    /// Pages with memory behind them.
    pub fn mapped_pages(&self) -> u64 {
        self.regions.lock().as_ref().map_or(0, Regions::mapped_pages)
    }

    /// Regions there is storage for, with what a change needs.
    pub fn places(&self) -> usize {
        self.regions.lock().as_ref().map_or(0, |regions| regions.limit() + SPARE)
    }

    /// Takes out at most `most` regions of a process without threads; `true` when none is left, and the storage is
    /// free.
    pub fn drain(&self, most: usize, gone: impl FnMut(Region)) -> bool {
        let mut regions = self.regions.lock();
        let is_empty = regions.as_mut().is_none_or(|regions| regions.drain(most, gone));
        let left = if is_empty { regions.take() } else { None };
        drop(regions);
        drop(left);
        is_empty
    }
}

impl Default for AddressMap {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::boxed::Box;
    use core_ledger::{Line, Profile};

    fn ledger() -> &'static Ledger {
        let profile = Profile { kernel_bytes: 1 << 20, ..Profile::NONE };
        Box::leak(Box::new(Ledger::new(&profile)))
    }

    fn pages(first: u64, count: u64) -> PageRange {
        PageRange::from_page(first, count).unwrap()
    }

    #[test]
    fn the_list_grows_up_to_what_a_process_may_have() {
        let (map, ledger) = (AddressMap::new(), ledger());
        assert_eq!(map.find(7), Err((0, u64::MAX)));
        let mut made = 0;
        let refused = loop {
            let range = pages(10 + 2 * made, 1);
            match map.change(ledger, || {}, |regions| regions.reserve(range)) {
                Ok(()) => made += 1,
                Err(refused) => break refused,
            }
        };
        assert_eq!((made, refused), (MAX_REGIONS as u64, MapError::Vm(VmError::Full)));
        assert_eq!(map.find(11), Err((11, 12)));
        assert_eq!(map.find(12).map(|region| region.range), Ok(pages(12, 1)));
        let used = |ledger: &Ledger| ledger.reading(Line::KernelBytes).used as usize;
        assert_eq!(used(ledger), (MAX_REGIONS + SPARE) * size_of::<Region>());
        while !map.drain(100, |_| panic!("reserved pages have nothing behind them")) {}
        assert_eq!(used(ledger), 0);
        assert_eq!(map.find(12), Err((0, u64::MAX)));
    }
}
