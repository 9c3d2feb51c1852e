//! No wake is lost between a sender and a CPU that handles requests or goes idle.
//!
//! The work is a relaxed word: what makes it visible is the protocol under test and nothing
//! else. An interrupt is a counter that the target waits on when it has nothing to do.
use abi_sync::atomic::{AtomicBool, AtomicU32, Ordering};
use abi_sync::{Arc, thread};
use smp_ipi::{IdleSet, Pending, Requests};

#[derive(Default)]
struct World {
    work: AtomicU32,
    pending: Pending,
    idle: IdleSet,
    /// An interrupt is latched in the target's controller.
    latched: AtomicBool,
    done: AtomicU32,
}

impl World {
    /// The target looks for work and does all of it.
    fn look(&self) {
        self.done.store(self.work.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    fn send(&self, work: u32) {
        self.work.store(work, Ordering::Relaxed);
        if self.pending.post(Requests::RESCHEDULE) {
            self.latched.store(true, Ordering::Release);
        }
    }

    /// What a latched interrupt does at the target, sooner or later.
    fn interrupt(&self) {
        if self.latched.swap(false, Ordering::Acquire) {
            assert!(!self.pending.take().is_empty());
            self.look();
        }
    }
}

/// The second of two sends may find the first still pending and send no interrupt.
fn two_sends_meet_a_take(take: fn(&World)) {
    abi_sync::model(move || {
        let world = Arc::new(World::default());
        world.send(1);
        let target = world.clone();
        let t = thread::spawn(move || {
            if target.latched.swap(false, Ordering::Acquire) {
                take(&target);
            }
        });
        world.send(2);
        t.join().unwrap();
        // Whatever is still latched is delivered now.
        world.interrupt();
        assert_eq!(world.done.load(Ordering::Relaxed), 2, "work was left behind");
    });
}

#[test]
fn a_request_found_pending_covers_later_work() {
    two_sends_meet_a_take(|w| {
        w.pending.take();
        w.look();
    });
}

#[test]
#[should_panic(expected = "work was left behind")]
fn a_mutant_that_looks_before_it_takes_is_caught() {
    two_sends_meet_a_take(|w| {
        w.look();
        w.pending.take();
    });
}

/// The protocol of `Pending` on a plain word, with the fences as parameters.
#[derive(Default)]
struct Bare {
    work: AtomicU32,
    word: AtomicU32,
    latched: AtomicBool,
    seen: AtomicU32,
}

fn pending_with(sender_fence: bool, target_fence: bool) {
    let fence = |wanted: bool| {
        if wanted {
            abi_sync::atomic::fence(Ordering::SeqCst);
        }
    };
    abi_sync::model(move || {
        let world = Arc::new(Bare::default());
        let post = move |w: &Bare, work| {
            w.work.store(work, Ordering::Relaxed);
            fence(sender_fence);
            if w.word.fetch_or(1, Ordering::Relaxed) == 0 {
                w.latched.store(true, Ordering::Release);
            }
        };
        post(&world, 1);
        let target = world.clone();
        let handle = move |w: &Bare| {
            if w.latched.swap(false, Ordering::Acquire) {
                w.word.swap(0, Ordering::Relaxed);
                fence(target_fence);
                w.seen.store(w.work.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        };
        let t = thread::spawn(move || handle(&target));
        post(&world, 2);
        t.join().unwrap();
        handle(&world);
        assert_eq!(world.seen.load(Ordering::Relaxed), 2, "work was left behind");
    });
}

#[test]
fn both_fences_suffice() {
    pending_with(true, true);
}

#[test]
#[should_panic(expected = "work was left behind")]
fn a_mutant_sender_without_fence_is_caught() {
    pending_with(false, true);
}

#[test]
#[should_panic(expected = "work was left behind")]
fn a_mutant_target_without_fence_is_caught() {
    pending_with(true, false);
}

/// A sender that wakes only idle CPUs meets a CPU that is about to halt.
fn wake_meets_idle(go_idle: fn(&World)) {
    abi_sync::model(move || {
        let world = Arc::new(World::default());
        let target = world.clone();
        let t = thread::spawn(move || go_idle(&target));
        world.work.store(1, Ordering::Relaxed);
        if world.idle.seek() & 1 != 0 && world.pending.post(Requests::RESCHEDULE) {
            world.latched.store(true, Ordering::Release);
        }
        t.join().unwrap();
        // The target halted; only an interrupt makes it look again.
        world.interrupt();
        assert_eq!(world.done.load(Ordering::Relaxed), 1, "the CPU sleeps on work");
    });
}

#[test]
fn an_announced_idle_cpu_is_woken_or_sees_the_work() {
    wake_meets_idle(|w| {
        w.idle.announce(0);
        w.look();
    });
}

#[test]
#[should_panic(expected = "the CPU sleeps on work")]
fn a_mutant_that_looks_before_it_announces_is_caught() {
    wake_meets_idle(|w| {
        w.look();
        w.idle.announce(0);
    });
}

#[test]
#[should_panic(expected = "the CPU sleeps on work")]
fn a_mutant_that_halts_without_a_last_look_is_caught() {
    wake_meets_idle(|w| w.idle.announce(0));
}
