//! Lock classes: in which order locks are taken, how often, and for how long.
//!
//! In checked builds each CPU keeps the set of classes it holds. Taking a lock whose class does
//! not come after all of them ends the kernel with both names, before it waits: an order that
//! could lead to a deadlock is found the first time it happens, not the first time it locks up.
//! Checked and measure builds keep a [`Tally`] per class and CPU. In other builds none of this exists.
//!
//! Decided in ADR 134, which locks there are and in which order in ADR 240, what is counted in ADR 285.

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
    /// A memory object: who has it, and who pays.
    Object,
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
        Self::Object,
        Self::Lifecycle,
        Self::Queue,
        Self::Reaper,
        Self::Changes,
        Self::Cq,
        Self::Deadlines,
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

    /// Whether one lock of the class serves the whole machine: two CPUs that need one wait for each other,
    /// whatever they are at.
    pub const fn is_global(self) -> bool {
        match self {
            Self::Global
            | Self::Keyboard
            | Self::Console
            | Self::Input
            | Self::Lines
            | Self::Records
            | Self::Reaper
            | Self::Changes
            | Self::StackSlots
            | Self::Devices
            | Self::Heap
            | Self::KernelTables
            | Self::TimePage
            | Self::Frames
            | Self::Entropy => true,
            Self::Endpoint
            | Self::Context
            | Self::Table
            | Self::Members
            | Self::Regions
            | Self::Object
            | Self::Lifecycle
            | Self::Queue
            | Self::Cq
            | Self::Deadlines
            | Self::ContextStack
            | Self::Space
            | Self::Unclassed => false,
        }
    }
}

/// What is known about the locks of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many were taken.
    pub taken: u64,
    /// For how many of them a CPU had to wait.
    pub waited: u64,
    /// How long one was held at most, in ticks of the clock that [`watch`] was given.
    pub longest: u64,
}

#[cfg(all(any(checked, measure), not(loom)))]
pub(crate) use book::{Mark, Permit};

#[cfg(all(any(checked, measure), not(loom)))]
mod book {
    use super::{LockClass, Tally, Watch};
    use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

    /// CPUs that are kept book of; on others nothing is checked or counted.
    const CPUS: usize = 128;

    /// What one CPU holds and has taken; touched by that CPU only, and read when counts are added up.
    #[derive(Debug)]
    #[repr(align(64))]
    pub struct Line {
        /// A bit per class.
        #[cfg(checked)]
        held: core::sync::atomic::AtomicU32,
        classes: [Count; LockClass::ORDERED.len()],
    }

    /// A [`Tally`] in the making.
    #[derive(Debug)]
    struct Count {
        taken: AtomicU64,
        waited: AtomicU64,
        longest: AtomicU64,
    }

    static LINES: [Line; CPUS] = [const {
        Line {
            #[cfg(checked)]
            held: core::sync::atomic::AtomicU32::new(0),
            classes: [const {
                Count {
                    taken: AtomicU64::new(0),
                    waited: AtomicU64::new(0),
                    longest: AtomicU64::new(0),
                }
            }; LockClass::ORDERED.len()],
        }
    }; CPUS];

    /// A `&'static Watch`, or null.
    static SOURCE: AtomicPtr<Watch> = AtomicPtr::new(core::ptr::null_mut());

    pub fn set_source(source: &'static Watch) {
        // Release: pairs with the Acquire in `source`.
        SOURCE.store(core::ptr::from_ref(source).cast_mut(), Ordering::Release);
    }

    fn source() -> Option<&'static Watch> {
        // Acquire: pairs with the Release in `set_source`.
        // SAFETY: null, or what `set_source` stored: a reference for good, which nobody writes through.
        unsafe { SOURCE.load(Ordering::Acquire).as_ref() }
    }

    /// Adds one to a count that only its own CPU changes.
    fn count(number: &AtomicU64) {
        number.store(number.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// That a lock of a class may be taken, by the CPU whose line it is; without one nothing is kept.
    pub struct Permit(Option<(&'static Line, &'static Watch)>, LockClass);

    impl Permit {
        fn of(class: LockClass) -> Self {
            let of_cpu = || {
                let source = source()?;
                Some((LINES.get((source.cpu)()?)?, source))
            };
            Self(if class == LockClass::Unclassed { None } else { of_cpu() }, class)
        }

        /// Checks that a lock of this class may be taken now.
        #[inline]
        pub fn new(class: LockClass) -> Self {
            let permit = Self::of(class);
            #[cfg(checked)]
            if let Some((line, _)) = permit.0 {
                let later = line.held.load(Ordering::Relaxed) >> class as u32;
                if later != 0 {
                    refuse(class, later);
                }
            }
            permit
        }

        /// For a lock that is not waited for.
        pub fn in_any_order(class: LockClass) -> Self {
            Self::of(class)
        }

        /// It was taken, after a wait or at once.
        #[inline]
        pub fn taken(self, waited: bool) -> Mark {
            let Self(on, class) = self;
            let Some((line, source)) = on else { return Mark { on: None, class, since: 0 } };
            #[cfg(checked)]
            {
                let held = line.held.load(Ordering::Relaxed);
                line.held.store(held | 1 << class as u32, Ordering::Relaxed);
            }
            if let Some(numbers) = line.classes.get(class as usize) {
                count(&numbers.taken);
                if waited {
                    count(&numbers.waited);
                }
            }
            Mark { on: Some((line, source)), class, since: (source.ticks)() }
        }
    }

    #[cfg(checked)]
    #[cold]
    #[allow(clippy::panic, reason = "a checked build that was asked to stop here")]
    fn refuse(class: LockClass, later: u32) -> ! {
        let held = LockClass::ORDERED.get((class as u32 + later.trailing_zeros()) as usize);
        panic!("lock order: {class:?} is taken while {held:?} is held; take it before")
    }

    /// That a lock of a class is held, from its acquisition to its release, on the CPU whose line it is: a
    /// holder stays on its CPU.
    pub struct Mark {
        on: Option<(&'static Line, &'static Watch)>,
        class: LockClass,
        since: u64,
    }

    impl core::fmt::Debug for Mark {
        fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
            f.debug_tuple("Mark").field(&self.class).finish()
        }
    }

    impl Drop for Mark {
        #[inline]
        fn drop(&mut self) {
            let Some((line, source)) = self.on else { return };
            #[cfg(checked)]
            {
                let held = line.held.load(Ordering::Relaxed);
                line.held.store(held & !(1 << self.class as u32), Ordering::Relaxed);
            }
            let ticks = (source.ticks)().saturating_sub(self.since);
            if let Some(numbers) = line.classes.get(self.class as usize)
                && numbers.longest.load(Ordering::Relaxed) < ticks
            {
                numbers.longest.store(ticks, Ordering::Relaxed);
            }
        }
    }

    pub fn total(class: LockClass) -> Tally {
        let mut total = Tally::default();
        for numbers in LINES.iter().filter_map(|line| line.classes.get(class as usize)) {
            total.taken = total.taken.wrapping_add(numbers.taken.load(Ordering::Relaxed));
            total.waited = total.waited.wrapping_add(numbers.waited.load(Ordering::Relaxed));
            total.longest = total.longest.max(numbers.longest.load(Ordering::Relaxed));
        }
        total
    }
}

/// What tells the checks which CPU runs, and the counts what time it is.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// The CPU; `None` if it is to be left out.
    pub cpu: fn() -> Option<usize>,
    /// The time, of a clock that does not go back.
    pub ticks: fn() -> u64,
}

/// Begins to check and count; until then, and on CPUs that are left out, nothing is. Does nothing in builds that
/// keep no book.
pub fn watch(by: &'static Watch) {
    #[cfg(all(any(checked, measure), not(loom)))]
    book::set_source(by);
    #[cfg(not(all(any(checked, measure), not(loom))))]
    let _ = by;
}

/// What is known about the locks of a class since the watch began, over all CPUs; `None` in builds that do
/// not count.
pub fn tally(class: LockClass) -> Option<Tally> {
    #[cfg(all(any(checked, measure), not(loom)))]
    return Some(book::total(class));
    #[cfg(not(all(any(checked, measure), not(loom))))]
    {
        let _ = class;
        None
    }
}
