//! Runs the user programs: a slot is a process of one thread, and the hooks say how it went.
//!
//! The test itself is the CPU's idle context. It switches to a slot's thread, and the hooks switch
//! back when the thread exits, faults or its time is up.

use abi_types::place::RING_VADDR;
use abi_types::{Syscall, UNKNOWN_SYSCALL};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use core_ledger::{Ledger, Profile};
use core_paging::Access;
use kernel_arch::context::{self, Context, State, UserStart};
use kernel_arch::cpu;
use kernel_arch::trap::TrapFrame;
use kernel_mm::space::{AddressSpace, Freed, PinnedBlock};
use kernel_mm::stack::KernelStack;
use kernel_mm::thread::{Start, UserContext};
use smp_ring::Context as _;
use user_blob::Program;

/// Where a program's parts lie.
pub const CODE: u64 = 0x40_0000;
pub const PAGE: u64 = 0x50_0000;
pub const STACK: u64 = 0x60_0000;
pub const STACK_PAGES: u64 = 2;
pub const STACK_TOP: u64 = STACK + STACK_PAGES * 4096;

/// CPUs and slots of the tests: each CPU has two slots.
pub const MAX_CPUS: usize = 8;

/// A process of one thread.
pub struct Slot {
    /// Pays for its memory.
    pub ledger: Ledger,
    pub space: AddressSpace,
    pub thread: UserContext,
}

/// What a slot may use, unless a test says otherwise: more than it does.
pub const PLENTY: Profile = Profile { frames: 4096, ..Profile::NONE };

pub static SLOTS: [Slot; 2 * MAX_CPUS] = [const {
    Slot { ledger: Ledger::new(&PLENTY), space: AddressSpace::new(), thread: UserContext::new() }
}; 2 * MAX_CPUS];

/// How a thread came back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    Exit(u64),
    Fault { vector: u8, address: u64, rip: u64 },
    TimeUp,
    Refused,
}

/// What the hooks tell the test, for each CPU.
pub struct Told {
    kind: AtomicU64,
    words: [AtomicU64; 3],
    /// Flags the kernel had in the last syscall.
    pub kernel_flags: AtomicU64,
    /// Where the stack pointer was at the last fault.
    pub fault_stack: AtomicU64,
    /// First argument of the last `cap_enter`.
    pub argument: AtomicU64,
    /// Switches asked for, and times the commit after one was called; their data summed up.
    pub switches: AtomicU64,
    pub switch_data: AtomicU64,
    pub commits: AtomicU64,
    pub commit_data: AtomicU64,
    /// What registers held at the last entry, see [`user_blob::registers`].
    pub registers: [AtomicU64; user_blob::REGISTERS],
    /// Slot + 1 that the timer switches to instead of the test.
    pub next: AtomicUsize,
}

pub static TOLD: [Told; MAX_CPUS] = [const {
    Told {
        kind: AtomicU64::new(0),
        words: [const { AtomicU64::new(0) }; 3],
        kernel_flags: AtomicU64::new(0),
        fault_stack: AtomicU64::new(0),
        argument: AtomicU64::new(0),
        switches: AtomicU64::new(0),
        switch_data: AtomicU64::new(0),
        commits: AtomicU64::new(0),
        commit_data: AtomicU64::new(0),
        registers: [const { AtomicU64::new(0) }; user_blob::REGISTERS],
        next: AtomicUsize::new(0),
    }
}; MAX_CPUS];

pub fn told() -> &'static Told {
    &TOLD[cpu::this().index() as usize]
}

/// The two slots of this CPU.
pub fn slot(which: usize) -> &'static Slot {
    &SLOTS[cpu::this().index() as usize * 2 + which]
}

impl Told {
    fn tell(&self, kind: u64, words: [u64; 3]) {
        for (slot, word) in self.words.iter().zip(words) {
            slot.store(word, Ordering::Relaxed);
        }
        self.kind.store(kind, Ordering::Relaxed);
    }

    fn note_registers(&self, found: [u64; user_blob::REGISTERS]) {
        for (place, word) in self.registers.iter().zip(found) {
            place.store(word, Ordering::Relaxed);
        }
    }

    /// Registers that held what the user had in its own.
    pub fn tainted(&self) -> usize {
        let is_tainted = |word: u64| word & !0xff == user_blob::TAINT;
        self.registers.iter().filter(|word| is_tainted(word.load(Ordering::Relaxed))).count()
    }

    fn take(&self) -> Ended {
        let [a, b, c] = [0, 1, 2].map(|i| self.words[i].load(Ordering::Relaxed));
        match self.kind.swap(0, Ordering::Relaxed) {
            1 => Ended::Exit(a),
            2 => Ended::Fault { vector: a as u8, address: b, rip: c },
            3 => Ended::TimeUp,
            _ => Ended::Refused,
        }
    }
}

/// Counts what the next context is asked to commit for the previous one.
pub fn commit(_: &'static Context, data: &'static u64) {
    told().commits.fetch_add(1, Ordering::Relaxed);
    told().commit_data.fetch_add(*data, Ordering::Relaxed);
}

/// What a switch passes on: a number of its own.
fn count_switch(data: &'static u64) -> &'static u64 {
    told().switches.fetch_add(1, Ordering::Relaxed);
    told().switch_data.fetch_add(*data, Ordering::Relaxed);
    data
}

pub fn syscall(number: u64, a0: u64, a1: u64) -> u64 {
    if a0 == user_blob::TAINT_ARGUMENT {
        told().note_registers(user_blob::registers());
    }
    match Syscall::from_number(number) {
        Some(Syscall::CapEnter) => {
            told().argument.store(a0, Ordering::Relaxed);
            if a0 == user_blob::CLOBBER_ARGUMENT {
                user_blob::clobber();
            }
            if a0 == crate::FLAGS_ARGUMENT {
                told().kernel_flags.store(kernel_arch::cpu::flags(), Ordering::Relaxed);
            }
            a0.wrapping_mul(1000).wrapping_add(a1)
        }
        Some(Syscall::Exit) => {
            told().tell(1, [a0, 0, 0]);
            end()
        }
        None => UNKNOWN_SYSCALL,
    }
}

pub fn user_fault(frame: &TrapFrame) -> ! {
    let address = frame.fault_address();
    told().fault_stack.store(cpu::stack_pointer(), Ordering::Relaxed);
    told().kernel_flags.store(kernel_arch::cpu::flags(), Ordering::Relaxed);
    told().tell(2, [frame.vector().0.into(), address, frame.rip()]);
    end()
}

fn end() -> ! {
    let refused = context::end_and_switch_to(cpu::this().idle(), commit, count_switch(&1));
    panic!("the idle context is {refused:?}");
}

/// Interrupts of the timer, in the kernel and in user mode.
pub static TIMER_IN_KERNEL: AtomicU64 = AtomicU64::new(0);

pub fn timer(frame: &TrapFrame) {
    let found = user_blob::registers();
    if !frame.is_from_user() {
        TIMER_IN_KERNEL.fetch_add(1, Ordering::Relaxed);
        return;
    }
    told().note_registers(found);
    told().kernel_flags.store(kernel_arch::cpu::flags(), Ordering::Relaxed);
    let next = match told().next.swap(0, Ordering::Relaxed) {
        0 => {
            told().tell(3, [0; 3]);
            cpu::this().idle()
        }
        slot => {
            arm_soon();
            SLOTS[slot - 1].thread.context()
        }
    };
    if let Err(refused) = context::switch_to(next, commit, count_switch(&(1 << 16))) {
        panic!("the next context is {refused:?}");
    }
}

/// A slice for user code, in ns.
pub const SLICE_NS: u64 = 200_000;

pub fn arm_soon() {
    let now = kernel_arch::time::now_ns().expect("a clock");
    kernel_arch::time::arm(now + SLICE_NS);
}

/// What a slot is started with beside its program.
#[derive(Clone, Copy, Default)]
pub struct Setup {
    pub argument: Option<u64>,
    pub fs_base: u64,
    pub seed: u64,
}

impl Slot {
    /// Makes the slot a process about to run `program`.
    pub fn load(&'static self, program: Program, setup: Setup) -> Result<(), &'static str> {
        self.space.create(&self.ledger).map_err(|_| "no space")?;
        let map = |start, pages, access| {
            self.space.map_new(start, pages, access).map_err(|_| "a part is not mapped")
        };
        let code = user_blob::code();
        map(CODE, (code.len() as u64).div_ceil(4096), Access::Execute)?;
        map(PAGE, 1, Access::Write)?;
        map(STACK, STACK_PAGES, Access::Write)?;
        self.space.fill(CODE, code).map_err(|_| "no code")?;
        self.space.map_time_page().map_err(|_| "no time page")?;
        let avx = u64::from(kernel_arch::fpu::has_avx());
        self.put(user_blob::page::SEED, setup.seed)?;
        self.put(user_blob::page::AVX, avx)?;
        let mut start = UserStart::new(CODE + program.offset(), STACK_TOP, setup.fs_base)
            .map_err(|_| "a bad start")?;
        start.argument = setup.argument.unwrap_or(PAGE);
        start.tid = 11;
        start.pid = 22;
        start.ring = 33;
        start.capset = 44;
        let stack = KernelStack::for_thread().map_err(|_| "no stack")?;
        let start = Start::User { space: &self.space, user: &start };
        self.thread.prepare(stack, start).map_err(|_| "no thread")
    }

    /// A ring for the slot.
    pub fn ring(&'static self) -> Result<PinnedBlock, &'static str> {
        self.space.pin(RING_VADDR, 9 * 4096).map_err(|_| "no ring")
    }

    /// Runs it until it comes back.
    pub fn run(&'static self) -> Ended {
        if self.thread.context().state() != State::Saved {
            return Ended::Refused;
        }
        match context::switch_to(self.thread.context(), commit, count_switch(&(1 << 32))) {
            Ok(()) => told().take(),
            Err(_) => Ended::Refused,
        }
    }

    /// Runs it for a slice.
    pub fn run_for_a_slice(&'static self) -> Ended {
        arm_soon();
        self.run()
    }

    pub fn put(&self, offset: u64, word: u64) -> Result<(), &'static str> {
        self.space.copy_out(PAGE + offset, &word.to_le_bytes()).map_err(|_| "no page")
    }

    pub fn get(&self, offset: u64) -> u64 {
        let mut bytes = [0; 8];
        match self.space.copy_in(&mut bytes, PAGE + offset) {
            Ok(()) => u64::from_le_bytes(bytes),
            Err(_) => 0xbad0_bad0_bad0_bad0,
        }
    }

    /// Takes it apart.
    pub fn unload(&'static self) -> Result<Freed, &'static str> {
        self.thread.take_apart().map_err(|_| "the thread still runs")?;
        let mut all = Freed::default();
        while !all.is_done {
            let some = self.space.destroy(4).map_err(|_| "the space is in use")?;
            all.pages += some.pages;
            all.tables += some.tables;
            all.is_done = some.is_done;
        }
        Ok(all)
    }
}

/// Loads, runs and unloads a program, with a look at the slot before it goes.
pub fn whole(
    program: Program,
    setup: Setup,
    look: impl FnOnce(&'static Slot),
) -> Result<Ended, &'static str> {
    let slot = slot(0);
    slot.load(program, setup)?;
    let ended = slot.run();
    look(slot);
    slot.unload()?;
    Ok(ended)
}
