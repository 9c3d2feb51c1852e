//! What fibers promise, as cases that run on every substrate: on Linux as host tests, on capOS as a
//! guest's. An assertion that does not hold panics; on capOS that ends the guest.
//!
//! What needs unwinding (panics that are carried to a join), a process of its own or a host's files
//! stays beside the crates, for Linux only.
#![no_std]

extern crate alloc;

pub mod channels;
pub mod futures;
pub mod nurseries;
pub mod selects;
pub mod stress;
pub mod values;
pub mod workers;

use fiber_core::State;
use fiber_rt::{Runtime, Thread, yield_now};

/// So many on Linux, so many on capOS, where a machine is emulated.
pub const fn scaled(linux: u32, capos: u32) -> u32 {
    if cfg!(target_os = "none") { capos } else { linux }
}

/// A runtime of so many workers.
pub fn runtime(workers: usize) -> Runtime {
    Runtime::builder().workers(workers).build().unwrap()
}

/// Lets other fibers and threads run until it is so.
pub fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        let _ = yield_now();
        Thread::pause();
    }
}

/// Lets other fibers of the runtime run until each of them waits or has ended. By a fiber of it, while
/// none of the others wakes another.
pub fn settle(runtime: &Runtime) {
    let rests = |state| matches!(state, State::Parked | State::Done | State::Cancelled);
    // The only one that does not is the caller.
    until(|| runtime.dump().fibers.iter().filter(|fiber| !rests(fiber.state)).count() == 1);
}

/// Calls `$each!` with every case: `module: case case …; module: …;`.
#[macro_export]
macro_rules! cases {
    ($each:ident) => {
        $each! {
            channels:
                a_bounded_channel_holds_its_capacity_in_order
                an_unbounded_channel_is_never_full
                a_rendezvous_hands_over_directly
                the_last_sender_gone_disconnects_after_the_buffer
                the_last_receiver_gone_gives_senders_their_values_back
                close_keeps_what_was_admitted_in_order_and_nothing_else
                close_ends_receivers_that_wait
                a_cancelled_wait_gives_the_value_back_and_loses_none
                threads_and_fibers_share_channels
                timers_as_receivers
                oneshot_carries_one_value
                values_are_dropped_once
                a_mutex_excludes_and_a_condvar_wakes
            ;
            selects:
                select_takes_what_is_ready_and_is_fair
                select_waits_for_the_first_arm
                select_sends_and_receives
                two_selects_meet_at_a_rendezvous
                a_plain_operation_meets_a_select_at_a_rendezvous
                the_same_channel_may_appear_twice_and_a_select_does_not_meet_itself
                select_sees_close_timeout_default_and_cancellation
                a_selected_operation_that_is_dropped_loses_nothing
                many_arms_are_as_good_as_few
                neighbours_are_chosen_equally_often
                a_removed_operation_is_not_chosen
                a_biased_select_prefers_the_first
                the_list_of_arms_has_many_forms
                a_cancelled_select_makes_no_value
                ready_tells_and_takes_nothing
                a_partner_that_gives_up_leaves_all_arms
                a_kept_place_without_a_receiver_gives_the_value_back
                a_timer_that_is_not_taken_keeps_its_value
                values_of_any_size_go_through_a_select
            ;
            futures:
                a_fiber_runs_a_future_and_others_go_on
                a_thread_runs_a_future
                a_cancelled_fiber_drops_the_future_it_runs
                a_future_that_never_waits_lets_others_run
                futures_and_fibers_wait_in_turn
                a_dropped_receive_gives_its_value_back
                a_dropped_send_gives_up_its_place
                futures_meet_selects_at_a_rendezvous
                sleeps_are_futures
                a_waker_may_use_channels
                a_fibers_end_is_a_future
                a_oneshot_is_a_future
                an_executor_fibers_and_threads_share_channels
            ;
            nurseries:
                a_fiber_borrows_and_its_result_is_joined
                a_nursery_waits_for_fibers_nobody_joins
                what_a_fiber_takes_along_and_brings_back_may_be_of_any_size
                fibers_spawn_into_their_own_nursery
                results_nobody_takes_are_dropped_before_the_nursery_ends
                a_forgotten_result_that_is_a_handle_gives_its_frame_back_once
                what_is_dropped_last_spawns_nothing
                a_result_is_dropped_on_a_fibers_stack_whenever_its_handle_goes
                cancellation_is_sticky_and_ends_every_wait
                one_fiber_is_cancelled_and_its_sibling_is_not
                a_wait_for_a_fiber_that_is_interrupted_loses_no_result
                a_shield_masks_the_cancellation
                a_shield_within_a_shield_leaves_the_outer_one
                a_mutex_in_a_shield_is_waited_for_by_who_is_cancelled
                a_nursery_in_a_shield_waits_for_its_fibers_when_its_owner_is_cancelled
                a_deadline_cancels_and_an_inner_nursery_passes_it_on
                a_deadline_that_is_not_met_does_nothing
                a_later_deadline_replaces_an_earlier_one
                run_waits_for_what_was_spawned_into_the_root
                a_cancelled_run_of_spawns_loses_none
            ;
            values:
                values_of_any_size_and_alignment_arrive_whole
            ;
            workers:
                workers_grow_to_twice_as_many_under_blocking_load_and_shrink_back
                what_a_blocking_region_spawns_and_wakes_runs_meanwhile
                a_wait_in_a_blocking_region_does_not_end_it
                a_stalled_workers_fibers_are_taken_over
                a_pool_that_is_not_elastic_stays_as_it_is
                a_stall_is_reported
                long_fibers_are_spread_over_the_workers
                a_yielding_fiber_lets_outsiders_and_timers_in
                a_fiber_moves_between_workers_and_keeps_its_stack
                sleeps_are_never_early_and_all_end
                many_timers_fire
                a_dump_shows_who_waits_for_what
                a_dump_names_each_kind_of_wait_and_where_it_is
                a_name_ends_with_its_fiber
                counters_add_up
                the_depth_of_the_deepest_stack_is_told
                runtimes_come_and_go
                a_number_of_workers_that_makes_no_sense_is_refused
            ;
            stress:
                channels_of_every_capacity_carry_everything_once
                cancelled_fibers_lose_nothing_that_was_acknowledged
                selects_over_shared_channels_take_each_value_once
                selects_on_both_sides_of_every_channel_meet
                requests_and_answers_between_fibers_and_threads
                locks_and_conditions_under_load
            ;
        }
    };
}
