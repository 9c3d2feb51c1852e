//! The address space as a program sees it.
//!
//! * [`own`]: map, unmap, protect, reserve, region; right and wrong arguments.
//! * [`pointers`]: pages that come and go under pointers given to the kernel.
//! * [`siblings`]: threads on other CPUs while pages go.
//! * [`objects`]: memory that processes share.
//! * [`limits`]: what there is runs out, and nothing is lost.
#![no_std]
#![no_main]

mod limits;
mod objects;
mod own;
mod pointers;
mod siblings;

use abi_types::CapSlot;
use capos_rt::caller::Caller;
use capos_rt::{Env, Error};
use schema::{frame_allocator, virtual_memory};
use test_bare::program::{Program, Sibling};
use test_kit::{Suite, T, Test};

capos_rt::main!(main);

/// What the tests share.
pub struct Shared {
    /// The program.
    pub program: Program,
    /// A VirtualMemory.
    pub memory: CapSlot,
    /// A FrameAllocator.
    pub frames: CapSlot,
    /// Another process.
    pub peer: CapSlot,
    /// Another, which ends.
    pub maker: CapSlot,
}

impl Shared {
    /// Calls on the address space.
    pub fn memory(&self) -> virtual_memory::Client<Caller<'static>> {
        virtual_memory::Client::new(self.program.io().caller(), self.memory)
    }
}

/// A test.
pub type Run<'a> = T<'a, Shared>;

/// Bytes of a page.
pub const PAGE: u64 = 4096;

static SIBLINGS: [Sibling; 6] = [const { Sibling::new() }; 6];

const SUITE: Suite<Shared> = Suite::new(&[
    Test::new("memory.map_touch_unmap", own::map_touch_unmap),
    Test::new("memory.fixed_places", own::fixed_places),
    Test::new("memory.wrong_arguments", own::wrong_arguments),
    Test::new("memory.protect", own::protect),
    Test::new("memory.code_is_written_then_run", own::code),
    Test::new("memory.reserve", own::reserve),
    Test::new("memory.regions", own::regions),
    Test::new("memory.runtime", own::runtime),
    Test::new("memory.results_go_where_they_may", pointers::results),
    Test::new("memory.park_words", pointers::park_words),
    Test::new("memory.stale_translations", siblings::stale_translations),
    Test::new("memory.storm_against_calls", siblings::storm),
    Test::new("memory.cancel_finds_nothing", siblings::cancel),
    Test::new("memory.overlapping_changes", siblings::overlapping),
    Test::new("memory.object_arguments", objects::arguments),
    Test::new("memory.object_facets", objects::facets),
    Test::new("memory.object_same_bytes", objects::same_bytes),
    Test::new("memory.object_ping_pong", objects::ping_pong),
    Test::new("memory.object_unmapped_under_calls", objects::unmapped_under_calls),
    Test::new("memory.object_exhausted", objects::exhausted),
    // The maker is gone after this.
    Test::new("memory.object_maker_ends", objects::maker_ends),
    Test::new("memory.regions_run_out", limits::regions),
    Test::new("memory.machine_runs_out", limits::machine),
]);

fn main(env: &'static Env) -> Result<(), Error> {
    let program = Program::new(env, &SIBLINGS)?;
    let memory = env.cap("memory", virtual_memory::INTERFACE_ID)?;
    let frames = env.cap("frames", frame_allocator::INTERFACE_ID)?;
    let named = |name: &str| env.caps.named(name).unwrap_or(CapSlot::NONE);
    let (peer, maker) = (named("peer"), named("maker"));
    test_user::run_with(env, &SUITE, &mut Shared { program, memory, frames, peer, maker })
}
