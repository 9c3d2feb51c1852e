//! What is left on a machine whose processes have ended: nothing, or so many threads.

use crate::world::World;
use kernel_ops::machine::CpuPart;

impl World {
    /// So many threads have rings and records, and nothing else waits for anything: on a machine where all but these
    /// have ended, and this is one of them.
    pub(crate) fn check_settled(&self, threads: usize) {
        self.tables.park.check_invariants().unwrap();
        assert!(!self.records.remains.has_work(), "something is left to be taken apart");
        assert_eq!(self.tables.outputs.open_count(), 0, "a ring of output is left");
        for cpu in &self.cpus {
            assert!(cpu.own.deadlines().is_empty(), "a deadline is left");
            cpu.queue.lock().check_invariants().unwrap();
        }
        let all = self.records.threads();
        let rings = all.iter().filter(|thread| thread.ops.home.completions().is_some()).count();
        assert_eq!(rings, threads, "threads with a ring, and a stack");
        let lives = all.iter().filter(|thread| thread.lifecycle.lock().is_some()).count();
        assert_eq!(lives, threads, "threads that somebody may ask for");
        let charged = self.records.processes().iter().filter(|process| {
            let is_there = process.key().generation % 2 == 1;
            !is_there && !process.ops.ledger.is_zero()
        });
        assert_eq!(charged.count(), 0, "accounts of nobody that are not zero");
    }

    /// All processes have ended: everything is where it was before they began.
    pub(crate) fn check_nothing_is_left(&self) {
        self.tables.park.check_invariants().unwrap();
        for cpu in &self.cpus {
            assert!(cpu.own.deadlines().is_empty(), "a deadline is left");
            let queue = cpu.queue.lock();
            queue.check_invariants().unwrap();
            assert_eq!(queue.view().hint().waiting, 0, "a thread is left in a queue");
        }
        for thread in self.records.threads() {
            assert!(
                thread.ops.home.completions().is_none(),
                "a ring of thread {} is left",
                thread.slot()
            );
            assert!(
                thread.lifecycle.lock().is_none(),
                "somebody may join thread {}",
                thread.slot()
            );
        }
        assert!(!self.records.remains.has_work(), "something is left to be taken apart");
        assert_eq!(self.tables.outputs.open_count(), 0, "a ring of output is left");
    }
}
