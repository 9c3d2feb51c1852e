//! The machine under rings, processes and threads: memory, stacks and registers as they are.
//!
//! The order of things is `kernel_ops`'s and `kernel_process`'s; here is what each of their steps does to
//! memory and machine.

use crate::kernel::{Kernel, KernelObject, Process};
use crate::object::console;
use crate::shutdown;
use crate::system::{self, RECORDS};
use abi_types::RingBlock;
use alloc::boxed::Box;
use core_thread::ThreadKey;
use kernel_arch::context::{self, UserStart};
use kernel_mm::OutOfMemory;
use kernel_mm::fallible::try_zeroed_words;
use kernel_mm::space::{AddressSpace, PinnedRing, StillInUse};
use kernel_mm::stack::{self, KernelStack};
use kernel_mm::thread::UserContext;
use kernel_ops::machine::{ProcessPart, Tables};
use kernel_ops::party::Party;
use kernel_process::machine::{BadStart, Place, Start};
use kernel_process::{Records, join};
use smp_pending::Target;

impl kernel_ops::Machine for Kernel {
    type Context = UserContext;
    type RingMemory = PinnedRing;
    type Space = AddressSpace;
    type Other = KernelObject;

    #[inline(always)]
    fn tables(self) -> &'static Tables {
        system::rings()
    }

    #[inline(always)]
    fn process(self, slot: u32) -> Option<&'static ProcessPart<Self>> {
        RECORDS.process(slot).map(|process| &process.ops)
    }

    fn zeroed_words(self, count: usize) -> Result<Box<[u64]>, OutOfMemory> {
        try_zeroed_words(count)
    }

    fn claim(self, party: Party, target: Target) -> bool {
        match target {
            Target::Join { thread } => join::give_up(self, ThreadKey::from_bits(thread), party),
            Target::Read => console::give_up(party),
            Target::Call { .. } | Target::Recv { .. } | Target::Sleep | Target::Park => {
                system::defect("an operation of the rings waits for an object")
            }
        }
    }

    fn poll_input(self) {
        console::look();
    }
}

impl kernel_process::Machine for Kernel {
    type UserStart = UserStart;
    const STACK_PAGES: u32 = stack::STACK_PAGES as u32;

    fn handle_to(thread: ThreadKey) -> KernelObject {
        KernelObject::ThreadHandle(thread)
    }

    #[inline(always)]
    fn records(self) -> &'static Records<Self> {
        &RECORDS
    }

    fn user_start(self, start: Start) -> Result<UserStart, BadStart> {
        let made = UserStart::new(start.entry, start.stack_top, start.fs_base);
        let mut user = made.map_err(|bad| match bad {
            context::BadStart::Entry => BadStart::Entry,
            context::BadStart::Stack => BadStart::Stack,
            context::BadStart::FsBase => BadStart::FsBase,
        })?;
        user.argument = start.argument;
        Ok(user)
    }

    fn new_stack(self) -> Result<KernelStack, OutOfMemory> {
        KernelStack::for_thread()
    }

    fn new_ring(
        self,
        space: &'static AddressSpace,
        address: u64,
        block: RingBlock,
    ) -> Option<PinnedRing> {
        space.pin(address, block.size()).ok()?.into_ring(block)
    }

    fn start<'s>(
        self,
        space: &'static AddressSpace,
        user: &'s mut UserStart,
        place: Place,
    ) -> kernel_mm::thread::Start<'s> {
        user.tid = u64::from(place.thread);
        user.pid = u64::from(place.process);
        user.ring = place.ring;
        user.capset = place.capset;
        kernel_mm::thread::Start { space, user }
    }

    fn free_memory(self, space: &'static AddressSpace, frames: u64) -> bool {
        match space.destroy(frames) {
            Ok(freed) => freed.is_done,
            Err(StillInUse::Absent) => true,
            Err(StillInUse::Contexts(_) | StillInUse::Pins(_)) => {
                system::defect("a process without threads is in use")
            }
        }
    }

    fn process_reaped(self, process: &'static Process) {
        shutdown::process_reaped(process);
    }
}
