//! The tables of threads and processes.
//!
//! Made once and never given back: a record is another thread's or process's in another generation, and
//! stays a record. So everything here is shared by plain references, and names are checked where they are
//! used.

use crate::process::{BeginError, NewProcess, Process};
use crate::remains::{Changes, Remains};
use crate::thread::Thread;
use abi_sync::atomic::{AtomicU64, Ordering};
use abi_sync::{AtomicRef, OnceSlice, const_fn};
use alloc::vec::Vec;
use core_endpoint::EndpointKey;
use core_thread::ThreadKey;
use kernel_ops::object::Objects;
use smp_lock::{LockClass, TicketLock};

/// The tables.
pub struct Records<M: Objects> {
    threads: OnceSlice<Thread<M>>,
    processes: OnceSlice<Process<M>>,
    /// What waits to be taken apart.
    pub remains: Remains,
    /// Changes of address spaces that wait for other CPUs.
    pub(crate) changes: TicketLock<Changes<M>>,
    /// The thread that takes it apart.
    pub(crate) reaper: AtomicRef<Thread<M>>,
    /// The first free thread record.
    free: TicketLock<u32>,
    /// Numbers address spaces for park keys.
    next_identity: AtomicU64,
}

impl<M: Objects> Records<M> {
    const_fn! {
        /// Tables without records.
        pub fn new() -> Self {
            Self {
                threads: OnceSlice::new(),
                processes: OnceSlice::new(),
                remains: Remains::new(),
                changes: TicketLock::with_class(LockClass::Changes, Changes::new()),
                reaper: AtomicRef::new(),
                free: TicketLock::with_class(LockClass::Global, 0),
                next_identity: AtomicU64::new(1),
            }
        }
    }

    /// Fills the tables with records, all of them free; `false` if they are filled already.
    pub fn fill(&self, threads: &'static [Thread<M>], processes: &'static [Process<M>]) -> bool {
        self.threads.set(threads) && self.processes.set(processes)
    }

    /// Thread records, in use or not.
    pub fn threads(&self) -> &'static [Thread<M>] {
        self.threads.as_slice()
    }

    /// Process records, in use or not.
    pub fn processes(&self) -> &'static [Process<M>] {
        self.processes.as_slice()
    }

    /// The record at a thread's position, whichever thread is in it.
    #[inline(always)]
    pub fn thread(&self, slot: u32) -> Option<&'static Thread<M>> {
        self.threads.get(slot as usize)
    }

    /// The record of the thread with this name, if it still is that thread's.
    #[inline]
    pub fn thread_named(&self, key: ThreadKey) -> Option<&'static Thread<M>> {
        self.thread(key.slot).filter(|thread| thread.state.load().generation() == key.generation)
    }

    /// The record at a process's position, whichever process is in it.
    #[inline(always)]
    pub fn process(&self, slot: u32) -> Option<&'static Process<M>> {
        self.processes.get(slot as usize)
    }

    /// Makes a free record a process without memory or threads; with the endpoints it serves.
    pub fn begin_process(
        &self,
        new: NewProcess,
    ) -> Result<(&'static Process<M>, Vec<EndpointKey>), BeginError> {
        let identity = self.next_identity.fetch_add(1, Ordering::Relaxed);
        let profile = new.profile;
        let mut free = (0_u32..).zip(self.processes());
        let (_, process) = free
            .find(|(slot, process)| process.ops.begin(*slot, identity, &profile))
            .ok_or(BeginError::Records)?;
        match process.begin(new) {
            Ok(endpoints) => Ok((process, endpoints)),
            Err(error) => {
                let is_zero = process.ops.vacate();
                debug_assert!(
                    is_zero,
                    "a process that did not begin has an account that is not zero"
                );
                Err(BeginError::Memory(error))
            }
        }
    }

    /// The thread that takes apart what ended, once it has begun; its account is its own.
    pub fn reaper(&self) -> Option<&'static Thread<M>> {
        self.reaper.get()
    }

    /// Takes a free thread record.
    pub(crate) fn take_thread(&self) -> Option<&'static Thread<M>> {
        let mut first = self.free.lock();
        let thread = self.thread(*first)?;
        *first = thread.next.load(Ordering::Relaxed);
        Some(thread)
    }

    /// Gives a thread record back whose word says that it is free.
    pub(crate) fn give_thread(&self, thread: &'static Thread<M>) {
        thread.ops.end();
        let mut first = self.free.lock();
        thread.next.store(*first, Ordering::Relaxed);
        *first = thread.slot();
    }
}

impl<M: Objects> Default for Records<M> {
    fn default() -> Self {
        Self::new()
    }
}
