//! An operation of a ring on behalf of one that waits for it, from its submission to its completion.
//!
//! It lives on the stack of its waiter until it has completed: the kernel may write to its buffers until
//! then. All of it is under the lock of the port it was given to.

use core::cell::Cell;
use core::ptr;

use abi_ring::INLINE_WORDS;
use abi_types::{Cqe, Sqe, SqeFlags};

use crate::list::Node;
use crate::wait::Wait;

/// Where an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Not given to a port.
    New,
    /// The ring has no room yet.
    Backlog,
    /// The kernel has it, or will at the next entry.
    UnderWay,
    /// It has completed.
    Done,
}

/// An operation, where its waiter keeps it.
pub struct Operation(pub(super) Node<Entry>);

/// What the port's lock protects of an operation.
pub(super) struct Entry {
    pub sqe: Sqe,
    /// What goes into an inline slot; the waiter's memory.
    pub payload: *const [u64],
    pub stage: Cell<Stage>,
    pub name: Cell<u64>,
    pub slot: Cell<Option<u16>>,
    /// The wait that its completion ends, if somebody waits.
    pub wait: Cell<*const Wait>,
    pub cqe: Cell<Cqe>,
    pub words: Cell<[u64; INLINE_WORDS]>,
}

// SAFETY: entries are only reached under the port's lock, or by the waiter when it is over.
unsafe impl Send for Entry {}

impl Operation {
    /// An operation with what goes into its inline slot, which stays where it is until it is done.
    pub fn new(sqe: Sqe, payload: &[u64]) -> Self {
        let is_inline =
            sqe.flags & (SqeFlags::BY_ADDRESS | SqeFlags::REGISTERED) == 0 && !payload.is_empty();
        Self(Node::new(Entry {
            sqe,
            payload: if is_inline { payload } else { &[] },
            stage: Cell::new(Stage::New),
            name: Cell::new(0),
            slot: Cell::new(None),
            wait: Cell::new(ptr::null()),
            cqe: Cell::new(Cqe::default()),
            words: Cell::new([0; INLINE_WORDS]),
        }))
    }

    /// What it completed with; by its waiter when it is done.
    pub fn completion(&self, words: &mut [u64; INLINE_WORDS]) -> Cqe {
        *words = self.0.value.words.get();
        self.0.value.cqe.get()
    }
}
