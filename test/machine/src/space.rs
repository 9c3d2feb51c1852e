//! A process's memory: pages that a test maps, and rings; the process's account pays for both.

use abi_ring_testing::PlainMemory;
use core_ledger::{Charge, ChargeError, Frames, Ledger};
use kernel_ops::machine::{NotMapped, Space};
use std::collections::BTreeMap;
use std::sync::Mutex;

const PAGE: u64 = 4096;

/// A process's memory, with rings in memory `R`.
pub struct HostSpace<R = &'static PlainMemory> {
    pages: Mutex<BTreeMap<u64, Page>>,
    /// Each with the pages it has.
    rings: Mutex<BTreeMap<u64, (R, u32)>>,
    /// Pays for pages and rings; `None` without a process.
    paid: Mutex<Option<Charge<'static, Frames>>>,
}

impl<R> Default for HostSpace<R> {
    fn default() -> Self {
        Self { pages: Mutex::default(), rings: Mutex::default(), paid: Mutex::default() }
    }
}

struct Page {
    bytes: Box<[u8]>,
    is_writable: bool,
}

impl<R: Copy + Send + 'static> HostSpace<R> {
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
        self.pages.lock().unwrap().len() as u32
            + rings.values().map(|(_, pages)| pages).sum::<u32>()
    }

    /// Maps pages of zeros, where none are.
    pub fn map(&self, start: u64, pages: u64, is_writable: bool) {
        self.pay(pages as u32).expect("frames enough");
        let mut map = self.pages.lock().unwrap();
        for page in 0..pages {
            let bytes = vec![0; PAGE as usize].into_boxed_slice();
            let there = map.insert(start / PAGE + page, Page { bytes, is_writable });
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
            if map.pop_first().is_some() {
                self.refund(1);
            }
        }
        if map.is_empty() {
            drop(self.take_rings());
            *self.paid.lock().unwrap() = None;
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

    fn has_word(&self, address: u64) -> Result<(), NotMapped> {
        self.load_u32(address).map(|_| ())
    }
}
