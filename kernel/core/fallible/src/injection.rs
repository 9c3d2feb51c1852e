//! Lack of memory on purpose: who is asked before each allocation of a host thread.

extern crate std;

use crate::OutOfMemory;
use alloc::sync::Arc;
use core::cell::RefCell;
use core::panic::Location;

/// The one who says at which allocation there is no memory.
pub trait Answers {
    /// Whether there is memory for the allocation at that place.
    fn has_memory(&self, at: &'static Location<'static>) -> bool;
}

std::thread_local! {
    static ASKED: RefCell<Option<Arc<dyn Answers>>> = const { RefCell::new(None) };
}

/// From here on the allocations of this host thread ask `who`; the one they asked before.
pub fn install(who: Option<Arc<dyn Answers>>) -> Option<Arc<dyn Answers>> {
    ASKED.with(|asked| asked.replace(who))
}

pub(crate) fn ask(at: &'static Location<'static>) -> Result<(), OutOfMemory> {
    // Nothing is borrowed while it answers: under a model another thread may run then. A thread whose locals are
    // gone allocates like any other.
    let who = ASKED.try_with(|asked| asked.borrow().clone()).ok().flatten();
    if who.is_none_or(|who| who.has_memory(at)) { Ok(()) } else { Err(OutOfMemory) }
}
