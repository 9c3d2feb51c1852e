//! The tables of threads and processes grow as far as they are used, give nothing back, and use everything again.

use abi_types::{Opcode, Sqe, Status};
use core_manifest::{Name, Profile};
use core_sched_policy::Weight;
use kernel_process::{BeginError, NewProcess};
use std::collections::HashSet;
use test_machine::{Config, Process, User, run, with_machine};

fn new_process() -> NewProcess<'static> {
    NewProcess {
        name: Name::new("grown"),
        profile: Profile { cap_slots: 1, kernel_bytes: 1 << 12, ..Profile::NONE },
        weight: Weight::DEFAULT,
        is_essential: false,
        serves: &[],
        handles: 0,
        lent: None,
    }
}

#[test]
fn thread_records_grow_to_the_last_place_and_are_used_again() {
    const MOST: u32 = 40_000;
    // One place is the drain's.
    with_machine(Config { threads: MOST - 1, ..Config::default() }, |m, records| {
        assert_eq!(records.threads().len(), 0, "none is made before it is needed");
        let taken: Vec<_> = (0..MOST).map(|_| records.take_thread(m).expect("a place")).collect();
        assert!(records.take_thread(m).is_none(), "every place is taken");
        let mut places = HashSet::new();
        for (slot, thread) in (0..).zip(&taken) {
            assert_eq!(thread.slot(), slot);
            assert!(std::ptr::eq(records.thread(slot).unwrap(), *thread), "it stays where it is");
            assert!(places.insert(std::ptr::from_ref(*thread)));
        }
        assert!(records.thread(MOST).is_none());
        for thread in taken {
            records.give_thread(thread);
        }
        for _ in 0..MOST {
            let thread = records.take_thread(m).expect("one that was given back");
            assert!(places.remove(&std::ptr::from_ref(thread)), "one of those there were");
        }
        assert!(records.take_thread(m).is_none());
        assert_eq!(records.threads().len(), MOST as usize);
    });
}

#[test]
fn process_records_grow_to_the_last_place_and_are_used_again() {
    const MOST: u32 = 5_000;
    with_machine(Config { processes: MOST, ..Config::default() }, |m, records| {
        let mut keys = HashSet::new();
        for round in 0..3 {
            let begin = || records.begin_process(m, new_process());
            let made: Vec<_> = (0..MOST).map(|_| begin().expect("a place").0).collect();
            assert!(matches!(begin(), Err(BeginError::Records)), "every place is taken");
            for process in &made {
                assert!(
                    keys.insert((process.slot(), process.key().generation)),
                    "a name is never used again"
                );
                assert!(std::ptr::eq(records.process(process.slot()).unwrap(), *process));
            }
            assert_eq!(records.processes().len(), MOST as usize, "in round {round}");
            for process in made {
                assert!(records.vacate(m, process), "its account is not zero");
            }
        }
    });
}

/// The table is as large as it had to be, not as large as it may be.
#[test]
fn as_many_records_are_made_as_threads_live_at_a_time() {
    let main = |mut user: User| {
        for _ in 0..50 {
            let handle = user.spawn(0, 0).expect("a thread");
            let join = user.joining(handle);
            assert_eq!(user.call(join).status(), Status::Ok);
            let (opcode, cap) = (Opcode::Release as u8, handle.to_bits());
            let released = user.call(Sqe { opcode, cap, ..Sqe::default() });
            assert_eq!(released.status(), Status::Ok);
        }
        let made = user.machine().records_made();
        assert!(made <= 4, "{made} records for the reaper and two threads that lived at a time");
    };
    let config = Config { threads: 1_000, ..Config::default() };
    let report = run(config, vec![Process::new("main", main)], vec![std::sync::Arc::new(|_| {})]);
    assert_eq!(report.ends, [("main".to_string(), 0)]);
}
