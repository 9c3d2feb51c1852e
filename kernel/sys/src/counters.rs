//! What each CPU counts: one increment by the CPU itself, read by anyone.

use core::sync::atomic::{AtomicU64, Ordering};

/// One number that only its own CPU changes.
#[derive(Debug)]
pub struct Count(AtomicU64);

impl Count {
    const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// One more. Not an atomic increment: nobody else writes it.
    #[inline]
    pub fn bump(&self) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// The value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The counters of one CPU.
        #[derive(Debug)]
        pub struct Counters {
            $($(#[$doc])* pub $name: Count,)*
        }

        impl Counters {
            /// All zero.
            pub const fn new() -> Self {
                Self { $($name: Count::new(),)* }
            }
        }

        impl Default for Counters {
            fn default() -> Self {
                Self::new()
            }
        }
    };
}

counters! {
    /// From one thread to another by a queue's choice.
    switches,
    /// Switches because a slice ended or somebody more urgent came.
    preemptions,
    /// Threads taken from another CPU's queue.
    steals,
    /// Threads given to a CPU with less to do.
    balanced,
    /// Wakes that found no better CPU than a busy one.
    failed_placements,
    /// Interrupts sent to another CPU.
    reschedule_sent,
    /// Not sent, because one was pending there.
    reschedule_skipped,
    /// Times it halted.
    idle_entries,
    /// Of these, not the first since it left a thread.
    idle_cooperative,
    /// Times it left a thread for the idle loop that was put back and might not run.
    idle_dispatch_timer,
    /// The same for a thread that waits.
    idle_dispatch_block,
    /// The same for a thread that has ended.
    idle_dispatch_exit,
    /// Requests for a weight or a class that were granted.
    policy_admissions,
    /// Those that were refused.
    policy_denials,
    /// Timer interrupts.
    timer_interrupts,
    /// Times the timer was armed.
    one_shots,
    /// From a thread that waits straight to its peer: switches too.
    hand_overs,
    /// Woken threads that were to run when their wakers stop.
    offers,
    /// Calls whose server was queued instead.
    handoffs_missed,
    /// Entries by system call.
    syscalls,
}
