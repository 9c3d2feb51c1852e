//! Scopes: fibers that may borrow from whoever opened the scope, because it waits for all of them.
//!
//! A scope is a waitable twice over: for whoever joins one of its fibers, and for its owner, who
//! leaves it when none lives. Both kinds of waits, the list of members and what each has left behind
//! are under the scope's one lock.
//!
//! # Who owns an ended fiber's frame
//!
//! Whoever comes last: the worker it ended on, if its handle is gone; else the handle, whose join or
//! drop takes the result and gives the frame back; else, for a handle that was forgotten, the owner
//! of the scope when it leaves. A result is dropped while the scope is open, for it may borrow from it,
//! and on a fiber's stack, for it may wait: on the owner's, or on that of the fiber it is from.

use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

use alloc::boxed::Box;
use alloc::vec::Vec;

use fiber_core::{CancelVerdict, Outcome, State as FiberState};

use crate::frame::{Frame, frame_at};
use crate::handle::Handle;
use crate::lock::SpinLock;
use crate::members::{self, DropResult, Members};
use crate::packet::{Packet, drop_packet, prepare, prepare_drop};
use crate::runtime::Shared;
use crate::shield::wait_in_any_case;
use crate::substrate::{PanicPayload, Substrate, Sys, SystemError};
use crate::wait::{Wait, check, publish};
use crate::worker::{self, Worker, bump, current_fiber};

/// Why a fiber was not spawned; the closure comes back.
pub enum SpawnError<F> {
    /// The scope is closing.
    Closing(F),
    /// The system has no stack for it.
    System(F, SystemError),
}

impl<F> SpawnError<F> {
    /// The closure.
    pub fn into_inner(self) -> F {
        match self {
            Self::Closing(f) | Self::System(f, _) => f,
        }
    }
}

impl<F> core::fmt::Display for SpawnError<F> {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Closing(_) => out.write_str("the scope is closing and takes no new fibers"),
            Self::System(_, error) => error.fmt(out),
        }
    }
}

impl<F> core::fmt::Debug for SpawnError<F> {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(out, "{self}")
    }
}

/// What else is under the lock of a scope.
pub(crate) struct Left {
    pub panic: Option<PanicPayload>,
    /// What lives as long as the scope.
    kept: Vec<Box<dyn Kept>>,
}

/// Anything that can be dropped.
trait Kept {}
impl<T> Kept for T {}

// SAFETY: what is kept is Send, by the bound of `keep`.
unsafe impl Send for Left {}

/// A scope: see [`scope`].
pub struct Scope<'scope, 'env: 'scope> {
    pub(crate) members: SpinLock<Members<Frame, Left>>,
    is_closing: AtomicBool,
    pub(crate) shared: *const Shared,
    pub(crate) root: *const (),
    marker: PhantomData<(&'scope mut &'scope (), &'env mut &'env ())>,
}

// SAFETY: all of it is under the lock, atomic, or constant.
unsafe impl Sync for Scope<'_, '_> {}
// SAFETY: as for Sync.
unsafe impl Send for Scope<'_, '_> {}

/// Gives a frame back to whoever spawns next.
pub(crate) fn recycle(frame: &'static Frame) {
    let _ = check(frame.word.recycle());
    let shared = frame.shared.load(Ordering::Relaxed);
    match worker::current() {
        Some(worker) if ptr::eq(worker.shared(), shared) => worker.give_frame(frame),
        // SAFETY: whoever had the frame kept the runtime alive.
        _ => unsafe { &*shared }.pool.give(frame, frame),
    }
}

impl<'scope, 'env> Scope<'scope, 'env> {
    pub(crate) fn new(shared: *const Shared, root: *const ()) -> Self {
        Self {
            members: SpinLock::new(Members::new(Left { panic: None, kept: Vec::new() })),
            is_closing: AtomicBool::new(false),
            shared,
            root,
            marker: PhantomData,
        }
    }

    pub(crate) fn erased(&self) -> *const Scope<'static, 'static> {
        ptr::from_ref(self).cast()
    }

    /// Drops a packet that nobody took; a panic in it, or of its drop, is the scope's.
    pub(crate) fn discard<T>(&self, packet: Option<Packet<T>>) {
        match packet {
            Some(Packet::Panicked(payload)) => self.fail(payload),
            Some(Packet::Value(value)) => {
                if let Err(payload) = Sys::catch(|| drop(value)) {
                    self.fail(payload);
                }
            }
            Some(Packet::Cancelled) | None => {}
        }
    }

    /// Keeps the first panic for the owner, and cancels everyone.
    pub fn fail(&self, payload: PanicPayload) {
        let spare = self.members.with(|members| match members.rest.panic {
            None => {
                members.rest.panic = Some(payload);
                None
            }
            Some(_) => Some(payload),
        });
        // What a user panicked with may panic again when it is dropped; once is enough.
        if let Err(again) = Sys::catch(|| drop(spare)) {
            core::mem::forget(again);
        }
        self.cancel();
    }

    /// Spawns a fiber.
    pub fn spawn<T, F>(&'scope self, f: F) -> Result<Handle<'scope, T>, SpawnError<F>>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        // SAFETY: the scope's owner waits for the fiber before 'scope ends.
        unsafe { self.spawn_unchecked(f) }
    }

    /// # Safety
    /// What the closure and its result borrow lives until the scope's owner has waited for all.
    pub(crate) unsafe fn spawn_unchecked<'a, T, F>(
        &self,
        f: F,
    ) -> Result<Handle<'a, T>, SpawnError<F>>
    where
        F: FnOnce() -> T,
    {
        let frame = match self.admit(drop_packet::<T>) {
            Ok(frame) => frame,
            Err(None) => return Err(SpawnError::Closing(f)),
            Err(Some(error)) => return Err(SpawnError::System(f, error)),
        };
        // SAFETY: the frame is new and ours.
        unsafe { prepare(frame, f) };
        let _ = check(frame.word.start());
        worker::enqueue(frame);
        Ok(Handle { frame, scope: self.erased(), root: None, is_void: false, marker: PhantomData })
    }

    /// A frame that is linked as a member, with a handle; no error means that the scope is closing.
    fn admit(&self, drop_result: DropResult<Frame>) -> Result<&'static Frame, Option<SystemError>> {
        if self.is_closing.load(Ordering::Relaxed) {
            return Err(None);
        }
        // SAFETY: a scope does not outlive its runtime.
        let shared = unsafe { &*self.shared };
        let here = worker::current().filter(|worker| ptr::eq(worker.shared(), shared));
        let taken = match here {
            Some(worker) => worker.take_frame(),
            None => shared.pool.take(shared),
        };
        let frame = taken.map_err(Some)?;
        let id = match here {
            Some(worker) => {
                bump(&worker.counters.spawns, 1);
                let count = worker.counters.spawns.load(Ordering::Relaxed);
                (worker.index as u64 + 1) << 48 | count
            }
            None => shared.next_id.fetch_add(1, Ordering::Relaxed),
        };
        frame.id.store(id, Ordering::Relaxed);
        frame.scope.store(self.erased().cast_mut(), Ordering::Relaxed);
        frame.root.store(self.root.cast_mut(), Ordering::Relaxed);
        if frame.is_named.load(Ordering::Relaxed) {
            frame.forget_name();
        }
        // SAFETY: the frame is new, and the caller's.
        let is_closing = !self.members.with(|members| unsafe { members.admit(frame, drop_result) });
        if is_closing {
            // The word is still Init, which is what a pooled frame has.
            match here {
                Some(worker) => worker.give_frame(frame),
                None => shared.pool.give(frame, frame),
            }
            return Err(None);
        }
        Ok(frame)
    }

    /// Cancels every fiber in the scope; no new one gets in.
    pub fn cancel(&self) {
        let mut woken: *mut Frame = ptr::null_mut();
        self.members.with(|members| {
            members.close();
            // Relaxed: the lock decides; this only spares a spawner the way.
            self.is_closing.store(true, Ordering::Relaxed);
            members.for_each_live(|frame| {
                if frame.word.cancel() == CancelVerdict::Enqueue {
                    // Runnable and ours until it is published: its link is free.
                    frame.link.store(woken, Ordering::Relaxed);
                    woken = frame.as_ptr();
                }
            });
        });
        while !woken.is_null() {
            // SAFETY: chained above.
            let frame = unsafe { frame_at(woken) };
            woken = frame.link.load(Ordering::Relaxed);
            publish(frame);
        }
    }

    /// Keeps a value for as long as the scope is open; it is dropped when no fiber lives.
    pub fn keep<X: Send + 'scope>(&'scope self, value: X) -> &'scope X {
        let boxed = Box::new(value);
        let at = ptr::from_ref(&*boxed);
        let boxed: Box<dyn Kept + 'scope> = boxed;
        // SAFETY: only the lifetime changes; `scope` drops it before 'scope ends.
        let boxed = unsafe { core::mem::transmute::<Box<dyn Kept + 'scope>, Box<dyn Kept>>(boxed) };
        self.members.with(|members| members.rest.kept.push(boxed));
        // SAFETY: boxed, so it stays where it is, until 'scope ends.
        unsafe { &*at }
    }

    /// Whether the scope has been cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.is_closing.load(Ordering::Relaxed)
    }

    /// Whether anybody may still ask for the result of a member.
    pub(crate) fn has_handle(&self, frame: &'static Frame) -> bool {
        self.members.with(|members| members.unclaimed(frame).is_none())
    }

    /// How many fibers live in it.
    pub fn live(&self) -> usize {
        self.members.with(|members| members.live())
    }

    /// Waits for the end of a member, whose frame is then the caller's; false if the caller has been
    /// cancelled.
    pub(crate) fn wait_for(&self, frame: &'static Frame) -> bool {
        let state = frame.word.load().state();
        let has_ended = matches!(state, FiberState::Done | FiberState::Cancelled);
        members::wait_for(&self.members, frame, has_ended)
    }

    /// Has `wait` end with a member; false if it has ended: then its frame is the caller's.
    pub(crate) fn link_joiner(&self, frame: &'static Frame, wait: &Wait) -> bool {
        self.members.with(|members| members.link_joiner(frame, wait))
    }

    /// Takes a member's joiner out.
    pub(crate) fn unlink_joiner(&self, frame: &'static Frame) {
        self.members.with(|members| members.unlink_joiner(frame));
    }

    pub(crate) fn wait_for_last(&self) -> Option<Outcome> {
        members::wait_for_last(&self.members, ptr::from_ref(self).cast())
    }

    /// Waits until no fiber lives, and drops what forgotten handles have left. A cancellation of the
    /// waiting fiber is passed on to all.
    fn leave(&self) -> Option<PanicPayload> {
        if self.wait_for_last() == Some(Outcome::Cancelled) {
            self.cancel();
            wait_in_any_case(|| self.wait_for_last());
        }
        loop {
            // Also waits for the lock of whoever ended last to be free.
            match self.members.with(next_left) {
                // SAFETY: nobody has asked for the result, and nobody will before the frame is gone.
                Next::Result(frame, drop_result) => unsafe { drop_result(frame) },
                Next::Kept(kept) => {
                    if let Err(payload) = Sys::catch(|| drop(kept)) {
                        self.fail(payload);
                    }
                }
                Next::Frame(frame) => recycle(frame),
                Next::Nothing(panic) => return panic,
            }
        }
    }
}

/// What is to be done about a scope that nobody lives in any more.
enum Next {
    Result(&'static Frame, DropResult<Frame>),
    Kept(Vec<Box<dyn Kept>>),
    Frame(&'static Frame),
    Nothing(Option<PanicPayload>),
}

/// Results first, then what is kept: either may hold handles, which give their frames back. What is
/// left then are frames whose handles were forgotten. The scope is closed: what is dropped spawns
/// nothing into it.
fn next_left(members: &mut Members<Frame, Left>) -> Next {
    members.close();
    if let Some((frame, drop_result)) = members.sweep() {
        return Next::Result(frame, drop_result);
    }
    if !members.rest.kept.is_empty() {
        return Next::Kept(core::mem::take(&mut members.rest.kept));
    }
    match members.take_forgotten() {
        Some(frame) => Next::Frame(frame),
        None => Next::Nothing(members.rest.panic.take()),
    }
}

impl core::fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(out, "scope of {} fibers", self.live())
    }
}

/// Ends a fiber. On the worker's stack, after the last switch. False if the fiber goes on, to drop its
/// result on its own stack: its handle went after it had left its result there.
pub(crate) fn finish(worker: &Worker, frame: &'static Frame) -> bool {
    frame.ownership.touch(worker.index);
    // SAFETY: the fiber has ended on this worker, which owns it until the lock below.
    let (has_run, must_drop, scope) = unsafe {
        let own = &mut *frame.own.get();
        own.coroutine = None;
        (own.has_run, own.must_drop, &*frame.scope.load(Ordering::Relaxed))
    };
    let ended = scope.members.with(|members| {
        if must_drop && let Some(drop_result) = members.unclaimed(frame) {
            return Err(drop_result);
        }
        bump(&worker.counters.finishes, 1);
        frame.ownership.leave(worker.index);
        let _ = check(frame.word.finish(has_run));
        let ended = members.finish(frame);
        if let Some(drop_result) = ended.unclaimed {
            // Before the owner can leave: who looks after that sees nobody who lived in the scope, and
            // finds every stack free.
            let _ = check(frame.word.recycle());
            // SAFETY: the frame is ours. The result needs no drop: only its memory is given back.
            unsafe { drop_result(frame) };
            worker.give_frame(frame);
        }
        Ok(ended)
    });
    // From here on the scope may be gone, and the frame is another's.
    let ended = match ended {
        Ok(ended) => ended,
        Err(drop_result) => {
            // SAFETY: the frame is this worker's. The fiber counts as live, so the scope is open.
            unsafe { prepare_drop(frame, drop_result) };
            return false;
        }
    };
    for waker in [ended.joiner, ended.owner].into_iter().flatten() {
        waker.wake();
    }
    true
}

/// Opens a scope for `f`, and leaves it when every fiber in it has ended. A panic of `f` cancels
/// them and goes on; else the first panic nobody joined goes on.
///
/// # Panics
/// Where no fiber runs.
pub fn scope<'env, R>(f: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R) -> R {
    let fiber = current_fiber();
    assert!(fiber.is_some(), "a scope is opened in a fiber: within Runtime::run");
    let (shared, root) = fiber.map_or((ptr::null_mut(), ptr::null_mut()), |fiber| {
        (fiber.shared.load(Ordering::Relaxed), fiber.root.load(Ordering::Relaxed))
    });
    let scope = Scope::new(shared, root);
    let result = Sys::catch(|| f(&scope));
    if result.is_err() {
        scope.cancel();
    }
    let left = scope.leave();
    match (result, left) {
        (Err(payload), _) | (Ok(_), Some(payload)) => Sys::resume(payload),
        (Ok(value), None) => value,
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::AtomicU8;

    use alloc::sync::Arc;

    use super::*;
    use crate::runtime::Runtime;

    static STATE: AtomicU8 = AtomicU8::new(u8::MAX);
    static IS_OPEN: AtomicBool = AtomicBool::new(false);

    /// Called by the worker before it gives the frame back.
    unsafe fn note_state(frame: &'static Frame) {
        STATE.store(frame.word.load().state() as u8, Ordering::Relaxed);
        // SAFETY: the test's.
        let scope = unsafe { &*frame.scope.load(Ordering::Relaxed) };
        IS_OPEN.store(scope.members.try_with(|_| ()).is_none(), Ordering::Relaxed);
    }

    #[test]
    fn who_leaves_a_scope_sees_none_of_its_fibers_any_more() {
        let shared = Arc::new(Runtime::builder().elastic(false).shared(1, 64 << 10));
        let [worker] = &*shared.workers else { unreachable!() };
        worker.adopt(&shared);
        let scope = Scope::new(Arc::as_ptr(&shared), ptr::null());
        let frame = Frame::runnable(Arc::as_ptr(&shared));
        frame.scope.store(scope.erased().cast_mut(), Ordering::Relaxed);
        scope.members.with(|members| {
            // SAFETY: the frame is new.
            assert!(unsafe { members.admit(frame, note_state) });
            assert!(!members.drop_handle(frame), "it lives");
        });
        worker.enqueue_next(frame);
        assert_eq!(worker.lifo.take(), Some(frame.as_ptr()));
        frame.ownership.take(worker.index, &frame.word);
        check(frame.word.dispatch()).unwrap();
        assert!(finish(worker, frame));
        assert_eq!(scope.live(), 0);
        assert_eq!(STATE.load(Ordering::Relaxed), FiberState::Init as u8);
        assert!(IS_OPEN.load(Ordering::Relaxed), "its owner can leave before the frame is back");
        assert_eq!(worker.give_up_cache(&shared.pool), 1);
    }
}
