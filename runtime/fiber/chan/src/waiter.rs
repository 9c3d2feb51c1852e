//! Those who wait at a channel, and how one of them is completed. Under the channel's lock.

use core::cell::{Cell, UnsafeCell};
use core::mem::MaybeUninit;
use core::ptr;

use alloc::vec::Vec;

use fiber_core::Outcome;
use fiber_rt::{Defect, List, Node, Wait, Waker, is_planted};

/// Somebody who waits at the channel, or for an arm of a select.
pub(crate) struct Waiter {
    pub wait: Cell<*const Wait>,
    pub arm: u32,
    /// Who selects, or which future receives; 0 for a plain operation.
    pub select: usize,
    /// Of a plain operation or a future: where the value is, or goes to.
    pub slot: *mut (),
    /// Whether the value is in the slot of a receiver that was completed.
    pub is_filled: Cell<bool>,
    /// Of a select that sends and was completed: its pair; 0 if a place is kept for it.
    pub pair: Cell<usize>,
    /// It takes and gives nothing: it is told that the channel is ready.
    pub is_watch: bool,
}

// SAFETY: only reached under the channel's lock.
unsafe impl Send for Waiter {}

impl Waiter {
    pub fn plain(slot: *mut ()) -> Node<Self> {
        Self::new(0, 0, slot)
    }

    pub fn select(id: usize, arm: u32) -> Node<Self> {
        Self::new(id, arm, ptr::null_mut())
    }

    pub fn watch(id: usize, arm: u32) -> Node<Self> {
        let mut node = Self::select(id, arm);
        node.value.is_watch = true;
        node
    }

    /// Whether `me` could be completed by it: it waits to give or take, and is not one's own.
    pub fn is_partner(&self, me: usize) -> bool {
        // SAFETY: linked, so its wait is there.
        !self.is_watch && self.select != me && unsafe { &*self.wait.get() }.is_open()
    }

    /// A future that receives, by an id of its own: what it was handed it may give back.
    pub fn future(id: usize, slot: *mut ()) -> Node<Self> {
        Self::new(id, 0, slot)
    }

    /// Whether it is a future's receive. One that sends is a plain waiter.
    pub fn is_future(&self) -> bool {
        self.select != 0 && !self.slot.is_null()
    }

    /// By what a value that comes later is kept for this receiver.
    pub fn id(&self) -> usize {
        if self.select == 0 { ptr::from_ref(self).addr() } else { self.select }
    }

    fn new(select: usize, arm: u32, slot: *mut ()) -> Node<Self> {
        let (wait, is_filled, pair) = (Cell::new(ptr::null()), Cell::new(false), Cell::new(0));
        Node::new(Self { wait, arm, select, slot, is_filled, pair, is_watch: false })
    }
}

/// Room for the node of a plain operation, which most of the time does not wait and needs none.
pub(crate) struct LazyNode(UnsafeCell<MaybeUninit<Node<Waiter>>>);

impl LazyNode {
    #[inline]
    pub const fn new() -> Self {
        Self(UnsafeCell::new(MaybeUninit::uninit()))
    }

    /// The [`id`](Waiter::id) of a waiter in it.
    #[inline]
    pub fn id(&self) -> usize {
        // SAFETY: within the room; nothing is read.
        unsafe { &raw const (*self.0.get().cast::<Node<Waiter>>()).value }.addr()
    }

    /// Makes the node.
    ///
    /// # Safety
    /// The one that was made before is in no list.
    pub unsafe fn fill(&self, slot: *mut ()) -> &Node<Waiter> {
        // SAFETY: by the caller nobody else looks at it.
        unsafe { (*self.0.get()).write(Waiter::plain(slot)) }
    }

    /// The node.
    ///
    /// # Safety
    /// It has been made.
    pub unsafe fn get(&self) -> &Node<Waiter> {
        // SAFETY: by the caller.
        unsafe { (*self.0.get()).assume_init_ref() }
    }
}

/// Wakes one, if there is one. After the lock.
#[inline]
pub(crate) fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// What a look at a waiter came to.
pub(crate) enum Step {
    /// Its wait was decided: it is off the list, and to be woken.
    Took,
    /// It was decided elsewhere: off the list.
    Gone,
    /// Not this one: it stays.
    Skip,
}

impl Step {
    pub fn of(is_decided: bool) -> Self {
        if is_decided { Self::Took } else { Self::Gone }
    }
}

/// Goes through the waiters in order until `f` takes one; `f` gets its part and its wait.
#[inline]
pub(crate) fn complete_first(
    list: &mut List<Waiter>,
    mut f: impl FnMut(&Waiter, &Wait) -> Step,
) -> Option<Waker> {
    let mut at = list.first().map(ptr::from_ref);
    while let Some(node) = at {
        // SAFETY: a linked node is alive, and stays so while the lock is held: its waiter leaves only
        // when it is out of the list, which needs the lock, or when its wait is decided here; so what
        // is needed of it is read before `f`, and the unlinking of one that was taken touches only
        // its neighbours and what was read.
        unsafe {
            let node = &*node;
            at = list.after(node).map(ptr::from_ref);
            let wait = &*node.value.wait.get();
            let waker = wait.waker();
            let unlinked = list.detach(node);
            match f(&node.value, wait) {
                Step::Took => return Some(waker),
                Step::Gone if is_planted(Defect::StopsAtTheGone) => return None,
                Step::Gone => {}
                Step::Skip => list.attach(node, unlinked),
            }
        }
    }
    None
}

/// Tells the first of those who only watch; it tells the next one itself, if there is still reason.
#[cold]
pub(crate) fn tell_first(list: &mut List<Waiter>) -> Option<Waker> {
    complete_first(list, |waiter, wait| match waiter.is_watch {
        true => Step::of(wait.decide(Outcome::Data(waiter.arm))),
        false => Step::Skip,
    })
}

/// Who wakes after a step: seldom more than two.
#[derive(Default)]
#[must_use]
pub(crate) struct Wakers {
    few: [Option<Waker>; 2],
    rest: Vec<Waker>,
}

impl Wakers {
    pub fn push(&mut self, waker: Waker) {
        match self.few.iter_mut().find(|place| place.is_none()) {
            Some(place) => *place = Some(waker),
            None => self.rest.push(waker),
        }
    }

    pub fn extend(&mut self, wakers: impl IntoIterator<Item = Waker>) {
        wakers.into_iter().for_each(|waker| self.push(waker));
    }

    /// Wakes them. After the lock.
    pub fn wake(self) {
        self.few.into_iter().flatten().chain(self.rest).for_each(Waker::wake);
    }
}
