//! Joining, leaving and ending: a frame has one owner after its fiber's end, and is in one scope.
//!
//! Members, waits and state words are the real ones; a frame is all that a member needs. Whoever owns
//! a frame at last reads the result, and puts the frame into another scope, as the next spawn may do.
use abi_sync::cell::RaceCell;
use abi_sync::{Arc, CheckedCell, explore, thread};
use fiber_core::Outcome;
use fiber_rt::{
    Defect, Ended, Linked, Member, Members, ModelFiber, SpinLock, plant, shield, wait_for,
    wait_for_last,
};

struct Frame {
    member: RaceCell<Member<Frame>>,
    result: CheckedCell<u32>,
}

// SAFETY: the member's part is under its scope's lock, the rest is checked by the model.
unsafe impl Sync for Frame {}

impl Linked for Frame {
    fn member(&self) -> &RaceCell<Member<Frame>> {
        &self.member
    }
}

type Scope = SpinLock<Members<Frame, ()>>;

unsafe fn drop_nothing(_: &'static Frame) {}

struct World {
    scope: Scope,
    /// Where a frame goes next.
    other: Scope,
}

impl World {
    fn new() -> Arc<Self> {
        let scope = || SpinLock::new(Members::new(()));
        Arc::new(Self { scope: scope(), other: scope() })
    }

    fn spawn(&self) -> &'static Frame {
        let frame: &'static Frame = Box::leak(Box::new(Frame {
            member: RaceCell::new(Member::new()),
            result: CheckedCell::new(0),
        }));
        // SAFETY: the frame is new.
        assert!(self.scope.with(|scope| unsafe { scope.admit(frame, drop_nothing) }));
        frame
    }

    /// The end of a fiber, by its worker.
    fn finish(&self, frame: &'static Frame) -> bool {
        frame.result.update(|result| *result = 7);
        let Ended { unclaimed, joiner, owner } = self.scope.with(|scope| scope.finish(frame));
        let is_ours = unclaimed.is_some();
        if is_ours {
            self.recycle(frame);
        }
        [joiner, owner].into_iter().flatten().for_each(|waker| waker.wake());
        is_ours
    }

    /// By the one who owns the frame: takes the result, and has the frame used again.
    fn recycle(&self, frame: &'static Frame) {
        frame.result.update(|result| assert_eq!(core::mem::take(result), 7, "the result is there"));
        // SAFETY: the frame is the caller's.
        assert!(self.other.with(|other| unsafe { other.admit(frame, drop_nothing) }));
    }

    fn drop_handle(&self, frame: &'static Frame) -> bool {
        let is_ours = self.scope.with(|scope| scope.drop_handle(frame));
        if is_ours {
            self.recycle(frame);
        }
        is_ours
    }

    /// Each frame has been used again, once.
    fn check_end(&self, frames: usize) {
        self.scope.with(|scope| {
            assert_eq!(scope.live(), 0);
            assert!(scope.sweep().is_none(), "a frame is in two scopes");
        });
        let mut found = 0;
        self.other.with(|other| other.for_each_live(|_| found += 1));
        assert_eq!(found, frames, "a frame is in one scope");
    }
}

/// A fiber ends while its joiner is cancelled: the frame is the joiner's, or its handle's drop or the
/// worker get it, and whoever it is may use it at once.
fn join_against_cancel() {
    let world = World::new();
    let frame = world.spawn();
    let (fiber, joiner) = {
        let world = world.clone();
        ModelFiber::spawn(move || {
            if wait_for(&world.scope, frame, false) {
                world.recycle(frame);
                true
            } else {
                world.drop_handle(frame)
            }
        })
    };
    let canceller = thread::spawn(move || fiber.cancel());
    let is_workers = world.finish(frame);
    canceller.join().unwrap();
    assert!(joiner.join().unwrap() ^ is_workers, "one owner");
    world.check_end(1);
}

#[test]
fn a_joiner_that_is_cancelled_and_a_fiber_that_ends() {
    explore("join against cancel", join_against_cancel);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_decision_before_the_frame_is_out() {
    plant(Defect::DecidesBeforeUnlinking);
    explore("mutant: decide, then unlink", join_against_cancel);
}

/// A handle goes while its fiber ends; a sibling has ended before and is joined meanwhile.
#[test]
fn a_handle_that_goes_and_a_fiber_that_ends() {
    explore("drop against end", || {
        let world = World::new();
        let (frame, sibling) = (world.spawn(), world.spawn());
        assert!(!world.finish(sibling));
        let dropper = {
            let world = world.clone();
            thread::spawn(move || world.drop_handle(frame))
        };
        let joiner = {
            let world = world.clone();
            thread::spawn(move || {
                assert!(wait_for(&world.scope, sibling, true));
                world.recycle(sibling);
            })
        };
        let is_workers = world.finish(frame);
        assert!(dropper.join().unwrap() ^ is_workers, "one owner");
        joiner.join().unwrap();
        world.check_end(2);
    });
}

/// The owner leaves when the last of two fibers has ended, cancelled or not.
fn leave(is_cancelled: bool) {
    let world = World::new();
    let frames = [world.spawn(), world.spawn()];
    frames.iter().for_each(|frame| assert!(!world.drop_handle(frame)));
    let (fiber, owner) = {
        let world = world.clone();
        ModelFiber::spawn(move || {
            let last = || wait_for_last(&world.scope, core::ptr::null());
            if last() == Some(Outcome::Cancelled) {
                shield(last);
            }
            world.scope.with(|scope| assert_eq!(scope.live(), 0, "left before the last"));
        })
    };
    let other = {
        let world = world.clone();
        thread::spawn(move || assert!(world.finish(frames[1])))
    };
    if is_cancelled {
        fiber.cancel();
    }
    assert!(world.finish(frames[0]));
    other.join().unwrap();
    owner.join().unwrap();
    world.check_end(2);
}

#[test]
fn an_owner_leaves_after_the_last() {
    explore("leave", || leave(false));
}

#[test]
fn an_owner_that_is_cancelled_leaves_after_the_last() {
    explore("leave, cancelled", || leave(true));
}
