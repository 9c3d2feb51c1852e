//! A poller's sleep and the end of its ownership: nobody waits for a poller that is gone.
//!
//! `NEED_WAKEUP` tells a producer that nobody looks at its queue. The flag is set before the
//! poller sleeps and before its ownership ends, and cleared only within a pass of the poller:
//! a late writer can leave it set for nothing, which costs an entry, never clear in error.
//!
//! ```text
//! poller                           producer
//! set NEED_WAKEUP                  store SqTail
//! full fence                       full fence
//! load SqTail: work? stay awake    load Flags: NEED_WAKEUP? enter the kernel
//! ```
//!
//! Each stores, then fences, then looks at what the other stored: at least one of them sees
//! the other, so no SQE is left that both believe to be the other's.

use abi_sync::atomic::Ordering;
use abi_types::{RingFlags, RingWord};

use crate::kernel::KernelRing;
use crate::memory::Memory;
use crate::owner::{Ended, PollerId, PollerToken, Refusal};

/// What a poller that wants to sleep is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Sleep {
    /// Sleep, as long as [`KernelRing::is_asleep`] says so.
    Now,
    /// An SQE came: begin a pass.
    Work,
}

impl<M: Memory> KernelRing<M> {
    /// Announces that the poller sleeps, and looks once more for work.
    pub fn fall_asleep(&self, token: &PollerToken) -> Result<Sleep, Refusal> {
        self.owner.fall_asleep(token)?;
        self.memory.store_relaxed(RingWord::Flags, RingFlags::NEED_WAKEUP);
        Ok(if self.work_after_fence() { Sleep::Work } else { Sleep::Now })
    }

    /// Wakes the ring's poller; says whether it slept and so is to be made runnable.
    #[inline]
    pub fn wake_poller(&self) -> bool {
        self.owner.wake()
    }

    /// Whether the poller is still asleep: what its thread checks when it blocks.
    #[inline]
    pub fn is_asleep(&self, poller: PollerId) -> bool {
        self.owner.is_asleep(poller)
    }

    /// Whether the poller owns the queue and nothing has asked it to stop.
    #[inline]
    pub fn is_live(&self, poller: PollerId) -> bool {
        self.owner.is_live(poller)
    }

    /// Ends a poller's ownership from outside. What it has consumed stays consumed.
    pub fn revoke(&self, poller: PollerId) -> Ended {
        self.owner.revoke(poller, || self.announce_no_poller())
    }

    /// Gives a poller's ownership back.
    pub fn release(&self, token: PollerToken) -> Ended {
        self.revoke(token.id())
    }

    /// Lets no pass begin any more. Completions can still be posted. The memory may be
    /// unmapped once nothing in the kernel can still be inside a pass.
    pub fn close(&self) -> Ended {
        self.owner.close(|| self.announce_no_poller())
    }

    /// Whether SQEs wait that were published before the call. After the end of a poller's
    /// ownership: whether its thread has to be brought to dispatch them.
    pub fn work_after_fence(&self) -> bool {
        // Pairs with the fence in `UserRing::publish_polled`.
        self.memory.full_fence();
        self.memory.load_relaxed(RingWord::SqTail) != self.sq_head.load(Ordering::Relaxed)
    }

    fn announce_no_poller(&self) {
        self.memory.store_relaxed(RingWord::Flags, RingFlags::NEED_WAKEUP);
    }
}

#[cfg(loom)]
impl<M: Memory> KernelRing<M> {
    /// A planted mutant: begins as the poller whatever the token's generation.
    pub fn begin_poll_of_any_generation(&self) -> Result<(), Refusal> {
        self.owner.begin_poll_of_any_generation().map(|_| ())
    }
}
