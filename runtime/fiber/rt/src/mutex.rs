//! A mutex for fibers and threads: whoever waits for it parks, and gets it in turn.

use core::cell::{Cell, UnsafeCell};
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::ptr;

use abi_sync::atomic::{AtomicU32, Ordering};
use fiber_core::Outcome;

use crate::fiber::shield;
use crate::list::{List, Node};
use crate::lock::SpinLock;
use crate::planted::{Defect, is_planted};
use crate::time::Cancelled;
use crate::wait::{Wait, Waker, wait};
use crate::what::What;

const UNLOCKED: u32 = 0;
const LOCKED: u32 = 1;
/// Locked, and somebody may be linked.
const CONTENDED: u32 = 2;

/// A linked wait.
pub(crate) struct Link(pub Cell<*const Wait>);

// SAFETY: only reached under the waitable's lock.
unsafe impl Send for Link {}

/// Takes waits off the list until one is decided by this call; whom to wake after the lock.
pub(crate) fn take_first(list: &mut List<Link>) -> Option<Waker> {
    while let Some(node) = list.first().map(ptr::from_ref) {
        // SAFETY: a linked node is alive; it is out of the list before its wait is decided.
        let wait = unsafe {
            list.remove(&*node);
            &*(*node).value.0.get()
        };
        let waker = wait.waker();
        if wait.decide(Outcome::Data(0)) {
            return Some(waker);
        }
    }
    None
}

/// Mutual exclusion around a value.
///
/// There is no poison: a panic while it is locked unlocks it.
pub struct Mutex<T: ?Sized> {
    state: AtomicU32,
    waiters: SpinLock<List<Link>>,
    value: UnsafeCell<T>,
}

// SAFETY: a guard is the only way to the value, and there is one at a time.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}
// SAFETY: nobody waits for a mutex that is moved.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}

/// The right to the value; dropping it unlocks. It stays with its fiber, on whatever worker.
#[must_use = "the mutex is unlocked when the guard is dropped"]
pub struct MutexGuard<'a, T: ?Sized> {
    pub(crate) mutex: &'a Mutex<T>,
    /// Not Send: unlocking is the locker's.
    marker: PhantomData<*const ()>,
}

// SAFETY: a shared guard gives a shared value.
unsafe impl<T: ?Sized + Sync> Sync for MutexGuard<'_, T> {}

impl<T> Mutex<T> {
    /// An unlocked mutex.
    #[cfg(not(loom))]
    pub const fn new(value: T) -> Self {
        Self {
            state: AtomicU32::new(UNLOCKED),
            waiters: SpinLock::new(List::new()),
            value: UnsafeCell::new(value),
        }
    }

    /// An unlocked mutex.
    #[cfg(loom)]
    pub fn new(value: T) -> Self {
        Self {
            state: AtomicU32::new(UNLOCKED),
            waiters: SpinLock::new(List::new()),
            value: UnsafeCell::new(value),
        }
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Locks it. Does not look at cancellation: whoever has the lock is expected to be short.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        if !self.try_acquire() {
            // Within a shield the wait ends with the lock and nothing else; whoever has a guard has the
            // lock, whatever may have ended a wait.
            while shield(|| self.acquire()).is_err() {}
        }
        self.guard()
    }

    /// Locks it unless the fiber is or gets cancelled while it waits.
    pub fn lock_cancellable(&self) -> Result<MutexGuard<'_, T>, Cancelled> {
        if !self.try_acquire() {
            self.acquire()?;
        }
        Ok(self.guard())
    }

    /// Locks it if it is unlocked.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.try_acquire().then(|| self.guard())
    }

    /// The value, without locking: nobody else has the mutex.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    #[inline]
    fn guard(&self) -> MutexGuard<'_, T> {
        MutexGuard { mutex: self, marker: PhantomData }
    }

    #[inline]
    fn try_acquire(&self) -> bool {
        // Acquire: pairs with the release in `unlock`.
        self.state.compare_exchange(UNLOCKED, LOCKED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn acquire(&self) -> Result<(), Cancelled> {
        let node = Node::new(Link(Cell::new(ptr::null())));
        let at = ptr::from_ref(self).cast();
        let publish = |wait: &Wait| {
            node.value.0.set(wait);
            self.waiters.with(|list| {
                // Acquire: as in `try_acquire`. Marked before the link, under the lock that `unlock`
                // takes when it finds the mark.
                let is_unlocked = self.state.swap(CONTENDED, Ordering::Acquire) == UNLOCKED;
                if is_unlocked && !is_planted(Defect::LinksWithoutLooking) {
                    return false;
                }
                // SAFETY: the node is out of the list before this function ends: taken out by
                // whoever hands the lock over, or below.
                unsafe { list.push(&node) };
                true
            })
        };
        let unlink = |outcome| {
            if outcome != Outcome::Data(0) {
                // SAFETY: if it is linked, then here.
                self.waiters.with(|list| unsafe { list.remove(&node) });
            }
        };
        match wait(What::Mutex, at, None, publish, unlink) {
            None | Some(Outcome::Data(_)) => Ok(()),
            _ => Err(Cancelled),
        }
    }

    #[inline]
    pub(crate) fn unlock(&self) {
        // Release: pairs with the acquire of the next who locks.
        if self
            .state
            .compare_exchange(LOCKED, UNLOCKED, Ordering::Release, Ordering::Relaxed)
            .is_err()
        {
            self.hand_over();
        }
    }

    /// Gives the lock to the first who waits: it never is unlocked in between.
    #[cold]
    fn hand_over(&self) {
        let waker = self.waiters.with(|list| {
            let waker = take_first(list);
            let state = match (&waker, list.is_empty()) {
                (None, _) => UNLOCKED,
                (Some(_), _) if is_planted(Defect::UnlocksAndHandsOver) => UNLOCKED,
                (Some(_), true) => LOCKED,
                (Some(_), false) => CONTENDED,
            };
            // Release: pairs with the acquire of the next who locks; whoever is handed the lock has
            // its order from the outcome.
            self.state.store(state, Ordering::Release);
            waker
        });
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: ?Sized> core::fmt::Debug for Mutex<T> {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let is_locked = self.state.load(Ordering::Relaxed) != UNLOCKED;
        write!(out, "Mutex {}", if is_locked { "locked" } else { "unlocked" })
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the mutex is locked by this guard.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed alone.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.mutex.unlock();
    }
}

impl<T: ?Sized + core::fmt::Debug> core::fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        (**self).fmt(out)
    }
}
