//! The members of a scope: which fibers are in it, which have ended, and who waits for whom.
//!
//! In here: the list and the rules of it, over any frame that can be linked, so that a model runs the
//! same. Not in here: what a frame is, and what is done with a result.
//!
//! # Contract
//!
//! - All of it is under the scope's one lock. A member's part of its frame is touched under the lock of
//!   the scope it is in, and by nobody else.
//! - A frame is out of the list before the wait of its joiner is decided. A joiner that has been
//!   cancelled runs without being woken, and if it finds the decision it takes no lock: from then on the
//!   frame is its own, and may be a member of another scope before the lock here is free.

use core::ptr;

use abi_sync::cell::RaceCell;
use fiber_core::Outcome;

use crate::lock::SpinLock;
use crate::planted::{Defect, is_planted};
use crate::wait::{Wait, Waker, wait};
use crate::what::What;

/// A frame that can be a member.
pub trait Linked: Sized + 'static {
    /// Its part that the scope's lock protects.
    fn member(&self) -> &RaceCell<Member<Self>>;
}

/// Drops what an ended fiber left.
pub type DropResult<F> = unsafe fn(&'static F);

/// What the lock of its scope protects of a frame.
#[derive(Debug)]
pub struct Member<F: 'static> {
    previous: *const F,
    next: *const F,
    is_finished: bool,
    has_handle: bool,
    /// In the list of those whose results have been dropped.
    is_swept: bool,
    joiner: *const Wait,
    /// Drops the result, for whoever finds it unclaimed.
    drop_result: DropResult<F>,
}

impl<F: 'static> Member<F> {
    /// Of a frame that is in no scope.
    pub fn new() -> Self {
        unsafe fn drop_nothing<F>(_: &'static F) {}
        Self {
            previous: ptr::null(),
            next: ptr::null(),
            is_finished: false,
            has_handle: false,
            is_swept: false,
            joiner: ptr::null(),
            drop_result: drop_nothing,
        }
    }
}

impl<F: 'static> Default for Member<F> {
    fn default() -> Self {
        Self::new()
    }
}

/// Whose the frame of a fiber that has ended is, and whom to wake, after the lock.
#[derive(Debug)]
#[must_use]
pub struct Ended<F: 'static> {
    /// It has no handle: the frame is the caller's, with what this drops.
    pub unclaimed: Option<DropResult<F>>,
    /// Whoever joins it. The frame is the joiner's.
    pub joiner: Option<Waker>,
    /// The owner of the scope, which nobody lives in any more.
    pub owner: Option<Waker>,
}

/// The members, and what else is under their lock.
#[derive(Debug)]
pub struct Members<F: 'static, X> {
    first: *const F,
    /// Ended fibers whose results have been dropped while their handles may still come.
    swept: *const F,
    live: usize,
    is_closing: bool,
    /// The owner's wait for the last fiber's end.
    owner: *const Wait,
    /// What else the lock protects.
    pub rest: X,
}

// SAFETY: frames and waits are shared by design, under the lock.
unsafe impl<F, X: Send> Send for Members<F, X> {}

/// Runs `f` with the member's part of a frame. Under the lock of its scope.
fn with<F: Linked, R>(frame: &F, f: impl FnOnce(&mut Member<F>) -> R) -> R {
    // SAFETY: methods of `Members` alone call this, with the lock held, and not within `f`.
    frame.member().with_mut(|member| f(unsafe { &mut *member }))
}

impl<F: Linked, X> Members<F, X> {
    /// Nobody.
    pub const fn new(rest: X) -> Self {
        Self {
            first: ptr::null(),
            swept: ptr::null(),
            live: 0,
            is_closing: false,
            owner: ptr::null(),
            rest,
        }
    }

    /// How many have not ended.
    pub fn live(&self) -> usize {
        self.live
    }

    /// Lets nobody in any more.
    pub fn close(&mut self) {
        self.is_closing = true;
    }

    /// Links a new fiber, which has a handle; false if nobody is let in.
    ///
    /// # Safety
    /// The frame is the caller's and in no scope.
    pub unsafe fn admit(&mut self, frame: &'static F, drop_result: DropResult<F>) -> bool {
        if self.is_closing {
            return false;
        }
        with(frame, |it| {
            it.is_finished = false;
            it.has_handle = true;
            it.is_swept = false;
            it.joiner = ptr::null();
            it.drop_result = drop_result;
        });
        self.link(frame);
        self.live += 1;
        true
    }

    fn link(&mut self, frame: &'static F) {
        let first = with(frame, |it| {
            let first = if it.is_swept { &mut self.swept } else { &mut self.first };
            it.previous = ptr::null();
            it.next = *first;
            core::mem::replace(first, frame)
        });
        // SAFETY: members are frames, which are never freed.
        if let Some(first) = unsafe { first.as_ref() } {
            with(first, |it| it.previous = frame);
        }
    }

    fn unlink(&mut self, frame: &'static F) {
        let (previous, next, is_swept) = with(frame, |it| (it.previous, it.next, it.is_swept));
        // SAFETY: members are frames, which are never freed.
        match unsafe { previous.as_ref() } {
            Some(previous) => with(previous, |it| it.next = next),
            None if is_swept => self.swept = next,
            None => self.first = next,
        }
        // SAFETY: as above.
        if let Some(next) = unsafe { next.as_ref() } {
            with(next, |it| it.previous = previous);
        }
    }

    /// How to drop the result of a member that nobody may ask for any more.
    pub fn unclaimed(&self, frame: &'static F) -> Option<DropResult<F>> {
        with(frame, |it| (!it.has_handle).then_some(it.drop_result))
    }

    /// Whether a member has ended.
    pub fn is_finished(&self, frame: &'static F) -> bool {
        with(frame, |it| it.is_finished)
    }

    /// Ends a member. By the worker it ended on.
    pub fn finish(&mut self, frame: &'static F) -> Ended<F> {
        let unclaimed = self.unclaimed(frame);
        let joiner = with(frame, |it| {
            it.is_finished = true;
            core::mem::replace(&mut it.joiner, ptr::null())
        });
        self.live -= 1;
        // SAFETY: a linked wait is alive.
        let joiner = unsafe { joiner.as_ref() };
        let is_late = is_planted(Defect::DecidesBeforeUnlinking);
        if unclaimed.is_some() || (joiner.is_some() && !is_late) {
            self.unlink(frame);
        }
        let waker = joiner.and_then(|wait| {
            let waker = wait.waker();
            wait.decide(Outcome::Data(0)).then_some(waker)
        });
        if is_late && waker.is_some() {
            self.unlink(frame);
        }
        if joiner.is_some() && waker.is_none() && !is_late {
            // The joiner ends for another reason, and looks again under the lock before it goes.
            self.link(frame);
        }
        // SAFETY: a linked wait is alive.
        let owner = unsafe { self.owner.as_ref() }.filter(|_| self.live == 0);
        let owner = owner.and_then(|wait| {
            self.owner = ptr::null();
            let waker = wait.waker();
            wait.decide(Outcome::Data(0)).then_some(waker)
        });
        Ended { unclaimed, joiner: waker, owner }
    }

    /// Takes out a member that has ended, whose frame is then the caller's. By its handle.
    pub fn take_finished(&mut self, frame: &'static F) -> bool {
        let is_finished = self.is_finished(frame);
        if is_finished {
            self.unlink(frame);
        }
        is_finished
    }

    /// Makes a frame a member again that was taken out: it has ended, and its handle will ask again.
    pub fn put_back(&mut self, frame: &'static F) {
        self.link(frame);
    }

    /// Has `wait` end with a member; false if it has ended: then its frame is the caller's. By its
    /// handle.
    pub fn link_joiner(&mut self, frame: &'static F, wait: &Wait) -> bool {
        let is_linked = !self.take_finished(frame);
        if is_linked {
            with(frame, |it| it.joiner = wait);
        }
        is_linked
    }

    /// Takes a member's joiner out, whose wait has ended otherwise.
    pub fn unlink_joiner(&mut self, frame: &'static F) {
        with(frame, |it| it.joiner = ptr::null());
    }

    /// Notes that a member's handle is gone; true if the frame is the caller's now.
    pub fn drop_handle(&mut self, frame: &'static F) -> bool {
        with(frame, |it| it.has_handle = false);
        self.take_finished(frame)
    }

    /// Takes the result of a member that nobody has asked for, all of whom have ended: the caller
    /// drops it, with the lock free. The frame stays a member: the handle of a fiber may be in the
    /// result of another one, or in what the scope keeps.
    pub fn sweep(&mut self) -> Option<(&'static F, DropResult<F>)> {
        // SAFETY: members are frames, which are never freed.
        let frame = unsafe { self.first.as_ref() }?;
        self.unlink(frame);
        let drop_result = with(frame, |it| {
            it.is_swept = true;
            it.drop_result
        });
        self.link(frame);
        Some((frame, drop_result))
    }

    /// Takes out a member that was swept, whose handle was forgotten: its frame is the caller's.
    pub fn take_forgotten(&mut self) -> Option<&'static F> {
        // SAFETY: members are frames, which are never freed.
        let frame = unsafe { self.swept.as_ref() }?;
        self.unlink(frame);
        Some(frame)
    }

    /// Calls `f` with every member that has not ended.
    pub fn for_each_live(&self, mut f: impl FnMut(&'static F)) {
        let mut at = self.first;
        // SAFETY: members are frames, which are never freed.
        while let Some(frame) = unsafe { at.as_ref() } {
            let (next, is_finished) = with(frame, |it| (it.next, it.is_finished));
            if !is_finished {
                f(frame);
            }
            at = next;
        }
    }
}

/// Waits for the end of a member, whose frame is then the caller's; false if the caller has been
/// cancelled. By the member's handle. `has_ended` spares it the way to its own word.
pub fn wait_for<F: Linked, X>(
    members: &SpinLock<Members<F, X>>,
    frame: &'static F,
    has_ended: bool,
) -> bool {
    if has_ended && members.with(|members| members.take_finished(frame)) {
        return true;
    }
    let publish = |wait: &Wait| members.with(|members| members.link_joiner(frame, wait));
    let unlink = |outcome| {
        if outcome != Outcome::Data(0) {
            members.with(|members| members.unlink_joiner(frame));
        }
    };
    match wait(What::Join, ptr::from_ref(frame).cast(), None, publish, unlink) {
        None | Some(Outcome::Data(_)) => true,
        // It may have ended meanwhile.
        _ => members.with(|members| members.take_finished(frame)),
    }
}

/// Waits until no member lives. By the owner of the scope.
pub fn wait_for_last<F: Linked, X>(
    members: &SpinLock<Members<F, X>>,
    at: *const (),
) -> Option<Outcome> {
    let publish = |wait: &Wait| {
        members.with(|members| {
            let is_linked = members.live > 0;
            if is_linked {
                members.owner = wait;
            }
            is_linked
        })
    };
    // Also waits for the lock of whoever ended last to be free.
    let unlink = |_| members.with(|members| members.owner = ptr::null());
    wait(What::Scope, at, None, publish, unlink)
}
