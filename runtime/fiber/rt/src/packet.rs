//! A fiber's closure and its result, both on the fiber's own stack.
//!
//! The result's place is at the top of the stack, above all the fiber runs on; it is written by the
//! fiber at its end and read by whoever owns the frame then. What is too large is boxed.

use core::mem::{MaybeUninit, align_of, needs_drop, size_of};
use core::ptr;
use core::sync::atomic::Ordering;

use alloc::boxed::Box;

use corosensei::{Coroutine, Yielder};

use crate::frame::{Frame, Switch};
use crate::members::DropResult;
use crate::stack::Bounds;
use crate::substrate::{PanicPayload, Substrate, Sys};

/// The largest result kept on a fiber's own stack; a larger one is boxed.
const INLINE_RESULT: usize = 1024;

/// The largest alignment there.
const INLINE_ALIGN: usize = 64;

/// The largest closure put on a fiber's stack before it runs, with what goes with it: a coroutine takes no
/// more. A larger one is boxed.
const INLINE_CLOSURE: usize = 1024;

/// What an ended fiber left.
pub(crate) enum Packet<T> {
    Value(T),
    Panicked(PanicPayload),
    Cancelled,
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
pub(crate) unsafe fn take_packet<T>(frame: &'static Frame) -> Option<Packet<T>> {
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
/// As for `take_packet`; the scope is open if the packet holds anything that is more than bytes.
pub(crate) unsafe fn drop_packet<T>(frame: &'static Frame) {
    // SAFETY: by the caller.
    match unsafe { take_packet::<T>(frame) } {
        None | Some(Packet::Cancelled) => {}
        Some(Packet::Value(_)) if !needs_drop::<T>() => {}
        packet => {
            // SAFETY: the scope is open.
            let scope = unsafe { &*frame.scope.load(Ordering::Relaxed) };
            scope.discard(packet);
        }
    }
}

/// Makes a coroutine that drops the result of an ended fiber, on the fiber's own stack below it.
///
/// # Safety
/// As for `drop_packet`, whose instance `drop_result` is; the fiber has left its stack for the last
/// time.
pub(crate) unsafe fn prepare_drop(frame: &'static Frame, drop_result: DropResult<Frame>) {
    // SAFETY: the caller owns the frame.
    let own = unsafe { &mut *frame.own.get() };
    let Some(stack) = own.stack else { return };
    let at = own.slot.addr();
    let base = if (stack.bottom..stack.top).contains(&at) { at } else { stack.top };
    own.must_drop = false;
    // SAFETY: where the fiber itself began, which has ended.
    let bounds = unsafe { Bounds::new(stack, base) };
    // SAFETY: by the caller; as in `prepare`.
    own.coroutine = Some(unsafe {
        Coroutine::with_stack_unchecked(bounds, move |yielder: &Yielder<(), Switch>, ()| {
            (*frame.own.get()).yielder = yielder;
            drop_result(frame);
        })
    });
}

/// Makes a coroutine of the closure on the frame's stack, with a place for its result above it.
///
/// # Safety
/// The frame has a stack and is the caller's; what the closure borrows lives until it has ended.
pub(crate) unsafe fn prepare<T, F: FnOnce() -> T>(frame: &'static Frame, f: F) {
    // SAFETY: the caller owns the frame.
    let own = unsafe { &mut *frame.own.get() };
    let Some(stack) = own.stack else { return };
    let (slot, base) = result_place::<T>(stack.top);
    own.slot = slot;
    own.has_run = false;
    own.must_drop = false;
    // SAFETY: the place is in the stack, or at its top, and aligned.
    let bounds = unsafe { Bounds::new(stack, base) };
    // SAFETY: the closure lives as long as the caller says; the fiber runs on one thread at a time
    // with what the state word's transitions order in between.
    own.coroutine = Some(unsafe {
        let life = move |yielder: &Yielder<(), Switch>, ()| body(frame, yielder, f);
        // A large closure would also leave no room on a small stack.
        if size_of_val(&life) > INLINE_CLOSURE.min((stack.top - stack.bottom) / 4) {
            Coroutine::with_stack_unchecked(bounds, Box::new(life))
        } else {
            Coroutine::with_stack_unchecked(bounds, life)
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
    own.must_drop = needs_drop::<T>() || matches!(packet, Packet::Panicked(_));
    if own.must_drop {
        // SAFETY: the scope is open while its fibers live.
        let scope = unsafe { &*frame.scope.load(Ordering::Relaxed) };
        if !scope.has_handle(frame) {
            own.must_drop = false;
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
