//! The rings of console output, under one lock: what the writers and the drain do to them.
//!
//! What fits, who waits and whose turn it is decides `core_output`. How a write is kept and completed is in `output.rs`.

use crate::party::Party;
use alloc::boxed::Box;
use core_fallible::OutOfMemory;
use core_ledger::{Charge, KernelBytes};
use core_output::{Admitted, Left, Outlet, Outlets, RING_BYTES};
use smp_lock::{Guard, LockClass, TicketLock};
use smp_timer::{Pinned, Timers};
use zerocopy::IntoBytes;

/// The bytes of a ring, made of words of zeros, and what pays for the ring and those that wait for it.
#[derive(Debug)]
pub struct Bytes {
    pub(crate) words: Box<[u64]>,
    /// The charge.
    pub paid: Charge<'static, KernelBytes>,
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self.words.as_bytes()
    }
}

impl AsMut<[u8]> for Bytes {
    fn as_mut(&mut self) -> &mut [u8] {
        self.words.as_mut_bytes()
    }
}

/// What a process pays for its ring.
pub const OUTPUT_BYTES: usize = RING_BYTES + Outlet::<Party, Bytes>::OWN_BYTES;

pub(crate) type Rings = Outlets<Party, Bytes>;

/// The rings of all processes, by position.
#[derive(Debug)]
pub struct Outputs {
    rings: TicketLock<Rings>,
    /// The time limit of the drain's wait.
    timer: Timers,
}

impl Outputs {
    /// Places for the rings of so many processes.
    pub fn new(processes: usize) -> Result<Self, OutOfMemory> {
        let rings = TicketLock::with_class(LockClass::Endpoint, Outlets::new(processes)?);
        Ok(Self { rings, timer: Timers::new(1)? })
    }

    pub(crate) fn rings(&self) -> Guard<'_, Rings> {
        self.rings.lock()
    }

    /// The timer for the wait of whoever brings the output out.
    pub fn timer(&self) -> Option<Pinned<'_>> {
        self.timer.get(0)
    }

    /// Whether there is output.
    pub fn has_output(&self) -> bool {
        self.rings().has_output()
    }

    /// What goes out next, copied to the start of `into`: the position of its process, and how many bytes.
    pub fn peek(&self, into: &mut [u8]) -> Option<(u32, usize)> {
        self.rings().peek(into).map(|(process, count)| (process as u32, count))
    }

    /// So many bytes of a process have gone out; whether they were the last of one that has ended.
    #[must_use = "a process whose last byte has gone can be given up"]
    pub fn sent(&self, process: u32, count: usize) -> bool {
        self.rings().sent(process as usize, count)
    }

    /// Lets in the write of a process that has waited longest, if it fits.
    #[must_use = "whoever waits for it is to be told"]
    pub fn admit(&self, process: u32) -> Option<Admitted<Party>> {
        self.rings().admit(process as usize)
    }

    /// A process without threads has ended: whether its output is out, and its ring given back. If not,
    /// [`sent`](Self::sent) says when.
    #[must_use = "a process whose output is on its way is not gone"]
    pub fn leave(&self, process: u32) -> bool {
        // The ring is dropped after the lock.
        let left = self.rings().leave(process as usize);
        matches!(left, Left::Drained(_))
    }

    /// Takes nothing from now on: what has not been taken waits, for good.
    pub fn shut(&self) {
        self.rings().shut();
    }

    /// Whether a process has a ring.
    pub fn is_open(&self, process: u32) -> bool {
        self.rings().is_open(process as usize)
    }

    /// Processes that have a ring.
    pub fn open_count(&self) -> usize {
        self.rings().open_count()
    }
}
