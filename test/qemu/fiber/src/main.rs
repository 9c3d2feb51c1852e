//! Fibers on capOS: the cases that every substrate passes, and what only this one has.
#![no_std]
#![no_main]

extern crate alloc;

mod calls;
mod ends;
mod stacks;

use test_kit::{Suite, Test};
use test_user::Env;

capos_rt::main!(main);
capos_heap::heap!(4 << 20);
fiber::stacks!(
    fibers: [stacks::FIBER_BYTES; stacks::FIBERS],
    threads: [64 << 10; 24],
);

macro_rules! suite {
    ($($module:ident: $($case:ident)*;)*) => {
        const SUITE: Suite<Env> = Suite::new(&[
            $($(Test::new(
                concat!("fiber.", stringify!($module), ".", stringify!($case)),
                |_| {
                    fiber_cases::$module::$case();
                    Ok(())
                },
            ),)*)*
            Test::new("fiber.calls.others_go_on", calls::others_go_on),
            Test::new("fiber.calls.more_than_the_ring_holds", calls::more_than_the_ring_holds),
            Test::new("fiber.calls.raw_operations", calls::raw_operations),
            Test::new("fiber.calls.a_service_of_fibers", calls::a_service_of_fibers),
            Test::new("fiber.calls.another_process", calls::another_process),
            Test::new("fiber.calls.large_results", calls::large_results),
            Test::new("fiber.calls.errors", calls::errors),
            Test::new("fiber.calls.a_thread_blocks", calls::a_thread_blocks),
            Test::new("fiber.calls.cancelled", calls::cancelled),
            Test::new("fiber.calls.cancelled_in_the_backlog", calls::cancelled_in_the_backlog),
            Test::new("fiber.calls.cancelled_or_answered", calls::cancelled_or_answered),
            Test::new(
                "fiber.calls.cancelled_with_an_answer_in_hand",
                calls::cancelled_with_an_answer_in_hand,
            ),
            Test::new("fiber.calls.both_wake_a_worker", calls::both_wake_a_worker),
            Test::new("fiber.calls.a_blocked_worker", calls::a_blocked_worker),
            Test::new(
                "fiber.calls.a_blocked_worker_with_a_backlog",
                calls::a_blocked_worker_with_a_backlog,
            ),
            Test::new("fiber.calls.a_fiber_does_not_park", calls::a_fiber_does_not_park),
            Test::new(
                "fiber.calls.a_thread_beside_a_full_ring",
                calls::a_thread_beside_a_full_ring,
            ),
            Test::new(
                "fiber.calls.cancelled_while_a_thread_is_joined",
                calls::cancelled_while_a_thread_is_joined,
            ),
            Test::new(
                "fiber.calls.cancelled_while_a_thread_is_joined_beside_a_full_ring",
                calls::cancelled_while_a_thread_is_joined_beside_a_full_ring,
            ),
            Test::new(
                "fiber.calls.a_thread_with_much_under_way",
                calls::a_thread_with_much_under_way,
            ),
            Test::new("fiber.calls.a_surplus_worker_stays", calls::a_surplus_worker_stays),
            Test::new("fiber.ends.a_panic_is_told", ends::a_panic_is_told),
            Test::new("fiber.ends.an_overflow_ends_it_at_once", ends::an_overflow_ends_it_at_once),
            Test::new("fiber.ends.no_more_threads", ends::no_more_threads),
            Test::new("fiber.stacks.as_many_as_declared", stacks::as_many_as_declared),
            Test::new("fiber.stacks.two_runtimes", stacks::two_runtimes),
            Test::new("fiber.stacks.back_when_the_drop_returns", stacks::back_when_the_drop_returns),
            Test::new("fiber.stacks.used_to_the_bottom", stacks::used_to_the_bottom),
            Test::new("fiber.stacks.clean_for_the_next", stacks::clean_for_the_next),
            Test::new("fiber.stacks.of_the_declared_size", stacks::of_the_declared_size),
            Test::new("fiber.ends.nothing_stray", ends::nothing_stray),
        ]);
    };
}

fiber_cases::cases!(suite);

fn main(env: Env) {
    test_user::run(env, &SUITE)
}
