//! A doubly linked list of nodes that live on waiters' stacks.
//!
//! The list is under its waitable's lock, and so is every access to a node that is linked. A node is
//! unlinked before its waiter goes on: by whoever completed the wait, or else by the waiter.

use core::cell::Cell;
use core::ptr;

/// A place in a list, with what the waitable needs to know of the waiter.
#[derive(Debug)]
pub struct Node<T> {
    previous: Cell<*const Node<T>>,
    next: Cell<*const Node<T>>,
    is_linked: Cell<bool>,
    /// What the waitable needs.
    pub value: T,
}

impl<T> Node<T> {
    /// A node in no list.
    pub const fn new(value: T) -> Self {
        Self {
            previous: Cell::new(ptr::null()),
            next: Cell::new(ptr::null()),
            is_linked: Cell::new(false),
            value,
        }
    }

    /// Whether it is in a list. Under the waitable's lock.
    pub fn is_linked(&self) -> bool {
        self.is_linked.get()
    }
}

/// The list: first in, first out.
#[derive(Debug)]
pub struct List<T> {
    first: *const Node<T>,
    last: *const Node<T>,
}

// SAFETY: a list is only reached under its lock, and its nodes only through it; what a node holds
// may be reached by whoever holds the lock, so it has to be fit for that.
unsafe impl<T: Send> Send for List<T> {}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> List<T> {
    /// An empty list.
    pub const fn new() -> Self {
        Self { first: ptr::null(), last: ptr::null() }
    }

    /// Whether nothing is linked.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// Appends `node`.
    ///
    /// # Safety
    /// The node is in no list; it stays where it is, alive, until it is out of this one.
    pub unsafe fn push(&mut self, node: &Node<T>) {
        debug_assert!(!node.is_linked.get());
        node.previous.set(self.last);
        node.next.set(ptr::null());
        node.is_linked.set(true);
        // SAFETY: linked nodes are alive.
        match unsafe { self.last.as_ref() } {
            Some(last) => last.next.set(node),
            None => self.first = node,
        }
        self.last = node;
    }

    /// The first node. The reference is good while the lock is held and the node is not decided.
    pub fn first(&self) -> Option<&Node<T>> {
        // SAFETY: linked nodes are alive.
        unsafe { self.first.as_ref() }
    }

    /// The node after `node`.
    pub fn after<'a>(&'a self, node: &Node<T>) -> Option<&'a Node<T>> {
        // SAFETY: linked nodes are alive.
        unsafe { node.next.get().as_ref() }
    }

    /// Takes `node` out if it is in; again is no harm.
    ///
    /// # Safety
    /// If it is in a list, it is in this one.
    pub unsafe fn remove(&mut self, node: &Node<T>) {
        if !node.is_linked.replace(false) {
            return;
        }
        let (previous, next) = (node.previous.get(), node.next.get());
        // SAFETY: linked nodes are alive.
        match unsafe { previous.as_ref() } {
            Some(previous) => previous.next.set(next),
            None => self.first = next,
        }
        // SAFETY: as above.
        match unsafe { next.as_ref() } {
            Some(next) => next.previous.set(previous),
            None => self.last = previous,
        }
    }

    /// Takes `node` out, and returns its place for [`attach`](Self::attach).
    ///
    /// # Safety
    /// It is in this list.
    #[inline]
    pub unsafe fn detach(&mut self, node: &Node<T>) -> (*const Node<T>, *const Node<T>) {
        let place = (node.previous.get(), node.next.get());
        // SAFETY: by the caller.
        unsafe { self.remove(node) };
        place
    }

    /// Puts `node` back where it was.
    ///
    /// # Safety
    /// The place is what `detach` of the node has just returned, and the list is as it was then.
    pub unsafe fn attach(&mut self, node: &Node<T>, place: (*const Node<T>, *const Node<T>)) {
        let (previous, next) = place;
        node.previous.set(previous);
        node.next.set(next);
        node.is_linked.set(true);
        // SAFETY: its neighbours are linked, so alive.
        match unsafe { previous.as_ref() } {
            Some(previous) => previous.next.set(node),
            None => self.first = node,
        }
        // SAFETY: as above.
        match unsafe { next.as_ref() } {
            Some(next) => next.previous.set(node),
            None => self.last = node,
        }
    }

    /// Calls `f` with every node in turn, until it says to stop.
    pub fn any(&self, mut f: impl FnMut(&Node<T>) -> bool) -> bool {
        let mut at = self.first;
        // SAFETY: linked nodes are alive.
        while let Some(node) = unsafe { at.as_ref() } {
            if f(node) {
                return true;
            }
            at = node.next.get();
        }
        false
    }
}
