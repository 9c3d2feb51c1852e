//! Select: waits for several channel operations and commits to one.
//!
//! First each arm is looked at and the first one that is ready is committed to, linked nowhere. If none
//! is, the arms are linked one after the other, and one outcome word decides the whole wait. An arm that
//! is found ready by then is not committed to before the word is decided for it; from then on nobody else
//! can commit this select, and if the other side is gone by then it begins anew. The losers are unlinked,
//! each under its own lock, before select returns. So no commitment is ever taken back because another
//! arm was faster, and nobody who waits owes another one its wake.
//!
//! Decided in ADR 104.

use core::fmt;
use core::ptr;
use core::time::Duration;

use alloc::vec::Vec;

use arrayvec::ArrayVec;
use fiber_core::Outcome;
use fiber_rt::{Defect, Instant, Node, Wait, What, consume_budget, is_planted, random, wait};

use crate::arm::{Arm, Chosen, Found};
use crate::ends::{Receiver, Sender};
use crate::error::{ReadyTimeoutError, SelectTimeoutError, TryReadyError, TrySelectError};
use crate::selected::SelectedOperation;
use crate::waiter::Waiter;

/// Arms that need no allocation.
const FEW: usize = 8;

/// An arm and its index.
#[derive(Clone, Copy)]
struct Entry<'a> {
    index: usize,
    arm: &'a dyn Arm,
}

/// A set of operations to choose from.
#[derive(Clone, Default)]
pub struct Select<'a> {
    few: ArrayVec<Entry<'a>, FEW>,
    /// All of them, once they are more than few.
    more: Vec<Entry<'a>>,
    next_index: usize,
    is_biased: bool,
}

// SAFETY: a set holds ends of channels by reference and moves their values, but looks at none and drops
// none; a value is only given out with the end itself, which has to be where it is asked for.
unsafe impl Send for Select<'_> {}
// SAFETY: a shared set does nothing.
unsafe impl Sync for Select<'_> {}

/// How a wait ended.
enum Ended {
    /// By the select itself, which found the arm at this place so.
    Found(usize, Found),
    /// By the other side of the arm at this place.
    Data(usize),
    Closed(usize),
    /// An arm is ready by its own time.
    Due,
    Timeout,
    Cancelled,
}

impl<'a> Select<'a> {
    /// An empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty set that prefers the operations that were added first.
    pub fn new_biased() -> Self {
        Self { is_biased: true, ..Self::default() }
    }

    #[inline]
    fn add(&mut self, arm: &'a dyn Arm) -> usize {
        let index = self.next_index;
        self.next_index += 1;
        let entry = Entry { index, arm };
        if !self.more.is_empty() {
            self.more.push(entry);
        } else if self.few.try_push(entry).is_err() {
            self.more.extend(self.few.drain(..));
            self.more.push(entry);
        }
        index
    }

    /// Adds a send; returns its index.
    pub fn send<T>(&mut self, sender: &'a Sender<T>) -> usize {
        self.add(sender)
    }

    /// Adds a receive; returns its index.
    pub fn recv<T>(&mut self, receiver: &'a Receiver<T>) -> usize {
        self.add(receiver)
    }

    /// Takes an operation out; the indices of the others stay.
    ///
    /// # Panics
    /// If none has this index, or if it has been taken out.
    pub fn remove(&mut self, index: usize) {
        let place = self.entries().iter().position(|entry| entry.index == index);
        assert!(place.is_some(), "no operation has the index {index}");
        if let Some(place) = place {
            // In order: for one that is biased.
            match self.more.is_empty() {
                true => _ = self.few.remove(place),
                false => _ = self.more.remove(place),
            }
        }
    }

    fn entries(&self) -> &[Entry<'a>] {
        if self.more.is_empty() { &self.few } else { &self.more }
    }

    /// Goes through the arms, each of those left as likely as the other to be next, until `f` finds
    /// something.
    #[inline]
    fn draw<R>(&mut self, mut f: impl FnMut(Entry<'a>) -> Option<R>) -> Option<R> {
        let is_biased = self.is_biased;
        let entries = if self.more.is_empty() { &mut *self.few } else { &mut *self.more };
        let left = entries.len();
        let mut seed = if is_biased || left < 2 { 0 } else { random() };
        for place in 0..left {
            let choice = ((seed >> 32) * (left - place) as u64) >> 32;
            entries.swap(place, place + choice as usize);
            if !is_biased {
                // Knuth's, for the upper half.
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            }
            if let Some(found) = entries.get(place).and_then(|entry| f(*entry)) {
                return Some(found);
            }
        }
        None
    }

    #[inline]
    fn look(&mut self, me: usize) -> Option<SelectedOperation<'a>> {
        self.draw(|entry| {
            let chosen = match entry.arm.commit(me) {
                Found::Chosen(chosen) => chosen,
                Found::Promised => entry.arm.accept(me, None)?,
                Found::Nothing | Found::Lost | Found::Missed => return None,
            };
            Some(SelectedOperation::new(entry.index, chosen, entry.arm))
        })
    }

    /// By what others tell this select from another.
    fn id(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// Links the arms with `link` and waits.
    fn park(
        &self,
        nodes: &[Node<Waiter>],
        deadline_ns: Option<u64>,
        link: impl Fn(&dyn Arm, &Node<Waiter>, &Wait) -> Found,
    ) -> Ended {
        let arms = || self.entries().iter().map(|entry| entry.arm).zip(nodes).enumerate();
        let until_ns = arms().filter_map(|(_, (arm, _))| arm.due_ns()).chain(deadline_ns).min();
        let mut own = None;
        let unlink = |but: Option<usize>| {
            for (place, (arm, node)) in arms() {
                if Some(place) != but {
                    arm.unlink(node);
                }
            }
        };
        let publish = |wait: &Wait| {
            for (place, (arm, node)) in arms() {
                match link(arm, node, wait) {
                    Found::Nothing => {}
                    // Whoever decided it wakes.
                    Found::Lost => return true,
                    found => {
                        own = Some((place, found));
                        // Those that were linked before it, while the wait is there.
                        unlink(Some(place));
                        return false;
                    }
                }
            }
            true
        };
        // Whoever decided for an arm has unlinked it.
        let settle = |outcome| match outcome {
            Outcome::Data(place) | Outcome::Closed(place) => unlink(Some(place as usize)),
            Outcome::Timeout | Outcome::Cancelled => unlink(None),
        };
        match wait(What::Select, ptr::from_ref(self).cast(), until_ns, publish, settle) {
            None => own.map_or(Ended::Due, |(place, found)| Ended::Found(place, found)),
            Some(Outcome::Data(place)) => Ended::Data(place as usize),
            Some(Outcome::Closed(place)) => Ended::Closed(place as usize),
            Some(Outcome::Timeout) if until_ns == deadline_ns => Ended::Timeout,
            Some(Outcome::Timeout) => Ended::Due,
            Some(Outcome::Cancelled) => Ended::Cancelled,
        }
    }

    /// A node for each arm, made by `make` of the select's id and the arm's place, for `f`.
    fn with_nodes<R>(
        &self,
        make: fn(usize, u32) -> Node<Waiter>,
        f: impl FnOnce(&[Node<Waiter>]) -> R,
    ) -> R {
        let nodes = (0..self.entries().len() as u32).map(|place| make(self.id(), place));
        if self.more.is_empty() {
            f(&nodes.collect::<ArrayVec<_, FEW>>())
        } else {
            f(&nodes.collect::<Vec<_>>())
        }
    }

    /// One wait; `None` if it is to begin anew.
    fn wait_once(
        &self,
        me: usize,
        deadline_ns: Option<u64>,
    ) -> Result<Option<SelectedOperation<'a>>, SelectTimeoutError> {
        self.with_nodes(Waiter::select, |nodes| {
            let link = |arm: &dyn Arm, node: &Node<Waiter>, wait: &Wait| {
                // SAFETY: unlinked by `park`, before the nodes go.
                unsafe { arm.commit_or_link(me, node, wait) }
            };
            let selected = |place: usize, choose: &dyn Fn(&dyn Arm) -> Option<Chosen>| {
                let entry = self.entries().get(place)?;
                Some(SelectedOperation::new(entry.index, choose(entry.arm)?, entry.arm))
            };
            Ok(match self.park(nodes, deadline_ns, link) {
                Ended::Found(place, Found::Promised) => {
                    selected(place, &|arm| arm.accept(me, None))
                }
                Ended::Found(place, Found::Chosen(chosen)) => {
                    let entry = self.entries().get(place);
                    entry.map(|entry| SelectedOperation::new(entry.index, chosen, entry.arm))
                }
                Ended::Data(place) => selected(place, &|arm| arm.accept(me, nodes.get(place))),
                Ended::Closed(place) => selected(place, &|_| Some(Chosen::Closed)),
                Ended::Found(..) | Ended::Due => None,
                Ended::Timeout => return Err(SelectTimeoutError::Timeout),
                Ended::Cancelled => return Err(SelectTimeoutError::Cancelled),
            })
        })
    }

    #[inline]
    fn wait(
        &mut self,
        deadline_ns: Option<u64>,
    ) -> Result<SelectedOperation<'a>, SelectTimeoutError> {
        consume_budget();
        let me = self.id();
        loop {
            if let Some(selected) = self.look(me) {
                return Ok(selected);
            }
            match self.wait_once(me, deadline_ns) {
                Ok(Some(selected)) => return Ok(selected),
                Ok(None) => {}
                // It may have got ready at the last moment.
                Err(error) => return self.look(me).ok_or(error),
            }
        }
    }

    /// Waits until an operation is ready. An empty set waits for the fiber's cancellation.
    pub fn select(&mut self) -> Result<SelectedOperation<'a>, SelectTimeoutError> {
        self.wait(None)
    }

    /// Chooses an operation that is ready now.
    pub fn try_select(&mut self) -> Result<SelectedOperation<'a>, TrySelectError> {
        consume_budget();
        let me = self.id();
        self.look(me).ok_or(TrySelectError::WouldBlock)
    }

    /// As `select`, for no longer than `timeout`.
    pub fn select_timeout(
        &mut self,
        timeout: Duration,
    ) -> Result<SelectedOperation<'a>, SelectTimeoutError> {
        self.select_deadline(Instant::now() + timeout)
    }

    /// As `select`, until `deadline`.
    pub fn select_deadline(
        &mut self,
        deadline: Instant,
    ) -> Result<SelectedOperation<'a>, SelectTimeoutError> {
        self.wait(Some(deadline.as_ns()))
    }

    fn wait_ready(&mut self, deadline_ns: Option<u64>) -> Result<usize, ReadyTimeoutError> {
        loop {
            if let Ok(index) = self.try_ready() {
                return Ok(index);
            }
            let link = |arm: &dyn Arm, node: &Node<Waiter>, wait: &Wait| {
                // SAFETY: unlinked by `park`, before the nodes go.
                if unsafe { arm.watch(node, wait) } {
                    Found::Nothing
                } else if wait.decide(Outcome::Data(node.value.arm)) {
                    Found::Missed
                } else {
                    Found::Lost
                }
            };
            let ended = self.with_nodes(Waiter::watch, |nodes| self.park(nodes, deadline_ns, link));
            let place = match ended {
                Ended::Found(place, _) => place,
                Ended::Data(place) | Ended::Closed(place) => {
                    if let Some(entry) = self.entries().get(place)
                        && !is_planted(Defect::KeepsNewsToItself)
                    {
                        entry.arm.pass_on();
                    }
                    place
                }
                Ended::Due => continue,
                Ended::Timeout => return self.try_ready().map_err(|_| ReadyTimeoutError::Timeout),
                Ended::Cancelled => return Err(ReadyTimeoutError::Cancelled),
            };
            if let Some(entry) = self.entries().get(place) {
                return Ok(entry.index);
            }
        }
    }

    /// Waits until an operation is ready and returns its index, without doing it. Another may be faster
    /// to do it.
    pub fn ready(&mut self) -> Result<usize, ReadyTimeoutError> {
        self.wait_ready(None)
    }

    /// The index of an operation that is ready now.
    pub fn try_ready(&mut self) -> Result<usize, TryReadyError> {
        consume_budget();
        self.draw(|entry| entry.arm.is_ready().then_some(entry.index))
            .ok_or(TryReadyError::WouldBlock)
    }

    /// As `ready`, for no longer than `timeout`.
    pub fn ready_timeout(&mut self, timeout: Duration) -> Result<usize, ReadyTimeoutError> {
        self.ready_deadline(Instant::now() + timeout)
    }

    /// As `ready`, until `deadline`.
    pub fn ready_deadline(&mut self, deadline: Instant) -> Result<usize, ReadyTimeoutError> {
        self.wait_ready(Some(deadline.as_ns()))
    }
}

impl fmt::Debug for Select<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Select of {}", self.entries().len())
    }
}
