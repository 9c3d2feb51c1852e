//! The ring as a user program sees it.
//!
//! The program calls itself through its own endpoint, so that one thread is client and server and
//! every step happens when the test says so.
//!
//! * [`opcodes`]: what an SQE may be, and the status of what it may not.
//! * [`enter`]: `cap_enter` itself. [`full`]: a queue that nobody drains.
//! * [`cancel`]: RELEASE and CANCEL. [`payload`]: messages by address. [`buffers`]: through registered ones.
//! * [`objects`]: what the kernel serves itself. [`interfaces`]: calls that mean another interface.
#![no_std]
#![no_main]

mod buffers;
mod cancel;
mod enter;
mod full;
mod interfaces;
mod objects;
mod opcodes;
mod payload;
mod threads;

use abi_types::CapSlot;
use capos_rt::thread::Threads;
use capos_rt::{Env, Error};
use schema::{console, endpoint, frame_allocator, park_space, system_info, timer, virtual_memory};
use test_kit::{Suite, Test};

capos_rt::main!(main);

/// Entries of the submission queue, as the manifest says; completions: twice as many.
pub const SQ: u32 = 16;
/// See [`SQ`].
pub const CQ: u32 = 2 * SQ;
/// The badge of the second facet, as the manifest says.
pub const SECOND_BADGE: u64 = 0xfedc_ba98_7654_3210;
/// Pending sleeps the manifest allows.
pub const SLEEPS: u64 = 4;

/// What the tests share.
pub struct Bench {
    pub env: &'static Env,
    pub console: CapSlot,
    pub timer: CapSlot,
    pub info: CapSlot,
    pub park: CapSlot,
    pub own: CapSlot,
    pub first: CapSlot,
    pub second: CapSlot,
    pub echo: CapSlot,
    pub threads: Threads,
    pub memory: CapSlot,
    pub frames: CapSlot,
}

const SUITE: Suite<Bench> = Suite::new(&[
    Test::new("ring.unknown_syscall", opcodes::unknown_syscall),
    Test::new("ring.opcodes", opcodes::opcodes),
    Test::new("ring.reserved_fields", opcodes::reserved_fields),
    Test::new("ring.malformed", opcodes::malformed),
    Test::new("ring.user_data", opcodes::user_data),
    Test::new("ring.enter_counts", enter::counts),
    Test::new("ring.enter_times_out", enter::times_out),
    Test::new("ring.enter_waits_for_several", enter::waits_for_several),
    Test::new("ring.batch", enter::batch),
    Test::new("ring.never_drained", full::never_drained),
    Test::new("ring.credits_of_pending", full::credits_of_pending),
    Test::new("ring.release", cancel::release),
    Test::new("ring.cancel_call", cancel::call),
    Test::new("ring.cancel_recv", cancel::recv),
    Test::new("ring.cancel_sleep", cancel::sleep),
    Test::new("ring.cancel_park", cancel::park),
    Test::new("ring.cancel_read", cancel::read),
    Test::new("ring.cancel_none", cancel::none),
    Test::new("ring.cancel_join", threads::cancel_join),
    Test::new("ring.cancel_races_sleep", cancel::races_sleep),
    Test::new("ring.one_park_at_a_time", threads::one_park),
    Test::new("ring.completes_at_submitter", threads::completes_at_submitter),
    Test::new("ring.by_address", payload::by_address),
    Test::new("ring.bad_addresses", payload::bad_addresses),
    Test::new("ring.too_large", payload::too_large),
    Test::new("ring.deadline_word", payload::deadline_word),
    Test::new("ring.object_buffers", payload::object_buffers),
    Test::new("ring.buffers", buffers::messages),
    Test::new("ring.wrong_buffers", buffers::wrong),
    Test::new("ring.buffers_pages_stay", buffers::pages_stay),
    Test::new("ring.buffers_wait_for_uses", buffers::waits_for_uses),
    Test::new("ring.buffers_race", buffers::races),
    Test::new("ring.console", objects::console),
    Test::new("ring.timer", objects::timer),
    Test::new("ring.sleep_quota", objects::sleep_quota),
    Test::new("ring.system_info", objects::system_info),
    Test::new("ring.facets", objects::facets),
    Test::new("ring.load", objects::load),
    Test::new("ring.exceptions", objects::exceptions),
    Test::new("ring.capset", objects::capset),
    Test::new("ring.interfaces_of_kernel_objects", interfaces::of_kernel_objects),
    Test::new("ring.interfaces_of_facets", interfaces::of_facets),
    Test::new("ring.interfaces_of_minted_facets", interfaces::of_minted_facets),
]);

fn main(env: &'static Env) -> Result<(), Error> {
    let mut bench = Bench {
        env,
        console: env.cap("console", console::INTERFACE_ID)?,
        timer: env.cap("timer", timer::INTERFACE_ID)?,
        info: env.cap("info", system_info::INTERFACE_ID)?,
        park: env.cap("park", park_space::INTERFACE_ID)?,
        own: env.cap("own", endpoint::INTERFACE_ID)?,
        first: env.cap("first", test_ring::plain::INTERFACE_ID)?,
        second: env.cap("second", test_ring::plain::INTERFACE_ID)?,
        echo: env.cap("echo", test_ring::plain::INTERFACE_ID)?,
        threads: Threads::of(&env.caps)?,
        memory: env.cap("memory", virtual_memory::INTERFACE_ID)?,
        frames: env.cap("frames", frame_allocator::INTERFACE_ID)?,
    };
    test_user::run_with(env, &SUITE, &mut bench)
}
