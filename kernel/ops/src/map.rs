//! What the pages of a process are used for, as operations and changes reach it, and which memory objects it holds.
//!
//! The list is `core_vm`'s; here are its lock and its storage, which grows with the regions and is paid for. The lock is held for
//! the list alone: page tables have their own, and what is in transit is its changer's without any
//! ([`core_vm::Use::Settling`]). Pages of a memory object are counted in the process's [`Holding`] of it, under the same
//! lock.

use crate::paid::{NoMemory, PaidVec};
use crate::shared::{HoldError, Holding, ObjectKey, Shared, SharedObject};
use abi_sync::atomic::{AtomicUsize, Ordering};
use core_address::PAGE_SIZE;
use core_ledger::Ledger;
use core_vm::{Backing, PageRange, Region, Regions, VmError};
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

/// Memory objects a process may hold: looking through them fits a section of kernel code, and so does moving them.
pub const MAX_HOLDINGS: usize = 512;
/// Memory objects there is room for when the first is held.
const FIRST_HOLDINGS: usize = 4;

/// What the pages of a process are used for.
pub struct AddressMap<S: Shared> {
    lists: TicketLock<Lists<S>>,
    /// How many memory objects it holds: without any, no word of it is shared.
    held: AtomicUsize,
}

struct Lists<S: Shared> {
    regions: Option<RegionList>,
    /// In ascending order of identities.
    holdings: Option<PaidVec<Holding<S>>>,
    /// So many of them may have nothing more to pay for.
    idle: u32,
}

impl<S: Shared> Lists<S> {
    fn holdings(&mut self) -> &mut [Holding<S>] {
        self.holdings.as_mut().map_or(&mut [], PaidVec::as_mut)
    }

    /// The position of the holding of an object, or where it would be.
    fn position(&self, identity: u64) -> Result<usize, usize> {
        let all = self.holdings.as_ref().map_or(&[][..], PaidVec::as_ref);
        all.binary_search_by_key(&identity, |holding| holding.identity)
    }

    /// Takes one out.
    fn take(&mut self, at: usize) -> Option<Holding<S>> {
        let holdings = self.holdings.as_mut()?;
        holdings.as_mut().get_mut(at..)?.rotate_left(1);
        let taken = holdings.pop();
        self.forget_if_empty();
        taken
    }

    /// Gives the storage of holdings back if there are none.
    fn forget_if_empty(&mut self) {
        if self.holdings.as_ref().is_some_and(|holdings| holdings.as_ref().is_empty()) {
            self.holdings = None;
        }
    }

    /// Pages of an object are not in the list any more.
    fn unmapped(&mut self, identity: u64, pages: u64) {
        let Ok(at) = self.position(identity) else { return };
        let Some(holding) = self.holdings().get_mut(at) else { return };
        holding.unmapped(pages);
        if holding.pages == 0 {
            self.idle = self.idle.saturating_add(1);
        }
    }

    /// Changes the list of regions with `change`, which tells of what goes.
    fn change(&mut self, change: impl FnOnce(&mut RegionList, &mut dyn FnMut(Region))) {
        let Some(mut regions) = self.regions.take() else { return };
        change(&mut regions, &mut |gone| {
            if let Some(Backing::Object { id, .. }) = gone.usage.backing() {
                self.unmapped(id, gone.range.pages());
            }
        });
        self.regions = Some(regions);
    }
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

impl<S: Shared> AddressMap<S> {
    /// The map of a record without a process.
    pub fn new() -> Self {
        let lists = Lists { regions: None, holdings: None, idle: 0 };
        Self { lists: TicketLock::with_class(LockClass::Regions, lists), held: AtomicUsize::new(0) }
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
            let limit = match self.lists.lock().regions.as_mut() {
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
        let mut lists = self.lists.lock();
        let left = match lists.regions.as_mut() {
            None => {
                lists.regions = Some(Regions::new(storage).map_err(|_| NoMemory::Machine)?);
                None
            }
            Some(list) if list.limit() == limit => {
                Some(list.move_to(storage).map_err(|_| NoMemory::Machine)?)
            }
            Some(_) => Some(storage),
        };
        drop(lists);
        drop(left);
        Ok(())
    }

    /// What was begun for a range is done; whether a memory object may have gone with it, which
    /// [`take_idle`](Self::take_idle) gives.
    #[must_use = "an object that nobody uses is to be freed"]
    pub fn settle(&self, range: PageRange) -> bool {
        let mut lists = self.lists.lock();
        lists.change(|regions, gone| regions.settle(range, gone));
        lists.idle > 0
    }

    /// The buffer that those pages were registered for is gone.
    pub fn unregister(&self, range: PageRange) {
        if let Some(regions) = self.lists.lock().regions.as_mut() {
            regions.unregister(range);
        }
    }

    /// What was begun to be mapped there is not going to be; only the pages before number `end` are in the tables. As
    /// for [`settle`](Self::settle).
    #[must_use = "an object that nobody uses is to be freed"]
    pub fn abandon(&self, range: PageRange, end: u64) -> bool {
        let mut lists = self.lists.lock();
        lists.change(|regions, gone| regions.abandon(range, end, gone));
        lists.idle > 0
    }

    /// The region that holds a page, or the free pages around it, as a range.
    pub fn find(&self, page: u64) -> Result<Region, (u64, u64)> {
        let lists = self.lists.lock();
        let all = lists.regions.as_ref().map_or(&[][..], Regions::all);
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
        self.lists.lock().regions.as_ref().map_or(0, Regions::mapped_pages)
    }

    /// Regions there is storage for, with what a change needs.
    pub fn places(&self) -> usize {
        self.lists.lock().regions.as_ref().map_or(0, |regions| regions.limit() + SPARE)
    }

    /// Takes out at most `most` regions of a process without threads; `true` when none is left, and the storage is
    /// free.
    pub fn drain(&self, most: usize, gone: impl FnMut(Region)) -> bool {
        let mut lists = self.lists.lock();
        let is_empty = lists.regions.as_mut().is_none_or(|regions| regions.drain(most, gone));
        let left = if is_empty { lists.regions.take() } else { None };
        drop(lists);
        drop(left);
        is_empty
    }
}

/// Memory objects that a process holds.
impl<S: Shared> AddressMap<S> {
    /// Holds an object that the process made; without memory it comes back.
    pub fn hold_made(
        &self,
        ledger: &'static Ledger,
        made: Holding<S>,
    ) -> Result<(), (Holding<S>, HoldError)> {
        let mut lists = self.lists.lock();
        match self.make_room(&mut lists, ledger) {
            Ok(()) => self.put(&mut lists, made),
            Err(error) => return Err((made, error)),
        }
        Ok(())
    }

    /// Holds an object for pages of it that are to be mapped: what [`unhold`](Self::unhold) takes back, or whoever takes
    /// the pages out of the list.
    pub fn hold(
        &self,
        ledger: &'static Ledger,
        object: &'static SharedObject<S>,
        name: ObjectKey,
        pages: u64,
    ) -> Result<(), HoldError> {
        let identity = object.info(name)?.identity;
        let mut lists = self.lists.lock();
        if let Ok(at) = lists.position(identity)
            && let Some(holding) = lists.holdings().get_mut(at)
        {
            return Ok(holding.map_more(name, pages)?);
        }
        self.make_room(&mut lists, ledger)?;
        match Holding::of_mapper(ledger, object, name, pages) {
            Ok(holding) => {
                self.put(&mut lists, holding);
                Ok(())
            }
            Err(error) => {
                lists.forget_if_empty();
                Err(error)
            }
        }
    }

    /// Pages that an object was held for are not going to be in the list. As for [`settle`](Self::settle).
    #[must_use = "an object that nobody uses is to be freed"]
    pub fn unhold(&self, identity: u64, pages: u64) -> bool {
        let mut lists = self.lists.lock();
        lists.unmapped(identity, pages);
        lists.idle > 0
    }

    /// Makes room for one more.
    fn make_room(&self, lists: &mut Lists<S>, ledger: &'static Ledger) -> Result<(), HoldError> {
        let room = match &mut lists.holdings {
            None => {
                lists.holdings = Some(PaidVec::with_room(ledger, FIRST_HOLDINGS)?);
                return Ok(());
            }
            Some(holdings) if holdings.as_ref().len() < holdings.room() => return Ok(()),
            Some(holdings) => holdings,
        };
        match room.room() {
            MAX_HOLDINGS.. => Err(HoldError::TooMany),
            some => Ok(room.grow(some)?),
        }
    }

    /// Puts one where it belongs; there is room.
    fn put(&self, lists: &mut Lists<S>, holding: Holding<S>) {
        let (Ok(at) | Err(at)) = lists.position(holding.identity);
        let Some(holdings) = lists.holdings.as_mut() else { return };
        let put = holdings.push(holding);
        debug_assert!(put.is_ok(), "room was made for it");
        if let Some(after) = holdings.as_mut().get_mut(at..) {
            after.rotate_right(1);
        }
        self.held.store(holdings.as_ref().len(), Ordering::Relaxed);
    }

    /// Takes one out by number, under the lock.
    fn take(&self, lists: &mut Lists<S>, at: usize) -> Option<Holding<S>> {
        let taken = lists.take(at);
        self.held.store(lists.holdings().len(), Ordering::Relaxed);
        taken
    }

    /// Takes a holding out that has nothing more to pay for.
    pub fn take_idle(&self) -> Option<Holding<S>> {
        let mut lists = self.lists.lock();
        if lists.idle == 0 {
            return None;
        }
        match lists.holdings().iter().position(Holding::is_idle) {
            Some(at) => self.take(&mut lists, at),
            None => {
                lists.idle = 0;
                None
            }
        }
    }

    /// Takes the holding of an object out, if there is one.
    pub fn take_holding(&self, identity: u64) -> Option<Holding<S>> {
        let mut lists = self.lists.lock();
        let at = lists.position(identity).ok()?;
        self.take(&mut lists, at)
    }

    /// Takes any holding out, of a process without memory.
    pub fn take_any(&self) -> Option<Holding<S>> {
        let mut lists = self.lists.lock();
        let last = lists.holdings().len().checked_sub(1)?;
        self.take(&mut lists, last)
    }

    /// Frames, and bytes of the kernel's heap, that its holdings come to.
    pub fn held(&self) -> (u32, usize) {
        let mut lists = self.lists.lock();
        let room = lists.holdings.as_ref().map_or(0, PaidVec::room);
        let all = lists.holdings().iter();
        all.fold((0, room * size_of::<Holding<S>>()), |(frames, bytes), holding| {
            (frames + holding.frames(), bytes + holding.bytes() as usize)
        })
    }

    /// Which word of which memory object is at an address, if one is; `None` for the process's own.
    #[inline]
    pub fn shared_word(&self, address: u64) -> Option<(u64, u64)> {
        // Relaxed: who maps an object and then parks at it does both in one thread, or has told the other.
        if self.held.load(Ordering::Relaxed) == 0 {
            return None;
        }
        self.find_shared(address)
    }

    #[inline(never)]
    fn find_shared(&self, address: u64) -> Option<(u64, u64)> {
        let page = address / PAGE_SIZE;
        let region = self.find(page).ok()?;
        match region.usage.backing()? {
            Backing::Own => None,
            Backing::Object { id, first_page } => {
                let pages = first_page + (page - region.range.first());
                Some((id, pages * PAGE_SIZE + address % PAGE_SIZE))
            }
        }
    }
}

impl<S: Shared> core::fmt::Debug for AddressMap<S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} pages mapped", self.mapped_pages())
    }
}

impl<S: Shared> Default for AddressMap<S> {
    fn default() -> Self {
        Self::new()
    }
}
