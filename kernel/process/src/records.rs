//! The tables of threads, processes and memory objects.
//!
//! They grow by a record whenever none is free, as far as memory and places go, and nothing is given back: a
//! record is another thread's or process's in another generation, and stays a record where it is. So everything
//! here is shared by plain references, and names are checked where they are used. Decided in ADRs 251 and 302.

use crate::entries::Entries;
use crate::process::Process;
use crate::remains::{Changes, Remains};
use crate::thread::{NONE, Thread};
use abi_sync::atomic::{AtomicU64, Ordering};
use abi_sync::{AtomicRef, GrowSlice, Room, const_fn};
use core_thread::ThreadKey;
use kernel_ops::machine::SharedOf;
use kernel_ops::object::Objects;
use kernel_ops::shared::{NO_RECORD, SharedObject};
use smp_lock::{LockClass, TicketLock};

/// The tables.
pub struct Records<M: Objects> {
    pub(crate) threads: GrowSlice<Thread<M>>,
    pub(crate) processes: GrowSlice<Process<M>>,
    pub(crate) objects: GrowSlice<SharedObject<SharedOf<M>>>,
    /// What waits to be taken apart.
    pub remains: Remains,
    /// Changes of address spaces that wait for other CPUs.
    pub(crate) changes: TicketLock<Changes<M>>,
    /// The thread that takes it apart.
    pub(crate) reaper: AtomicRef<Thread<M>>,
    /// The thread that brings output to the console.
    pub(crate) drain: AtomicRef<Thread<M>>,
    /// The first free thread record.
    pub(crate) free: TicketLock<u32>,
    /// The first free process record.
    pub(crate) free_processes: TicketLock<u32>,
    /// What runs of the boot manifest.
    pub(crate) entries: TicketLock<Entries>,
    /// The first free record of a memory object.
    pub(crate) free_objects: TicketLock<u32>,
    /// Who makes a table grow: one at a time, and never with another lock held.
    pub(crate) growth: TicketLock<()>,
    /// Numbers address spaces and memory objects for park keys.
    pub(crate) next_identity: AtomicU64,
}

impl<M: Objects> Records<M> {
    const_fn! {
        /// Tables without records.
        pub fn new() -> Self {
            Self {
                threads: GrowSlice::new(),
                processes: GrowSlice::new(),
                objects: GrowSlice::new(),
                remains: Remains::new(),
                changes: TicketLock::with_class(LockClass::Changes, Changes::new()),
                reaper: AtomicRef::new(),
                drain: AtomicRef::new(),
                free: TicketLock::with_class(LockClass::Global, NONE),
                free_processes: TicketLock::with_class(LockClass::Global, NONE),
                entries: TicketLock::with_class(LockClass::Global, Entries::new()),
                free_objects: TicketLock::with_class(LockClass::Global, NO_RECORD),
                growth: TicketLock::with_class(LockClass::Global, ()),
                next_identity: AtomicU64::new(1),
            }
        }
    }

    /// Gives the tables their places; `false` if they have some.
    pub fn set_rooms(
        &self,
        threads: Room<Thread<M>>,
        processes: Room<Process<M>>,
        objects: Room<SharedObject<SharedOf<M>>>,
    ) -> bool {
        self.threads.set_room(threads)
            && self.processes.set_room(processes)
            && self.objects.set_room(objects)
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

    /// The thread that takes apart what ended, once it has begun; its account is its own.
    pub fn reaper(&self) -> Option<&'static Thread<M>> {
        self.reaper.get()
    }

    /// The thread that brings output to the console, once it has begun; its account is its own.
    pub fn drain(&self) -> Option<&'static Thread<M>> {
        self.drain.get()
    }

    /// Gives a thread record back whose word says that it is free.
    pub fn give_thread(&self, thread: &'static Thread<M>) {
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
