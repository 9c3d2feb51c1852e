//! What waits to be taken apart: dead threads, then processes without threads, each in the order they ended.
//!
//! The lists are linked through the records; here are their ends, and how far the first process has got.

use crate::process::Process;
use crate::thread::{NONE, Thread};
use abi_sync::atomic::{AtomicU32, Ordering};
use abi_sync::const_fn;
use kernel_ops::object::Objects;
use smp_lock::{LockClass, TicketLock};

/// How far a process has been taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Its capabilities are released.
    Capabilities,
    /// Calls at its endpoints are ended.
    Calls,
    /// Its memory is freed.
    Memory,
    /// Nothing is left but the record. A step of its own: telling of it takes as long as freeing.
    Record,
}

/// What waits to be taken apart.
#[derive(Debug)]
pub struct Remains {
    lists: TicketLock<Lists>,
    /// The first of the dead, once nothing waits for it any more: the rest is the next step's.
    claimed: AtomicU32,
    /// How many threads and processes are to be taken apart.
    jobs: AtomicU32,
}

#[derive(Debug)]
struct Lists {
    threads: Ends,
    processes: Ends,
    stage: Stage,
}

/// The ends of a list, by position.
#[derive(Debug)]
struct Ends {
    first: u32,
    last: u32,
}

impl Ends {
    const EMPTY: Self = Self { first: NONE, last: NONE };

    /// Puts a record at the end, whose own link says [`NONE`]; `link` sets that of another.
    fn push(&mut self, slot: u32, link: impl FnOnce(u32, u32)) {
        if self.last == NONE {
            self.first = slot;
        } else {
            link(self.last, slot);
        }
        self.last = slot;
    }

    /// Takes the first out, after which `next` comes.
    fn pop(&mut self, next: u32) {
        self.first = next;
        if next == NONE {
            self.last = NONE;
        }
    }
}

impl Remains {
    const_fn! {
        /// Nothing.
        pub fn new() -> Self {
            let (threads, processes) = (Ends::EMPTY, Ends::EMPTY);
            let lists = Lists { threads, processes, stage: Stage::Capabilities };
            Self {
                lists: TicketLock::with_class(LockClass::Reaper, lists),
                claimed: AtomicU32::new(NONE),
                jobs: AtomicU32::new(0),
            }
        }
    }

    /// Whether something is to be taken apart.
    #[inline]
    pub fn has_work(&self) -> bool {
        self.jobs.load(Ordering::Relaxed) != 0
    }

    /// Adds a dead thread.
    pub(crate) fn add_thread<M: Objects>(
        &self,
        thread: &Thread<M>,
        record: impl FnOnce(u32) -> Option<&'static Thread<M>>,
    ) {
        thread.next.store(NONE, Ordering::Relaxed);
        self.lists.lock().threads.push(thread.slot(), |last, slot| {
            if let Some(last) = record(last) {
                last.next.store(slot, Ordering::Relaxed);
            }
        });
        self.jobs.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds a process without threads.
    pub(crate) fn add_process<M: Objects>(
        &self,
        process: &Process<M>,
        record: impl FnOnce(u32) -> Option<&'static Process<M>>,
    ) {
        process.next.store(NONE, Ordering::Relaxed);
        self.lists.lock().processes.push(process.slot(), |last, slot| {
            if let Some(last) = record(last) {
                last.next.store(slot, Ordering::Relaxed);
            }
        });
        self.jobs.fetch_add(1, Ordering::Relaxed);
    }

    /// The position of the first dead thread, or [`NONE`].
    pub(crate) fn first_thread(&self) -> u32 {
        self.lists.lock().threads.first
    }

    /// The position of the first process, or [`NONE`], and how far it has got.
    pub(crate) fn first_process(&self) -> (u32, Stage) {
        let lists = self.lists.lock();
        (lists.processes.first, lists.stage)
    }

    /// The first process has got so far.
    pub(crate) fn set_stage(&self, stage: Stage) {
        self.lists.lock().stage = stage;
    }

    /// Whether nothing waits for the first dead thread any more.
    pub(crate) fn is_claimed(&self, slot: u32) -> bool {
        self.claimed.load(Ordering::Relaxed) == slot
    }

    /// Notes that nothing waits for the first dead thread any more.
    pub(crate) fn set_claimed(&self, slot: u32) {
        self.claimed.store(slot, Ordering::Relaxed);
    }

    /// Takes the first dead thread out of the list; its job goes on until [`end_job`](Self::end_job).
    pub(crate) fn unlist_thread<M: Objects>(&self, thread: &Thread<M>) {
        self.claimed.store(NONE, Ordering::Relaxed);
        self.lists.lock().threads.pop(thread.next.load(Ordering::Relaxed));
    }

    /// Takes the first process out of the list.
    pub(crate) fn unlist_process<M: Objects>(&self, process: &Process<M>) {
        let mut lists = self.lists.lock();
        lists.processes.pop(process.next.load(Ordering::Relaxed));
        lists.stage = Stage::Capabilities;
    }

    /// One thread or process less to be taken apart.
    pub(crate) fn end_job(&self) {
        self.jobs.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Default for Remains {
    fn default() -> Self {
        Self::new()
    }
}
