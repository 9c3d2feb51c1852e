//! Frames with stacks: kept by each worker, then by the runtime, made in groups.

use core::ptr;
use core::sync::atomic::Ordering;

use alloc::vec::Vec;

use crate::frame::{Frame, for_each_frame, frame_at, give_frame, take_frame};
use crate::lock::SpinLock;
use crate::runtime::Shared;
use crate::stack::Stack;
use crate::substrate::{StackGroup, Substrate, Sys, SystemError};

/// Offsets of stack tops within a page, and the distance between two.
const COLORS: usize = 16;
const COLOR_BYTES: usize = 128;

struct State {
    free: *mut Frame,
    groups: Vec<StackGroup>,
    /// Stacks of the last group that no frame has yet.
    unused: Vec<Stack>,
    /// Stacks there are.
    made: usize,
}

// SAFETY: frames are shared by design.
unsafe impl Send for State {}

/// The runtime's frames with stacks that no fiber uses.
pub(crate) struct Pool {
    state: SpinLock<State>,
    pub stack_bytes: usize,
}

impl Pool {
    pub fn new(stack_bytes: usize) -> Self {
        let state =
            State { free: ptr::null_mut(), groups: Vec::new(), unused: Vec::new(), made: 0 };
        Self { state: SpinLock::new(state), stack_bytes }
    }

    /// A frame with a stack.
    pub fn take(&self, shared: &Shared) -> Result<&'static Frame, SystemError> {
        if let Some(frame) = self.pop() {
            return Ok(frame);
        }
        let stack = loop {
            if let Some(stack) = self.state.with(|state| state.unused.pop()) {
                break stack;
            }
            let Err(error) = self.map() else { continue };
            // Workers may keep some that nobody uses.
            let has_more = Sys::STACKS_ARE_FEW && self.collect(shared);
            if let Some(frame) = self.pop() {
                return Ok(frame);
            }
            if !has_more {
                return Err(error);
            }
        };
        let frame = take_frame();
        frame.shared.store(ptr::from_ref(shared).cast_mut(), Ordering::Relaxed);
        // SAFETY: the frame was in the pool of frames, so it has no other owner.
        unsafe { (*frame.own.get()).stack = Some(stack) };
        Ok(frame)
    }

    fn pop(&self) -> Option<&'static Frame> {
        self.state.with(|state| {
            // SAFETY: only frames are on the list.
            let frame = unsafe { state.free.as_ref() }?;
            state.free = frame.link.load(Ordering::Relaxed);
            Some(frame)
        })
    }

    /// Has every worker give up what it keeps; whether that was anything.
    #[cold]
    fn collect(&self, shared: &Shared) -> bool {
        shared.workers.iter().map(|worker| worker.give_up_cache(self)).sum::<u32>() > 0
    }

    #[cold]
    fn map(&self) -> Result<(), SystemError> {
        let group = Sys::map_stacks(self.stack_bytes, Sys::STACK_GROUP)?;
        self.state.with(|state| {
            let before = state.made;
            let stacks = (0..group.count).rev().map(|index| {
                let bottom = group.start + index * group.stride + group.guard;
                // Tops at one offset in their pages would share a few sets of the cache.
                let color = (before + index) % COLORS * COLOR_BYTES;
                Stack { bottom, top: bottom + self.stack_bytes - color }
            });
            state.unused.extend(stacks);
            state.made += group.count;
            state.groups.push(group);
        });
        Ok(())
    }

    /// Takes back a chain of frames, linked by `link`, that no fiber uses.
    pub fn give(&self, first: &'static Frame, last: &'static Frame) {
        self.state.with(|state| {
            last.link.store(state.free, Ordering::Relaxed);
            state.free = first.as_ptr();
        });
    }

    /// Stacks there are, and the bytes the deepest of them has ever used.
    pub fn high_water(&self) -> (usize, usize) {
        let groups: Vec<_> = self
            .state
            .with(|state| state.groups.iter().map(|g| (g.start, g.stride, g.count)).collect());
        let mut stacks = 0;
        let mut deepest = 0;
        for (start, stride, count) in groups {
            stacks += count;
            for index in 1..=count {
                deepest = deepest.max(Sys::used_bytes(start + index * stride, self.stack_bytes));
            }
        }
        (stacks, deepest)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // Every frame is back: a fiber in a scope, or a handle that could read a result, keeps the
        // runtime alive.
        let mut free =
            self.state.with(|state| core::mem::replace(&mut state.free, ptr::null_mut()));
        while !free.is_null() {
            // SAFETY: only frames are on the list.
            let frame = unsafe { frame_at(free) };
            free = frame.link.load(Ordering::Relaxed);
            frame.shared.store(ptr::null_mut(), Ordering::Relaxed);
            // SAFETY: a pooled frame has no other owner.
            unsafe { (*frame.own.get()).stack = None };
            give_frame(frame);
        }
        for group in self.state.with(|state| core::mem::take(&mut state.groups)) {
            // SAFETY: no frame has a stack of the group any more.
            unsafe { Sys::unmap_stacks(&group) };
        }
    }
}

/// Calls `f` with every frame of `shared` that holds a fiber.
pub(crate) fn for_each_fiber(shared: &Shared, mut f: impl FnMut(&'static Frame)) {
    for_each_frame(|frame| {
        let is_ours = ptr::eq(frame.shared.load(Ordering::Relaxed), shared);
        if is_ours && frame.word.load().state() != fiber_core::State::Init {
            f(frame);
        }
    });
}
