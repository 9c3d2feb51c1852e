//! The sorted set of a queue: two red-black trees through the nodes' own links.
//!
//! Threads whose request is eligible are in the first, sorted by where it ends; the others are
//! in the second, sorted by where it starts. A node has one link and is in one of them. Under a
//! policy without eligibility the second stays empty.
//!
//! The first of all eligible ones is in neither: a pointer names it. It is what every choice asks
//! for, and while one thread waits, which is the usual case, no tree changes at all.
//!
//! Decided in ADR 151.

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
    /// The first of the eligible ones; `None` only while there is no other of them either.
    first: Option<&'n Node>,
    /// The others of them. All come after the first.
    rest: RBTree<Adapter<'n>>,
    early: RBTree<EarlyAdapter<'n>>,
    /// What `Node::tree` holds for an eligible node of this set; for one that is not, one more.
    mark: u32,
}

impl<'n> Tree<'n> {
    /// The empty tree of `cpu`; a CPU has one.
    pub fn new(cpu: CpuId) -> Self {
        Self {
            first: None,
            rest: RBTree::new(Adapter::new()),
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
    fn first_early(&self) -> Option<&'n Node> {
        if self.early.is_empty() { None } else { self.walk_to_first_early() }
    }

    /// Out of line, like all that concerns the second tree: the code of a queue whose policy
    /// leaves it empty stays as it is without.
    #[cold]
    #[inline(never)]
    fn walk_to_first_early(&self) -> Option<&'n Node> {
        self.early.front().clone_pointer()
    }

    /// Whether an eligible node is the one that is in no tree.
    #[inline]
    fn is_first(&self, item: NodeRef<'n>) -> bool {
        self.first.is_some_and(|first| NodeRef(first) == item)
    }

    #[inline]
    fn key(node: &Node) -> Place {
        Adapter::new().get_key(node)
    }

    /// Puts in one beside the first, which stays first or comes second.
    #[inline(never)]
    fn insert_beside(&mut self, first: &'n Node, node: &'n Node) {
        if Self::key(node) < Self::key(first) {
            self.first = Some(node);
            self.rest.insert(first);
        } else {
            self.rest.insert(node);
        }
    }

    /// After `first` was put in the place of the first: whether the one behind it is to come before.
    #[cold]
    #[inline(never)]
    fn let_second_go_first(&mut self, first: &'n Node) {
        let mut front = self.rest.front_mut();
        if front.get().is_some_and(|second| Self::key(second) < Self::key(first)) {
            self.first = front.remove();
            self.rest.insert(first);
        }
    }

    /// Writes a node's place, which is in no set so far, and marks the set it goes to.
    #[inline]
    fn set_entry(item: NodeRef<'n>, entry: Entry, mark: u32) {
        assert!(Self::mark_of(item) == 0, "a node that joins a queue is already linked");
        // SAFETY: the node is in no set, as its mark says, and belongs to this queue, whose lock
        // is held, so nobody reads its place.
        item.0.entry.with_mut(|place| unsafe { *place = entry });
        item.0.tree.store(mark, Memory::Relaxed);
    }
}

impl<'n> Ordered for Tree<'n> {
    type Item = NodeRef<'n>;

    #[inline]
    fn insert(&mut self, item: NodeRef<'n>, entry: Entry) {
        Self::set_entry(item, entry, self.mark);
        match self.first {
            None => self.first = Some(item.0),
            Some(first) => self.insert_beside(first, item.0),
        }
    }

    #[inline(never)]
    fn insert_early(&mut self, item: NodeRef<'n>, entry: Entry) {
        Self::set_entry(item, entry, self.mark + 1);
        self.early.insert(item.0);
    }

    #[inline]
    fn is_early(&self, item: NodeRef<'n>) -> bool {
        self.holds_early(item)
    }

    #[inline]
    fn remove(&mut self, item: NodeRef<'n>) -> Option<Entry> {
        if self.holds(item) {
            if self.is_first(item) {
                self.first = match self.rest.is_empty() {
                    true => None,
                    false => self.rest.front_mut().remove(),
                };
            } else {
                // SAFETY: the mark says that the node is in this set, and it is not the first, so
                // it is linked in this very tree.
                unsafe { self.rest.cursor_mut_from_ptr(item.0) }.remove();
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

    #[inline(always)]
    fn replace_first(&mut self, item: NodeRef<'n>, entry: Entry) {
        Self::set_entry(item, entry, self.mark);
        if let Some(first) = self.first {
            first.tree.store(0, Memory::Relaxed);
        }
        self.first = Some(item.0);
        if !self.rest.is_empty() {
            self.let_second_go_first(item.0);
        }
    }

    #[inline]
    fn first(&self) -> Option<(NodeRef<'n>, Entry)> {
        Self::seen(match self.first {
            None => self.first_early(),
            first => first,
        })
    }

    #[inline]
    fn after(&self, item: NodeRef<'n>) -> Option<(NodeRef<'n>, Entry)> {
        if self.holds(item) {
            let next = if self.is_first(item) {
                self.rest.front().clone_pointer()
            } else {
                // SAFETY: as in `remove`.
                unsafe { self.rest.cursor_from_ptr(item.0) }.peek_next().clone_pointer()
            };
            Self::seen(match next {
                None => self.first_early(),
                next => next,
            })
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
        while let Some((item, entry)) = Self::seen(self.first_early())
            && !now.is_before(entry.tag.start)
        {
            self.remove(item);
            self.insert(item, entry);
        }
    }
}
