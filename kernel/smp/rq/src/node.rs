//! What a queue holds of a thread.

use abi_sync::atomic::{AtomicU32, AtomicU64, Ordering};
use abi_sync::cell::RaceCell;
use core_sched::{CpuId, Entity, Entry};
use core_sched_policy::Share;
use intrusive_collections::RBTreeAtomicLink;

/// A thread's link, place and scheduling state.
#[derive(Debug)]
pub struct Node {
    pub(crate) link: RBTreeAtomicLink,
    /// The mark of the tree it is linked in; zero if it is in none.
    pub(crate) tree: AtomicU32,
    /// Number of the CPU whose queue lock guards all the rest.
    home: AtomicU32,
    /// Its place in the order; means nothing while it is in no tree.
    pub(crate) entry: RaceCell<Entry>,
    entity: RaceCell<Entity>,
    pub(crate) thread: AtomicU64,
}

// SAFETY: link, entry and entity are reached only by this crate, only under the lock of the
// queue that `home` names, which one CPU holds at a time; the other fields are atomic or fixed.
unsafe impl Sync for Node {}

/// A node by its place in memory.
#[derive(Clone, Copy, Debug)]
pub struct NodeRef<'n>(pub &'n Node);

impl PartialEq for NodeRef<'_> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self.0, other.0)
    }
}

impl Eq for NodeRef<'_> {}

impl Node {
    /// The node of a thread that never ran, belonging to `home`. `thread` is handed back with
    /// the node and means nothing here.
    pub fn new(thread: u64, share: Share, home: CpuId) -> Self {
        Self {
            link: RBTreeAtomicLink::new(),
            tree: AtomicU32::new(0),
            home: AtomicU32::new(home.index() as u32),
            entry: RaceCell::new(Entry::default()),
            entity: RaceCell::new(Entity::new(share)),
            thread: AtomicU64::new(thread),
        }
    }

    /// The node of a record that holds no thread, belonging to `home`;
    /// [`QueueGuard::renew`](crate::QueueGuard::renew) makes it one.
    pub fn vacant(home: CpuId) -> Self {
        let node = Self::new(0, Share::default(), home);
        Self { entity: RaceCell::new(Entity::vacant()), ..node }
    }

    /// What the node was made or renewed with: whose it is.
    #[inline]
    pub fn thread(&self) -> u64 {
        self.thread.load(Ordering::Relaxed)
    }

    /// The CPU it belongs to; a guess unless that CPU's queue lock is held.
    #[inline]
    pub fn home(&self) -> Option<CpuId> {
        CpuId::new(self.home.load(Ordering::Relaxed) as usize)
    }

    /// Gives the node to another CPU. Only under the lock of the present home, after the last
    /// access to the rest.
    #[inline]
    pub(crate) fn set_home(&self, cpu: CpuId) {
        // Release: pairs with the Acquire load in `is_home`, so that the new home sees what the
        // old one wrote even if it takes its lock without ever having met the old one's.
        self.home.store(cpu.index() as u32, Ordering::Release);
    }

    /// Whether it belongs to `cpu`, whose queue lock the caller holds; then it stays so.
    #[inline]
    pub(crate) fn is_home(&self, cpu: CpuId) -> bool {
        // Acquire: pairs with the Release store in `set_home`.
        self.home.load(Ordering::Acquire) == cpu.index() as u32
    }

    /// The scheduling state.
    ///
    /// # Safety
    /// The caller holds the lock of the queue that `home` names, keeps it while the closure
    /// runs, and makes no second access to the same node's state inside the closure.
    #[inline(always)]
    pub(crate) unsafe fn with_entity<R>(&self, f: impl FnOnce(&mut Entity) -> R) -> R {
        // SAFETY: the lock excludes every other access; the caller promises no nested one.
        self.entity.with_mut(|entity| f(unsafe { &mut *entity }))
    }
}
