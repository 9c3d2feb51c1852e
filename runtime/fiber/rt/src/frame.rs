//! The frame: all that is known of a fiber, or of a thread or a future that waits like one.
//!
//! Frames live in groups that are never freed; whoever holds a reference may always look at the state
//! word. Who may touch which part:
//!
//! | part | who |
//! |---|---|
//! | `word`, `thread_word` | anyone, by their protocols |
//! | `link` | whoever has the frame in a list: the pool, the global queue, a sweep |
//! | `own` | the worker that runs the fiber; before that the spawner; after its end whoever has the result |
//! | `member` | under the lock of the fiber's scope |
//! | the rest | atomics for dumps, written by the owner |

use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering};

use alloc::boxed::Box;
use alloc::vec::Vec;

use abi_sync::cell::RaceCell;
use corosensei::{Coroutine, Yielder};
use fiber_core::StateWord;

use crate::lock::SpinLock;
use crate::members::{Linked, Member};
use crate::ownership::Ownership;
use crate::runtime::Shared;
use crate::scope::Scope;
use crate::stack::{Bounds, Stack};
use crate::thread_wait::ThreadWord;
use crate::timer::Timer;

/// Why a fiber gave its worker up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Switch {
    Yield,
    Park,
}

/// What only the fiber's owner touches.
pub(crate) struct Own {
    pub stack: Option<Stack>,
    pub coroutine: Option<Coroutine<(), Switch, (), Bounds>>,
    pub yielder: *const Yielder<(), Switch>,
    /// Where the result is.
    pub slot: *mut u8,
    pub has_run: bool,
    /// Whether it is in a blocking region.
    pub is_blocking: bool,
    /// Whether the slot holds what has to be dropped, and not only forgotten.
    pub must_drop: bool,
}

#[repr(align(128))]
pub(crate) struct Frame {
    pub word: StateWord,
    pub link: AtomicPtr<Frame>,
    pub shared: AtomicPtr<Shared>,
    pub scope: AtomicPtr<Scope<'static, 'static>>,
    pub own: UnsafeCell<Own>,
    pub member: RaceCell<Member<Self>>,
    /// The root scope this fiber lives below. Of a future's frame, its waker; of a thread's, nothing.
    pub root: AtomicPtr<()>,
    pub thread_word: ThreadWord,
    /// No fiber's: a thread's, or a future's.
    pub is_thread: AtomicBool,
    /// Whether its fiber, or the last one it had, has given itself a name.
    pub is_named: AtomicBool,
    pub waits_for: AtomicU8,
    pub waits_at: AtomicUsize,
    pub id: AtomicU64,
    pub worker: AtomicUsize,
    pub name: SpinLock<&'static str>,
    /// What checked builds assert at its transitions.
    pub ownership: Ownership,
    /// For the deadline of its wait. Not on the waiter's stack: a wheel's list goes through very
    /// many of them, and these lie side by side.
    pub timer: &'static Timer,
}

// SAFETY: the table at the top says who may touch the parts that are not atomic.
unsafe impl Sync for Frame {}
// SAFETY: as for Sync; nothing in a frame belongs to a thread.
unsafe impl Send for Frame {}

impl Linked for Frame {
    fn member(&self) -> &RaceCell<Member<Self>> {
        &self.member
    }
}

impl Frame {
    fn new(timer: &'static Timer) -> Self {
        Self {
            timer,
            word: StateWord::new(),
            link: AtomicPtr::new(ptr::null_mut()),
            shared: AtomicPtr::new(ptr::null_mut()),
            scope: AtomicPtr::new(ptr::null_mut()),
            own: UnsafeCell::new(Own {
                stack: None,
                coroutine: None,
                yielder: ptr::null(),
                slot: ptr::null_mut(),
                has_run: false,
                is_blocking: false,
                must_drop: false,
            }),
            member: RaceCell::new(Member::new()),
            root: AtomicPtr::new(ptr::null_mut()),
            thread_word: ThreadWord::new(),
            is_thread: AtomicBool::new(false),
            is_named: AtomicBool::new(false),
            waits_for: AtomicU8::new(0),
            waits_at: AtomicUsize::new(0),
            id: AtomicU64::new(0),
            worker: AtomicUsize::new(0),
            name: SpinLock::new(""),
            ownership: Ownership::default(),
        }
    }

    pub fn as_ptr(&'static self) -> *mut Self {
        ptr::from_ref(self).cast_mut()
    }

    /// Takes the name away that the last fiber of the frame gave itself. By the spawner.
    #[cold]
    pub fn forget_name(&self) {
        self.name.with(|name| *name = "");
        self.is_named.store(false, Ordering::Relaxed);
    }

    /// Gives the worker up. By the fiber itself.
    #[inline]
    pub fn suspend(&self, switch: Switch) {
        if cfg!(debug_assertions) {
            let worker = crate::worker::current().map_or(usize::MAX - 1, |worker| worker.index);
            self.ownership.touch(worker);
        }
        // SAFETY: the fiber runs, so this is its owner; the yielder is on its own stack.
        unsafe { (*(*self.own.get()).yielder).suspend(switch) };
    }
}

/// Frames made at once.
const GROUP: usize = 64;

struct Frames {
    groups: Vec<&'static [Frame]>,
    free: *mut Frame,
}

// SAFETY: frames are shared by design; the list is under its lock.
unsafe impl Send for Frames {}

static FRAMES: SpinLock<Frames> =
    SpinLock::new(Frames { groups: Vec::new(), free: ptr::null_mut() });

/// The frame behind a pointer that came out of a queue.
///
/// # Safety
/// The pointer came from [`Frame::as_ptr`].
#[inline]
pub(crate) unsafe fn frame_at(pointer: *const Frame) -> &'static Frame {
    // SAFETY: frames are never freed.
    unsafe { &*pointer }
}

/// A frame without a stack, new or left by a runtime that has ended.
pub(crate) fn take_frame() -> &'static Frame {
    let taken = FRAMES.with(|frames| {
        // SAFETY: only frames are on the list.
        let frame = unsafe { frames.free.as_ref() }?;
        frames.free = frame.link.load(Ordering::Relaxed);
        Some(frame)
    });
    if let Some(frame) = taken {
        return frame;
    }
    let timers: &'static [Timer] = Box::leak((0..GROUP).map(|_| Timer::idle()).collect());
    let group: &'static [Frame] = Box::leak(timers.iter().map(Frame::new).collect());
    FRAMES.with(|frames| frames.groups.push(group));
    let mut frames = group.iter();
    let first = frames.next();
    for frame in frames {
        give_frame(frame);
    }
    // A group is not empty; the fallback asks for another.
    first.unwrap_or_else(take_frame)
}

/// Gives a frame without a stack back.
pub(crate) fn give_frame(frame: &'static Frame) {
    FRAMES.with(|frames| {
        frame.link.store(frames.free, Ordering::Relaxed);
        frames.free = frame.as_ptr();
    });
}

/// Calls `f` with every frame there is, in use or not.
pub(crate) fn for_each_frame(mut f: impl FnMut(&'static Frame)) {
    let groups = FRAMES.with(|frames| frames.groups.clone());
    groups.into_iter().flatten().for_each(&mut f);
}

#[cfg(test)]
impl Frame {
    /// A fiber of `shared` that is runnable, with nothing to run.
    pub fn runnable(shared: *const Shared) -> &'static Self {
        let frame = take_frame();
        frame.shared.store(shared.cast_mut(), Ordering::Relaxed);
        let _ = crate::wait::check(frame.word.start());
        frame
    }

    /// Ends such a fiber, which was taken out of its queue.
    pub fn end_queued(&'static self) {
        use crate::wait::check;
        self.ownership.take(0, &self.word);
        let _ = check(self.word.dispatch());
        self.ownership.leave(0);
        let _ = check(self.word.finish(true));
        let _ = check(self.word.recycle());
        self.shared.store(ptr::null_mut(), Ordering::Relaxed);
        give_frame(self);
    }
}
