//! Accounts compared with what there is: a slow count of everything a process has, line by line.

use crate::machine::Host;
use crate::objects::HostObject;
use crate::world::World;
use abi_ring::Memory;
use abi_sync::atomic::{AtomicU64, Ordering::SeqCst};
use core_cap::Slot;
use core_endpoint::Limits;
use core_ledger::Line;
use core_thread::State;
use core_vm::Region;
use kernel_ops::capability::Object;
use kernel_ops::outlets::OUTPUT_BYTES;
use kernel_ops::service::Service;
use kernel_process::process::Members;
use kernel_process::{Machine, Process, Thread};
use smp_pending::{Cell, Target};
use smp_timer::Timers;

/// Bytes of the cells of a ring with so many completions, all but the first, and of all timers.
fn cells_bytes(cq_entries: u32) -> usize {
    let words = cq_entries.div_ceil(u64::BITS) as usize - 1;
    let cells = (cq_entries as usize - 1) * size_of::<Cell>() + words * size_of::<AtomicU64>();
    cells + Timers::bytes(cq_entries + 1)
}

impl World {
    /// Compares every account with what its process has. Only while nobody is in the middle of something: on
    /// one CPU, and with no thread at a preemption point of an operation.
    pub(crate) fn check_accounts(&self) {
        let is_at_something = |thread: &Thread<Host>| {
            let state = thread.state.load().state();
            let is_in_kernel = self.is_in_kernel(thread.slot()).load(SeqCst);
            is_in_kernel && matches!(state, State::Runnable | State::Running)
        };
        if self.cpus.len() > 1 || self.records.threads().iter().any(is_at_something) {
            return;
        }
        for process in self.records.processes().iter().filter(|p| p.key().generation % 2 == 1) {
            let counted = self.count(process);
            for line in Line::ALL {
                let used = process.ops.ledger.reading(line).used;
                let is = counted[line.index()];
                assert_eq!(used, is, "{line:?} of {process:?}: charged, and what there is");
            }
        }
    }

    /// What a process has, by line.
    fn count(&self, process: &'static Process<Host>) -> [u32; Line::COUNT] {
        let (slot, profile) = (process.slot(), process.members.lock().profile);
        let own = || self.records.threads().iter().filter(|t| t.ops.process_slot() == slot);
        let mut counted = [0; Line::COUNT];
        let mut bytes = 0;
        for thread in own() {
            let is_charged = thread.lifecycle.lock().as_ref().is_some_and(|l| l.is_charged());
            counted[Line::Threads.index()] += u32::from(is_charged);
            let Some(held) = thread.ops.home.completions() else { continue };
            counted[Line::KernelStackPages.index()] += <Host as Machine>::STACK_PAGES;
            let ring = held.ring();
            let sleeps =
                ring.shared.cells.busy(0).filter(|(_, cell)| cell.target() == Target::Sleep);
            counted[Line::SleepWaiters.index()] += sleeps.count() as u32;
            bytes += cells_bytes(ring.kernel.memory().block().cq_entries());
        }
        if let Some(table) = process.ops.caps.lock().as_ref() {
            table.check_invariants().unwrap();
            counted[Line::CapSlots.index()] = table.used();
            let slots = profile.cap_slots.next_power_of_two() as usize;
            bytes += slots * size_of::<Slot<Object<HostObject>>>();
        }
        if let Some(service) = process.ops.service.lock().as_ref() {
            let limits = Limits {
                queued: profile.endpoint_queue_limit,
                in_flight: profile.in_flight_call_limit,
            };
            bytes += Service::bytes(limits, service.calls.endpoint_count());
        }
        let (spare, room) = process.members.lock().spare_rings();
        bytes += room * Members::<Host>::BYTES_PER_SPARE_RING;
        bytes += spare * cells_bytes(profile.ring_entries * 2);
        bytes += process.ops.map.places() * size_of::<Region>();
        if self.tables.outputs.is_open(process.slot()) {
            bytes += OUTPUT_BYTES;
        }
        bytes += self.tables.trace.paid_by(process.key()) as usize;
        process.ops.buffers.each_open(|pages, record| {
            counted[Line::RegisteredBuffers.index()] += 1;
            bytes += record + pages.paid_bytes();
        });
        let (held_frames, held_bytes) = process.ops.map.held();
        bytes += held_bytes;
        counted[Line::KernelBytes.index()] = bytes as u32;
        counted[Line::Frames.index()] = process.ops.space.frames() + held_frames;
        counted
    }
}
