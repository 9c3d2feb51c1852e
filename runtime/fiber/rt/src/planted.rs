//! Defects that models plant, to show that they would be found. Elsewhere there are none.

/// A defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// A wait is linked without another look at its condition under the lock.
    LinksWithoutLooking,
    /// A close ends the senders that wait, which were admitted.
    CloseEndsSenders,
    /// A value is moved to a waiter whose outcome is not decided by that.
    DeliversWithoutDeciding,
    /// A select commits to an arm although its wait is decided for another.
    CommitsUndecided,
    /// A select takes a value as received that was promised and taken back.
    TrustsPromises,
    /// Who was told that a channel is ready does not tell the next one.
    KeepsNewsToItself,
    /// A select that commits does not wake the one it commits to.
    CommitsWithoutWaking,
    /// An unlock lets the lock go although it hands it over.
    UnlocksAndHandsOver,
    /// A condition variable unlocks before it links.
    UnlocksBeforeLinking,
    /// The last receiver to go leaves the senders that wait.
    AbandonsSenders,
    /// A cancelled wait says so without deciding its outcome.
    CancelsWithoutDeciding,
    /// A cancellation that comes when the fiber does not wait is forgotten.
    CancelsOnlyTheParked,
    /// A shield masks nothing.
    ShieldsNothing,
    /// Whoever looks for a waiter gives up at one that has ended otherwise.
    StopsAtTheGone,
    /// A fiber that ends decides its joiner's wait while it is still a member of its scope.
    DecidesBeforeUnlinking,
    /// A future looks at its outcome, and then says whom to wake.
    LooksBeforeItRegisters,
    /// A future that is dropped keeps the value that was handed to it.
    DropsWhatItHolds,
    /// A future that is dropped keeps what a sender has committed itself to send it.
    KeepsItsPromise,
    /// A future that is dropped drops its value, also if that was taken.
    DropsWhatWasTaken,
    /// A channel is drained although a future may still give a value back.
    ForgetsWhatIsInHand,
    /// A wait that has ended otherwise leaves its timer in the wheel.
    LeavesItsTimer,
    /// Whoever fires timers ends their waits after the wheel's lock.
    EndsWaitsUnlocked,
    /// Whoever takes a timer out does not wait for its function to return.
    WaitsForNoTimer,
    /// A thread that goes on leaves its word as whoever woke it set it.
    KeepsItsWake,
    /// The keeper looks for deadlines without a fence after it has said that it is.
    KeepsWithoutAFence,
}

/// Whether the model that runs has planted `defect`.
#[cfg(not(loom))]
#[inline(always)]
pub const fn is_planted(_defect: Defect) -> bool {
    false
}

/// Whether the model that runs has planted `defect`.
#[cfg(loom)]
pub fn is_planted(defect: Defect) -> bool {
    PLANTED.with(|planted| planted.get() == Some(defect))
}

#[cfg(loom)]
std::thread_local! {
    /// Of the thread that runs the model: all of its threads are on this one.
    static PLANTED: core::cell::Cell<Option<Defect>> = const { core::cell::Cell::new(None) };
}

/// Whether any defect is planted.
#[cfg(loom)]
pub(crate) fn is_any() -> bool {
    PLANTED.with(|planted| planted.get().is_some())
}

/// Plants `defect` for what follows on this thread.
#[cfg(loom)]
pub fn plant(defect: Defect) {
    PLANTED.with(|planted| planted.set(Some(defect)));
}
