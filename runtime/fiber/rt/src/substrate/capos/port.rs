//! A worker's ring: operations of fibers, and of the worker itself, until they complete.
//!
//! What is submitted and what is not yet is under the port's lock ([`Submissions`]). Before its worker
//! blocks, the backlog is given up: its waiters ask again, through another worker. So they do, one at a time,
//! when another worker of the runtime has room in its ring.
//!
//! Only the worker's own thread enters the kernel for its ring, and so only it makes what was submitted
//! happen. Taking completions is anybody's: the monitor does it for a worker that does not look. It may not
//! while the worker waits inside the kernel, which waits for completions that nobody has taken.
//!
//! The worker's PARK is under way in every wait, also in one of its thread's own: so whoever leaves a CANCEL
//! in the port of a worker that waits can have it come out and submit it (`Shared::kick`).
//!
//! Decided in ADR 162 and ADR 191.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use abi_ring::INLINE_WORDS;
use abi_types::{Cqe, EnterFlags, EnterResult, NEVER, Sqe};
use capos_rt::Ring;
use capos_rt::syscall::cap_enter;

use super::super::operation::{Operation, Stage};
use super::super::submissions::{BATCH, Leave, NOBODY, Submissions};
use crate::lock::SpinLock;
use crate::wait::{Wait, Waker};
use crate::worker;

/// Looks of a panicking thread at the lock before it goes on without: its holder may be this thread.
const SEIZE_LOOKS: u32 = 10_000;

/// Whether the kernel has left something in the queue.
fn was_hindered(entered: EnterResult) -> bool {
    entered.flags() & (EnterFlags::CQ_FULL | EnterFlags::BUSY) != 0
}

/// What a worker has of the system: its ring, and who waits for what of it.
pub struct Port {
    state: SpinLock<Submissions>,
    /// Operations in the backlog and under way.
    awaited: AtomicU32,
    /// A report has the ring: nobody else touches it any more.
    is_seized: AtomicBool,
}

impl Default for Port {
    fn default() -> Self {
        Self {
            state: SpinLock::new(Submissions::new()),
            awaited: AtomicU32::new(0),
            is_seized: AtomicBool::new(false),
        }
    }
}

impl Port {
    /// Takes the ring of the calling thread, the port's worker, which waits by `park`.
    pub fn open(&self, ring: &mut Ring, park: Sqe) {
        self.state.with(|state| state.open(ring, park));
    }

    /// Gives the ring back, with nobody waiting for anything.
    pub fn close(&self) {
        // What nobody waits for ends first: the ring's owner expects no completions but its own.
        loop {
            self.flush();
            let Some(leave) = self.state.with(Submissions::begin_last_wait) else { break };
            self.wait_inside(leave, NEVER);
        }
        self.state.with(Submissions::close);
    }

    /// Starts a fiber's operation, for its `wait`; false if it waits in the backlog. By the port's worker.
    pub fn start(&self, operation: &Operation, wait: *const Wait) -> bool {
        let node = &operation.0;
        // Relaxed: read by the worker itself.
        self.awaited.fetch_add(1, Ordering::Relaxed);
        self.state.with(|state| {
            node.value.wait.set(wait);
            // In turn: what waits in the backlog was first.
            let is_begun = state.backlog.is_empty() && state.begin_for_fiber(node);
            if !is_begun {
                node.value.stage.set(Stage::Backlog);
                // SAFETY: in no list, and kept by its waiter until it is done or taken out.
                unsafe { state.backlog.push(node) };
            }
            is_begun
        })
    }

    /// Links or unlinks who waits; where the operation stands.
    pub fn set_wait(&self, operation: &Operation, wait: *const Wait) -> Stage {
        self.state.with(|_| {
            operation.0.value.wait.set(wait);
            operation.0.value.stage.get()
        })
    }

    /// Takes an operation back if the kernel does not have it, else asks for its end; where it stands.
    /// By anybody: the worker has to enter the kernel for it.
    pub fn cancel(&self, operation: &Operation) -> Stage {
        let node = &operation.0;
        let stage = self.state.with(|state| {
            match node.value.stage.get() {
                Stage::Backlog => {
                    // SAFETY: it is in this list.
                    unsafe { state.backlog.remove(node) };
                    node.value.stage.set(Stage::New);
                    return Stage::Backlog;
                }
                Stage::UnderWay if !node.is_linked() => {
                    // SAFETY: in no list; out of this one before it is done.
                    unsafe { state.cancels.push(node) };
                    state.feed();
                }
                _ => {}
            }
            node.value.stage.get()
        });
        if stage == Stage::Backlog {
            self.awaited.fetch_sub(1, Ordering::Relaxed);
        }
        stage
    }

    /// Whether an operation of a fiber is begun at once.
    pub fn has_room(&self) -> bool {
        self.state.with(|state| state.has_room())
    }

    /// Whether an operation waits in the backlog.
    pub fn is_crowded(&self) -> bool {
        self.state.with(|state| !state.backlog.is_empty())
    }

    /// Whether a completion waits to be taken.
    pub fn has_come(&self) -> bool {
        self.state.with(|state| state.ring().is_some_and(|ring| ring.completions() > 0))
    }

    /// Whether somebody waits for a completion here.
    pub fn is_awaited(&self) -> bool {
        self.awaited.load(Ordering::Relaxed) > 0
    }

    /// Takes what has completed and wakes who waits for it.
    pub fn poll(&self) {
        loop {
            let mut batch = [None; BATCH];
            let (taken, ended) = self.state.with(|state| {
                if state.is_inside || self.is_seized.load(Ordering::Relaxed) {
                    return (0, 0);
                }
                state.take(&mut batch)
            });
            if ended > 0 {
                self.awaited.fetch_sub(ended, Ordering::Relaxed);
            }
            batch.into_iter().flatten().for_each(Waker::wake);
            if taken == 0 {
                return;
            }
        }
    }

    /// Gives up who is first in the backlog, as [`hand_over`](Self::hand_over) does; whether there was one. By
    /// anybody.
    pub fn hand_over_first(&self) -> bool {
        let mut first = [None];
        let given = self.state.with(|state| state.give_up(&mut first));
        self.awaited.fetch_sub(given, Ordering::Relaxed);
        first.into_iter().flatten().for_each(Waker::wake);
        given > 0
    }

    /// Gives the backlog up: those who wait there submit again, wherever they are then.
    pub fn hand_over(&self) {
        loop {
            let mut batch = [None; BATCH];
            let given = self.state.with(|state| state.give_up(&mut batch));
            if given == 0 {
                return;
            }
            self.awaited.fetch_sub(given, Ordering::Relaxed);
            batch.into_iter().flatten().for_each(Waker::wake);
        }
    }

    /// Enters the kernel if something was submitted, and takes what has completed.
    pub fn flush(&self) {
        if self.state.with(|state| core::mem::take(&mut state.is_dirty)) {
            self.enter();
        }
        self.poll();
    }

    /// Has the kernel take everything that was pushed; completions are left, as long as there is room.
    fn enter(&self) {
        while was_hindered(cap_enter(0, 0)) {
            self.poll();
        }
    }

    /// Submits an operation that nobody waits for, at once. By the port's worker.
    pub fn send(&self, sqe: Sqe) {
        loop {
            let is_pushed = self.state.with(|state| {
                let is_pushed = state.push(sqe, NOBODY);
                state.is_dirty = false;
                is_pushed
            });
            self.enter();
            if is_pushed {
                return;
            }
        }
    }

    /// Waits inside the kernel for any completion, with the worker's PARK among what may complete.
    pub fn sleep(&self, timeout_ns: u64) {
        match self.begin_wait_unless(|| false).flatten() {
            Some(leave) => self.wait_inside(leave, timeout_ns),
            // The queue is full: the kernel takes it, and the worker comes back. It is announced as one that
            // sleeps: what has completed is left, because whom it woke would be in the queue of a worker
            // that sleeps on.
            None => _ = cap_enter(0, 0),
        }
    }

    /// Nothing if `is_over`, which is asked under the lock; else leave to wait, if nothing is left to submit.
    /// By the port's worker.
    fn begin_wait_unless(&self, is_over: impl FnOnce() -> bool) -> Option<Option<Leave>> {
        // What it was nudged for is submitted with the rest.
        if let Some(worker) = worker::current() {
            worker.wake_word.take_nudge();
        }
        self.state.with(|state| (!is_over()).then(|| state.begin_wait()))
    }

    /// Enters the kernel until there is a completion.
    fn wait_inside(&self, leave: Leave, timeout_ns: u64) {
        let is_left = was_hindered(cap_enter(1, timeout_ns));
        self.state.with(|state| state.end_wait(leave, is_left));
    }

    /// Whether the worker waits inside the kernel, or is about to.
    pub fn is_inside(&self) -> bool {
        self.state.with(|state| state.is_inside)
    }

    /// Blocks the worker's thread until an operation has completed. It does not wait for a place among the
    /// fibers': it has one of its own.
    pub fn run(&self, sqe: Sqe, payload: &[u64], words: &mut [u64; INLINE_WORDS]) -> Cqe {
        let operation = Operation::new(sqe, payload);
        self.awaited.fetch_add(1, Ordering::Relaxed);
        while !self.state.with(|state| state.begin(&operation.0)) {
            // The queue is full.
            self.enter();
            self.poll();
        }
        let is_done = || operation.0.value.stage.get() == Stage::Done;
        // Under one lock with leave to wait: the monitor may take the completion before.
        while let Some(leave) = self.begin_wait_unless(is_done) {
            match leave {
                Some(leave) => self.wait_inside(leave, NEVER),
                None => self.enter(),
            }
            self.poll();
        }
        operation.completion(words)
    }

    /// Keeps everybody else from the ring, for a report. Whoever is at it now is waited for, unless it
    /// is this thread.
    pub fn seize(&self) {
        self.is_seized.store(true, Ordering::SeqCst);
        for _ in 0..SEIZE_LOOKS {
            if self.state.try_with(|_| ()).is_some() {
                return;
            }
            core::hint::spin_loop();
        }
    }
}
