//! Frames with stacks: kept by each worker, then by the runtime, made in groups.

use core::ptr;
use core::sync::atomic::Ordering;

use alloc::vec::Vec;

use crate::frame::{Frame, for_each_frame, give_frame, take_frame};
use crate::lock::SpinLock;
use crate::runtime::Shared;
use crate::stack::Stack;
use crate::substrate::{StackGroup, Substrate, Sys, SystemError};

/// Offsets of stack tops within a page, and the distance between two.
const COLORS: usize = 16;
const COLOR_BYTES: usize = 128;

/// Stacks that were made together, and go together.
struct Group {
    stacks: StackGroup,
    /// How many of them nobody uses; counted by `release`, and zero otherwise.
    idle: usize,
}

impl Group {
    fn is_idle(&self) -> bool {
        self.idle == self.stacks.count
    }
}

struct State {
    free: *mut Frame,
    groups: Vec<Group>,
    /// Stacks of the last group that no frame has yet.
    unused: Vec<Stack>,
    /// Stacks there are.
    made: usize,
}

// SAFETY: frames are shared by design.
unsafe impl Send for State {}

impl State {
    const fn new() -> Self {
        Self { free: ptr::null_mut(), groups: Vec::new(), unused: Vec::new(), made: 0 }
    }

    /// Takes a frame out that no fiber uses.
    fn pop(&mut self) -> Option<&'static Frame> {
        // SAFETY: only frames are on the list.
        let frame = unsafe { self.free.as_ref() }?;
        self.free = frame.link.load(Ordering::Relaxed);
        Some(frame)
    }

    fn push(&mut self, frame: &'static Frame) {
        frame.link.store(self.free, Ordering::Relaxed);
        self.free = frame.as_ptr();
    }

    /// Counts in each group the stacks that nobody uses.
    fn count_idle(&mut self) {
        self.groups.sort_unstable_by_key(|group| group.stacks.start);
        let mut next = self.free.cast_const();
        // SAFETY: only frames are on the list.
        while let Some(frame) = unsafe { next.as_ref() } {
            if let Some(group) = group_of(&mut self.groups, stack_of(frame)) {
                group.idle += 1;
            }
            next = frame.link.load(Ordering::Relaxed);
        }
        for stack in &self.unused {
            if let Some(group) = group_of(&mut self.groups, Some(*stack)) {
                group.idle += 1;
            }
        }
    }

    /// Gives back every group that is idle as a whole, with its frames.
    fn release(&mut self) {
        self.count_idle();
        let groups = &mut self.groups;
        self.unused.retain(|stack| !group_of(groups, Some(*stack)).is_some_and(|it| it.is_idle()));
        let mut rest = Self::new();
        while let Some(frame) = self.pop() {
            if !group_of(&mut self.groups, stack_of(frame)).is_some_and(|it| it.is_idle()) {
                rest.push(frame);
                continue;
            }
            frame.shared.store(ptr::null_mut(), Ordering::Relaxed);
            // SAFETY: a pooled frame has no other owner.
            unsafe { (*frame.own.get()).stack = None };
            give_frame(frame);
        }
        self.free = rest.free;
        self.groups.retain_mut(|group| {
            if group.is_idle() {
                // SAFETY: no frame has a stack of the group any more.
                unsafe { Sys::unmap_stacks(&group.stacks) };
            }
            !group.is_idle()
        });
        self.groups.iter_mut().for_each(|group| group.idle = 0);
        self.made = self.groups.iter().map(|group| group.stacks.count).sum();
    }
}

/// The stack of a frame in the pool.
fn stack_of(frame: &'static Frame) -> Option<Stack> {
    // SAFETY: a pooled frame has no other owner.
    unsafe { (*frame.own.get()).stack }
}

/// The group a stack is of, among groups in the order of their addresses.
fn group_of(groups: &mut [Group], stack: Option<Stack>) -> Option<&mut Group> {
    let bottom = stack?.bottom;
    let after = groups.partition_point(|group| group.stacks.start <= bottom);
    groups.get_mut(after.checked_sub(1)?)
}

/// The runtime's frames with stacks that no fiber uses.
pub(crate) struct Pool {
    state: SpinLock<State>,
    pub stack_bytes: usize,
}

impl Pool {
    pub fn new(stack_bytes: usize) -> Self {
        Self { state: SpinLock::new(State::new()), stack_bytes }
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
        self.state.with(State::pop)
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
            state.groups.push(Group { stacks: group, idle: 0 });
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

    /// Gives the system the stacks that nobody uses, in whole groups. What is used is the stack a result is
    /// on that is still to be taken. By a runtime that has ended: no fiber is spawned any more.
    pub fn release(&self) {
        // Not under the lock: it is for a few instructions, and this takes longer.
        let mut ended = self.state.with(|state| core::mem::replace(state, State::new()));
        ended.release();
        self.state.with(|state| {
            // Those whose results were taken meanwhile.
            while let Some(frame) = state.pop() {
                ended.push(frame);
            }
            *state = ended;
        });
    }

    /// Stacks there are, and the bytes the deepest of them has ever used.
    pub fn high_water(&self) -> (usize, usize) {
        let groups: Vec<_> = self.state.with(|state| {
            state
                .groups
                .iter()
                .map(|group| {
                    let StackGroup { start, stride, count, .. } = group.stacks;
                    (start, stride, count)
                })
                .collect()
        });
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
        self.release();
        debug_assert_eq!(self.state.with(|state| state.made), 0, "a fiber's frame is lost");
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

#[cfg(test)]
mod tests {
    extern crate std;

    use std::string::String;

    use super::*;
    use crate::root::spawn_root;
    use crate::runtime::Runtime;

    impl Pool {
        /// Stacks there are.
        fn made(&self) -> usize {
            self.state.with(|state| state.made)
        }
    }

    /// A thread that has just made a fiber of the runtime runnable has it in its hands for a moment longer
    /// than the fiber lives.
    #[test]
    fn stacks_are_back_when_the_drop_returns_though_somebody_keeps_the_runtime() {
        let runtime = Runtime::builder().workers(2).build().unwrap();
        let kept = runtime.shared.clone();
        runtime.run(|| {
            for _ in 0..100 {
                spawn_root(|| ()).unwrap_or_else(|_| unreachable!()).join().unwrap();
            }
        });
        assert!(kept.pool.made() > 0);
        drop(runtime);
        assert_eq!(kept.pool.made(), 0);
    }

    /// The result is on the stack of its fiber.
    #[test]
    fn a_result_that_is_still_to_be_taken_keeps_its_own_group_alone() {
        let runtime = Runtime::builder().workers(2).build().unwrap();
        let shared = runtime.shared.clone();
        let handle = runtime.run(|| {
            let mut handles = alloc::vec::Vec::new();
            for _ in 0..=2 * Sys::STACK_GROUP {
                handles
                    .push(spawn_root(|| String::from("kept")).unwrap_or_else(|_| unreachable!()));
            }
            handles.swap_remove(Sys::STACK_GROUP)
        });
        assert!(shared.pool.made() >= 3 * Sys::STACK_GROUP);
        drop(runtime);
        assert_eq!(shared.pool.made(), Sys::STACK_GROUP);
        assert_eq!(handle.join().unwrap(), "kept");
        shared.pool.release();
        assert_eq!(shared.pool.made(), 0);
    }
}
