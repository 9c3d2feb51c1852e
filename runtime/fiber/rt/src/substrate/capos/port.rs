//! A worker's ring: operations of fibers, and of the worker itself, until they complete.
//!
//! An [`Operation`] lives on the stack of whoever waits for it, until it has completed: the kernel may
//! write to its buffers until then. It is in one of three places, all under the port's lock: in the
//! backlog, while the ring has no room for it; under way, with a name that its completion brings back;
//! done. Names are never used twice ([`Names`]), so what comes late finds nobody. Before its worker
//! blocks, the backlog is given up: its waiters ask again, through another worker.
//!
//! Who does what: only the worker's own thread enters the kernel for its ring, and so only it makes
//! what was submitted happen. Taking completions is anybody's: the monitor does it for a worker that
//! does not look. It may not while the worker waits inside the kernel, which waits for completions that
//! nobody has taken.
//!
//! Decided in ADR 162.

use core::cell::Cell;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use abi_ring::INLINE_WORDS;
use abi_types::{Cqe, EnterFlags, EnterResult, NEVER, Opcode, Sqe, SqeFlags};
use capos_rt::Ring;
use capos_rt::io::inline_bytes;
use capos_rt::syscall::cap_enter;
use fiber_core::{MAX_NAMES, Names, Outcome};

use crate::list::{List, Node};
use crate::lock::SpinLock;
use crate::wait::{Wait, Waker};

/// User data of operations nobody waits for; no name has the top bit.
const NOBODY: u64 = 1 << 63;
/// User data of the worker's own PARK.
const OWN_PARK: u64 = 1 << 63 | 1;

/// How a wait ends whose operation is done.
pub const DONE: Outcome = Outcome::Data(0);
/// How a wait ends whose operation was not begun, and is to be submitted again.
pub const AGAIN: Outcome = Outcome::Data(1);

/// Wakers collected under the lock before they are issued after it.
const BATCH: usize = 16;

/// Looks of a panicking thread at the lock before it goes on without: its holder may be this thread.
const SEIZE_LOOKS: u32 = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Not given to a port.
    New,
    /// The ring has no room yet.
    Backlog,
    /// The kernel has it, or will at the next entry.
    UnderWay,
    /// It has completed.
    Done,
}

/// An operation, where its waiter keeps it.
pub struct Operation(Node<Entry>);

/// All of it under the port's lock.
struct Entry {
    sqe: Sqe,
    /// What goes into an inline slot; the waiter's memory.
    payload: *const [u64],
    stage: Cell<Stage>,
    name: Cell<u64>,
    slot: Cell<Option<u16>>,
    /// Who is to be woken, if somebody waits.
    wait: Cell<*const Wait>,
    cqe: Cell<Cqe>,
    words: Cell<[u64; INLINE_WORDS]>,
}

// SAFETY: entries are only reached under the port's lock, or by the waiter when it is over.
unsafe impl Send for Entry {}

impl Operation {
    /// An operation with what goes into its inline slot, which stays where it is until it is done.
    pub fn new(sqe: Sqe, payload: &[u64]) -> Self {
        let is_inline =
            sqe.flags & (SqeFlags::BY_ADDRESS | SqeFlags::REGISTERED) == 0 && !payload.is_empty();
        Self(Node::new(Entry {
            sqe,
            payload: if is_inline { payload } else { &[] },
            stage: Cell::new(Stage::New),
            name: Cell::new(0),
            slot: Cell::new(None),
            wait: Cell::new(ptr::null()),
            cqe: Cell::new(Cqe::default()),
            words: Cell::new([0; INLINE_WORDS]),
        }))
    }

    /// What it completed with; by its waiter when it is done.
    pub fn completion(&self, words: &mut [u64; INLINE_WORDS]) -> Cqe {
        *words = self.0.value.words.get();
        self.0.value.cqe.get()
    }
}

/// Whether the kernel has left something in the queue.
fn was_hindered(entered: EnterResult) -> bool {
    entered.flags() & (EnterFlags::CQ_FULL | EnterFlags::BUSY) != 0
}

struct State {
    ring: *mut Ring,
    names: Names<*const Node<Entry>>,
    /// How many names fibers have at most: one is kept for the worker's thread itself.
    fibers: usize,
    backlog: List<Entry>,
    /// Under way, and to be cancelled.
    cancels: List<Entry>,
    /// Whether the worker's own PARK is under way.
    is_armed: bool,
    /// Whether something was pushed since the worker last entered the kernel.
    is_dirty: bool,
    /// Whether the worker waits inside the kernel, for completions that it finds.
    is_inside: bool,
}

// SAFETY: the ring and the operations are reached under the lock.
unsafe impl Send for State {}

/// What a worker has of the system: its ring, and who waits for what of it.
pub struct Port {
    state: SpinLock<State>,
    /// Operations in the backlog and under way.
    awaited: AtomicU32,
    /// A report has the ring: nobody else touches it any more.
    is_seized: AtomicBool,
}

impl Default for Port {
    fn default() -> Self {
        Self {
            state: SpinLock::new(State {
                ring: ptr::null_mut(),
                names: Names::new(0),
                fibers: 0,
                backlog: List::new(),
                cancels: List::new(),
                is_armed: false,
                is_dirty: false,
                is_inside: false,
            }),
            awaited: AtomicU32::new(0),
            is_seized: AtomicBool::new(false),
        }
    }
}

impl State {
    /// The ring, while a thread lends it.
    fn ring(&mut self) -> Option<&mut Ring> {
        // SAFETY: lent from `open` to `close`, to this state alone.
        unsafe { self.ring.as_mut() }
    }

    /// Gives a fiber's operation to the ring; false if it has no room.
    fn begin_for_fiber(&mut self, node: &Node<Entry>) -> bool {
        self.names.len() < self.fibers && self.begin(node)
    }

    /// Gives an operation to the ring; false if it has no room.
    fn begin(&mut self, node: &Node<Entry>) -> bool {
        let Some(name) = self.names.insert(node) else { return false };
        if self.push_named(node, name) {
            node.value.name.set(name);
            node.value.stage.set(Stage::UnderWay);
            self.is_dirty = true;
            return true;
        }
        let _ = self.names.remove(name);
        false
    }

    fn push_named(&mut self, node: &Node<Entry>, name: u64) -> bool {
        let Some(ring) = self.ring() else { return false };
        let mut sqe = Sqe { user_data: name, ..node.value.sqe };
        // SAFETY: by `new` the waiter's memory, which is there until the operation is done.
        let payload = unsafe { &*node.value.payload };
        let mut taken = None;
        if !payload.is_empty() {
            taken = ring.take_slot();
            if let Some(slot) = taken {
                ring.write_inline(slot, payload);
                sqe.buffer = slot;
            } else {
                // The kernel reads it where it is.
                sqe.flags |= SqeFlags::BY_ADDRESS;
                sqe.address = payload.as_ptr().expose_provenance() as u64;
            }
        }
        let is_pushed = ring.push(sqe).is_ok();
        if is_pushed {
            ring.publish();
        } else if let Some(slot) = taken.take() {
            ring.give_slot(slot);
        }
        node.value.slot.set(taken);
        is_pushed
    }

    /// Pushes an operation that nobody waits for; false if the queue is full.
    fn push(&mut self, sqe: Sqe, user_data: u64) -> bool {
        let Some(ring) = self.ring() else { return true };
        let is_pushed = ring.push(Sqe { user_data, ..sqe }).is_ok();
        if is_pushed {
            ring.publish();
            self.is_dirty = true;
        }
        is_pushed
    }

    /// Gives the ring what it has room for: cancels, then the backlog in order.
    fn feed(&mut self) {
        while let Some(node) = self.cancels.first().map(ptr::from_ref) {
            // SAFETY: a linked node is alive, and under this lock stays so.
            let node = unsafe { &*node };
            let cancel =
                Sqe { opcode: Opcode::Cancel as u8, arg: node.value.name.get(), ..Sqe::default() };
            if !self.push(cancel, NOBODY) {
                return;
            }
            // SAFETY: it is in this list.
            unsafe { self.cancels.remove(node) };
        }
        while let Some(node) = self.backlog.first().map(ptr::from_ref) {
            // SAFETY: as above.
            let node = unsafe { &*node };
            if !self.begin_for_fiber(node) {
                return;
            }
            // SAFETY: it is in this list.
            unsafe { self.backlog.remove(node) };
        }
    }

    /// Takes operations out of the backlog until it is empty or `batch` full of those to wake; how many.
    fn give_up(&mut self, batch: &mut [Option<Waker>; BATCH]) -> u32 {
        let mut given = 0;
        for place in batch {
            let Some(node) = self.backlog.first().map(ptr::from_ref) else { break };
            // SAFETY: a linked node is alive, and under this lock stays so.
            let node = unsafe { &*node };
            // SAFETY: it is in this list.
            unsafe { self.backlog.remove(node) };
            given += 1;
            node.value.stage.set(Stage::New);
            // SAFETY: null, or a wait that is not over: it takes itself out under this lock.
            if let Some(wait) = unsafe { node.value.wait.get().as_ref() } {
                let waker = wait.waker();
                // Last: as in `take`.
                *place = wait.decide(AGAIN).then_some(waker);
            }
        }
        given
    }

    /// Takes completions until `batch` is full of those to wake; how many were taken, and how many of
    /// them were awaited.
    fn take(&mut self, batch: &mut [Option<Waker>; BATCH]) -> (usize, u32) {
        let (mut taken, mut ended) = (0, 0);
        let mut places = batch.iter_mut();
        // Looked at before a completion is taken: each may need a place.
        while places.len() > 0 {
            let Some(ring) = self.ring() else { break };
            let Some(completion) = ring.pop() else { break };
            taken += 1;
            let cqe = *completion.cqe();
            if cqe.user_data & NOBODY != 0 {
                drop(completion);
                if cqe.user_data == OWN_PARK {
                    self.is_armed = false;
                }
                continue;
            }
            let mut words = [0; INLINE_WORDS];
            completion.read_inline(inline_bytes(&cqe) as u32, &mut words);
            drop(completion);
            let Some(node) = self.names.remove(cqe.user_data) else { continue };
            // SAFETY: who waits keeps the operation until it is done, which it is not yet.
            let node = unsafe { &*node };
            ended += 1;
            if let (Some(slot), Some(ring)) = (node.value.slot.take(), self.ring()) {
                ring.give_slot(slot);
            }
            // SAFETY: if it is in a list, it is in this one.
            unsafe { self.cancels.remove(node) };
            node.value.cqe.set(cqe);
            node.value.words.set(words);
            node.value.stage.set(Stage::Done);
            // SAFETY: null, or a wait that is not over: it takes itself out under this lock.
            if let Some(wait) = unsafe { node.value.wait.get().as_ref() } {
                let waker = wait.waker();
                // Last: the waiter may be gone with the operation from here on.
                if wait.decide(DONE)
                    && let Some(place) = places.next()
                {
                    *place = Some(waker);
                }
            }
        }
        self.feed();
        (taken, ended)
    }
}

impl Port {
    /// Takes the ring of the calling thread, the port's worker.
    pub fn open(&self, ring: &mut Ring) {
        let fibers = (ring.sq_entries() as usize).min(MAX_NAMES - 1);
        self.state.with(|state| {
            state.names = Names::new(fibers + 1);
            state.fibers = fibers;
            state.ring = ring;
            state.is_armed = false;
            state.is_dirty = false;
        });
    }

    /// Gives the ring back, with nobody waiting for anything.
    pub fn close(&self) {
        // What nobody waits for ends first: the ring's owner expects no completions but its own.
        self.quiesce();
        self.state.with(|state| state.ring = ptr::null_mut());
    }

    /// Ends the worker's own PARK and takes every completion.
    fn quiesce(&self) {
        loop {
            self.flush();
            let is_armed = self.state.with(|state| {
                if state.is_armed {
                    let cancel =
                        Sqe { opcode: Opcode::Cancel as u8, arg: OWN_PARK, ..Sqe::default() };
                    // Just flushed: there is room.
                    state.is_inside = state.push(cancel, NOBODY);
                }
                state.is_armed
            });
            if !is_armed {
                return;
            }
            self.wait_inside(NEVER);
        }
    }

    /// Starts a fiber's operation, for its `wait`. By the port's worker.
    pub fn start(&self, operation: &Operation, wait: *const Wait) {
        let node = &operation.0;
        // Relaxed: read by the worker itself.
        self.awaited.fetch_add(1, Ordering::Relaxed);
        self.state.with(|state| {
            node.value.wait.set(wait);
            // In turn: what waits in the backlog was first.
            if !state.backlog.is_empty() || !state.begin_for_fiber(node) {
                node.value.stage.set(Stage::Backlog);
                // SAFETY: in no list, and kept by its waiter until it is done or taken out.
                unsafe { state.backlog.push(node) };
            }
        });
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

    /// Whether an operation of a fiber is begun at once. For the port's worker.
    pub fn has_room(&self) -> bool {
        self.state.with(|state| state.backlog.is_empty() && state.names.len() < state.fibers)
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
    pub fn sleep(&self, park: Sqe, timeout_ns: u64) {
        let is_ready = self.state.with(|state| {
            // What found the queue full goes first: nobody comes back for it before a completion does.
            state.feed();
            // A PARK that is still under way from an earlier sleep does: it is at the same word, and
            // whoever has unparked it since has completed it.
            if !state.is_armed {
                state.is_armed = state.push(park, OWN_PARK);
            }
            state.is_dirty = !state.is_armed;
            state.is_inside = state.is_armed;
            state.is_armed
        });
        if !is_ready {
            // The queue is full: the kernel takes it, and the worker comes back. It is announced as one
            // that sleeps: what has completed is left, because whom it woke would be in the queue of a
            // worker that sleeps on.
            let _ = cap_enter(0, 0);
            return;
        }
        self.wait_inside(timeout_ns);
    }

    /// Enters the kernel until there is a completion; `is_inside` was set when there was something to
    /// wait for, under one lock with the look.
    fn wait_inside(&self, timeout_ns: u64) {
        let is_left = was_hindered(cap_enter(1, timeout_ns));
        self.state.with(|state| {
            state.is_inside = false;
            state.is_dirty |= is_left;
        });
    }

    /// Blocks the worker's thread until an operation has completed. It does not wait for a place: while
    /// the thread waits nobody else's operations could be cancelled to make room.
    pub fn run(&self, sqe: Sqe, payload: &[u64], words: &mut [u64; INLINE_WORDS]) -> Cqe {
        let operation = Operation::new(sqe, payload);
        self.awaited.fetch_add(1, Ordering::Relaxed);
        while !self.state.with(|state| state.begin(&operation.0)) {
            // The queue is full.
            self.enter();
            self.poll();
        }
        loop {
            let is_inside = self.state.with(|state| {
                state.feed();
                state.is_inside = operation.0.value.stage.get() != Stage::Done;
                state.is_dirty &= !state.is_inside;
                state.is_inside
            });
            if !is_inside {
                return operation.completion(words);
            }
            self.wait_inside(NEVER);
            self.poll();
        }
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
