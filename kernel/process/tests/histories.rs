//! Random histories on a machine of host threads: what each thread has under way completes once and rightly,
//! and nothing is left at the end.

use abi_types::Status;
use core_sched_policy::PolicyKind;
use kernel_ops::machine::Defect;
use std::panic::{AssertUnwindSafe, catch_unwind};
use test_machine::Config;
use test_machine::history::{Step, Tally, play};
use test_property::inner::strategy::ValueTree;
use test_property::inner::test_runner::TestRunner;
use test_property::prelude::*;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let us = || 0_u16..300;
    let step = prop_oneof![
        5 => prop::option::of(us()).prop_map(Step::Call),
        2 => Just(Step::CallTooLarge),
        3 => us().prop_map(Step::Sleep),
        3 => (any::<u8>(), prop::option::of(us())).prop_map(|(word, us)| Step::Park(word, us)),
        3 => (any::<u8>(), any::<u8>()).prop_map(|(word, count)| Step::Unpark(word, count)),
        1 => any::<u8>().prop_map(Step::Store),
        4 => any::<u8>().prop_map(Step::Cancel),
        6 => (any::<u8>(), us()).prop_map(|(min, us)| Step::Enter(min, us)),
        3 => any::<u8>().prop_map(Step::Await),
        2 => Just(Step::Yield),
        2 => any::<bool>().prop_map(Step::Compute),
        2 => (0_u8..5).prop_map(Step::Spawn),
        2 => any::<u8>().prop_map(Step::Join),
        1 => any::<u8>().prop_map(Step::Release),
        1 => prop_oneof![Just(Step::ExitThread), Just(Step::ExitProcess)],
    ];
    prop::collection::vec(step, 0..24)
}

fn programs() -> impl Strategy<Value = Vec<Vec<Step>>> {
    prop::collection::vec(steps(), 5)
}

fn policy() -> impl Strategy<Value = PolicyKind> {
    prop_oneof![Just(PolicyKind::Wfq), Just(PolicyKind::Eevdf)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn whatever_threads_do_completes_once(
        programs in programs(),
        policy in policy(),
        fast_path: bool,
        cpus in 1_usize..4,
    ) {
        let config = Config { cpus, policy, fast_path, ..Config::default() };
        prop_assert_eq!(play(config, &programs).0.ends.len(), 3);
    }

    #[test]
    fn lack_of_memory_is_an_answer_anywhere(programs in programs(), at in 0_usize..40) {
        let config = Config { out_of_memory_at: Some(at), ..Config::default() };
        prop_assert_eq!(play(config, &programs).0.ends.len(), 3);
    }
}

/// So many histories on one CPU, always the same.
fn kept_histories(count: usize) -> impl Iterator<Item = Vec<Vec<Step>>> {
    let mut runner = TestRunner::deterministic();
    (0..count).map(move |_| programs().new_tree(&mut runner).unwrap().current())
}

#[test]
fn every_outcome_of_every_operation_is_seen() {
    let mut seen = Tally::new();
    for programs in kept_histories(400) {
        for (ended, count) in play(Config::default(), &programs).1 {
            *seen.entry(ended).or_default() += count;
        }
    }
    use Status::*;
    for (kind, statuses) in [
        ("CALL", &[Ok, Cancelled, Overloaded, DeadlineExpired][..]),
        ("CALL that fits nowhere", &[ParamsTooLarge, Cancelled, Overloaded]),
        ("sleep", &[Ok, Cancelled, Exception]),
        ("PARK", &[Woken, TimedOut, Cancelled, Mismatch, Overloaded]),
        ("UNPARK", &[Ok]),
        ("CANCEL", &[Ok, NotFound]),
        ("YIELD", &[Ok]),
        ("join", &[Ok, Cancelled, Exception, Disconnected]),
        ("RELEASE", &[Ok, Disconnected]),
    ] {
        for status in statuses {
            assert!(
                seen.contains_key(&(kind, *status)),
                "no {kind} ended with {status:?}: {seen:?}"
            );
        }
    }
}

/// Whether histories on one CPU find a bug.
fn is_found(defect: Defect) -> bool {
    kept_histories(400).any(|programs| {
        let config = Config { defect: Some(defect), ..Config::default() };
        catch_unwind(AssertUnwindSafe(|| play(config, &programs))).is_err()
    })
}

#[test]
fn planted_bugs_are_found() {
    for defect in [Defect::LostWake, Defect::TimerKept, Defect::SleepNotCountedOut] {
        assert!(is_found(defect), "{defect:?} is not noticed");
    }
}
