//! The block of data each CPU has, reached through its GS base.
//!
//! The first words are fixed: the entry code reads them by offset. Words that other CPUs read or
//! write are atomics; everything in `UnsafeCell` is touched by the owning CPU only, before it is
//! online or with interrupts off, or by the CPU that stopped it (invariant CPU-1).

use super::control::ControlBits;
use super::descriptors::{self, Descriptors};
use super::features::Features;
use super::speculation::Predictions;
use crate::context::Context;
use crate::entropy::OwnGenerator;
use crate::paging::{Resident, Space, entry_way_of};
use crate::time::OneShotTimer;
use crate::trap::{Fault, TrapFrame};
use core::arch::asm;
use core::cell::UnsafeCell;
use core::mem::offset_of;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use core_topology::Place;
use spin::Once;
use x86_64::registers::model_specific::Msr;

const IA32_GS_BASE: u32 = 0xc000_0101;
const IA32_KERNEL_GS_BASE: u32 = 0xc000_0102;

/// How far a CPU has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum CpuState {
    /// Not running kernel code.
    Absent = 0,
    /// In the kernel, with its own tables: it can be reached by interrupt.
    Online = 1,
    /// Stopped for good by another CPU's report.
    Stopped = 2,
}

/// Tops of the stacks for #DF, NMI, #MC and #DB.
#[derive(Clone, Copy, Debug)]
pub struct IstStacks(pub [u64; 4]);

/// What a CPU says about itself once it is up.
#[derive(Clone, Copy, Debug, Default)]
struct Identity {
    features: Features,
    control: ControlBits,
    place: Place,
}

/// The block.
#[repr(C, align(64))]
pub struct PerCpu {
    /// Its own address: how code finds the block. Offset 0.
    this: AtomicPtr<PerCpu>,
    /// Top of the stack that entries from user mode start on: the current context's. Offset 8.
    entry_stack: AtomicU64,
    /// Where the syscall entry keeps the user's stack pointer for the two instructions until it is
    /// on a stack. Offset 16.
    user_stack: AtomicU64,
    /// What the CPU runs; its own idle context until something is switched to.
    pub(crate) current: AtomicPtr<Context>,
    /// The page tables the CPU uses; null before it first runs a context of another address space.
    pub(crate) space: AtomicPtr<Space>,
    /// Its place in the resident sets of address spaces.
    pub(crate) resident: Resident,
    /// Whether a change of address space takes more than that. Zero on most CPUs; see `paging::Space`.
    pub(crate) entry_way: AtomicU8,
    /// Top of the stack the CPU was started on, which is its idle context's.
    pub(crate) stack_top: AtomicU64,
    /// The one-shot timer.
    pub(crate) timer: OneShotTimer,
    /// Whose branches the CPU has learned.
    pub(crate) predictions: Predictions,
    /// Random bytes.
    pub(crate) random: OwnGenerator,
    /// What the CPU runs when there is nothing to run: the stack it was started on.
    pub(crate) idle: Context,
    /// Stack pointer to return to when a provoked fault comes; 0 when none is expected.
    pub(crate) recovery: AtomicU64,
    index: AtomicU32,
    apic_id: AtomicU32,
    state: AtomicU8,
    /// Work another CPU asked for, a `fn()`; null when there is none.
    pub(crate) job: AtomicPtr<()>,
    /// How many spurious interrupts there were.
    pub(crate) spurious: AtomicU64,
    identity: Once<Identity>,
    pub(crate) descriptors: UnsafeCell<Descriptors>,
    pub(crate) last_fault: UnsafeCell<Option<Fault>>,
    pub(crate) stopped_at: UnsafeCell<Option<TrapFrame>>,
}

// SAFETY: what is not atomic is reached by one CPU only (see the top of the file).
unsafe impl Sync for PerCpu {}
// SAFETY: the block holds no thread-bound data; it is handed to its CPU before that runs.
unsafe impl Send for PerCpu {}

/// Offsets for the entry code.
pub(crate) const STACK_TOP_OFFSET: usize = offset_of!(PerCpu, stack_top);
pub(crate) const ENTRY_STACK_OFFSET: usize = offset_of!(PerCpu, entry_stack);
pub(crate) const USER_STACK_OFFSET: usize = offset_of!(PerCpu, user_stack);
const _: () = assert!(offset_of!(PerCpu, this) == 0);

static ALL: Once<&'static [&'static PerCpu]> = Once::new();
/// How many of them are used, from the first on.
static USED: AtomicUsize = AtomicUsize::new(usize::MAX);

impl PerCpu {
    /// The block of a CPU that is not running yet.
    pub const fn new(index: u32, apic_id: u32, stack_top: u64) -> PerCpu {
        PerCpu {
            this: AtomicPtr::new(core::ptr::null_mut()),
            entry_stack: AtomicU64::new(0),
            user_stack: AtomicU64::new(0),
            current: AtomicPtr::new(core::ptr::null_mut()),
            space: AtomicPtr::new(core::ptr::null_mut()),
            resident: Resident::of(index as usize),
            entry_way: AtomicU8::new(entry_way_of(Resident::of(index as usize))),
            stack_top: AtomicU64::new(stack_top),
            timer: OneShotTimer::new(),
            predictions: Predictions::new(),
            random: OwnGenerator::new(),
            idle: Context::running(),
            recovery: AtomicU64::new(0),
            index: AtomicU32::new(index),
            apic_id: AtomicU32::new(apic_id),
            state: AtomicU8::new(CpuState::Absent as u8),
            job: AtomicPtr::new(core::ptr::null_mut()),
            spurious: AtomicU64::new(0),
            identity: Once::new(),
            descriptors: UnsafeCell::new(Descriptors::new()),
            last_fault: UnsafeCell::new(None),
            stopped_at: UnsafeCell::new(None),
        }
    }

    /// Gives a CPU that is not running yet its interrupt stacks.
    ///
    /// # Safety
    /// The CPU is not online, or is the one that runs this; the stacks are mapped for good and its own.
    pub unsafe fn set_interrupt_stacks(&self, stacks: IstStacks) {
        // SAFETY: no one else uses the block's descriptors, by the contract.
        unsafe { descriptors::set_interrupt_stacks(self.descriptors.get(), stacks.0) };
    }

    /// Its number, 0 for the boot CPU.
    #[inline]
    pub fn index(&self) -> u32 {
        self.index.load(Ordering::Relaxed)
    }

    /// Its local APIC's id.
    pub fn apic_id(&self) -> u32 {
        self.apic_id.load(Ordering::Relaxed)
    }

    pub(super) fn set_apic_id(&self, id: u32) {
        self.apic_id.store(id, Ordering::Relaxed);
    }

    /// How far it has come. Acquire, pairs with the release in `set_state`: what the CPU wrote
    /// before it changed state is seen.
    pub fn state(&self) -> CpuState {
        match self.state.load(Ordering::Acquire) {
            1 => CpuState::Online,
            2 => CpuState::Stopped,
            _ => CpuState::Absent,
        }
    }

    /// Release, pairs with the acquire in `state`.
    pub(crate) fn set_state(&self, state: CpuState) {
        self.state.store(state as u8, Ordering::Release);
    }

    pub(super) fn set_identity(&self, features: Features, control: ControlBits, place: Place) {
        self.identity.call_once(|| Identity { features, control, place });
    }

    /// What it can do; nothing before it is online.
    pub fn features(&self) -> Features {
        self.identity.get().map_or(Features::default(), |i| i.features)
    }

    /// Its control registers, as read back when it came up.
    pub fn control(&self) -> ControlBits {
        self.identity.get().map_or(ControlBits::default(), |i| i.control)
    }

    /// Where it sits.
    pub fn place(&self) -> Place {
        self.identity.get().map_or(Place::default(), |i| i.place)
    }

    /// Where it was when it was stopped.
    pub fn stopped_at(&self) -> Option<TrapFrame> {
        if self.state() != CpuState::Stopped {
            return None;
        }
        // SAFETY: a stopped CPU never writes its block again, and its last write is seen
        // because `state` acquires.
        unsafe { *self.stopped_at.get() }
    }

    /// Its idle context: what it runs when there is nothing to run.
    pub fn idle(&'static self) -> &'static Context {
        &self.idle
    }

    /// Sets the stack that syscalls and exceptions from user mode start on, on this CPU: 8 below a multiple
    /// of 16, so that a syscall's fifteen words leave it aligned. Exceptions align it by themselves.
    #[inline]
    pub(crate) fn set_user_entry_stack(&self, top: u64) {
        self.entry_stack.store(top, Ordering::Relaxed);
        // SAFETY: called on the owning CPU with interrupts off, as all kernel code is.
        unsafe { descriptors::set_kernel_stack(self.descriptors.get(), top) };
    }

    /// Makes the CPU this runs on use the block.
    ///
    /// # Safety
    /// The block belongs to this CPU alone.
    pub(super) unsafe fn load(&'static self) {
        let address = core::ptr::from_ref(self).cast_mut();
        self.this.store(address, Ordering::Relaxed);
        self.current.store((&raw const self.idle).cast_mut(), Ordering::Relaxed);
        // SAFETY: static, and this CPU's alone. Loading segments clears the GS base, so it is
        // written afterwards; user mode gets a base of 0.
        unsafe {
            descriptors::load(self.descriptors.get());
            Msr::new(IA32_GS_BASE).write(address as u64);
            Msr::new(IA32_KERNEL_GS_BASE).write(0);
        }
    }
}

/// The block of the CPU this runs on.
#[inline]
pub fn this() -> &'static PerCpu {
    let address: *const PerCpu;
    // SAFETY: every CPU loads its GS base before it runs code that asks (invariant CPU-2); the
    // first word of the block is its own address.
    unsafe {
        asm!("mov {}, gs:[0]", out(reg) address, options(nostack, preserves_flags, readonly));
        &*address
    }
}

/// The block of the CPU this runs on, if it is that far; for reports.
pub fn try_this() -> Option<&'static PerCpu> {
    // SAFETY: every CPU in long mode has this MSR.
    let base = unsafe { Msr::new(IA32_GS_BASE).read() };
    // A base in the upper half is a block, see `load`; user bases lie in the lower half.
    (base >> 63 == 1).then(this)
}

/// Makes the blocks of all CPUs known, by index. Once.
pub fn publish(blocks: &'static [&'static PerCpu]) {
    ALL.call_once(|| blocks);
}

/// The blocks of all CPUs that are used, by index; empty before they are known.
pub fn all() -> &'static [&'static PerCpu] {
    let all = ALL.get().copied().unwrap_or(&[]);
    all.get(..USED.load(Ordering::Relaxed)).unwrap_or(all)
}

/// Leaves the boot CPU alone in the machine: the others halt for good. On the boot CPU, while the others
/// have nothing to run.
pub(crate) fn keep_boot_cpu_alone() {
    for other in all().iter().skip(1) {
        // One that has work will not get more: it halts when that is done, and is not waited for.
        if other.post_job(halt_for_good) {
            while other.state() == CpuState::Online {
                core::hint::spin_loop();
            }
        }
    }
    // Relaxed: this CPU reads it, the others run no more.
    USED.store(1, Ordering::Relaxed);
}

fn halt_for_good() {
    this().set_state(CpuState::Stopped);
    crate::exit::stop()
}

/// How many CPUs are online.
pub fn online_count() -> usize {
    all().iter().filter(|c| c.state() == CpuState::Online).count()
}
