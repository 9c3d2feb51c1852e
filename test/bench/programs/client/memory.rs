//! Pages that come and go.

use capos_rt::memory::PAGE_BYTES;
use core::sync::atomic::Ordering;
use test_kit::{Outcome, T, require_eq};

use crate::Bench;

/// Pages in one sample.
const PAGES: u64 = 8;

pub fn map_touch_unmap(t: &mut T<'_, Bench>) -> Outcome {
    let (env, memory) = (t.env.env, t.env.memory);
    let mut wrong = 0;
    let samples = t.env.counter.sample(|| {
        for _ in 0..PAGES {
            let done = memory.map(&env.io, PAGE_BYTES).and_then(|pages| {
                wrong += u32::from(pages.words()[0].swap(1, Ordering::Relaxed) != 0);
                memory.unmap(&env.io, pages)
            });
            wrong += u32::from(done.is_err());
        }
    });
    require_eq!(t, wrong, 0);
    samples.report(t, PAGES);
    Ok(())
}
