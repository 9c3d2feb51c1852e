//! Taking a record, and making one where none is free.

use crate::handle;
use crate::machine::Machine;
use crate::process::{BeginError, NewProcess, Process};
use crate::records::Records;
use crate::thread::Thread;
use abi_sync::atomic::Ordering;
use alloc::vec::Vec;
use core_endpoint::EndpointKey;
use core_sched::CpuId;
use kernel_dispatch::preemption_point;

impl<M: Machine> Records<M> {
    /// Takes a free thread record, a new one if there is none; `None` without memory or places.
    pub fn take_thread(&self, m: M) -> Option<&'static Thread<M>> {
        let mut first = self.free.lock();
        if let Some(thread) = self.thread(*first) {
            *first = thread.next.load(Ordering::Relaxed);
            return Some(thread);
        }
        drop(first);
        let home = CpuId::new(0)?;
        let _growing = self.growth.lock();
        // The place where it may park comes first: whoever finds a record finds that.
        let slot = self.threads.as_slice().len() as u32;
        if self.threads.is_full() || !m.may_grow() || !m.tables().park.reach(slot) {
            return None;
        }
        self.threads.grow(|_| Thread::new(slot, home, m.new_context())).ok()
    }

    /// Makes a free record, or a new one, a process without memory or threads; with the endpoints it serves.
    pub fn begin_process(
        &self,
        m: M,
        new: NewProcess<'_>,
    ) -> Result<(&'static Process<M>, Vec<EndpointKey>), BeginError> {
        let identity = self.next_identity.fetch_add(1, Ordering::Relaxed);
        let (slot, process) = self.take_process(m).ok_or(BeginError::Records)?;
        if !process.ops.begin(slot, identity, &new.profile) {
            m.defect("a free process record is in use");
        }
        let (key, handles) = (process.key(), new.handles);
        match process.begin(new, m.clock(), || preemption_point(m)) {
            Ok(endpoints) => Ok((process, endpoints)),
            Err(error) => {
                let is_zero = self.vacate(m, process);
                debug_assert!(
                    is_zero,
                    "a process that did not begin has an account that is not zero"
                );
                for _ in 0..handles {
                    // Nobody was given the handle that it was to have.
                    handle::released(m, key);
                }
                Err(BeginError::Memory(error))
            }
        }
    }

    /// Takes a free process record, a new one if there is none, and its position.
    fn take_process(&self, m: M) -> Option<(u32, &'static Process<M>)> {
        let mut first = self.free_processes.lock();
        let slot = *first;
        if let Some(process) = self.process(slot) {
            *first = process.next.load(Ordering::Relaxed);
            return Some((slot, process));
        }
        drop(first);
        let _growing = self.growth.lock();
        let slot = self.processes.as_slice().len() as u32;
        if self.processes.is_full() || !m.may_grow() {
            return None;
        }
        Some((slot, self.processes.grow(|_| Process::new(m.new_space())).ok()?))
    }

    /// Says that nothing is left of a process but its record, which is free once nobody can ask for it; whether its
    /// account was zero. What was lent to it comes back, and who waits for its end is told.
    #[must_use = "an account that is not zero is a leak"]
    pub fn vacate(&self, m: M, process: &'static Process<M>) -> bool {
        let key = process.key();
        let is_zero = process.ops.vacate();
        handle::gone(m, process, key);
        is_zero
    }

    /// Puts a record into the list of the free ones, that is nobody's.
    pub(crate) fn give_process(&self, slot: u32, process: &'static Process<M>) {
        let mut first = self.free_processes.lock();
        process.next.store(*first, Ordering::Relaxed);
        *first = slot;
    }
}
