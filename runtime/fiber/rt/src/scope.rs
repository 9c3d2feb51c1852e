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
use core::mem::{MaybeUninit, align_of, needs_drop, size_of};
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use corosensei::{Coroutine, Yielder};
use fiber_core::{CancelVerdict, Outcome, State as FiberState};

use crate::fiber::shield;
use crate::frame::{Frame, Switch, frame_at};
use crate::lock::SpinLock;
use crate::runtime::Shared;
use crate::stack::Bounds;
use crate::substrate::{PanicPayload, Substrate, Sys, SystemError};
use crate::timer::Timer;
use crate::wait::{Wait, check, publish, wait};
use crate::what::What;
use crate::worker::{self, Worker, bump, current_fiber};

/// The largest result kept on a fiber's own stack; a larger one is boxed.
const INLINE_RESULT: usize = 1024;
/// The largest alignment there.
const INLINE_ALIGN: usize = 64;

/// What an ended fiber left.
enum Packet<T> {
    Value(T),
    Panicked(PanicPayload),
    Cancelled,
}

/// Why a join gave no value.
#[derive(Debug)]
pub enum JoinError {
    /// The fiber panicked with this.
    Panicked(PanicPayload),
    /// It was cancelled before its first run.
    Cancelled,
    /// The fiber that waits has been cancelled itself; the other one goes on.
    Interrupted,
}

impl core::fmt::Display for JoinError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(match self {
            Self::Panicked(_) => "the fiber panicked",
            Self::Cancelled => "the fiber was cancelled before it ran",
            Self::Interrupted => "the fiber that joins was cancelled",
        })
    }
}

impl core::error::Error for JoinError {}

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

struct State {
    first: *const Frame,
    live: usize,
    is_closing: bool,
    /// The owner's wait for the last fiber's end.
    owner: *const Wait,
    panic: Option<PanicPayload>,
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
    state: SpinLock<State>,
    is_closing: AtomicBool,
    shared: *const Shared,
    root: *const (),
    marker: PhantomData<(&'scope mut &'scope (), &'env mut &'env ())>,
}

// SAFETY: all of it is under the lock, atomic, or constant.
unsafe impl Sync for Scope<'_, '_> {}
// SAFETY: as for Sync.
unsafe impl Send for Scope<'_, '_> {}

/// The outermost scope of one `run`.
pub struct Root {
    scope: Scope<'static, 'static>,
    shared: Arc<Shared>,
}

/// A fiber's handle; its join gives the fiber's result.
pub struct Handle<'scope, T> {
    frame: &'static Frame,
    scope: *const Scope<'static, 'static>,
    /// Keeps scope and runtime alive for a handle that may leave its `run`.
    root: Option<Arc<Root>>,
    /// For a fiber that never was: the scope was closing.
    is_void: bool,
    marker: PhantomData<&'scope T>,
}

// SAFETY: the handle gives one `T` away, once.
unsafe impl<T: Send> Send for Handle<'_, T> {}
// SAFETY: a shared handle gives nothing away.
unsafe impl<T: Send> Sync for Handle<'_, T> {}

/// The member's part of a frame.
///
/// # Safety
/// Under the lock of the frame's scope, and for no longer; one at a time.
#[expect(clippy::mut_from_ref, reason = "the lock makes it unique")]
unsafe fn member(frame: &Frame) -> &mut crate::frame::Member {
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
    unsafe fn unlink(&mut self, frame: &'static Frame) {
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

/// Where the result of a fiber goes, and the highest address its stack may use.
fn result_place<T>(top: usize) -> (*mut u8, usize) {
    let is_inline =
        size_of::<Packet<T>>() <= INLINE_RESULT && align_of::<Packet<T>>() <= INLINE_ALIGN;
    if is_inline {
        let at = (top - size_of::<Packet<T>>()) & !(INLINE_ALIGN - 1);
        (ptr::with_exposed_provenance_mut(at), at)
    } else {
        (Box::into_raw(Box::<MaybeUninit<Packet<T>>>::new_uninit()).cast(), top)
    }
}

/// Takes what an ended fiber left, out of its slot.
///
/// # Safety
/// The slot holds a packet of this type, and the frame is the caller's.
unsafe fn take_packet<T>(frame: &'static Frame) -> Option<Packet<T>> {
    // SAFETY: by the caller.
    let own = unsafe { &mut *frame.own.get() };
    let slot = core::mem::replace(&mut own.slot, ptr::null_mut()).cast::<Packet<T>>();
    if slot.is_null() {
        return None;
    }
    // SAFETY: by the caller it holds a packet, which is moved out once: the slot is forgotten.
    let packet = unsafe { slot.read() };
    if own.stack.is_none_or(|stack| !(stack.bottom..stack.top).contains(&slot.addr())) {
        // SAFETY: boxed by `result_place`; its content has been moved out.
        drop(unsafe { Box::from_raw(slot.cast::<MaybeUninit<Packet<T>>>()) });
    }
    Some(packet)
}

/// Drops a result nobody asked for; a panic goes to the scope.
///
/// # Safety
/// As for `take_packet`; the scope is open.
unsafe fn drop_packet<T>(frame: &'static Frame) {
    // SAFETY: by the caller.
    let packet = unsafe { take_packet::<T>(frame) };
    // SAFETY: the scope is open.
    let scope = unsafe { &*frame.scope.load(Ordering::Relaxed) };
    scope.discard(packet);
}

/// Gives a frame back to whoever spawns next.
fn recycle(frame: &'static Frame) {
    let _ = check(frame.word.recycle());
    let shared = frame.shared.load(Ordering::Relaxed);
    match worker::current() {
        Some(worker) if ptr::eq(worker.shared(), shared) => worker.give_frame(frame),
        // SAFETY: whoever had the frame kept the runtime alive.
        _ => unsafe { &*shared }.pool.give(frame, frame),
    }
}

impl<'scope, 'env> Scope<'scope, 'env> {
    fn new(shared: *const Shared, root: *const ()) -> Self {
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

    fn erased(&self) -> *const Scope<'static, 'static> {
        ptr::from_ref(self).cast()
    }

    /// Drops a packet that nobody took; a panic in it, or of its drop, is the scope's.
    fn discard<T>(&self, packet: Option<Packet<T>>) {
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
    unsafe fn spawn_unchecked<'a, T, F>(&self, f: F) -> Result<Handle<'a, T>, SpawnError<F>>
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

    /// How many fibers live in it.
    pub fn live(&self) -> usize {
        self.state.with(|state| state.live)
    }

    /// Waits for the end of a member, whose frame is then the caller's; false if the caller has been
    /// cancelled.
    fn wait_for(&self, frame: &'static Frame) -> bool {
        let take_finished = |state: &mut State| {
            // SAFETY: under the lock.
            let is_finished = unsafe { member(frame) }.is_finished;
            if is_finished {
                // SAFETY: in this scope until now.
                unsafe { state.unlink(frame) };
            }
            is_finished
        };
        let has_ended =
            matches!(frame.word.load().state(), FiberState::Done | FiberState::Cancelled);
        if has_ended && self.state.with(take_finished) {
            return true;
        }
        let at = ptr::from_ref(frame).cast();
        let publish = |wait: &Wait| {
            self.state.with(|state| {
                if take_finished(state) {
                    return false;
                }
                // SAFETY: under the lock.
                unsafe { member(frame) }.joiner = wait;
                true
            })
        };
        let unlink = |outcome| {
            if outcome != Outcome::Data(0) {
                // SAFETY: under the lock.
                self.state.with(|_| unsafe { member(frame) }.joiner = ptr::null());
            }
        };
        match wait(What::Join, at, None, publish, unlink) {
            None | Some(Outcome::Data(_)) => true,
            // It may have ended meanwhile.
            _ => self.state.with(take_finished),
        }
    }

    fn wait_for_last(&self) -> Option<Outcome> {
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

/// Makes a coroutine of the closure on the frame's stack, with a place for its result above it.
///
/// # Safety
/// The frame has a stack and is the caller's; what the closure borrows lives until it has ended.
unsafe fn prepare<T, F: FnOnce() -> T>(frame: &'static Frame, f: F) {
    // SAFETY: the caller owns the frame.
    let own = unsafe { &mut *frame.own.get() };
    let Some(stack) = own.stack else { return };
    let (slot, base) = result_place::<T>(stack.top);
    own.slot = slot;
    own.has_run = false;
    // SAFETY: the place is in the stack, or at its top, and aligned.
    let bounds = unsafe { Bounds::new(stack, base) };
    // SAFETY: the closure lives as long as the caller says; the fiber runs on one thread at a time
    // with what the state word's transitions order in between.
    own.coroutine = Some(unsafe {
        // A large closure would leave no room on the stack.
        if size_of::<F>() > (stack.top - stack.bottom) / 4 {
            let boxed = Box::new(f);
            Coroutine::with_stack_unchecked(bounds, move |yielder: &Yielder<(), Switch>, ()| {
                body(frame, yielder, *boxed);
            })
        } else {
            Coroutine::with_stack_unchecked(bounds, move |yielder: &Yielder<(), Switch>, ()| {
                body(frame, yielder, f);
            })
        }
    });
}

/// What a fiber does, from its first to its last instruction on its own stack.
fn body<T, F: FnOnce() -> T>(frame: &'static Frame, yielder: &Yielder<(), Switch>, f: F) {
    // SAFETY: the fiber runs, so its worker owns the frame and is here.
    unsafe { (*frame.own.get()).yielder = yielder };
    let has_run = !frame.word.load().is_cancelled();
    let result = Sys::catch(|| {
        if has_run {
            Some(f())
        } else {
            drop(f);
            None
        }
    });
    let packet = match result {
        Ok(Some(value)) => Packet::Value(value),
        Ok(None) => Packet::Cancelled,
        Err(payload) => Packet::Panicked(payload),
    };
    // SAFETY: as above. The switches in between are over.
    let own = unsafe { &mut *frame.own.get() };
    own.has_run = has_run;
    if needs_drop::<T>() || matches!(packet, Packet::Panicked(_)) {
        // SAFETY: the scope is open while its fibers live.
        let scope = unsafe { &*frame.scope.load(Ordering::Relaxed) };
        // SAFETY: under the lock.
        if !scope.state.with(|_| unsafe { member(frame) }.has_handle) {
            // Nobody will ask: dropped here, on the fiber's own stack, where it may wait.
            scope.discard(Some(packet));
            // SAFETY: as above; a boxed place is freed by `take_packet`'s rule.
            unsafe { forget_slot::<T>(frame) };
            return;
        }
    }
    // SAFETY: the place is there for a packet of this type.
    unsafe { own.slot.cast::<Packet<T>>().write(packet) };
}

/// # Safety
/// The slot is empty and the frame is the caller's.
unsafe fn forget_slot<T>(frame: &'static Frame) {
    // SAFETY: by the caller; a packet without content may be taken and forgotten.
    unsafe {
        (*frame.own.get()).slot.cast::<Packet<T>>().write(Packet::Cancelled);
        let _ = take_packet::<T>(frame);
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

impl<T> Handle<'_, T> {
    /// The handle of a fiber that never was, because its scope was closing.
    pub fn void() -> Self {
        Self {
            frame: crate::wait::current_frame(),
            scope: ptr::null(),
            root: None,
            is_void: true,
            marker: PhantomData,
        }
    }

    fn scope(&self) -> &Scope<'static, 'static> {
        // SAFETY: 'scope, or the root that is kept alive. Never asked of a void handle.
        unsafe { &*self.scope }
    }

    /// Waits for the fiber's end.
    pub fn join(self) -> Result<T, JoinError> {
        if self.is_void {
            return Err(JoinError::Cancelled);
        }
        let frame = self.frame;
        if !self.scope().wait_for(frame) {
            // The handle's drop leaves the fiber to its scope.
            return Err(JoinError::Interrupted);
        }
        // SAFETY: the fiber has ended, and the frame is the handle's.
        let packet = unsafe { take_packet::<T>(frame) };
        recycle(frame);
        let mut this = core::mem::ManuallyDrop::new(self);
        drop(this.root.take());
        match packet {
            Some(Packet::Value(value)) => Ok(value),
            Some(Packet::Panicked(payload)) => Err(JoinError::Panicked(payload)),
            Some(Packet::Cancelled) | None => Err(JoinError::Cancelled),
        }
    }

    /// Whether the fiber has ended.
    pub fn is_finished(&self) -> bool {
        // SAFETY: under the lock.
        self.is_void || self.scope().state.with(|_| unsafe { member(self.frame) }.is_finished)
    }

    /// Cancels the fiber.
    pub fn cancel(&self) {
        // The handle keeps the frame from being recycled.
        if !self.is_void && self.frame.word.cancel() == CancelVerdict::Enqueue {
            publish(self.frame);
        }
    }
}

impl<T> Drop for Handle<'_, T> {
    fn drop(&mut self) {
        if self.is_void {
            return;
        }
        let frame = self.frame;
        let is_ours = self.scope().state.with(|state| {
            // SAFETY: under the lock.
            let it = unsafe { member(frame) };
            it.has_handle = false;
            if it.is_finished {
                // SAFETY: in this scope; from here on the frame is the handle's.
                unsafe { state.unlink(frame) };
            }
            it.is_finished
        });
        if is_ours {
            // SAFETY: the fiber has ended, and the frame is the handle's; the scope is open.
            unsafe { drop_packet::<T>(frame) };
            recycle(frame);
        }
    }
}

impl<T> core::fmt::Debug for Handle<'_, T> {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(out, "handle of fiber {}", self.frame.id.load(Ordering::Relaxed))
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

/// Spawns a fiber into the root scope of the `run` the caller lives in.
///
/// # Panics
/// Where no fiber runs.
pub fn spawn_root<T, F>(f: F) -> Result<Handle<'static, T>, SpawnError<F>>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let root = current_fiber().map(|fiber| fiber.root.load(Ordering::Relaxed).cast::<Root>());
    assert!(root.is_some(), "a fiber is spawned by a fiber: within Runtime::run");
    let root = root.unwrap_or(ptr::null_mut());
    // SAFETY: the root lives while a fiber below it does; the count was made by Arc::into_raw's kin.
    let root = unsafe {
        Arc::increment_strong_count(root);
        Arc::from_raw(root)
    };
    // SAFETY: everything is 'static.
    let mut handle = unsafe { root.scope.spawn_unchecked(f)? };
    handle.root = Some(root);
    Ok(handle)
}

/// Runs `f` as the first fiber of a new root and waits for all.
pub(crate) fn run_root<R, F: FnOnce() -> R>(shared: &Arc<Shared>, f: F) -> R {
    let mut root = Arc::new(Root {
        scope: Scope::new(Arc::as_ptr(shared), ptr::null()),
        shared: shared.clone(),
    });
    let at = Arc::as_ptr(&root).cast();
    if let Some(root) = Arc::get_mut(&mut root) {
        root.scope.root = at;
    }
    debug_assert!(Arc::ptr_eq(&root.shared, shared));
    // SAFETY: all fibers of the root have ended before this returns.
    let handle = match unsafe { root.scope.spawn_unchecked(f) } {
        Ok(handle) => handle,
        Err(error) => refuse(&error),
    };
    let panic = root.scope.leave_root();
    let result = shield_join(handle);
    match (result, panic) {
        (Ok(_), Some(payload)) | (Err(JoinError::Panicked(payload)), _) => Sys::resume(payload),
        (Ok(value), None) => value,
        (Err(error), _) => refuse(&error),
    }
}

fn shield_join<T>(handle: Handle<'_, T>) -> Result<T, JoinError> {
    shield(|| handle.join())
}

impl Scope<'static, 'static> {
    /// As `leave`, but what handles hold stays theirs: they keep the root alive.
    fn leave_root(&self) -> Option<PanicPayload> {
        shield(|| self.wait_for_last());
        self.state.with(|state| state.panic.take())
    }
}

/// Stops the caller because the system has no stack for a fiber.
#[expect(clippy::panic, reason = "documented: a fiber that cannot be spawned stops its spawner")]
#[cold]
pub(crate) fn refuse(error: &dyn core::fmt::Display) -> ! {
    panic!("no fiber was spawned: {error}")
}

/// A deadline that cancels a scope unless it is dropped before.
pub struct Deadline<'scope> {
    timer: Box<Timer>,
    shared: *const Shared,
    marker: PhantomData<&'scope ()>,
}

// SAFETY: the timer is only touched under the wheel's lock.
unsafe impl Send for Deadline<'_> {}
// SAFETY: as for Send.
unsafe impl Sync for Deadline<'_> {}

impl<'scope> Deadline<'scope> {
    /// Cancels `scope` at `deadline_ns`.
    pub fn new(scope: &'scope Scope<'scope, '_>, deadline_ns: u64) -> Self {
        unsafe fn expire(scope: *const ()) {
            // SAFETY: the scope outlives the deadline, whose drop takes the timer out.
            unsafe { &*scope.cast::<Scope<'static, 'static>>() }.cancel();
        }
        let timer = Box::new(Timer::call(expire, scope.erased().cast()));
        // SAFETY: the runtime outlives the scope; the timer is boxed and taken out by `drop`.
        unsafe { (*scope.shared).insert_timer(&timer, deadline_ns) };
        Self { timer, shared: scope.shared, marker: PhantomData }
    }
}

impl Drop for Deadline<'_> {
    fn drop(&mut self) {
        // SAFETY: the runtime outlives the scope, which outlives this.
        unsafe { &*self.shared }.timers.remove(&self.timer);
    }
}
