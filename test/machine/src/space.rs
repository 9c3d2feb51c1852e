//! A process's memory: pages that a test maps, and rings; the process's account pays for both.

use crate::shared::{HostShared, SharedPage};
use abi_ring_testing::PlainMemory;
use abi_sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use core_fallible::OutOfMemory;
use core_fallible::injection::Answers;
use core_ledger::{Charge, ChargeError, Frames, Ledger};
use core_tlb::{CpuSet, Resident, Residents, Shootdown, Token};
use core_vm::{Access, PageRange};
use kernel_ops::machine::{NotMapped, Space, Taken};
use kernel_ops::paid::{NoMemory, PaidVec};
use kernel_ops::registered::Pages;
use smp_ring_testing::cpu_here;
use std::collections::BTreeMap;
use std::panic::Location;
use std::sync::{Arc, Mutex, OnceLock};

const PAGE: u64 = 4096;

/// A process's memory, with rings in memory `R`.
pub struct HostSpace<R = &'static PlainMemory> {
    pages: Mutex<BTreeMap<u64, Page>>,
    /// Each with the pages it has.
    rings: Mutex<BTreeMap<u64, (R, u32)>>,
    /// Pays for pages and rings; `None` without a process.
    paid: Mutex<Option<Charge<'static, Frames>>>,
    /// Pages that can still be mapped by the kernel.
    left: Arc<Mutex<u64>>,
    /// Pages that were taken out, and that other CPUs may remember.
    leaving: Arc<Mutex<u32>>,
    /// The machine's flushes; without any, no CPU remembers anything.
    flushes: Option<&'static Flushes>,
}

impl<R> Default for HostSpace<R> {
    fn default() -> Self {
        Self {
            pages: Mutex::default(),
            rings: Mutex::default(),
            paid: Mutex::default(),
            left: Arc::new(Mutex::new(u64::MAX)),
            leaving: Arc::default(),
            flushes: None,
        }
    }
}

/// CPUs that can be told apart.
const CPUS: usize = 8;

/// Allocations of a machine, one of which may fail.
pub struct Allocations {
    count: AtomicUsize,
    fails_at: Option<usize>,
    has_begun: AtomicBool,
    denied: OnceLock<&'static Location<'static>>,
}

/// Counts one of the kernel's heap.
impl Answers for Allocations {
    fn has_memory(&self, at: &'static Location<'static>) -> bool {
        let is_denied = self.is_to_fail();
        if is_denied {
            self.denied.get_or_init(|| at);
        }
        !is_denied
    }
}

impl Allocations {
    /// They are counted from here on.
    pub(crate) fn begin(&self) {
        self.has_begun.store(true, SeqCst);
    }

    /// Counts one of the machine's own; the one that is to fail does.
    pub(crate) fn allocate(&self) -> Result<(), OutOfMemory> {
        if self.is_to_fail() { Err(OutOfMemory) } else { Ok(()) }
    }

    fn is_to_fail(&self) -> bool {
        self.has_begun.load(SeqCst) && self.fails_at == Some(self.count.fetch_add(1, SeqCst))
    }

    /// Where in the kernel's crates the one that failed was asked for.
    pub(crate) fn denied(&self) -> Option<&'static Location<'static>> {
        self.denied.get().copied()
    }

    /// Allocations so far.
    pub(crate) fn count(&self) -> usize {
        self.count.load(SeqCst)
    }
}

/// The flushes of a machine whose CPUs all have every space loaded, and its allocations.
pub struct Flushes {
    /// What is counted, and may fail.
    pub(crate) allocations: Arc<Allocations>,
    shootdown: Shootdown<CPUS>,
    residents: Residents,
}

impl Flushes {
    /// Nothing asked, of so many CPUs; the allocation of that number fails.
    pub fn new(cpus: usize, fails_at: Option<usize>) -> Self {
        let residents = Residents::new();
        (0..cpus).for_each(|cpu| residents.enter(Resident::of(cpu)));
        let allocations = Arc::new(Allocations {
            count: AtomicUsize::new(0),
            fails_at,
            has_begun: AtomicBool::new(false),
            denied: OnceLock::new(),
        });
        Self { allocations, shootdown: Shootdown::new(64), residents }
    }

    /// This CPU forgets what it was asked to.
    pub fn answer(&self) {
        self.shootdown.drain(cpu_here(), || {});
    }
}

/// Pages that were taken out.
pub struct HostTaken {
    flush: Option<(&'static Flushes, Token, CpuSet)>,
    /// Pays for them.
    paid: Option<Charge<'static, Frames>>,
    /// The pages themselves.
    remembered: Vec<SharedPage>,
    /// Where they are counted until they are free.
    leaving: Arc<Mutex<u32>>,
    /// Where there is room for as many then.
    left: Arc<Mutex<u64>>,
}

impl Taken for HostTaken {
    fn interrupt(&self) -> CpuSet {
        self.flush.as_ref().map_or(CpuSet::NONE, |(_, _, interrupt)| *interrupt)
    }

    fn is_flushed(&self) -> bool {
        self.flush.as_ref().is_none_or(|(flushes, token, _)| token.is_done(&flushes.shootdown))
    }

    fn release(self) -> Result<(), Self> {
        let Self { flush, paid, remembered, leaving, left } = self;
        if let Some((flushes, token, interrupt)) = flush
            && let Err(token) = token.finish(&flushes.shootdown)
        {
            let flush = Some((flushes, token, interrupt));
            return Err(Self { flush, paid, remembered, leaving, left });
        }
        let pages = paid.as_ref().map_or(0, Charge::count);
        let mut left = left.lock().unwrap();
        *left = left.saturating_add(pages.into());
        *leaving.lock().unwrap() -= pages;
        drop(paid);
        Ok(())
    }
}

struct Page {
    bytes: SharedPage,
    is_writable: bool,
    /// Whether it is a memory object's.
    is_shared: bool,
}

impl<R: Copy + Send + 'static> HostSpace<R> {
    /// Memory of a machine whose CPUs remember what was mapped.
    pub fn with_flushes(flushes: &'static Flushes) -> Self {
        Self { flushes: Some(flushes), ..Self::default() }
    }

    /// The kernel can map so many pages more.
    pub fn leave(&self, pages: u64) {
        *self.left.lock().unwrap() = pages;
    }

    /// Pages that are mapped.
    pub fn mapped(&self) -> Vec<u64> {
        self.pages.lock().unwrap().keys().copied().collect()
    }

    /// Asks the other CPUs to forget pages, of which so many are free then.
    fn take_away(&self, pages: u32) -> Option<HostTaken> {
        let flush = match self.flushes {
            Some(flushes) => {
                let permit = flushes.shootdown.begin().ok()?;
                let posted = permit.post(&flushes.residents, cpu_here());
                Some((flushes, posted.token, posted.interrupt))
            }
            None => None,
        };
        let paid = self.paid.lock().unwrap().as_mut().and_then(|paid| paid.split(pages));
        *self.leaving.lock().unwrap() += pages;
        let (leaving, left) = (self.leaving.clone(), self.left.clone());
        Some(HostTaken { flush, paid, remembered: Vec::new(), leaving, left })
    }

    /// Makes it the memory of a process with that account.
    pub fn create(&self, ledger: &'static Ledger) {
        let paid = ledger.reserve(Frames, 0).expect("an open account").commit();
        assert!(self.paid.lock().unwrap().replace(paid).is_none(), "it is another's");
    }

    fn pay(&self, pages: u32) -> Result<(), ChargeError> {
        let mut paid = self.paid.lock().unwrap();
        let paid = paid.as_mut().ok_or(ChargeError::Closed)?;
        let more = paid.reserve_more(pages)?.commit();
        paid.merge(more).expect("one account");
        Ok(())
    }

    fn refund(&self, pages: u32) {
        let mut paid = self.paid.lock().unwrap();
        if let Some(paid) = paid.as_mut() {
            paid.split(pages).expect("every page was paid for").release();
        }
    }

    /// Pages and pages of rings that there are.
    pub fn frames(&self) -> u32 {
        let rings = self.rings.lock().unwrap();
        self.pages.lock().unwrap().values().filter(|page| !page.is_shared).count() as u32
            + *self.leaving.lock().unwrap()
            + rings.values().map(|(_, pages)| pages).sum::<u32>()
    }

    /// Maps pages of zeros, where none are.
    pub fn map(&self, start: u64, pages: u64, is_writable: bool) {
        self.map_paid(start, pages, is_writable).expect("frames enough");
    }

    /// The same if the account pays for them: that of a process that is ending does not.
    pub fn map_paid(&self, start: u64, pages: u64, is_writable: bool) -> Result<(), ChargeError> {
        self.pay(pages as u32)?;
        self.put(start, pages, is_writable);
        Ok(())
    }

    fn put(&self, start: u64, pages: u64, is_writable: bool) {
        let mut map = self.pages.lock().unwrap();
        for page in 0..pages {
            let bytes = Arc::new(Mutex::new(vec![0; PAGE as usize].into_boxed_slice()));
            let new = Page { bytes, is_writable, is_shared: false };
            let there = map.insert(start / PAGE + page, new);
            assert!(there.is_none(), "a page is mapped twice");
        }
    }

    /// Takes a page away.
    pub fn unmap(&self, start: u64) {
        if self.pages.lock().unwrap().remove(&(start / PAGE)).is_some() {
            self.refund(1);
        }
    }

    /// Puts a ring of so many bytes at an address, made when it is paid for.
    pub fn put_ring(
        &self,
        address: u64,
        bytes: usize,
        make: impl FnOnce() -> R,
    ) -> Result<R, ChargeError> {
        let pages = bytes.div_ceil(PAGE as usize) as u32;
        self.pay(pages)?;
        let ring = make();
        self.rings.lock().unwrap().insert(address, (ring, pages));
        Ok(ring)
    }

    /// The ring at an address.
    pub fn ring(&self, address: u64) -> R {
        self.rings.lock().unwrap()[&address].0
    }

    /// Takes every ring away.
    pub fn take_rings(&self) -> impl Iterator<Item = R> {
        let rings = std::mem::take(&mut *self.rings.lock().unwrap());
        self.refund(rings.values().map(|(_, pages)| pages).sum());
        rings.into_values().map(|(ring, _)| ring)
    }

    /// Frees at most so many pages, and the rings with the last; whether nothing is left.
    pub fn free(&self, most: u64) -> bool {
        let mut map = self.pages.lock().unwrap();
        for _ in 0..most {
            if map.pop_first().is_some_and(|(_, page)| !page.is_shared) {
                self.refund(1);
            }
        }
        if map.is_empty() {
            drop(self.take_rings());
            *self.paid.lock().unwrap() = None;
        }
        map.is_empty()
    }

    /// Writes bytes whatever the pages' access, as the kernel does before there is a thread.
    pub fn fill(&self, to: u64, bytes: &[u8]) -> Result<(), NotMapped> {
        self.each(to, bytes.len(), false, |n, byte| *byte = bytes[n])
    }

    /// Writes a word, as the user would.
    pub fn store_u32(&self, address: u64, value: u32) {
        self.copy_out(address, &value.to_le_bytes()).expect("mapped");
    }

    fn each(
        &self,
        from: u64,
        bytes: usize,
        writes: bool,
        mut visit: impl FnMut(usize, &mut u8),
    ) -> Result<(), NotMapped> {
        let mut map = self.pages.lock().unwrap();
        let is_there = |at: u64| map.get(&(at / PAGE)).is_some_and(|p| p.is_writable || !writes);
        let end = from.checked_add(bytes as u64).ok_or(NotMapped)?;
        if !(from..end).all(is_there) {
            return Err(NotMapped);
        }
        for (n, at) in (from..end).enumerate() {
            let page = map.get_mut(&(at / PAGE)).unwrap();
            visit(n, &mut page.bytes.lock().unwrap()[(at % PAGE) as usize]);
        }
        Ok(())
    }
}

/// The pages behind a registered buffer.
pub struct HostPages(PaidVec<SharedPage>);

impl HostPages {
    /// Bytes that are paid for.
    pub(crate) fn paid_bytes(&self) -> usize {
        self.0.paid_bytes() as usize
    }

    fn each(&self, offset: u64, bytes: usize, mut visit: impl FnMut(usize, &mut u8)) {
        for (n, at) in (offset..offset + bytes as u64).enumerate() {
            let page = &self.0.as_ref()[(at / PAGE) as usize];
            visit(n, &mut page.lock().unwrap()[(at % PAGE) as usize]);
        }
    }
}

impl Pages for HostPages {
    fn read(&self, offset: u64, to: &mut [u8]) {
        self.each(offset, to.len(), |n, byte| to[n] = *byte);
    }

    fn write(&self, offset: u64, from: &[u8]) {
        self.each(offset, from.len(), |n, byte| *byte = from[n]);
    }

    fn copy_to(&self, offset: u64, to: &Self, to_offset: u64, bytes: usize) {
        let mut part = vec![0; bytes];
        self.read(offset, &mut part);
        to.write(to_offset, &part);
    }
}

impl<R: Copy + Send + 'static> Space for HostSpace<R> {
    fn copy_in(&self, to: &mut [u8], from: u64) -> Result<(), NotMapped> {
        self.each(from, to.len(), false, |n, byte| to[n] = *byte)
    }

    fn copy_out(&self, to: u64, from: &[u8]) -> Result<(), NotMapped> {
        self.each(to, from.len(), true, |n, byte| *byte = from[n])
    }

    fn is_readable(&self, from: u64, bytes: u64) -> bool {
        self.each(from, bytes as usize, false, |_, _| {}).is_ok()
    }

    fn load_u32(&self, address: u64) -> Result<u32, NotMapped> {
        if !address.is_multiple_of(4) {
            return Err(NotMapped);
        }
        let mut bytes = [0; 4];
        self.copy_in(&mut bytes, address)?;
        Ok(u32::from_le_bytes(bytes))
    }

    type Taken = HostTaken;

    fn map_new(&self, range: PageRange, access: Access) -> Result<(), NoMemory> {
        if let Some(flushes) = self.flushes {
            flushes.allocations.allocate()?;
        }
        let mut left = self.left.lock().unwrap();
        let after = left.checked_sub(range.pages()).ok_or(NoMemory::Machine)?;
        self.pay(range.pages() as u32)?;
        *left = after;
        drop(left);
        self.put(range.address(), range.pages(), access == Access::Write);
        Ok(())
    }

    type Pages = HostPages;

    fn new_pages(ledger: &'static Ledger, count: u64) -> Result<HostPages, NoMemory> {
        Ok(HostPages(PaidVec::with_room(ledger, count as usize)?))
    }

    fn add_pages(&self, pages: &mut HostPages, part: PageRange) -> Result<(), NotMapped> {
        let map = self.pages.lock().unwrap();
        for page in part.first()..part.end() {
            let page = map.get(&page).ok_or(NotMapped)?;
            pages.0.push(page.bytes.clone()).expect("there is room for them");
        }
        Ok(())
    }

    type Shared = HostShared;

    fn map_shared(
        &self,
        range: PageRange,
        access: Access,
        from: &HostShared,
        first: u64,
    ) -> Result<(), NoMemory> {
        // In the place of page tables.
        if *self.left.lock().unwrap() == 0 {
            return Err(NoMemory::Machine);
        }
        let mut map = self.pages.lock().unwrap();
        for page in 0..range.pages() {
            let bytes = from.page(first + page);
            let is_writable = access == Access::Write;
            let there =
                map.insert(range.first() + page, Page { bytes, is_writable, is_shared: true });
            assert!(there.is_none(), "a page is mapped twice");
        }
        Ok(())
    }

    fn unmap(&self, range: PageRange) -> Option<HostTaken> {
        let is_own = |page: &Page| !page.is_shared;
        let own = self
            .pages
            .lock()
            .unwrap()
            .range(range.first()..range.end())
            .filter(|(_, page)| is_own(page))
            .count();
        let mut taken = self.take_away(own as u32)?;
        for page in range.first()..range.end() {
            let gone = self.pages.lock().unwrap().remove(&page);
            let gone = gone.unwrap_or_else(|| panic!("{page:#x} is not mapped"));
            // Other CPUs may remember it.
            taken.remembered.push(gone.bytes);
        }
        Some(taken)
    }

    fn protect(&self, range: PageRange, access: Access) -> Option<HostTaken> {
        let taken = self.take_away(0)?;
        for page in range.first()..range.end() {
            let mut pages = self.pages.lock().unwrap();
            pages.get_mut(&page).expect("mapped").is_writable = access == Access::Write;
        }
        Some(taken)
    }
}
