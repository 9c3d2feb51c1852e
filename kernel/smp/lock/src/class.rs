//! Lock classes: in which order locks are taken, and how often.
//!
//! In checked builds each CPU keeps the set of classes it holds. Taking a lock whose class does
//! not come after all of them ends the kernel with both names, before it waits: an order that
//! could lead to a deadlock is found the first time it happens, not the first time it locks up.
//! Acquisitions are counted per class and CPU. In other builds none of this exists.
//!
//! Decided in ADR 134, which locks there are and in which order in ADR 240.

/// What a lock protects. A CPU that holds a lock takes only locks of later classes; so of each
/// class one at most.
///
/// The order is that of the code paths: an operation comes in at an endpoint, a word or a table, changes who
/// runs, and completes at a ring; a completion ends the deadline that bounded it. Memory comes last, because
/// any of these may need some.
///
/// Every lock of the kernel has one. What waits without a class is no lock: `spin::Once`, whose
/// values are made while the system starts, and the console of the report that ends a run, which is taken
/// without its lock because the holder never runs again (`TicketLock::as_mut_ptr`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum LockClass {
    /// Shared by all CPUs, and taken by none on the way from one thread to the next: pick,
    /// requeue, block, wake, hand-off, look-up, timer arm and cancel count none of it.
    Global,
    /// The keyboard.
    Keyboard,
    /// Where text goes. So early that nothing is printed with a lock held that threads wait for.
    Console,
    /// What was typed and nobody has read: the console's port and the keyboard put it there.
    Input,
    /// Interrupt lines and who has them: the console asks for its own.
    Lines,
    /// The port for the harness's records: as the console, and opened while that is held.
    Records,
    /// An endpoint, a park bucket, or another object that threads call.
    Endpoint,
    /// A scheduling context.
    Context,
    /// A process's capability table.
    Table,
    /// What the threads of a process share: their count, its limits, its rings.
    Members,
    /// What the pages of a process are used for.
    Regions,
    /// Who waits for a thread's end, and who may.
    Lifecycle,
    /// A CPU's run queue. Never two at once.
    Queue,
    /// The threads that wait for the reaper: a queue hands over those it finds dead.
    Reaper,
    /// Changes of address spaces that wait for other CPUs.
    Changes,
    /// A ring's completion queue.
    Cq,
    /// The deadlines that are armed on a CPU.
    Deadlines,
    /// The timers that are in no operation's hands: a completion gives its own back.
    TimerPool,
    /// The kernel stack that a thread's context keeps.
    ContextStack,
    /// Which places for kernel stacks are taken, and which stacks wait for a thread.
    StackSlots,
    /// Where the next device's registers are mapped.
    Devices,
    /// The kernel's heap.
    Heap,
    /// An address space's page tables.
    Space,
    /// The kernel's own page tables.
    KernelTables,
    /// The frame that tells programs the time.
    TimePage,
    /// Physical frames: whatever else is memory is made of them.
    Frames,
    /// What random numbers begin with. Innermost: whoever needs some may hold anything.
    Entropy,
    /// None of these, neither ordered nor counted: a lock of a test.
    Unclassed,
}

impl LockClass {
    /// The classes that have an order, outermost first.
    pub const ORDERED: [Self; 27] = [
        Self::Global,
        Self::Keyboard,
        Self::Console,
        Self::Input,
        Self::Lines,
        Self::Records,
        Self::Endpoint,
        Self::Context,
        Self::Table,
        Self::Members,
        Self::Regions,
        Self::Lifecycle,
        Self::Queue,
        Self::Reaper,
        Self::Changes,
        Self::Cq,
        Self::Deadlines,
        Self::TimerPool,
        Self::ContextStack,
        Self::StackSlots,
        Self::Devices,
        Self::Heap,
        Self::Space,
        Self::KernelTables,
        Self::TimePage,
        Self::Frames,
        Self::Entropy,
    ];
}

#[cfg(all(checked, not(loom)))]
pub(crate) use checks::{Mark, Permit, set_cpu_source, total};

#[cfg(all(checked, not(loom)))]
mod checks {
    use super::LockClass;
    use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

    /// CPUs that are kept book of; on others nothing is checked.
    const CPUS: usize = 128;

    /// What one CPU holds and has taken; touched by that CPU only, and read when counts are added up.
    #[derive(Debug)]
    #[repr(align(64))]
    pub struct Line {
        /// A bit per class.
        held: AtomicU32,
        taken: [AtomicU64; LockClass::ORDERED.len()],
    }

    static LINES: [Line; CPUS] = [const {
        Line {
            held: AtomicU32::new(0),
            taken: [const { AtomicU64::new(0) }; LockClass::ORDERED.len()],
        }
    }; CPUS];

    /// A `fn() -> Option<usize>`, or null.
    static CPU_SOURCE: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

    pub fn set_cpu_source(source: fn() -> Option<usize>) {
        // Release: pairs with the Acquire in `line`.
        CPU_SOURCE.store(source as *mut (), Ordering::Release);
    }

    fn line() -> Option<&'static Line> {
        // Acquire: pairs with the Release in `set_cpu_source`.
        let source = CPU_SOURCE.load(Ordering::Acquire);
        if source.is_null() {
            return None;
        }
        // SAFETY: not null, so it is what `set_cpu_source` stored, of exactly this type.
        let source: fn() -> Option<usize> = unsafe { core::mem::transmute(source) };
        LINES.get(source()?)
    }

    /// That a lock of a class may be taken, by the CPU whose line it is; without one nothing is checked.
    pub struct Permit(Option<&'static Line>, LockClass);

    impl Permit {
        /// Checks that a lock of this class may be taken now.
        #[inline]
        pub fn new(class: LockClass) -> Self {
            if class == LockClass::Unclassed {
                return Self(None, class);
            }
            let line = line();
            if let Some(line) = line {
                let later = line.held.load(Ordering::Relaxed) >> class as u32;
                if later != 0 {
                    refuse(class, later);
                }
            }
            Self(line, class)
        }

        /// For a lock that is not waited for.
        pub fn in_any_order(class: LockClass) -> Self {
            Self(if class == LockClass::Unclassed { None } else { line() }, class)
        }

        /// It was taken.
        #[inline]
        pub fn taken(self) -> Mark {
            let Self(line, class) = self;
            if let Some(line) = line {
                let held = line.held.load(Ordering::Relaxed);
                line.held.store(held | 1 << class as u32, Ordering::Relaxed);
                if let Some(taken) = line.taken.get(class as usize) {
                    taken.store(taken.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
                }
            }
            Mark(line, class)
        }
    }

    #[cold]
    #[allow(clippy::panic, reason = "a checked build that was asked to stop here")]
    fn refuse(class: LockClass, later: u32) -> ! {
        let held = LockClass::ORDERED.get((class as u32 + later.trailing_zeros()) as usize);
        panic!("lock order: {class:?} is taken while {held:?} is held; take it before")
    }

    /// That a lock of a class is held, from its acquisition to its release, on the CPU whose line it is: a
    /// holder stays on its CPU.
    #[derive(Debug)]
    pub struct Mark(Option<&'static Line>, LockClass);

    impl Drop for Mark {
        #[inline]
        fn drop(&mut self) {
            if let Some(line) = self.0 {
                let held = line.held.load(Ordering::Relaxed);
                line.held.store(held & !(1 << self.1 as u32), Ordering::Relaxed);
            }
        }
    }

    pub fn total(class: LockClass) -> u64 {
        let of =
            |line: &Line| line.taken.get(class as usize).map_or(0, |n| n.load(Ordering::Relaxed));
        LINES.iter().map(of).fold(0, u64::wrapping_add)
    }
}

/// Tells the checks which CPU runs; until then, and where it says `None`, nothing is checked.
/// Does nothing in builds that do not check.
pub fn watch(current_cpu: fn() -> Option<usize>) {
    #[cfg(all(checked, not(loom)))]
    set_cpu_source(current_cpu);
    #[cfg(not(all(checked, not(loom))))]
    let _ = current_cpu;
}

/// How many locks of a class were taken since the watch began, on all CPUs; `None` in builds that
/// do not count.
pub fn acquisitions(class: LockClass) -> Option<u64> {
    #[cfg(all(checked, not(loom)))]
    return Some(total(class));
    #[cfg(not(all(checked, not(loom))))]
    {
        let _ = class;
        None
    }
}
