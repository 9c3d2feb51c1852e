//! Who owns a fiber, and whether it is published: noted beside its state word in checked builds, and
//! asserted at every transition by the number of the rule. In other builds there is nothing of it.
//!
//! | rule | asserted |
//! |---|---|
//! | F1: one worker owns a fiber that runs or is about to park | when a worker takes it, and when it gives it up |
//! | F2: only runnable fibers are in run queues | when one is published, moved between queues, or taken out |
//! | F3: a waker enqueues only a fiber that nobody owns | when it is published |
//! | F4: who makes it runnable publishes it, once | when it is published, and when a worker takes it |
//! | F5: a worker touches nothing of a fiber whose park it committed | when it touches what is the owner's |
//!
//! A worker gives a fiber up before the step that lets others have it: the commit of a park, the step
//! back to runnable, the end. If the commit says to go on, it takes it again.

#[cfg(debug_assertions)]
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

#[cfg(debug_assertions)]
use fiber_core::State;
use fiber_core::StateWord;

/// The notes of one frame.
#[derive(Default)]
pub(crate) struct Ownership {
    /// The worker's index plus one; 0 for nobody.
    #[cfg(debug_assertions)]
    owner: AtomicUsize,
    #[cfg(debug_assertions)]
    is_published: AtomicBool,
}

#[cfg(debug_assertions)]
impl Ownership {
    /// Before a runnable fiber is put into a queue or slot, by whoever made it runnable.
    pub fn publish(&self, word: &StateWord) {
        self.is_queued(word);
        // Acquire: pairs with the release in `leave`.
        assert_eq!(self.owner.load(Ordering::Acquire), 0, "F3: it is published while owned");
        // AcqRel: against `take`, and another publication.
        assert!(!self.is_published.swap(true, Ordering::AcqRel), "F4: it is published twice");
    }

    /// When a published fiber goes from one queue to another.
    pub fn is_queued(&self, word: &StateWord) {
        assert_eq!(word.load().state(), State::Runnable, "F2: only runnable fibers are queued");
    }

    /// When a worker has taken a fiber out of a queue or slot.
    pub fn take(&self, worker: usize, word: &StateWord) {
        self.is_queued(word);
        // AcqRel: against `publish`.
        assert!(self.is_published.swap(false, Ordering::AcqRel), "F4: nobody published it");
        self.own(worker);
    }

    /// When a worker goes on with a fiber whose park did not come to be.
    pub fn own(&self, worker: usize) {
        // AcqRel: against `leave` of the last owner.
        assert_eq!(self.owner.swap(worker + 1, Ordering::AcqRel), 0, "F1: two workers own it");
    }

    /// Before the step that lets others have the fiber.
    pub fn leave(&self, worker: usize) {
        // AcqRel: pairs with the next owner's `own`.
        assert_eq!(self.owner.swap(0, Ordering::AcqRel), worker + 1, "F1: another worker owns it");
    }

    /// When what is the owner's is touched.
    pub fn touch(&self, worker: usize) {
        assert_eq!(self.owner.load(Ordering::Relaxed), worker + 1, "F5: it was given up");
    }
}

#[cfg(not(debug_assertions))]
impl Ownership {
    #[inline(always)]
    pub fn publish(&self, _word: &StateWord) {}
    #[inline(always)]
    pub fn is_queued(&self, _word: &StateWord) {}
    #[inline(always)]
    pub fn take(&self, _worker: usize, _word: &StateWord) {}
    #[inline(always)]
    pub fn own(&self, _worker: usize) {}
    #[inline(always)]
    pub fn leave(&self, _worker: usize) {}
    #[inline(always)]
    pub fn touch(&self, _worker: usize) {}
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;
    use fiber_core::{CommitVerdict, ParkVerdict, WakeVerdict};

    /// A fiber that worker 0 runs.
    fn running() -> (Ownership, StateWord) {
        let (notes, word) = (Ownership::default(), StateWord::new());
        assert_eq!(word.start(), Ok(()));
        notes.publish(&word);
        notes.take(0, &word);
        assert_eq!(word.dispatch(), Ok(()));
        (notes, word)
    }

    #[test]
    fn a_life_as_it_should_be() {
        let (notes, word) = running();
        notes.touch(0);
        // A yield, and a run elsewhere.
        notes.leave(0);
        assert_eq!(word.requeue(), Ok(()));
        notes.publish(&word);
        notes.is_queued(&word);
        notes.take(1, &word);
        assert_eq!(word.dispatch(), Ok(()));
        // A park that does not come to be, and one that does.
        for is_woken in [true, false] {
            let ticket = match word.begin_park() {
                Ok(ParkVerdict::Parking(ticket)) => ticket,
                other => unreachable!("{other:?}"),
            };
            notes.touch(1);
            if is_woken {
                assert_eq!(word.wake(ticket), Ok(WakeVerdict::Noted));
            }
            notes.leave(1);
            if is_woken {
                assert_eq!(word.commit_park(), Ok(CommitVerdict::Resume));
                notes.own(1);
            } else {
                assert_eq!(word.commit_park(), Ok(CommitVerdict::Parked));
                assert_eq!(word.wake(ticket), Ok(WakeVerdict::Enqueue));
                notes.publish(&word);
                notes.take(0, &word);
                assert_eq!(word.dispatch(), Ok(()));
            }
        }
        notes.touch(0);
        notes.leave(0);
        assert_eq!(word.finish(true), Ok(()));
    }

    #[test]
    #[should_panic(expected = "F1: two workers own it")]
    fn two_owners() {
        running().0.own(1);
    }

    #[test]
    #[should_panic(expected = "F1: another worker owns it")]
    fn given_up_by_a_stranger() {
        running().0.leave(1);
    }

    #[test]
    #[should_panic(expected = "F2")]
    fn queued_while_it_runs() {
        let (notes, word) = running();
        notes.is_queued(&word);
    }

    #[test]
    #[should_panic(expected = "F3")]
    fn published_before_it_is_given_up() {
        let (notes, word) = running();
        assert_eq!(word.requeue(), Ok(()));
        notes.publish(&word);
    }

    #[test]
    #[should_panic(expected = "F4: it is published twice")]
    fn published_twice() {
        let (notes, word) = running();
        notes.leave(0);
        assert_eq!(word.requeue(), Ok(()));
        notes.publish(&word);
        notes.publish(&word);
    }

    #[test]
    #[should_panic(expected = "F4: nobody published it")]
    fn taken_without_being_published() {
        let (notes, word) = running();
        notes.leave(0);
        assert_eq!(word.requeue(), Ok(()));
        notes.take(0, &word);
    }

    #[test]
    #[should_panic(expected = "F5")]
    fn touched_after_it_was_given_up() {
        let (notes, _) = running();
        notes.leave(0);
        notes.touch(0);
    }
}
