//! When memory that others may still be looking at can be used again.
//!
//! The kernel is not preempted, so a CPU in user space, idle or halted holds no reference into
//! kernel structures. Each CPU says on entry since when it is in the kernel and on exit that it
//! is not ([`Quiescence::enter`], [`Quiescence::exit`]). A reclaimer that has taken an object
//! out of every place it can be found in asks for a [`Grace`]; once every CPU that was in the
//! kernel at that time has left it ([`Quiescence::is_over`]), nobody can still hold a reference. A
//! CPU that never enters the kernel costs no interrupt and delays nobody.
//!
//! Contract:
//! - references to reclaimable objects are taken and used between `enter` and `exit` of one CPU;
//! - an object is unreachable for newcomers before its `Grace` is asked for;
//! - [`Limbo`] keeps objects in order until their time comes, in fixed storage.
//!
//! Decided in ADR 64.
#![cfg_attr(not(loom), no_std)]

mod limbo;

use abi_sync::atomic::{AtomicU64, Ordering, fence};
pub use limbo::{Full, Limbo};

/// What a CPU's word holds while it holds no references.
const OUTSIDE: u64 = 0;

/// A word on a cache line of its own: only its CPU writes it, at every entry and exit.
#[derive(Debug)]
#[repr(align(64))]
struct Word(AtomicU64);

/// The epoch, and where each CPU stands.
#[derive(Debug)]
pub struct Quiescence<const CPUS: usize> {
    /// Grows with every grace period asked for; starts at 1.
    epoch: AtomicU64,
    /// The epoch at a CPU's entry, or [`OUTSIDE`].
    inside: [Word; CPUS],
}

/// A grace period: over when all CPUs that were in the kernel when it began have left it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grace(u64);

impl<const CPUS: usize> Quiescence<CPUS> {
    /// All CPUs are outside.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self { epoch: AtomicU64::new(1), inside: [const { Word(AtomicU64::new(OUTSIDE)) }; CPUS] }
    }

    /// All CPUs are outside.
    #[cfg(loom)]
    pub fn new() -> Self {
        let inside = core::array::from_fn(|_| Word(AtomicU64::new(OUTSIDE)));
        Self { epoch: AtomicU64::new(1), inside }
    }

    /// CPU `cpu` enters the kernel: it may take references from now on.
    #[inline]
    pub fn enter(&self, cpu: usize) {
        let epoch = self.epoch.load(Ordering::Relaxed);
        if let Some(word) = self.inside.get(cpu) {
            // Release: pairs with the Acquire load in `is_over`, which may see this entry and
            // not the exit before it; the uses before that exit happen before any reuse too.
            word.0.store(epoch, Ordering::Release);
        }
        // The reader's half of the pair with the fence in `begin`: either that CPU sees this
        // word, or what this CPU reads from here on sees its objects gone.
        fence(Ordering::SeqCst);
    }

    /// CPU `cpu` leaves the kernel, goes idle or halts: it has no references left.
    #[inline]
    pub fn exit(&self, cpu: usize) {
        if let Some(word) = self.inside.get(cpu) {
            // Release: pairs with the Acquire load in `is_over`; its uses happen before any
            // reuse.
            word.0.store(OUTSIDE, Ordering::Release);
        }
    }

    /// Begins a grace period for what the caller has just made unreachable.
    #[inline]
    pub fn begin(&self) -> Grace {
        // The reclaimer's half of the pair with the fence in `enter`; it stands between making
        // the object unreachable and every look at the words.
        fence(Ordering::SeqCst);
        Grace(self.epoch.fetch_add(1, Ordering::Relaxed))
    }

    /// Whether nobody can hold a reference from before `grace` any more.
    #[inline]
    pub fn is_over(&self, grace: Grace) -> bool {
        self.inside.iter().all(|word| {
            // Acquire: pairs with the Release stores in `exit` and `enter`.
            let since = word.0.load(Ordering::Acquire);
            since == OUTSIDE || since > grace.0
        })
    }
}

impl<const CPUS: usize> Default for Quiescence<CPUS> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn only_those_inside_at_the_beginning_are_waited_for() {
        let q = Quiescence::<3>::new();
        assert!(q.is_over(q.begin()), "nobody is in the kernel");
        q.enter(0);
        let first = q.begin();
        q.enter(1);
        assert!(!q.is_over(first));
        let second = q.begin();
        q.exit(0);
        assert!(q.is_over(first), "CPU 1 came later");
        assert!(!q.is_over(second));
        q.exit(1);
        q.enter(1);
        assert!(q.is_over(second), "CPU 1 left and came back");
        assert!(first < second);
    }

    #[test]
    fn a_cpu_that_stays_inside_holds_everything_up() {
        let q = Quiescence::<128>::new();
        q.enter(127);
        let graces: [Grace; 10] = core::array::from_fn(|_| q.begin());
        assert!(graces.iter().all(|g| !q.is_over(*g)));
        q.exit(127);
        assert!(graces.iter().all(|g| q.is_over(*g)));
    }
}
