//! The sorted set of a queue: a red-black tree through the nodes' own links.

use crate::node::{Node, NodeRef};
use abi_sync::atomic::Ordering as Memory;
use core::cmp::Ordering;
use core_sched::{CpuId, Entry, Ordered};
use intrusive_collections::{KeyAdapter, RBTree, RBTreeAtomicLink, intrusive_adapter};

intrusive_adapter!(Adapter<'n> = &'n Node: Node { link => RBTreeAtomicLink });

/// A place in the order, as the tree compares it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place(Option<Entry>);

impl Ord for Place {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (Some(a), Some(b)) => a.order(b),
            (a, b) => a.is_some().cmp(&b.is_some()),
        }
    }
}

impl PartialOrd for Place {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<'a> KeyAdapter<'a> for Adapter<'_> {
    type Key = Place;

    #[inline]
    fn get_key(&self, node: &'a Node) -> Place {
        // SAFETY: the tree is used only under its queue's lock, and while a node is linked in
        // it nobody writes the node's place.
        Place(node.entry.with(|entry| unsafe { *entry }))
    }
}

/// The waiting threads of one CPU, sorted.
#[derive(Debug)]
pub struct Tree<'n> {
    tree: RBTree<Adapter<'n>>,
    /// What `Node::tree` holds for a node linked here.
    mark: u32,
}

impl<'n> Tree<'n> {
    /// The empty tree of `cpu`; a CPU has one.
    pub fn new(cpu: CpuId) -> Self {
        Self { tree: RBTree::new(Adapter::new()), mark: cpu.index() as u32 + 1 }
    }

    /// Whether the node is linked in this tree. The mark is written only under this tree's
    /// lock when it names this tree, so a match is not a guess.
    #[inline]
    fn holds(&self, item: NodeRef<'n>) -> bool {
        item.0.tree.load(Memory::Relaxed) == self.mark
    }

    #[inline]
    fn seen(node: Option<&'n Node>) -> Option<(NodeRef<'n>, Entry)> {
        let node = node?;
        // SAFETY: as in `get_key`.
        let entry = node.entry.with(|entry| unsafe { *entry })?;
        Some((NodeRef(node), entry))
    }
}

impl<'n> Ordered for Tree<'n> {
    type Item = NodeRef<'n>;

    #[inline]
    fn insert(&mut self, item: NodeRef<'n>, entry: Entry) {
        // SAFETY: the node is in no tree (the tree asserts it below) and belongs to this queue,
        // whose lock is held, so nobody reads its place.
        item.0.entry.with_mut(|place| unsafe { *place = Some(entry) });
        self.tree.insert(item.0);
        item.0.tree.store(self.mark, Memory::Relaxed);
    }

    #[inline]
    fn remove(&mut self, item: NodeRef<'n>) -> Option<Entry> {
        let entry = self.entry(item)?;
        // SAFETY: the mark says that the node is linked in this very tree.
        unsafe { self.tree.cursor_mut_from_ptr(item.0) }.remove();
        item.0.tree.store(0, Memory::Relaxed);
        Some(entry)
    }

    #[inline]
    fn first(&self) -> Option<(NodeRef<'n>, Entry)> {
        Self::seen(self.tree.front().clone_pointer())
    }

    #[inline]
    fn after(&self, item: NodeRef<'n>) -> Option<(NodeRef<'n>, Entry)> {
        if !self.holds(item) {
            return None;
        }
        // SAFETY: the mark says that the node is linked in this very tree.
        let cursor = unsafe { self.tree.cursor_from_ptr(item.0) };
        Self::seen(cursor.peek_next().clone_pointer())
    }

    #[inline]
    fn entry(&self, item: NodeRef<'n>) -> Option<Entry> {
        if !self.holds(item) {
            return None;
        }
        // SAFETY: as in `get_key`.
        item.0.entry.with(|entry| unsafe { *entry })
    }
}
