//! What the pages of a process are used for, as operations and changes reach it.
//!
//! The list is `core_vm`'s; here are its lock and its storage, which grows with the regions. The lock is held for
//! the list alone: page tables have their own, and what is in transit is its changer's without any
//! ([`core_vm::Use::Settling`]).

use abi_sync::atomic::{AtomicU64, Ordering};
use alloc::vec::Vec;
use core_address::PAGE_SIZE;
use core_fallible::{OutOfMemory, try_collect};
use core_park::Key;
use core_vm::{Backing, PageRange, Region, Regions, VmError};
use smp_lock::{LockClass, TicketLock};

/// The regions of a process.
pub type RegionList = Regions<Vec<Region>>;

/// Regions a list has room for when the first is put in: a program's parts, its stack and a few more.
const FIRST_REGIONS: usize = 14;
/// Regions a process may have: a change moves those above it, which together fit a section of kernel code
/// (`section`).
pub const MAX_REGIONS: usize = 2046;
/// Places that a list keeps for a change.
const SPARE: usize = 2;

/// What the pages of a process are used for.
#[derive(Debug)]
pub struct AddressMap {
    regions: TicketLock<Option<RegionList>>,
    /// Pages of memory objects among them. Without any, each word is the process's own.
    object_pages: AtomicU64,
}

/// Why the list did not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapError {
    /// As the list says.
    Vm(VmError),
    /// There is no memory for a longer list.
    OutOfMemory,
}

impl From<OutOfMemory> for MapError {
    fn from(OutOfMemory: OutOfMemory) -> Self {
        Self::OutOfMemory
    }
}

impl AddressMap {
    /// The map of a record without a process.
    pub fn new() -> Self {
        Self {
            regions: TicketLock::with_class(LockClass::Regions, None),
            object_pages: AtomicU64::new(0),
        }
    }

    /// Changes the list, in storage that is long enough for it unless it has as many regions as may be. `change` is
    /// called again if the list had to grow.
    pub fn change<T>(
        &self,
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
            self.grow(limit)?;
        }
    }

    /// Makes the list longer than `limit`, if nobody else has.
    fn grow(&self, limit: usize) -> Result<(), OutOfMemory> {
        let longer = (2 * limit).clamp(FIRST_REGIONS, MAX_REGIONS) + SPARE;
        let storage: Vec<Region> = try_collect((0..longer).map(|_| Region::UNUSED))?;
        let mut regions = self.regions.lock();
        let left = match regions.as_mut() {
            None => {
                *regions = Some(Regions::new(storage).map_err(|_| OutOfMemory)?);
                Vec::new()
            }
            Some(list) if list.limit() == limit => {
                list.move_to(storage).map_err(|_| OutOfMemory)?
            }
            Some(_) => storage,
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

    /// Counts pages of memory objects: before they are mapped.
    pub fn add_object_pages(&self, pages: u64) {
        self.object_pages.fetch_add(pages, Ordering::Relaxed);
    }

    /// Counts them out: after they are gone.
    pub fn remove_object_pages(&self, pages: u64) {
        self.object_pages.fetch_sub(pages, Ordering::Relaxed);
    }

    /// Where threads that park at an address meet: at a word of the process's own, named with its `identity`, or at
    /// one of a memory object, wherever that is mapped.
    #[inline(always)]
    pub fn key(&self, identity: u64, address: u64) -> Key {
        // Relaxed: who mapped an object before this thread parks has said so to it.
        if self.object_pages.load(Ordering::Relaxed) == 0 {
            return Key::private(identity, address);
        }
        self.key_among_objects(identity, address)
    }

    #[cold]
    #[inline(never)]
    fn key_among_objects(&self, identity: u64, address: u64) -> Key {
        let page = address / PAGE_SIZE;
        match self.find(page) {
            Ok(region) => match region.usage.backing() {
                Some(Backing::Object { id, first_page }) => {
                    let page = first_page + (page - region.range.first());
                    Key::shared(id, page * PAGE_SIZE + address % PAGE_SIZE)
                }
                _ => Key::private(identity, address),
            },
            Err(_) => Key::private(identity, address),
        }
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
    use core_vm::{Access, Ceiling};

    fn pages(first: u64, count: u64) -> PageRange {
        PageRange::from_page(first, count).unwrap()
    }

    #[test]
    fn the_list_grows_up_to_what_a_process_may_have() {
        let map = AddressMap::new();
        assert_eq!(map.find(7), Err((0, u64::MAX)));
        let mut made = 0;
        let refused = loop {
            let range = pages(10 + 2 * made, 1);
            match map.change(|regions| regions.reserve(range)) {
                Ok(()) => made += 1,
                Err(refused) => break refused,
            }
        };
        assert_eq!((made, refused), (MAX_REGIONS as u64, MapError::Vm(VmError::Full)));
        assert_eq!(map.find(11), Err((11, 12)));
        assert_eq!(map.find(12).map(|region| region.range), Ok(pages(12, 1)));
        while !map.drain(100, |_| panic!("reserved pages have nothing behind them")) {}
        assert_eq!(map.find(12), Err((0, u64::MAX)));
    }

    /// K3: a word of a memory object is one key wherever it is mapped, any other the process's own.
    #[test]
    fn keys_follow_what_is_behind_a_word() {
        let map = AddressMap::new();
        assert_eq!(map.key(5, 0x1004), Key::private(5, 0x1004));
        let backing = Backing::Object { id: 9, first_page: 3 };
        let range = pages(100, 4);
        map.add_object_pages(4);
        let mapped =
            map.change(|regions| regions.map(range, Access::Read, Ceiling::ANY, backing, 8));
        assert_eq!(mapped.map(|mapped| mapped.range), Ok(range));
        map.settle(range);
        assert_eq!(map.key(5, 102 * 4096 + 8), Key::shared(9, 5 * 4096 + 8));
        assert_eq!(map.key(5, 104 * 4096), Key::private(5, 104 * 4096));
        let split = pages(101, 1);
        map.change(|regions| regions.unmap(split, None)).unwrap();
        map.settle(split);
        map.remove_object_pages(1);
        assert_eq!(map.key(6, 101 * 4096), Key::private(6, 101 * 4096));
        assert_eq!(map.key(6, 103 * 4096), Key::shared(9, 6 * 4096));
        map.remove_object_pages(3);
        assert_eq!(map.key(6, 103 * 4096), Key::private(6, 103 * 4096));
    }
}
