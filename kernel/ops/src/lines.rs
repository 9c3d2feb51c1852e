//! Places for the interrupt lines that programs have, for [`interrupt`](crate::interrupt).

use crate::party::Party;
use core_interrupt::{Line, Trigger};
use smp_lock::{LockClass, TicketLock};

/// Lines that programs have at most: as many as the controllers' routes.
pub const MAX_LINES: usize = 64;

/// A line, and how its device drives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wiring {
    /// Its number among all lines of the machine.
    pub line: u32,
    /// What on it is an interrupt.
    pub trigger: Trigger,
    /// Whether the active state is low.
    pub is_active_low: bool,
}

/// A place for a line.
pub(crate) struct Held {
    pub(crate) wiring: Wiring,
    /// Capabilities of it. Without one the place is another line's when there is no other.
    pub(crate) holders: u32,
    pub(crate) line: Line<Party>,
}

/// Places for lines.
pub(crate) type Slots = [Option<Held>; MAX_LINES];

/// The lines that programs have.
pub struct Lines(pub(crate) TicketLock<Slots>);

impl Lines {
    /// No line.
    pub fn new() -> Self {
        Self(TicketLock::with_class(LockClass::Global, [const { None }; MAX_LINES]))
    }
}

impl Default for Lines {
    fn default() -> Self {
        Self::new()
    }
}

/// The line at that place, if anybody has it.
pub(crate) fn held(lines: &mut Slots, place: u32) -> Option<&mut Held> {
    lines.get_mut(place as usize)?.as_mut().filter(|held| held.holders > 0)
}
