//! An arm of a select: one operation at one channel, of any type.

use core::mem::MaybeUninit;
use core::ptr;

use fiber_core::Outcome;
use fiber_rt::{Defect, Instant, Node, Wait, Waker, is_planted};

use crate::chan::Chan;
use crate::commit::{Commit, NOBODY};
use crate::ends::{Flavor, Receiver, Sender};
use crate::state::{Got, State};
use crate::waiter::{Waiter, wake};

/// What an arm of any type can do. `me` is the id of the select.
pub(crate) trait Arm {
    /// Commits if ready. By a select that is linked nowhere.
    fn commit(&self, me: usize) -> Found;
    /// Links, or if ready decides the wait for this arm and then commits.
    ///
    /// # Safety
    /// The node stays where it is until it is unlinked.
    unsafe fn commit_or_link(&self, me: usize, node: &Node<Waiter>, wait: &Wait) -> Found;
    /// What another has committed the select to, by this node; `None` if it was taken back.
    fn accept(&self, me: usize, node: Option<&Node<Waiter>>) -> Option<Chosen>;
    /// Takes a commitment back.
    fn undo(&self, chosen: Chosen);
    /// Whether it would not wait.
    fn is_ready(&self) -> bool;
    /// Links a node that watches; false if it is ready.
    ///
    /// # Safety
    /// The node stays where it is until it is unlinked.
    unsafe fn watch(&self, node: &Node<Waiter>, wait: &Wait) -> bool;
    /// Lets another one that watches know, if it is still ready.
    fn pass_on(&self);
    /// Unlinks, if it is linked.
    fn unlink(&self, node: &Node<Waiter>);
    /// When it gets ready by itself.
    fn due_ns(&self) -> Option<u64>;
    /// By what a selected operation is told from others.
    fn address(&self) -> *const ();
}

/// How an arm was found.
pub(crate) enum Found {
    /// Not ready; linked, if that was asked for.
    Nothing,
    /// The wait is decided for another arm, and somebody wakes.
    Lost,
    /// The wait is decided for this arm, but the other side has gone elsewhere.
    Missed,
    Chosen(Chosen),
    /// The other side is on its way with the value.
    Promised,
}

impl Found {
    /// After the wait was decided for it.
    fn or_missed(self) -> Self {
        match self {
            Self::Nothing => Self::Missed,
            found => found,
        }
    }
}

/// What a selected operation holds.
pub(crate) enum Chosen {
    Closed,
    /// A value that is small.
    Value(Slot),
    /// A value that the channel keeps, by its number.
    Kept(usize),
    /// A timer's value, by its time.
    Time(u64),
    /// A receiver waits for the value of this pair; 0 if a place is kept for it.
    Pair(usize),
}

/// Room for a value of any type that fits.
pub(crate) struct Slot([MaybeUninit<u64>; 4]);

impl Slot {
    const fn fits<T>() -> bool {
        size_of::<T>() <= size_of::<Self>() && align_of::<T>() <= align_of::<Self>()
    }

    /// Holds `value`; it is dropped by nobody who does not take it out.
    fn new<T>(value: T) -> Self {
        debug_assert!(Self::fits::<T>());
        let mut slot = Self([MaybeUninit::uninit(); 4]);
        // SAFETY: it fits.
        unsafe { slot.0.as_mut_ptr().cast::<T>().write(value) };
        slot
    }

    /// # Safety
    /// It holds a `T`.
    pub unsafe fn take<T>(self) -> T {
        // SAFETY: by the caller, and it is not taken again.
        unsafe { self.0.as_ptr().cast::<T>().read() }
    }
}

impl Chosen {
    /// Holds `value`, here or in the channel.
    fn value<T>(state: &mut State<T>, value: T) -> Self {
        match Slot::fits::<T>() {
            true => Self::Value(Slot::new(value)),
            false => Self::Kept(state.keep(value)),
        }
    }

    /// The value of a receive.
    ///
    /// # Safety
    /// It was chosen at `chan`.
    pub unsafe fn into_value<T>(self, chan: &Chan<T>) -> Option<T> {
        match self {
            // SAFETY: by the caller.
            Self::Value(slot) => Some(unsafe { slot.take() }),
            Self::Kept(id) => chan.state.with(|state| state.take(id)).flatten(),
            _ => None,
        }
    }
}

/// Decides the wait for the arm of `node`: from then on nobody else commits the select.
fn claim(node: &Node<Waiter>, wait: &Wait) -> bool {
    wait.decide(Outcome::Data(node.value.arm)) || is_planted(Defect::CommitsUndecided)
}

/// As [`wake`], of one that was committed to.
fn wake_partner(waker: Option<Waker>) {
    if !is_planted(Defect::CommitsWithoutWaking) {
        wake(waker);
    }
}

/// Commits a receive, and says whom to wake.
fn commit_recv<T>(state: &mut State<T>, me: usize) -> (Found, Option<Waker>) {
    match state.recv(me) {
        Got::Value(value, waker) => (Found::Chosen(Chosen::value(state, value)), waker),
        Got::Promised(waker) => (Found::Promised, Some(waker)),
        Got::Closed => (Found::Chosen(Chosen::Closed), None),
        Got::Empty => (Found::Nothing, None),
    }
}

/// Commits a send, and says whom to wake.
fn commit_send<T>(state: &mut State<T>, me: usize) -> (Found, Option<Waker>) {
    match state.commit_send(me) {
        Commit::No => (Found::Nothing, None),
        Commit::Closed => (Found::Chosen(Chosen::Closed), None),
        Commit::Place => (Found::Chosen(Chosen::Pair(0)), None),
        Commit::Pair(pair, waker) => (Found::Chosen(Chosen::Pair(pair)), Some(waker)),
    }
}

impl<T> Arm for Receiver<T> {
    #[inline]
    fn commit(&self, me: usize) -> Found {
        match &self.flavor {
            Flavor::Chan(chan) => {
                let (found, waker) = chan.state.with(|state| commit_recv(state, me));
                wake(waker);
                found
            }
            Flavor::Timer(source) => {
                let time_ns = source.take(Instant::now().as_ns());
                time_ns.map_or(Found::Nothing, |time_ns| Found::Chosen(Chosen::Time(time_ns)))
            }
            Flavor::Never => Found::Nothing,
        }
    }

    unsafe fn commit_or_link(&self, me: usize, node: &Node<Waiter>, wait: &Wait) -> Found {
        let Some(chan) = self.chan() else {
            return if !self.is_ready() {
                Found::Nothing
            } else if claim(node, wait) {
                self.commit(me).or_missed()
            } else {
                Found::Lost
            };
        };
        let (found, waker) = chan.state.with(|state| {
            if is_planted(Defect::LinksWithoutLooking) || !state.can_recv(me) {
                // SAFETY: by the caller.
                return (Found::Nothing, unsafe { state.link_receiver(node, wait) });
            }
            if !claim(node, wait) {
                return (Found::Lost, None);
            }
            let (found, waker) = commit_recv(state, me);
            (found.or_missed(), waker)
        });
        wake_partner(waker);
        found
    }

    fn accept(&self, me: usize, _: Option<&Node<Waiter>>) -> Option<Chosen> {
        let chan = self.chan()?;
        match chan.take_committed(me) {
            Some(value) => Some(chan.state.with(|state| Chosen::value(state, value))),
            None => is_planted(Defect::TrustsPromises).then_some(Chosen::Closed),
        }
    }

    fn undo(&self, chosen: Chosen) {
        match (&self.flavor, chosen) {
            (Flavor::Timer(source), Chosen::Time(time_ns)) => source.put_back(time_ns),
            (Flavor::Chan(chan), chosen) => {
                // SAFETY: chosen here.
                if let Some(value) = unsafe { chosen.into_value(chan) } {
                    wake(chan.state.with(|state| state.put_back(value)));
                }
            }
            _ => {}
        }
    }

    fn is_ready(&self) -> bool {
        match &self.flavor {
            Flavor::Chan(chan) => chan.state.with(|state| state.can_recv(NOBODY)),
            Flavor::Timer(source) => source.is_due(Instant::now().as_ns()),
            Flavor::Never => false,
        }
    }

    unsafe fn watch(&self, node: &Node<Waiter>, wait: &Wait) -> bool {
        let Some(chan) = self.chan() else { return !self.is_ready() };
        chan.state.with(|state| {
            let waits = is_planted(Defect::LinksWithoutLooking) || !state.can_recv(NOBODY);
            if waits {
                // SAFETY: by the caller.
                unsafe { state.watch_recv(node, wait) };
            }
            waits
        })
    }

    fn pass_on(&self) {
        if let Some(chan) = self.chan() {
            wake(chan.state.with(State::pass_on_recv));
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
    #[inline]
    fn commit(&self, me: usize) -> Found {
        let (found, waker) = self.chan.state.with(|state| commit_send(state, me));
        wake(waker);
        found
    }

    unsafe fn commit_or_link(&self, me: usize, node: &Node<Waiter>, wait: &Wait) -> Found {
        let (found, waker) = self.chan.state.with(|state| {
            if is_planted(Defect::LinksWithoutLooking) || !state.can_send(me) {
                // SAFETY: by the caller.
                return (Found::Nothing, unsafe { state.link_sender(node, wait) });
            }
            if !claim(node, wait) {
                return (Found::Lost, None);
            }
            let (found, waker) = commit_send(state, me);
            (found.or_missed(), waker)
        });
        wake_partner(waker);
        found
    }

    fn accept(&self, _: usize, node: Option<&Node<Waiter>>) -> Option<Chosen> {
        node.map(|node| Chosen::Pair(node.value.pair.get()))
    }

    fn undo(&self, chosen: Chosen) {
        if let Chosen::Pair(pair) = chosen {
            self.chan.state.with(|state| state.revoke(pair)).wake();
        }
    }

    fn is_ready(&self) -> bool {
        self.chan.state.with(|state| state.can_send(NOBODY))
    }

    unsafe fn watch(&self, node: &Node<Waiter>, wait: &Wait) -> bool {
        self.chan.state.with(|state| {
            let waits = is_planted(Defect::LinksWithoutLooking) || !state.can_send(NOBODY);
            if waits {
                // SAFETY: by the caller.
                unsafe { state.watch_send(node, wait) };
            }
            waits
        })
    }

    fn pass_on(&self) {
        wake(self.chan.state.with(State::pass_on_send));
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
