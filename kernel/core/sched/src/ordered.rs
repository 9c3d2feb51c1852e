//! The sorted set a queue keeps its waiting threads in.

use core::cmp::Ordering;
use core_sched_policy::{Tag, VirtualTime, Weight};

/// What the order knows of a waiting thread; fixed from insertion to removal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// The request it is ordered by.
    pub tag: Tag,
    /// Number of the insertion: equal finishes run first come, first served.
    pub sequence: u64,
    /// Its weight, for the load of the queue.
    pub weight: Weight,
    /// When it came to this CPU.
    pub moved_ns: u64,
}

impl Entry {
    /// The order of two eligible entries of one queue: by finish, then by arrival.
    #[inline]
    pub fn order(&self, other: &Self) -> Ordering {
        self.tag.finish.since(other.tag.finish).cmp(&0).then(self.sequence.cmp(&other.sequence))
    }

    /// The order of two entries that are not eligible yet: by start, then by arrival.
    #[inline]
    pub fn early_order(&self, other: &Self) -> Ordering {
        self.tag.start.since(other.tag.start).cmp(&0).then(self.sequence.cmp(&other.sequence))
    }
}

/// A set sorted by [`Entry::order`], and after those the items that are not eligible yet, sorted
/// by [`Entry::early_order`]. Insertion, removal and the search for the first take O(log n) and
/// allocate nothing.
///
/// An item is a handle; it is in at most one set at a time. An implementation makes sure
/// that an entry never changes while its item is inside.
pub trait Ordered {
    /// The handle of a thread, as the queue's owner knows it.
    type Item: Copy + Eq;

    /// Puts an item in. The queue never inserts one that is in a set already.
    fn insert(&mut self, item: Self::Item, entry: Entry);

    /// Puts an item in whose request is not eligible yet. It comes after all eligible ones,
    /// sorted by where its request starts, until `settle` finds that its time has come.
    #[inline]
    fn insert_early(&mut self, item: Self::Item, entry: Entry) {
        self.insert(item, entry);
    }

    /// Whether an item in this set is not eligible yet.
    #[inline]
    fn is_early(&self, item: Self::Item) -> bool {
        let _ = item;
        false
    }

    /// Takes an item out; `None` if it is not in this set.
    fn remove(&mut self, item: Self::Item) -> Option<Entry>;

    /// Takes the first item out and puts another in. The queue never does this to an empty set or
    /// to one whose first item is not eligible yet.
    #[inline]
    fn replace_first(&mut self, item: Self::Item, entry: Entry) {
        if let Some((first, _)) = self.first() {
            self.remove(first);
        }
        self.insert(item, entry);
    }

    /// The item to be chosen next: the first eligible one, else the first of the others.
    fn first(&self) -> Option<(Self::Item, Entry)>;

    /// The item after `item`, which is in this set.
    fn after(&self, item: Self::Item) -> Option<(Self::Item, Entry)>;

    /// The entry of an item; `None` if it is not in this set.
    fn entry(&self, item: Self::Item) -> Option<Entry>;

    /// Tells the set where virtual time stands before the first item is asked for: a policy
    /// with eligibility times sorts items whose time has come into the part they are picked
    /// from.
    #[inline]
    fn settle(&mut self, now: VirtualTime) {
        let _ = now;
    }
}
