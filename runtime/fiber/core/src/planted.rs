//! Defects that models plant into the real code, to show that they would be found. Elsewhere there are
//! none, and every order is what the code says.

use abi_sync::atomic::Ordering;

/// A defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// The watcher looks at the workers without a fence after its announcement.
    AnnouncesWithoutAFence,
    /// A worker looks for the watcher without a fence after its withdrawal.
    WakesWithoutAFence,
    /// A fiber is queued without a release.
    PushRelaxed,
    /// A thief looks at the tail without an acquire.
    StealRelaxed,
    /// The owner moves the head by a store.
    PopStores,
    /// A thief moves the head by a store.
    StealStores,
    /// A thief reads the slots after it has moved the head.
    StealReadsLate,
    /// A fiber is put into the empty slot without a release.
    PutRelaxed,
    /// A fiber is put into the full slot without a release.
    DisplaceRelaxed,
    /// A fiber is taken from the slot without an acquire.
    TakeRelaxed,
    /// The slot is emptied by a store.
    TakeStores,
    /// A worker falls asleep without a fence after its announcement.
    SleepsWithoutAFence,
    /// A worker that falls asleep counts as searching until after its fence.
    SearchesInItsSleep,
    /// A publisher looks for sleepers without a fence after its push.
    PublishesWithoutAFence,
    /// A sleeper is claimed by a look and a store.
    ClaimStores,
    /// A worker is nudged by an unpark that leaves no trace in its word.
    NudgesByUnparkAlone,
    /// A fiber is dispatched without an acquire.
    DispatchRelaxed,
    /// A fiber is given up without a release.
    RequeueRelaxed,
}

/// Whether the model that runs has planted `defect`.
#[cfg(not(loom))]
#[inline(always)]
pub(crate) const fn is_planted(_defect: Defect) -> bool {
    false
}

/// `order`, or a relaxed one if the model that runs has planted `defect`.
#[inline(always)]
pub(crate) fn order(defect: Defect, order: Ordering) -> Ordering {
    if is_planted(defect) { Ordering::Relaxed } else { order }
}

/// Whether the model that runs has planted `defect`.
#[cfg(loom)]
pub(crate) fn is_planted(defect: Defect) -> bool {
    PLANTED.with(|planted| planted.get() == Some(defect))
}

#[cfg(loom)]
std::thread_local! {
    /// Of the thread that runs the model: all of its threads are on this one.
    static PLANTED: core::cell::Cell<Option<Defect>> = const { core::cell::Cell::new(None) };
}

/// Plants `defect` for what follows on this thread.
#[cfg(loom)]
pub fn plant(defect: Defect) {
    PLANTED.with(|planted| planted.set(Some(defect)));
}
