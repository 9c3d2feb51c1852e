//! A process's memory: pages that a test maps, and rings.

use abi_ring_testing::PlainMemory;
use abi_sync::atomic::{AtomicU64, Ordering::SeqCst};
use core_fallible::OutOfMemory;
use core_tlb::{CpuSet, Resident, Residents, Shootdown, Token};
use core_vm::{Access, PageRange};
use kernel_ops::machine::{NotMapped, Space, Taken};
use smp_ring_testing::cpu_here;
use std::collections::BTreeMap;
use std::sync::Mutex;

const PAGE: u64 = 4096;

/// A process's memory, with rings in memory `R`.
pub struct HostSpace<R = &'static PlainMemory> {
    pages: Mutex<BTreeMap<u64, Page>>,
    rings: Mutex<BTreeMap<u64, R>>,
    /// Pages that can still be mapped by the kernel.
    left: Mutex<u64>,
    /// The machine's flushes; without any, no CPU remembers anything.
    flushes: Option<&'static Flushes>,
}

impl<R> Default for HostSpace<R> {
    fn default() -> Self {
        Self {
            pages: Mutex::default(),
            rings: Mutex::default(),
            left: Mutex::new(u64::MAX),
            flushes: None,
        }
    }
}

/// CPUs that can be told apart.
const CPUS: usize = 8;

/// The flushes of a machine whose CPUs all have every space loaded.
pub struct Flushes {
    shootdown: Shootdown<CPUS>,
    residents: Residents,
    /// Pages that were taken out, and that other CPUs may remember.
    pub(crate) waiting: AtomicU64,
}

impl Flushes {
    /// Nothing asked, of so many CPUs.
    pub fn new(cpus: usize) -> Self {
        let residents = Residents::new();
        (0..cpus).for_each(|cpu| residents.enter(Resident::of(cpu)));
        Self { shootdown: Shootdown::new(64), residents, waiting: AtomicU64::new(0) }
    }

    /// This CPU forgets what it was asked to.
    pub fn answer(&self) {
        self.shootdown.drain(cpu_here(), || {});
    }
}

/// Pages that were taken out.
pub struct HostTaken {
    flush: Option<(&'static Flushes, Token, CpuSet)>,
    pages: u64,
}

impl Taken for HostTaken {
    fn interrupt(&self) -> CpuSet {
        self.flush.as_ref().map_or(CpuSet::NONE, |(_, _, interrupt)| *interrupt)
    }

    fn is_flushed(&self) -> bool {
        self.flush.as_ref().is_none_or(|(flushes, token, _)| token.is_done(&flushes.shootdown))
    }

    fn release(self) -> Result<(), Self> {
        let Self { flush: Some((flushes, token, interrupt)), pages } = self else { return Ok(()) };
        match token.finish(&flushes.shootdown) {
            Ok(()) => {
                flushes.waiting.fetch_sub(pages, SeqCst);
                Ok(())
            }
            Err(token) => Err(Self { flush: Some((flushes, token, interrupt)), pages }),
        }
    }
}

struct Page {
    bytes: Box<[u8]>,
    is_writable: bool,
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

    /// Asks the other CPUs to forget pages.
    fn take_away(&self, pages: u64) -> Option<HostTaken> {
        let Some(flushes) = self.flushes else { return Some(HostTaken { flush: None, pages }) };
        let permit = flushes.shootdown.begin().ok()?;
        flushes.waiting.fetch_add(pages, SeqCst);
        let posted = permit.post(&flushes.residents, cpu_here());
        Some(HostTaken { flush: Some((flushes, posted.token, posted.interrupt)), pages })
    }

    /// Maps pages of zeros.
    pub fn map(&self, start: u64, pages: u64, is_writable: bool) {
        let mut map = self.pages.lock().unwrap();
        for page in 0..pages {
            let bytes = vec![0; PAGE as usize].into_boxed_slice();
            map.insert(start / PAGE + page, Page { bytes, is_writable });
        }
    }

    /// Takes a page away.
    pub fn unmap(&self, start: u64) {
        self.pages.lock().unwrap().remove(&(start / PAGE));
    }

    /// Puts a ring at an address.
    pub fn put_ring(&self, address: u64, ring: R) {
        self.rings.lock().unwrap().insert(address, ring);
    }

    /// The ring at an address.
    pub fn ring(&self, address: u64) -> R {
        self.rings.lock().unwrap()[&address]
    }

    /// Takes every ring away.
    pub fn take_rings(&self) -> impl Iterator<Item = R> {
        std::mem::take(&mut *self.rings.lock().unwrap()).into_values()
    }

    /// Frees at most so many pages, and the rings with the last; whether nothing is left.
    pub fn free(&self, most: u64) -> bool {
        let mut map = self.pages.lock().unwrap();
        for _ in 0..most {
            map.pop_first();
        }
        if map.is_empty() {
            self.rings.lock().unwrap().clear();
        }
        map.is_empty()
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
            visit(n, &mut page.bytes[(at % PAGE) as usize]);
        }
        Ok(())
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

    fn map_new(&self, range: PageRange, access: Access) -> Result<(), OutOfMemory> {
        let mut left = self.left.lock().unwrap();
        *left = left.checked_sub(range.pages()).ok_or(OutOfMemory)?;
        drop(left);
        for page in range.first()..range.end() {
            assert!(!self.pages.lock().unwrap().contains_key(&page), "{page:#x} is mapped twice");
        }
        self.map(range.address(), range.pages(), access == Access::Write);
        Ok(())
    }

    fn unmap(&self, range: PageRange) -> Option<HostTaken> {
        let taken = self.take_away(range.pages())?;
        for page in range.first()..range.end() {
            let gone = self.pages.lock().unwrap().remove(&page);
            assert!(gone.is_some(), "{page:#x} is not mapped");
        }
        let mut left = self.left.lock().unwrap();
        *left = left.saturating_add(range.pages());
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
