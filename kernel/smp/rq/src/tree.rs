//! The sorted set of a queue: two red-black trees through the nodes' own links.
//!
//! Threads whose request is eligible are in the first, sorted by where it ends; the others are
//! in the second, sorted by where it starts. A node has one link and is in one of them. Under a
//! policy without eligibility the second stays empty.

use crate::node::{Node, NodeRef};
use abi_sync::atomic::Ordering as Memory;
use core::cmp::Ordering;
use core_sched::{CpuId, Entry, Ordered};
use core_sched_policy::VirtualTime;
use intrusive_collections::{KeyAdapter, RBTree, RBTreeAtomicLink, intrusive_adapter};

intrusive_adapter!(Adapter<'n> = &'n Node: Node { link => RBTreeAtomicLink });
intrusive_adapter!(EarlyAdapter<'n> = &'n Node: Node { link => RBTreeAtomicLink });

/// A place in one of the trees: where its key lies on the virtual time line, then by arrival.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    at: VirtualTime,
    sequence: u64,
}

impl Ord for Place {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.at.since(other.at).cmp(&0).then(self.sequence.cmp(&other.sequence))
    }
}

impl PartialOrd for Place {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }

    /// The comparison a descent makes at each step.
    #[inline]
    fn lt(&self, other: &Self) -> bool {
        let distance = self.at.since(other.at);
        distance < 0 || distance == 0 && self.sequence < other.sequence
    }
}

impl<'a> KeyAdapter<'a> for Adapter<'_> {
    type Key = Place;

    #[inline]
    fn get_key(&self, node: &'a Node) -> Place {
        // SAFETY: the tree is used only under its queue's lock, and while a node is linked in
        // it nobody writes the node's place.
        node.entry
            .with(|entry| unsafe { Place { at: (*entry).tag.finish, sequence: (*entry).sequence } })
    }
}

impl<'a> KeyAdapter<'a> for EarlyAdapter<'_> {
    type Key = Place;

    #[inline]
    fn get_key(&self, node: &'a Node) -> Place {
        // SAFETY: as for the other tree.
        node.entry
            .with(|entry| unsafe { Place { at: (*entry).tag.start, sequence: (*entry).sequence } })
    }
}

/// The waiting threads of one CPU, sorted.
#[derive(Debug)]
pub struct Tree<'n> {
    tree: RBTree<Adapter<'n>>,
    /// The first of that tree; asked for more often than the tree changes, and a walk away.
    first: Option<&'n Node>,
    early: RBTree<EarlyAdapter<'n>>,
    /// What `Node::tree` holds for a node linked in the first tree; in the second, one more.
    mark: u32,
}

impl<'n> Tree<'n> {
    /// The empty tree of `cpu`; a CPU has one.
    pub fn new(cpu: CpuId) -> Self {
        Self {
            tree: RBTree::new(Adapter::new()),
            first: None,
            early: RBTree::new(EarlyAdapter::new()),
            mark: 2 * cpu.index() as u32 + 1,
        }
    }

    /// What the node says of where it is linked. The mark is written only under this queue's
    /// lock when it names one of its trees, so a match is not a guess.
    #[inline]
    fn mark_of(item: NodeRef<'n>) -> u32 {
        item.0.tree.load(Memory::Relaxed)
    }

    #[inline]
    fn holds(&self, item: NodeRef<'n>) -> bool {
        Self::mark_of(item) == self.mark
    }

    #[inline]
    fn holds_early(&self, item: NodeRef<'n>) -> bool {
        Self::mark_of(item) == self.mark + 1
    }

    #[inline]
    fn seen(node: Option<&'n Node>) -> Option<(NodeRef<'n>, Entry)> {
        let node = node?;
        // SAFETY: as in `get_key`.
        Some((NodeRef(node), node.entry.with(|entry| unsafe { *entry })))
    }

    #[inline]
    fn first_early(&self) -> Option<(NodeRef<'n>, Entry)> {
        Self::seen(self.early.front().clone_pointer())
    }

    #[inline]
    fn set_entry(item: NodeRef<'n>, entry: Entry) {
        // SAFETY: the node is in no tree (the tree it goes to asserts it) and belongs to this
        // queue, whose lock is held, so nobody reads its place.
        item.0.entry.with_mut(|place| unsafe { *place = entry });
    }
}

impl<'n> Ordered for Tree<'n> {
    type Item = NodeRef<'n>;

    #[inline]
    fn insert(&mut self, item: NodeRef<'n>, entry: Entry) {
        Self::set_entry(item, entry);
        let key = |node: &'n Node| Adapter::new().get_key(node);
        if self.first.is_none_or(|first| key(item.0) < key(first)) {
            self.first = Some(item.0);
        }
        self.tree.insert(item.0);
        item.0.tree.store(self.mark, Memory::Relaxed);
    }

    /// Out of line, like all that concerns the second tree: the code of a queue whose policy
    /// leaves it empty stays as it is without.
    #[inline(never)]
    fn insert_early(&mut self, item: NodeRef<'n>, entry: Entry) {
        Self::set_entry(item, entry);
        self.early.insert(item.0);
        item.0.tree.store(self.mark + 1, Memory::Relaxed);
    }

    #[inline]
    fn is_early(&self, item: NodeRef<'n>) -> bool {
        self.holds_early(item)
    }

    #[inline]
    fn remove(&mut self, item: NodeRef<'n>) -> Option<Entry> {
        if self.holds(item) {
            // SAFETY: the mark says that the node is linked in this very tree.
            let mut cursor = unsafe { self.tree.cursor_mut_from_ptr(item.0) };
            cursor.remove();
            if self.first.is_some_and(|first| NodeRef(first) == item) {
                self.first = cursor.as_cursor().clone_pointer();
            }
        } else if self.holds_early(item) {
            // SAFETY: the mark says that the node is linked in this very tree.
            unsafe { self.early.cursor_mut_from_ptr(item.0) }.remove();
        } else {
            return None;
        }
        item.0.tree.store(0, Memory::Relaxed);
        // SAFETY: as in `get_key`.
        Some(item.0.entry.with(|entry| unsafe { *entry }))
    }

    #[inline]
    fn first(&self) -> Option<(NodeRef<'n>, Entry)> {
        match self.first {
            None => self.first_early(),
            first => Self::seen(first),
        }
    }

    #[inline]
    fn after(&self, item: NodeRef<'n>) -> Option<(NodeRef<'n>, Entry)> {
        if self.holds(item) {
            // SAFETY: the mark says that the node is linked in this very tree.
            let cursor = unsafe { self.tree.cursor_from_ptr(item.0) };
            match Self::seen(cursor.peek_next().clone_pointer()) {
                None => self.first_early(),
                next => next,
            }
        } else if self.holds_early(item) {
            // SAFETY: the mark says that the node is linked in this very tree.
            let cursor = unsafe { self.early.cursor_from_ptr(item.0) };
            Self::seen(cursor.peek_next().clone_pointer())
        } else {
            None
        }
    }

    #[inline]
    fn entry(&self, item: NodeRef<'n>) -> Option<Entry> {
        if !self.holds(item) && !self.holds_early(item) {
            return None;
        }
        // SAFETY: as in `get_key`.
        Some(item.0.entry.with(|entry| unsafe { *entry }))
    }

    /// Each thread is moved once for each of its requests, so the cost of a call, which can be
    /// that of many moves, is O(log n) on average.
    #[inline(never)]
    fn settle(&mut self, now: VirtualTime) {
        while let Some((item, entry)) = self.first_early()
            && !now.is_before(entry.tag.start)
        {
            self.remove(item);
            self.insert(item, entry);
        }
    }
}
