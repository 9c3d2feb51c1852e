//! The names that come next: a page of a list whose order is not that in which names are found.
//!
//! Threads are found record by record, and are told in the order of their names. One look at every record gives the
//! page after any name, with no memory but the page's own, and nothing is remembered from page to page.

use abi_types::{Pid, ThreadRef, Tid};

/// The first names of all that are offered and come after one, in their order.
#[derive(Clone, Debug)]
pub struct Page<const MOST: usize> {
    after: ThreadRef,
    names: [ThreadRef; MOST],
    count: usize,
    limit: usize,
    is_more: bool,
}

impl<const MOST: usize> Page<MOST> {
    /// Room for `limit` names after that one.
    pub fn after(after: ThreadRef, limit: usize) -> Self {
        let none =
            ThreadRef { pid: Pid(0), process_generation: 0, tid: Tid(0), thread_generation: 0 };
        let limit = limit.min(MOST);
        Self { after, names: [none; MOST], count: 0, limit, is_more: false }
    }

    /// The names.
    pub fn names(&self) -> &[ThreadRef] {
        self.names.get(..self.count).unwrap_or_default()
    }

    /// Whether others come after them.
    pub const fn is_more(&self) -> bool {
        self.is_more
    }

    /// Keeps a name if it is among the first.
    pub fn offer(&mut self, name: ThreadRef) {
        if name <= self.after {
            return;
        }
        if self.count == self.limit {
            self.is_more = true;
            if self.names().last().is_none_or(|last| *last <= name) {
                return;
            }
        } else {
            self.count += 1;
        }
        // The last place is free, or its name has to go.
        let last = self.count.saturating_sub(1);
        let before_last = self.names.get(..last).unwrap_or_default();
        let at = before_last.iter().position(|other| name < *other).unwrap_or(last);
        let mut carried = name;
        for place in self.names.get_mut(at..=last).unwrap_or_default() {
            core::mem::swap(place, &mut carried);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::vec::Vec;

    const NO_NAME: ThreadRef =
        ThreadRef { pid: Pid(0), process_generation: 0, tid: Tid(0), thread_generation: 0 };

    /// Names in the order of records, of processes that took records in turns.
    fn names(threads: u32, processes: u32) -> Vec<ThreadRef> {
        let name = |record: u32| ThreadRef {
            pid: Pid((record * 7) % processes),
            process_generation: 1,
            tid: Tid(record),
            thread_generation: 1 + record % 3,
        };
        (0..threads).map(name).collect()
    }

    #[test]
    fn pages_of_any_size_are_all_names_in_their_order() {
        for (threads, processes) in [(0, 1), (1, 1), (40, 1), (100, 3), (333, 7), (64, 64)] {
            let offered = names(threads, processes);
            let mut expected = offered.clone();
            expected.sort();
            for limit in [1, 2, 7, 16] {
                let (mut found, mut last) = (Vec::new(), NO_NAME);
                loop {
                    let mut page = Page::<16>::after(last, limit);
                    offered.iter().for_each(|name| page.offer(*name));
                    found.extend_from_slice(page.names());
                    assert_eq!(page.is_more(), found.len() < expected.len());
                    if !page.is_more() {
                        break;
                    }
                    assert_eq!(page.names().len(), limit, "a page with others after it is full");
                    last = found[found.len() - 1];
                }
                assert_eq!(found, expected, "{threads} threads of {processes}, {limit} a page");
            }
        }
    }

    #[test]
    fn a_page_without_room_has_no_names_and_says_that_there_are_some() {
        let mut page = Page::<16>::after(NO_NAME, 0);
        page.offer(names(1, 1)[0]);
        assert_eq!((page.names(), page.is_more()), (&[][..], true));
    }
}
