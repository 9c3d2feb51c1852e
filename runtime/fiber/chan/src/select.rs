//! Select: waits for several channel operations and commits to one.
//!
//! One outcome word decides the whole wait. An arm that is found ready while others are linked is
//! committed first and then decides; if another arm was faster the commitment is taken back. The
//! losers are unlinked, each under its own lock, before select returns. Between the choice of a send
//! and its completion the place it will use is kept: others find it taken.

use core::fmt;
use core::marker::PhantomData;
use core::ptr;

use alloc::vec::Vec;

use arrayvec::ArrayVec;
use fiber_core::Outcome;
use fiber_rt::{
    Defect, Instant, Node, Wait, Waker, What, consume_budget, current_id, is_planted, random, wait,
};

use crate::ends::{Flavor, Receiver, Sender};
use crate::error::{RecvError, SelectTimeoutError, SendError, TrySelectError};
use crate::state::{Commit, State};
use crate::waiter::{Waiter, Wakers};

/// Arms that need no allocation.
const FEW: usize = 8;

/// What an arm of any type can do.
trait Arm {
    /// Commits if ready.
    fn commit(&self, me: usize) -> Ready;
    /// Commits if ready, else links.
    ///
    /// # Safety
    /// The node stays where it is until it is unlinked.
    unsafe fn commit_or_link(&self, me: usize, node: &Node<Waiter>, wait: &Wait) -> Ready;
    /// Takes a commitment back.
    fn undo(&self, me: usize);
    /// Unlinks, if it is linked.
    fn unlink(&self, node: &Node<Waiter>);
    /// When it gets ready by itself.
    fn due_ns(&self) -> Option<u64>;
    /// By what a selected operation is told from others.
    fn address(&self) -> *const ();
}

/// How an arm was found.
enum Ready {
    No,
    Yes(Option<Waker>),
    /// A timer's value, by its time.
    Time(u64),
    Closed,
}

impl Ready {
    fn of(commit: Commit) -> Self {
        match commit {
            Commit::No => Self::No,
            Commit::Yes(waker) => Self::Yes(waker),
            Commit::Closed => Self::Closed,
        }
    }
}

impl<T> Arm for Receiver<T> {
    fn commit(&self, me: usize) -> Ready {
        match &self.flavor {
            Flavor::Chan(chan) => Ready::of(chan.state.with(|state| state.commit_recv(me))),
            Flavor::Timer(source) => {
                source.take(Instant::now().as_ns()).map_or(Ready::No, Ready::Time)
            }
            Flavor::Never => Ready::No,
        }
    }

    unsafe fn commit_or_link(&self, me: usize, node: &Node<Waiter>, wait: &Wait) -> Ready {
        let Flavor::Chan(chan) = &self.flavor else { return self.commit(me) };
        chan.state.with(|state| {
            let commit = state.commit_recv(me);
            if matches!(commit, Commit::No) {
                // SAFETY: by the caller.
                unsafe { state.link_receiver(node, wait) };
            }
            Ready::of(commit)
        })
    }

    fn undo(&self, me: usize) {
        let Some(chan) = self.chan() else { return };
        // A value that was promised comes first; a promise that was revoked leaves nothing to undo.
        if let Some(value) = chan.take_committed(me)
            && let Some(waker) = chan.state.with(|state| state.put_back(value))
        {
            waker.wake();
        }
    }

    fn unlink(&self, node: &Node<Waiter>) {
        if let Some(chan) = self.chan() {
            // SAFETY: linked as a receiver here, if at all.
            chan.state.with(|state| unsafe { state.unlink_receiver(node) });
        }
    }

    fn due_ns(&self) -> Option<u64> {
        match &self.flavor {
            Flavor::Timer(source) => Some(source.next_ns()).filter(|next| *next != u64::MAX),
            Flavor::Chan(_) | Flavor::Never => None,
        }
    }

    fn address(&self) -> *const () {
        ptr::from_ref(self).cast()
    }
}

impl<T> Arm for Sender<T> {
    fn commit(&self, me: usize) -> Ready {
        Ready::of(self.chan.state.with(|state| state.commit_send(me)))
    }

    unsafe fn commit_or_link(&self, me: usize, node: &Node<Waiter>, wait: &Wait) -> Ready {
        self.chan.state.with(|state| {
            let commit = state.commit_send(me);
            if matches!(commit, Commit::No) {
                // SAFETY: by the caller.
                unsafe { state.link_sender(node, wait) };
            }
            Ready::of(commit)
        })
    }

    fn undo(&self, me: usize) {
        self.chan.state.with(|state: &mut State<T>| state.revoke(me)).wake();
    }

    fn unlink(&self, node: &Node<Waiter>) {
        // SAFETY: linked as a sender here, if at all.
        self.chan.state.with(|state| unsafe { state.unlink_sender(node) }).wake();
    }

    fn due_ns(&self) -> Option<u64> {
        None
    }

    fn address(&self) -> *const () {
        ptr::from_ref(self).cast()
    }
}

/// How an operation was selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chosen {
    Committed,
    Time(u64),
    Closed,
}

/// A set of operations to choose from.
#[derive(Default)]
pub struct Select<'a> {
    few: ArrayVec<&'a dyn Arm, FEW>,
    more: Vec<&'a dyn Arm>,
    removed: u64,
}

/// An operation that was chosen; it is completed with the channel it was added with.
#[must_use = "a selected operation has to be completed"]
pub struct SelectedOperation<'a> {
    index: usize,
    chosen: Chosen,
    me: usize,
    arm: &'a dyn Arm,
    /// It belongs to the fiber that selected.
    marker: PhantomData<*const ()>,
}

impl<'a> Select<'a> {
    /// An empty set.
    pub fn new() -> Self {
        Self::default()
    }

    fn add(&mut self, arm: &'a dyn Arm) -> usize {
        let index = self.len();
        if self.few.try_push(arm).is_err() {
            self.more.push(arm);
        }
        index
    }

    fn len(&self) -> usize {
        self.few.len() + self.more.len()
    }

    fn arm(&self, index: usize) -> Option<&'a dyn Arm> {
        self.few.get(index).or_else(|| self.more.get(index.checked_sub(FEW)?)).copied()
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
    pub fn remove(&mut self, index: usize) {
        if index < 64 {
            self.removed |= 1 << index;
        }
    }

    /// The operations in an order that begins anywhere.
    fn arms(&self) -> impl Iterator<Item = (usize, &'a dyn Arm)> {
        let count = self.len();
        let start = if count > 1 { random() as usize % count } else { 0 };
        (0..count)
            .map(move |turn| (start + turn) % count.max(1))
            .filter(|index| *index >= 64 || self.removed >> index & 1 == 0)
            .filter_map(|index| Some((index, self.arm(index)?)))
    }

    fn selected(&self, index: usize, chosen: Chosen, me: usize) -> Option<SelectedOperation<'a>> {
        let arm = self.arm(index)?;
        Some(SelectedOperation { index, chosen, me, arm, marker: PhantomData })
    }

    fn look(&self, me: usize) -> Option<SelectedOperation<'a>> {
        for (index, arm) in self.arms() {
            let chosen = match arm.commit(me) {
                Ready::No => continue,
                Ready::Yes(waker) => {
                    if let Some(waker) = waker {
                        waker.wake();
                    }
                    Chosen::Committed
                }
                Ready::Time(time_ns) => Chosen::Time(time_ns),
                Ready::Closed => Chosen::Closed,
            };
            return self.selected(index, chosen, me);
        }
        None
    }

    fn wait(&self, deadline_ns: Option<u64>) -> Result<SelectedOperation<'a>, SelectTimeoutError> {
        consume_budget();
        let me = current_id();
        loop {
            if let Some(selected) = self.look(me) {
                return Ok(selected);
            }
            let nodes: ArrayVec<Node<Waiter>, FEW> =
                (0..self.few.len()).map(|arm| Waiter::select(me, arm as u32)).collect();
            let more: Vec<Node<Waiter>> =
                (0..self.more.len()).map(|arm| Waiter::select(me, (FEW + arm) as u32)).collect();
            let node =
                |index: usize| nodes.get(index).or_else(|| more.get(index.checked_sub(FEW)?));
            let until_ns = self.arms().filter_map(|(_, arm)| arm.due_ns()).chain(deadline_ns).min();
            let mut own = None;
            let mut wake = None;
            let mut lost: Option<&dyn Arm> = None;
            let at = ptr::from_ref(self).cast();
            let unlink = || {
                for (index, arm) in self.arms() {
                    if let Some(node) = node(index) {
                        arm.unlink(node);
                    }
                }
            };
            let publish = |wait: &Wait| {
                for (index, arm) in self.arms() {
                    let Some(node) = node(index) else { continue };
                    // SAFETY: unlinked below, before the nodes go.
                    let chosen = match unsafe { arm.commit_or_link(me, node, wait) } {
                        Ready::No => continue,
                        Ready::Yes(waker) => {
                            wake = waker;
                            Chosen::Committed
                        }
                        Ready::Time(time_ns) => Chosen::Time(time_ns),
                        Ready::Closed => Chosen::Closed,
                    };
                    let is_won = wait.decide(Outcome::Data(index as u32));
                    if is_won {
                        // Those that were linked before it, while the wait is there.
                        unlink();
                        own = Some((index, chosen));
                    } else if chosen == Chosen::Committed {
                        lost = Some(arm);
                    }
                    return !is_won;
                }
                true
            };
            let outcome = wait(What::Select, at, until_ns, publish, |_| unlink());
            if let Some(waker) = wake
                && !is_planted(Defect::CommitsWithoutWaking)
            {
                Waker::wake(waker);
            }
            if let Some(arm) = lost
                && !is_planted(Defect::KeepsCommitment)
            {
                arm.undo(me);
            }
            let selected = match outcome {
                None => own.and_then(|(index, chosen)| self.selected(index, chosen, me)),
                Some(Outcome::Data(arm)) => self.selected(arm as usize, Chosen::Committed, me),
                Some(Outcome::Closed(arm)) => self.selected(arm as usize, Chosen::Closed, me),
                Some(Outcome::Cancelled) => return Err(SelectTimeoutError::Cancelled),
                Some(Outcome::Timeout) => {
                    let is_over = |deadline| Instant::now().as_ns() >= deadline;
                    if deadline_ns.is_some_and(is_over) {
                        return self.look(me).ok_or(SelectTimeoutError::Timeout);
                    }
                    None
                }
            };
            if let Some(selected) = selected {
                return Ok(selected);
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
        self.look(current_id()).ok_or(TrySelectError::WouldBlock)
    }

    /// As `select`, for no longer than `timeout`.
    pub fn select_timeout(
        &mut self,
        timeout: core::time::Duration,
    ) -> Result<SelectedOperation<'a>, SelectTimeoutError> {
        self.wait(Some((Instant::now() + timeout).as_ns()))
    }

    /// As `select`, until `deadline`.
    pub fn select_deadline(
        &mut self,
        deadline: Instant,
    ) -> Result<SelectedOperation<'a>, SelectTimeoutError> {
        self.wait(Some(deadline.as_ns()))
    }
}

impl SelectedOperation<'_> {
    /// The index of the operation.
    pub fn index(&self) -> usize {
        self.index
    }

    fn complete(self, end: *const ()) -> (Chosen, usize) {
        let this = core::mem::ManuallyDrop::new(self);
        assert!(
            ptr::eq(this.arm.address(), end),
            "a selected operation is completed with the channel it was added with"
        );
        (this.chosen, this.me)
    }

    /// Completes a receive.
    ///
    /// # Panics
    /// If `receiver` is not the one that was added.
    pub fn recv<T>(self, receiver: &Receiver<T>) -> Result<T, RecvError> {
        match (self.complete(receiver.address()), &receiver.flavor) {
            ((Chosen::Time(time_ns), _), Flavor::Timer(source)) => Ok(source.value(time_ns)),
            ((Chosen::Committed, me), Flavor::Chan(chan)) => match chan.take_committed(me) {
                Some(value) => Ok(value),
                // The sender took its commitment back.
                None => receiver.recv(),
            },
            _ => Err(RecvError::Disconnected),
        }
    }

    /// Completes a send.
    ///
    /// # Panics
    /// If `sender` is not the one that was added.
    pub fn send<T>(self, sender: &Sender<T>, value: T) -> Result<(), SendError<T>> {
        match self.complete(sender.address()) {
            (Chosen::Committed, me) => {
                let wakers: Wakers = sender.chan.state.with(|state| state.fulfil(me, value));
                wakers.wake();
                Ok(())
            }
            _ => Err(SendError::Disconnected(value)),
        }
    }
}

impl Drop for SelectedOperation<'_> {
    fn drop(&mut self) {
        // Not completed: others get what was kept for it.
        if self.chosen == Chosen::Committed {
            self.arm.undo(self.me);
        }
    }
}

impl fmt::Debug for Select<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Select of {}", self.len())
    }
}

impl fmt::Debug for SelectedOperation<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "SelectedOperation {}", self.index)
    }
}
