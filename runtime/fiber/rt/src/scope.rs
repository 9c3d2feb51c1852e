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
//! of the scope when it leaves. A result is dropped while the scope is open: it may borrow from it.

use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

use alloc::boxed::Box;
use alloc::vec::Vec;

use fiber_core::{CancelVerdict, Outcome, State as FiberState};

use crate::fiber::shield;
use crate::frame::{Frame, frame_at};
use crate::handle::Handle;
use crate::lock::SpinLock;
use crate::packet::{Packet, drop_packet, prepare};
use crate::runtime::Shared;
use crate::substrate::{PanicPayload, Substrate, Sys, SystemError};
use crate::wait::{Wait, check, publish, wait};
use crate::what::What;
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

pub(crate) struct State {
    first: *const Frame,
    live: usize,
    is_closing: bool,
    /// The owner's wait for the last fiber's end.
    owner: *const Wait,
    pub(crate) panic: Option<PanicPayload>,
    /// What lives as long as the scope.
    kept: Vec<Box<dyn Kept>>,
}

/// Anything that can be dropped.
trait Kept {}
impl<T> Kept for T {}

// SAFETY: frames and waits are shared by design, under the lock.
unsafe impl Send for State {}

/// A scope: see [`scope`].
pub struct Scope<'scope, 'env: 'scope> {
    pub(crate) state: SpinLock<State>,
    is_closing: AtomicBool,
    pub(crate) shared: *const Shared,
    pub(crate) root: *const (),
    marker: PhantomData<(&'scope mut &'scope (), &'env mut &'env ())>,
}

// SAFETY: all of it is under the lock, atomic, or constant.
unsafe impl Sync for Scope<'_, '_> {}
// SAFETY: as for Sync.
unsafe impl Send for Scope<'_, '_> {}

/// The member's part of a frame.
///
/// # Safety
/// Under the lock of the frame's scope, and for no longer; one at a time.
#[expect(clippy::mut_from_ref, reason = "the lock makes it unique")]
pub(crate) unsafe fn member(frame: &Frame) -> &mut crate::frame::Member {
    // SAFETY: by the caller.
    unsafe { &mut *frame.member.get() }
}

impl State {
    /// # Safety
    /// The frame is in no scope.
    unsafe fn link(&mut self, frame: &'static Frame) {
        // SAFETY: under the lock, as all of this is.
        let it = unsafe { member(frame) };
        it.previous = ptr::null();
        it.next = self.first;
        // SAFETY: members are frames; not the one above.
        if let Some(first) = unsafe { self.first.as_ref() } {
            // SAFETY: under the lock.
            unsafe { member(first) }.previous = frame;
        }
        self.first = frame;
    }

    /// # Safety
    /// The frame is in this scope.
    pub(crate) unsafe fn unlink(&mut self, frame: &'static Frame) {
        // SAFETY: under the lock, as all of this is.
        let (previous, next) = unsafe { (member(frame).previous, member(frame).next) };
        // SAFETY: members are frames.
        match unsafe { previous.as_ref() } {
            // SAFETY: under the lock.
            Some(previous) => unsafe { member(previous) }.next = next,
            None => self.first = next,
        }
        // SAFETY: as above.
        if let Some(next) = unsafe { next.as_ref() } {
            // SAFETY: under the lock.
            unsafe { member(next) }.previous = previous;
        }
    }
}

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

/// Takes a member out if it has ended.
fn take_finished(state: &mut State, frame: &'static Frame) -> bool {
    // SAFETY: under the lock.
    let is_finished = unsafe { member(frame) }.is_finished;
    if is_finished {
        // SAFETY: in this scope until now.
        unsafe { state.unlink(frame) };
    }
    is_finished
}

impl<'scope, 'env> Scope<'scope, 'env> {
    pub(crate) fn new(shared: *const Shared, root: *const ()) -> Self {
        Self {
            state: SpinLock::new(State {
                first: ptr::null(),
                live: 0,
                is_closing: false,
                owner: ptr::null(),
                panic: None,
                kept: Vec::new(),
            }),
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
        let spare = self.state.with(|state| match state.panic {
            None => {
                state.panic = Some(payload);
                None
            }
            Some(_) => Some(payload),
        });
        drop(spare);
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
    fn admit(
        &self,
        drop_slot: unsafe fn(&'static Frame),
    ) -> Result<&'static Frame, Option<SystemError>> {
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
        let is_closing = self.state.with(|state| {
            if state.is_closing {
                return true;
            }
            // SAFETY: under the lock; the frame is new.
            let it = unsafe { member(frame) };
            it.is_finished = false;
            it.has_handle = true;
            it.joiner = ptr::null();
            it.drop_slot = drop_slot;
            // SAFETY: as above.
            unsafe { state.link(frame) };
            state.live += 1;
            false
        });
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
        self.state.with(|state| {
            state.is_closing = true;
            // Relaxed: the lock decides; this only spares a spawner the way.
            self.is_closing.store(true, Ordering::Relaxed);
            let mut at = state.first;
            // SAFETY: members are frames.
            while let Some(frame) = unsafe { at.as_ref() } {
                // SAFETY: under the lock.
                let it = unsafe { member(frame) };
                if !it.is_finished && frame.word.cancel() == CancelVerdict::Enqueue {
                    // Runnable and ours until it is published: its link is free.
                    frame.link.store(woken, Ordering::Relaxed);
                    woken = frame.as_ptr();
                }
                at = it.next;
            }
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
        self.state.with(|state| state.kept.push(boxed));
        // SAFETY: boxed, so it stays where it is, until 'scope ends.
        unsafe { &*at }
    }

    /// Whether the scope has been cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.is_closing.load(Ordering::Relaxed)
    }

    /// Whether anybody may still ask for the result of a member.
    pub(crate) fn has_handle(&self, frame: &'static Frame) -> bool {
        // SAFETY: under the lock.
        self.state.with(|_| unsafe { member(frame) }.has_handle)
    }

    /// How many fibers live in it.
    pub fn live(&self) -> usize {
        self.state.with(|state| state.live)
    }

    /// Waits for the end of a member, whose frame is then the caller's; false if the caller has been
    /// cancelled.
    pub(crate) fn wait_for(&self, frame: &'static Frame) -> bool {
        let has_ended =
            matches!(frame.word.load().state(), FiberState::Done | FiberState::Cancelled);
        if has_ended && self.state.with(|state| take_finished(state, frame)) {
            return true;
        }
        let at = ptr::from_ref(frame).cast();
        let unlink = |outcome| {
            if outcome != Outcome::Data(0) {
                self.unlink_joiner(frame);
            }
        };
        match wait(What::Join, at, None, |wait| self.link_joiner(frame, wait), unlink) {
            None | Some(Outcome::Data(_)) => true,
            // It may have ended meanwhile.
            _ => self.state.with(|state| take_finished(state, frame)),
        }
    }

    /// Has `wait` end with a member; false if it has ended: then its frame is the caller's.
    pub(crate) fn link_joiner(&self, frame: &'static Frame, wait: &Wait) -> bool {
        self.state.with(|state| {
            let is_linked = !take_finished(state, frame);
            if is_linked {
                // SAFETY: under the lock.
                unsafe { member(frame) }.joiner = wait;
            }
            is_linked
        })
    }

    /// Takes a member's joiner out.
    pub(crate) fn unlink_joiner(&self, frame: &'static Frame) {
        // SAFETY: under the lock.
        self.state.with(|_| unsafe { member(frame) }.joiner = ptr::null());
    }

    pub(crate) fn wait_for_last(&self) -> Option<Outcome> {
        let at = ptr::from_ref(self).cast();
        let publish = |wait: &Wait| {
            self.state.with(|state| {
                let is_linked = state.live > 0;
                if is_linked {
                    state.owner = wait;
                }
                is_linked
            })
        };
        wait(What::Scope, at, None, publish, |_| {
            self.state.with(|state| state.owner = ptr::null());
        })
    }

    /// Waits until no fiber lives, and drops what forgotten handles have left. A cancellation of the
    /// waiting fiber is passed on to all.
    fn leave(&self) -> Option<PanicPayload> {
        if self.wait_for_last() == Some(Outcome::Cancelled) {
            self.cancel();
            shield(|| self.wait_for_last());
        }
        loop {
            // Also waits for the lock of whoever ended last to be free.
            let (left, drop_slot) = self.state.with(|state| {
                // SAFETY: members are frames.
                let left = unsafe { state.first.as_ref() };
                if let Some(frame) = left {
                    // SAFETY: in this scope.
                    unsafe { state.unlink(frame) };
                }
                // SAFETY: under the lock.
                (left, left.map(|frame| unsafe { member(frame) }.drop_slot))
            });
            let (Some(frame), Some(drop_slot)) = (left, drop_slot) else { break };
            // SAFETY: its handle was forgotten, so the frame is the owner's.
            unsafe { drop_slot(frame) };
            recycle(frame);
        }
        self.state.with(|state| state.panic.take())
    }
}

impl core::fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(out, "scope of {} fibers", self.live())
    }
}

/// Ends a fiber. On the worker's stack, after the last switch.
pub(crate) fn finish(worker: &Worker, frame: &'static Frame) {
    // SAFETY: the fiber has ended on this worker, which owns it until the lock below.
    let (has_run, scope) = unsafe {
        let own = &mut *frame.own.get();
        own.coroutine = None;
        (own.has_run, &*frame.scope.load(Ordering::Relaxed))
    };
    let _ = check(frame.word.finish(has_run));
    loop {
        let mut unclaimed = None;
        let (is_ours, joiner, owner) = scope.state.with(|state| {
            // SAFETY: under the lock.
            let it = unsafe { member(frame) };
            // SAFETY: as above; the worker owns the frame until it is marked finished.
            if !it.has_handle && !unsafe { (*frame.own.get()).slot.is_null() } {
                unclaimed = Some(it.drop_slot);
                return (false, None, None);
            }
            it.is_finished = true;
            state.live -= 1;
            // SAFETY: a linked wait is alive.
            let joiner = unsafe { it.joiner.as_ref() }.map(|wait| (wait, wait.waker()));
            let joiner = joiner.filter(|(wait, _)| {
                it.joiner = ptr::null();
                wait.decide(Outcome::Data(0))
            });
            let is_ours = !it.has_handle;
            if is_ours || joiner.is_some() {
                // SAFETY: in this scope.
                unsafe { state.unlink(frame) };
            }
            // SAFETY: a linked wait is alive.
            let owner = unsafe { state.owner.as_ref() }.filter(|_| state.live == 0);
            let owner = owner.map(|wait| (wait, wait.waker())).filter(|(wait, _)| {
                state.owner = ptr::null();
                wait.decide(Outcome::Data(0))
            });
            (is_ours, joiner.map(|j| j.1), owner.map(|o| o.1))
        });
        if let Some(drop_slot) = unclaimed {
            // The handle went after the fiber left its stack: the result is dropped here, while the
            // scope is open.
            // SAFETY: still counted as live, so the scope is open; the frame is this worker's.
            unsafe { drop_slot(frame) };
            continue;
        }
        // From here on the scope may be gone, and the frame is another's unless it is ours.
        if is_ours {
            let _ = check(frame.word.recycle());
            worker.give_frame(frame);
        }
        for waker in [joiner, owner].into_iter().flatten() {
            waker.wake();
        }
        return;
    }
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
    drop(scope.state.with(|state| core::mem::take(&mut state.kept)));
    match (result, left) {
        (Err(payload), _) | (Ok(_), Some(payload)) => Sys::resume(payload),
        (Ok(value), None) => value,
    }
}
