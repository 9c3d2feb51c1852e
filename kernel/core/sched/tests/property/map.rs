//! The order of a queue, over a map.

use core_sched::{Entry, Ordered};
use core_sched_policy::VirtualTime;
use std::collections::BTreeMap;

/// A sorted set over a map, eligible ones first; times are unwrapped by their distance from the
/// start of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Map {
    pub sorted: BTreeMap<(bool, i64, u64), (usize, Entry)>,
}

pub const BASE: u64 = u64::MAX - 30_000_000;

pub fn key(entry: &Entry, is_early: bool) -> (bool, i64, u64) {
    let at = if is_early { entry.tag.start } else { entry.tag.finish };
    (is_early, at.since(VirtualTime::from_bits(BASE)), entry.sequence)
}

impl Map {
    pub fn key_of(&self, item: usize) -> Option<(bool, i64, u64)> {
        self.sorted.iter().find(|e| e.1.0 == item).map(|e| *e.0)
    }
}

impl Ordered for Map {
    type Item = usize;

    fn insert(&mut self, item: usize, entry: Entry) {
        assert!(self.sorted.insert(key(&entry, false), (item, entry)).is_none());
    }

    fn insert_early(&mut self, item: usize, entry: Entry) {
        assert!(self.sorted.insert(key(&entry, true), (item, entry)).is_none());
    }

    fn is_early(&self, item: usize) -> bool {
        self.key_of(item).is_some_and(|key| key.0)
    }

    fn settle(&mut self, now: VirtualTime) {
        let early: Vec<_> = self.sorted.range((true, i64::MIN, 0)..).map(|e| *e.1).collect();
        for (item, entry) in early {
            if !now.is_before(entry.tag.start) {
                self.remove(item);
                self.insert(item, entry);
            }
        }
    }

    fn remove(&mut self, item: usize) -> Option<Entry> {
        let key = self.key_of(item)?;
        self.sorted.remove(&key).map(|e| e.1)
    }

    fn first(&self) -> Option<(usize, Entry)> {
        self.sorted.values().next().copied()
    }

    fn after(&self, item: usize) -> Option<(usize, Entry)> {
        let from = self.key_of(item)?;
        self.sorted.range(from..).nth(1).map(|e| *e.1)
    }

    fn entry(&self, item: usize) -> Option<Entry> {
        self.sorted.values().find(|e| e.0 == item).map(|e| e.1)
    }
}
