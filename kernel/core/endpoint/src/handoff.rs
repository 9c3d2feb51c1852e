//! The hand-off slot of a CPU: who should run next here, if nothing speaks against it.
//!
//! A CALL that finds its server blocked would like the server to run next, on the same CPU. The
//! slot carries that wish from the call to the next scheduling decision. It is a preference: a
//! thread in it is runnable, owned by the slot and in no queue; taking it out passes every
//! check a queued thread passes, and when the scheduler decides otherwise the thread goes to
//! the queue like any other, once.
//!
//! Called by its own CPU, under that CPU's queue lock; another CPU, too, under that lock, to
//! empty it when the target ends.

use core_thread::ThreadKey;

/// The slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandoffSlot {
    target: Option<ThreadKey>,
}

/// What became of an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Offer {
    /// The slot owns the thread now.
    Placed,
    /// The slot is taken or the thread may not run here: put it into a queue, once.
    Queue,
}

/// What comes out of the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Taken {
    /// Nothing was in it.
    Empty,
    /// Claim it and run it next.
    Run(ThreadKey),
    /// Others are due first: put it into this CPU's queue, once.
    Queue(ThreadKey),
    /// It ended meanwhile; nothing to do.
    Gone,
}

impl HandoffSlot {
    /// An empty slot.
    pub const fn new() -> Self {
        Self { target: None }
    }

    /// Who is in it.
    pub const fn target(&self) -> Option<ThreadKey> {
        self.target
    }

    /// The caller has just made `target` runnable and would like it to run next here.
    /// `may_run_here` is the scheduler's answer for this CPU (its mask, its context).
    #[inline]
    pub fn offer(&mut self, target: ThreadKey, may_run_here: bool) -> Offer {
        if self.target.is_some() || !may_run_here {
            return Offer::Queue;
        }
        self.target = Some(target);
        Offer::Placed
    }

    /// This CPU decides what to run. `is_fair` says that running the target now takes nothing
    /// from those who wait in the queue (two threads that hand off to each other run out of it
    /// together); `is_live` that its record still holds this thread, runnable.
    #[inline]
    pub fn take(&mut self, is_fair: bool, is_live: impl FnOnce(ThreadKey) -> bool) -> Taken {
        match self.target.take() {
            None => Taken::Empty,
            Some(target) if !is_live(target) => Taken::Gone,
            Some(target) if is_fair => Taken::Run(target),
            Some(target) => Taken::Queue(target),
        }
    }

    /// The thread ends: the slot lets go of it. Whether it had it.
    pub fn withdraw(&mut self, target: ThreadKey) -> bool {
        let has_it = self.target == Some(target);
        if has_it {
            self.target = None;
        }
        has_it
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ThreadKey = ThreadKey { slot: 1, generation: 1 };
    const B: ThreadKey = ThreadKey { slot: 2, generation: 1 };

    /// Every event in both states, with every answer from outside.
    #[test]
    fn every_event_in_every_state() {
        let empty = HandoffSlot::new();
        let with_a = HandoffSlot { target: Some(A) };
        for (slot, target, may_run_here, said, after) in [
            (empty, A, true, Offer::Placed, with_a),
            (empty, A, false, Offer::Queue, empty),
            (with_a, B, true, Offer::Queue, with_a),
            (with_a, B, false, Offer::Queue, with_a),
        ] {
            let mut slot = slot;
            assert_eq!((slot.offer(target, may_run_here), slot), (said, after));
        }
        for (slot, is_fair, is_live, said) in [
            (empty, true, true, Taken::Empty),
            (empty, false, false, Taken::Empty),
            (with_a, true, true, Taken::Run(A)),
            (with_a, false, true, Taken::Queue(A)),
            (with_a, true, false, Taken::Gone),
            (with_a, false, false, Taken::Gone),
        ] {
            let mut slot = slot;
            assert_eq!((slot.take(is_fair, |_| is_live), slot), (said, empty));
        }
    }

    /// PB13: the slot lets go of the thread it has, not of another use of its record.
    #[test]
    fn only_the_very_thread_is_withdrawn() {
        let mut slot = HandoffSlot { target: Some(A) };
        assert!(!slot.withdraw(B));
        assert!(!slot.withdraw(ThreadKey { generation: 2, ..A }));
        assert_eq!(slot.target(), Some(A));
        assert!(slot.withdraw(A));
        assert_eq!(slot.target(), None);
    }
}
