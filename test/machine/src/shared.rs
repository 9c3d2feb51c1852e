//! The frames behind a memory object: pages that spaces map, and that nobody may have when they are freed.

use core_fallible::OutOfMemory;
use kernel_ops::shared::Shared;
use std::sync::{Arc, Mutex};

const PAGE: usize = 4096;

/// Bytes of a page that several may have.
pub(crate) type SharedPage = Arc<Mutex<Box<[u8]>>>;

/// The frames behind a memory object.
#[derive(Default)]
pub struct HostShared {
    pages: Mutex<Vec<SharedPage>>,
    has_index: Mutex<bool>,
    /// Frames that can still be made, if there is a limit.
    left: Option<Arc<Mutex<u64>>>,
}

impl HostShared {
    /// Frames of a machine that has so many left.
    pub fn limited(left: Arc<Mutex<u64>>) -> Self {
        Self { left: Some(left), ..Self::default() }
    }

    pub(crate) fn page(&self, number: u64) -> SharedPage {
        self.pages.lock().unwrap()[number as usize].clone()
    }

    fn take(&self) -> Result<(), OutOfMemory> {
        let Some(left) = &self.left else { return Ok(()) };
        let mut left = left.lock().unwrap();
        *left = left.checked_sub(1).ok_or(OutOfMemory)?;
        Ok(())
    }

    fn give(&self) {
        if let Some(left) = &self.left {
            *left.lock().unwrap() += 1;
        }
    }
}

impl Shared for HostShared {
    fn frames_for(pages: u64) -> Option<u32> {
        u32::try_from(pages + 1).ok()
    }

    fn begin(&self, _: u64) -> Result<(), OutOfMemory> {
        self.take()?;
        assert!(!std::mem::replace(&mut *self.has_index.lock().unwrap(), true), "it has frames");
        Ok(())
    }

    fn fill(&self, pages: u64) -> Result<(), OutOfMemory> {
        for _ in 0..pages {
            self.take()?;
            let page = Arc::new(Mutex::new(vec![0; PAGE].into_boxed_slice()));
            self.pages.lock().unwrap().push(page);
        }
        Ok(())
    }

    fn read(&self, offset: u64, to: &mut [u8]) {
        for (at, byte) in (offset..).zip(to) {
            *byte = self.page(at / PAGE as u64).lock().unwrap()[at as usize % PAGE];
        }
    }

    fn free(&self, frames: u64) -> bool {
        for _ in 0..frames {
            let Some(page) = self.pages.lock().unwrap().pop() else {
                if std::mem::take(&mut *self.has_index.lock().unwrap()) {
                    self.give();
                }
                return true;
            };
            assert_eq!(Arc::strong_count(&page), 1, "a page of an object is freed and mapped");
            self.give();
        }
        false
    }
}
