//! Why a queue refused.

use crate::Activity;

/// A refusal; neither queue nor entity changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The entity's activity does not allow the operation.
    Activity {
        /// What it is doing.
        is: Activity,
    },
    /// The thread named is not this CPU's current one.
    NotCurrent,
    /// The thread named is not waiting in this queue.
    NotHere,
    /// This CPU already has a current thread; it must stop first.
    Occupied,
    /// The direct slot already has a target.
    SlotTaken,
    /// The slice is over and others wait: the order decides, not the hand-over.
    SliceOver,
    /// It is not certain that this thread is the one to run: the ordinary way decides.
    OutOfTurn,
}
