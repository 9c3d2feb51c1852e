//! What the kernel's operations and processes find under them: stacks that are coroutines, rings and memory of
//! the host's, objects.

use crate::life::UserStart;
use crate::sim::{Record, Sim};
use crate::{Fault, Rule};
use abi_ring_testing::real_block;
use abi_sync::BlockMemory;
use abi_types::{InterfaceTag, RingBlock, Status};
use core_fallible::OutOfMemory;
use core_ledger::Ledger;
use core_manifest::GrantKind;
use core_sched_policy::Policy;
use core_thread::ThreadKey;
use kernel_ops::capability::{Object, ProcessKey};
use kernel_ops::machine::{Defect, NotMapped, ProcessPart, Tables};
use kernel_ops::object::{Calling, Objects};
use kernel_ops::paid::NoMemory;
use kernel_ops::party::Party;
use kernel_ops::shared::MemoryFacet;
use kernel_process::machine::{BadStart, Place, Start, Worker};
use kernel_process::{Process, Records, drain, end, handle, join};
use schema_wire::Served;
use smp_pending::Target;
use smp_ring_testing::{CoroutineBody, CoroutineContext, CoroutineStack};
use std::cell::RefCell;
use test_machine::{HostObject, HostShared, HostSpace};

/// The memory of a ring: the kernel's own kind.
pub(crate) type Ring = BlockMemory;

/// Entries of a submission queue: an operation, and one beside it.
pub(crate) const RING_ENTRIES: u32 = 4;

thread_local! {
    /// Rings that no process has. A ring's memory is never given back to the host.
    static RINGS: RefCell<Vec<Ring>> = const { RefCell::new(Vec::new()) };
}

/// Rings of a process that is gone, for the next.
pub(crate) fn keep_rings(space: &HostSpace<Ring>) {
    RINGS.with(|rings| rings.borrow_mut().extend(space.take_rings()));
}

impl<P: Policy + 'static> kernel_ops::Machine for Sim<P> {
    type Context = CoroutineContext;
    type RingMemory = Ring;
    type Space = HostSpace<Ring>;
    const TRACES_SYSCALLS: bool = false;
    type Other = HostObject;

    fn tables(self) -> &'static Tables {
        &self.0.tables
    }

    fn process(self, slot: u32) -> Option<&'static ProcessPart<Self>> {
        self.0.records.process(slot).map(|process| &process.ops)
    }

    fn zeroed_words(self, count: usize) -> Result<Box<[u64]>, OutOfMemory> {
        Ok(vec![0; count].into_boxed_slice())
    }

    fn claim(self, party: Party, target: Target) -> bool {
        match target {
            Target::Join { thread } => join::give_up(self, ThreadKey::from_bits(thread), party),
            Target::End { process } => handle::give_up(self, process, party),
            _ => self.fail(Rule::Invariant, format!("nothing waits for {target:?} here")),
        }
    }

    fn plants(self, defect: Defect) -> bool {
        self.0.config.fault == Fault::InOperations(defect)
    }
}

impl<P: Policy + 'static> Objects for Sim<P> {
    fn serve_call(
        self,
        calling: &mut Calling<'_, Self>,
        object: Object<HostObject>,
        method: u16,
        params: &[u8],
        results: &mut [u8],
    ) -> Result<Served, Status> {
        test_machine::serve_call(calling, object, method, params, results)
    }

    fn takes(self, interface: InterfaceTag, method: u16) -> u16 {
        test_machine::takes(interface, method)
    }

    fn is_transferable(self, object: HostObject) -> bool {
        object.is_transferable()
    }

    fn retained(self, object: HostObject) -> bool {
        test_machine::retained(self, object)
    }

    fn released(self, process: &'static ProcessPart<Self>, object: HostObject) {
        test_machine::released(self, process, object);
    }

    fn exit_thread(self, thread: &'static Record<P>, code: i64) -> ! {
        end::exit_thread(self, thread, code)
    }
}

impl<P: Policy + 'static> kernel_process::Machine for Sim<P> {
    type UserStart = UserStart;
    const STACK_PAGES: u32 = 1;

    fn handle_to(thread: ThreadKey) -> (HostObject, InterfaceTag) {
        let handle = HostObject::ThreadHandle(thread);
        (handle, handle.interface())
    }

    fn process_handle(process: ProcessKey) -> (HostObject, InterfaceTag) {
        let handle = HostObject::ProcessHandle(process);
        (handle, handle.interface())
    }

    fn granted(kind: GrantKind<'_>) -> Option<HostObject> {
        test_machine::granted(kind)
    }

    /// Simulated processes have no programs: none of them starts another.
    fn boot_module(self, _: &str) -> Option<&'static [u8]> {
        None
    }

    fn manifest(self) -> Option<&'static [u8]> {
        None
    }

    fn child_began(self) {}

    fn create_space(
        self,
        space: &'static HostSpace<Ring>,
        ledger: &'static Ledger,
    ) -> Result<(), NoMemory> {
        space.create(ledger);
        Ok(())
    }

    fn fill(self, space: &'static HostSpace<Ring>, to: u64, bytes: &[u8]) -> Result<(), NotMapped> {
        space.fill(to, bytes)
    }

    fn map_read_only(self, space: &'static HostSpace<Ring>, at: u64) -> Result<(), NoMemory> {
        Ok(space.map_paid(at, 1, false)?)
    }

    fn map_time(self, _: &'static HostSpace<Ring>) -> Result<(), NoMemory> {
        Ok(())
    }

    fn memory_facet(object: HostObject) -> Option<MemoryFacet> {
        match object {
            HostObject::MemoryObject(facet) => Some(facet),
            _ => None,
        }
    }

    fn memory_object(facet: MemoryFacet) -> (HostObject, InterfaceTag) {
        let object = HostObject::MemoryObject(facet);
        (object, object.interface())
    }

    fn records(self) -> &'static Records<Self> {
        &self.0.records
    }

    /// A program is no address: simulated threads are made by [`Sim::spawn`] alone.
    fn user_start(self, _: Start) -> Result<UserStart, BadStart> {
        Err(BadStart::Entry)
    }

    fn new_context(self) -> CoroutineContext {
        CoroutineContext::new()
    }

    fn new_space(self) -> HostSpace<Ring> {
        HostSpace::default()
    }

    fn new_shared(self) -> HostShared {
        HostShared::default()
    }

    fn free_frames(self) -> u64 {
        u64::MAX
    }

    fn new_stack(self) -> Result<CoroutineStack, OutOfMemory> {
        CoroutineStack::new().ok_or(OutOfMemory)
    }

    fn new_ring(
        self,
        space: &'static HostSpace<Ring>,
        address: u64,
        block: RingBlock,
    ) -> Result<Ring, NoMemory> {
        let kept = || RINGS.with(|rings| rings.borrow_mut().pop());
        let make = || kept().unwrap_or_else(|| real_block(block.sq_entries()));
        Ok(space.put_ring(address, block.size(), make)?)
    }

    fn start(
        self,
        space: &'static HostSpace<Ring>,
        user: &mut UserStart,
        place: Place,
    ) -> CoroutineBody {
        self.begin(user, place.thread);
        let ring = space.ring(place.ring);
        Box::new(move || self.live(place.thread, ring))
    }

    fn worker_start(self, thread: &'static Record<P>, worker: Worker) -> CoroutineBody {
        self.begin_reaper(thread.slot());
        Box::new(move || {
            self.arrive();
            match worker {
                Worker::Reaper => end::run_reaper(self, thread),
                Worker::Drain => drain::run_drain(self, thread),
            }
        })
    }

    fn free_memory(self, space: &'static HostSpace<Ring>, frames: u64) -> bool {
        keep_rings(space);
        space.free(frames)
    }

    fn process_reaped(self, process: &'static Process<Self>) {
        self.check_reaped(process);
        if !self.0.records.vacate(self, process) {
            self.fail(Rule::Invariant, format!("the account of {process:?} is not zero"));
        }
    }

    fn console_has_room(self) -> bool {
        true
    }

    fn console_submit(self, bytes: &[u8]) -> usize {
        bytes.len()
    }

    fn console_paint(self) -> bool {
        false
    }

    fn console_look_after(self) {}
}
