//! What waits to be taken apart: dead threads, then processes without threads, each in the order they ended.
//!
//! The lists are linked through the records; here are their ends, and how far the first process has got. And the
//! changes of address spaces that wait until other CPUs have flushed, each in memory of its own.

use crate::change::Change;
use crate::process::Process;
use crate::thread::{NONE, Thread};
use abi_sync::atomic::{AtomicU32, Ordering, fence};
use abi_sync::const_fn;
use alloc::boxed::Box;
use kernel_dispatch::{self as dispatch, Here};
use kernel_ops::object::Objects;
use smp_ipi::Requests;
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
    /// How many threads and processes are to be taken apart, and changes to be made.
    jobs: AtomicU32,
    /// How many of them are changes of address spaces.
    changes: AtomicU32,
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
                changes: AtomicU32::new(0),
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

/// Changes of address spaces that wait for other CPUs, in the order they began to.
pub(crate) struct Changes<M: Objects> {
    first: Option<Box<Change<M>>>,
    /// Those that came after, the latest first.
    latest: Option<Box<Change<M>>>,
}

impl<M: Objects> Changes<M> {
    pub(crate) const fn new() -> Self {
        Self { first: None, latest: None }
    }

    /// Adds one at the end.
    pub(crate) fn push(&mut self, mut change: Box<Change<M>>) {
        change.next = self.latest.take();
        self.latest = Some(change);
    }

    /// The first of all.
    fn first(&mut self) -> &mut Option<Box<Change<M>>> {
        if self.first.is_none() {
            while let Some(mut change) = self.latest.take() {
                self.latest = change.next.take();
                change.next = self.first.take();
                self.first = Some(change);
            }
        }
        &mut self.first
    }

    /// Takes the first out if it can go on.
    pub(crate) fn take_ready(&mut self) -> Option<Box<Change<M>>> {
        let mut first = self.first().take_if(|first| first.is_ready())?;
        self.first = first.next.take();
        Some(first)
    }

    /// Whether the first can go on.
    pub(crate) fn is_ready(&mut self) -> bool {
        self.first().as_ref().is_some_and(|first| first.is_ready())
    }
}

impl Remains {
    /// Adds a change that waits for other CPUs; whether the first of all can go on already, and its wake may have
    /// come before.
    pub(crate) fn add_change<M: Objects>(
        &self,
        changes: &TicketLock<Changes<M>>,
        change: Box<Change<M>>,
    ) -> bool {
        let mut changes = changes.lock();
        changes.push(change);
        self.changes.fetch_add(1, Ordering::Relaxed);
        self.jobs.fetch_add(1, Ordering::Relaxed);
        // The waiter's half of the pair with the fence of the CPU that answers: added, fence, look whether it has.
        fence(Ordering::SeqCst);
        changes.is_ready()
    }

    /// A change is made.
    pub(crate) fn change_ended(&self) {
        self.changes.fetch_sub(1, Ordering::Relaxed);
        self.end_job();
    }

    /// Whether changes wait.
    #[inline]
    pub(crate) fn has_changes(&self) -> bool {
        self.changes.load(Ordering::Relaxed) != 0
    }

    /// Whether threads or processes are to be taken apart.
    pub(crate) fn has_dead(&self) -> bool {
        let lists = self.lists.lock();
        lists.threads.first != NONE || lists.processes.first != NONE
    }
}

/// Asks for a step of the reaper.
pub(crate) fn ask_for_a_step<M: Objects>(m: M) {
    let here = Here::now(m);
    dispatch::request(m, &here, here.id(), Requests::REAP);
}

impl Default for Remains {
    fn default() -> Self {
        Self::new()
    }
}
