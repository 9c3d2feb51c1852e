//! The machine under the kernel's host crates: CPUs, timers, interrupts, stacks and memory as they are.
//!
//! The order of things is `kernel_dispatch`'s, `kernel_ops`'s and `kernel_process`'s; here is what each of their
//! steps does to the hardware, and the two asynchronous ways into the kernel: this CPU's timer, and another CPU.
//! The ways that user mode takes by itself are in `user`.

use crate::kernel::{Cpu, Here, Kernel, KernelObject, Process, Thread};
use crate::object::console;
use crate::system::{self, RECORDS};
use crate::{lines, loader, section, shutdown};
use abi_types::{InterfaceTag, RingBlock};
use alloc::boxed::Box;
use core::convert::Infallible;
use core_ledger::Ledger;
use core_manifest::GrantKind;
use core_paging::Access;
use core_sched::{Charge, CpuId, CpuSet, Error};
use core_sched_policy::AnyPolicy;
use core_thread::ThreadKey;
use kernel_arch::context::{self, Context, KernelStart, UserStart};
use kernel_arch::cpu::{self, PerCpu};
use kernel_arch::trap::{IPI_VECTOR, TrapFrame};
use kernel_arch::{apic, irq, log, time};
use kernel_dispatch::trace::point;
use kernel_dispatch::{self as dispatch, After, IdlePath, Machine, Saw, WayOut, preemption_point};
use kernel_mm::OutOfMemory;
use kernel_mm::fallible::try_zeroed_words;
use kernel_mm::shared::SharedFrames;
use kernel_mm::space::{AddressSpace, Pinned, PinnedRing, SpaceError, StillInUse};
use kernel_mm::stack::{self, KernelStack};
use kernel_mm::thread::UserContext;
use kernel_ops::capability::ProcessKey;
use kernel_ops::lines::Wiring;
use kernel_ops::machine::{NotMapped, ProcessPart, Tables};
use kernel_ops::paid::NoMemory;
use kernel_ops::party::Party;
use kernel_ops::shared::MemoryFacet;
use kernel_ops::{deadlines, enter, expire, interrupt};
use kernel_process::machine::{BadStart, Place, Start, Worker};
use kernel_process::{Records, drain, end, handle, join};
use schema::trace_capnp::TraceEvent;
use smp_ipi::{IdleSet, Requests};
use smp_pending::Target;
use smp_trace::Control;

/// CPUs that announced they are idle.
static IDLE: IdleSet = IdleSet::new();
/// What is recorded.
static TRACE: Control = Control::new();

impl Machine for Kernel {
    type Policy = AnyPolicy;
    type Thread = Thread;
    type Own = system::CpuOwn;
    type Gone = Infallible;

    #[inline(always)]
    fn cpus(self) -> &'static [Cpu] {
        system::cpus()
    }

    #[inline(always)]
    fn cpu_here(self) -> &'static Cpu {
        system::here()
    }

    #[inline(always)]
    fn idle_set(self) -> &'static IdleSet {
        &IDLE
    }

    #[inline(always)]
    fn online(self) -> CpuSet {
        CpuSet::first_n(system::cpus().len())
    }

    fn siblings(self, of: CpuId) -> CpuSet {
        let Some(cpu) = system::cpu(of) else { return CpuSet::only(of) };
        let core_of = |block: &PerCpu| (block.place().package, block.place().core);
        let core = core_of(cpu.own.machine);
        let is_sibling = |other: &&Cpu| core_of(other.own.machine) == core;
        system::cpus()
            .iter()
            .filter(is_sibling)
            .fold(CpuSet::only(of), |set, cpu| set.with(cpu.id()))
    }

    #[inline(always)]
    fn thread(self, slot: u32) -> Option<&'static Thread> {
        RECORDS.thread(slot)
    }

    #[inline(always)]
    fn clock(self) -> u64 {
        clock()
    }

    #[inline(always)]
    fn arm(self, here: &Here, now_ns: u64, at_ns: u64) {
        here.own().counters.one_shots.bump();
        time::arm_from(now_ns, at_ns);
    }

    fn expire(self, here: &Here, now_ns: u64) {
        expire::expire(self, here, now_ns);
    }

    fn next_deadline(self, here: &Here) -> Option<u64> {
        deadlines::next(self, here)
    }

    fn send_ipi(self, to: &'static Cpu) {
        apic::send_ipi(to.own.machine.apic_id());
    }

    fn serve(self, here: &Here, requests: Requests) {
        // The interrupt has done it, but for a request that came after and found another one pending.
        if requests.contains(Requests::TLB) {
            kernel_arch::paging::flush_if_requested();
        }
        if here.current().is_none() {
            here.own().machine.run_job();
        }
        end::wake_reaper(self);
    }

    fn has_work(self, _: &Here) -> bool {
        false
    }

    fn let_interrupts_in(self) {
        section::end("a preemption point");
        cpu::let_interrupts_in();
        section::begin();
    }

    fn halt(self, _: Here) {
        section::end("idle");
        // Interrupts are off since before the look, and on for this one instruction.
        cpu::wait_for_interrupt();
        section::begin();
    }

    fn relax(self, _: Here) {
        cpu::relax();
    }

    #[inline(always)]
    fn switch(self, here: Here, next: Option<&'static Thread>, after: After, of: &'static Thread) {
        section::end("a switch");
        let to = context_of(&here, next);
        let switched = match after {
            After::Wait => context::switch_to(to, after_wait, of),
            After::Requeue => context::switch_to(to, after_requeue, of),
            After::End => context::switch_to(to, after_end, of),
        };
        if switched.is_err() {
            system::defect("a claimed context cannot be switched to");
        }
    }

    fn switch_for_good(
        self,
        here: Here,
        next: Option<&'static Thread>,
        of: &'static Thread,
    ) -> Infallible {
        section::end("the end of a thread");
        // It comes back only if it is refused.
        let _wrong = context::end_and_switch_to(context_of(&here, next), after_end, of);
        system::defect("a claimed context cannot be switched to")
    }

    fn leave_idle(self, here: Here, next: &'static Thread) {
        section::end("the idle loop");
        // Nothing follows from leaving the idle context.
        let cpu: &'static PerCpu = here.own().machine;
        if context::switch_to(next.ops.home.context().context(), |_, _: &PerCpu| {}, cpu).is_err() {
            system::defect("a claimed context cannot be switched to");
        }
    }

    fn timer_pass(self, _: Here, thread: &'static Thread) {
        enter::timer_pass(self, thread);
    }

    fn reap(self, thread: &'static Thread) {
        end::reap(self, thread);
    }

    #[inline(always)]
    fn charge(self, thread: &'static Thread, charge: Charge) {
        thread.charge(charge);
    }

    #[inline(always)]
    fn trace(self) -> Option<&'static Control> {
        Some(&TRACE)
    }

    #[inline(always)]
    fn saw(self, here: &Here, what: Saw<Thread>) {
        let counters = &here.own().counters;
        match what {
            Saw::Preempted => counters.preemptions.bump(),
            Saw::Switched => counters.switches.bump(),
            Saw::Stole(_) => counters.steals.bump(),
            Saw::Balanced(_) => counters.balanced.bump(),
            Saw::PlacedBusy => counters.failed_placements.bump(),
            Saw::HandedOver => counters.hand_overs.bump(),
            Saw::Offered => counters.offers.bump(),
            Saw::HandOverMissed => counters.handoffs_missed.bump(),
            Saw::SentIpi => counters.reschedule_sent.bump(),
            Saw::SkippedIpi => counters.reschedule_skipped.bump(),
            Saw::TimerFired => counters.timer_interrupts.bump(),
            Saw::WentIdle(IdlePath::Timer) => counters.idle_dispatch_timer.bump(),
            Saw::WentIdle(IdlePath::Block) => counters.idle_dispatch_block.bump(),
            Saw::WentIdle(IdlePath::Exit) => counters.idle_dispatch_exit.bump(),
            Saw::Halts { again } => {
                counters.idle_entries.bump();
                if again {
                    counters.idle_cooperative.bump();
                }
            }
            Saw::Locked(_)
            | Saw::Glanced(_)
            | Saw::Ready(_)
            | Saw::Requeued(_)
            | Saw::Queued(..)
            | Saw::Runs(_)
            | Saw::Exchanged
            | Saw::PlacedElsewhere
            | Saw::WokeEarly => {}
        }
    }

    #[cold]
    fn defect(self, what: &'static str) -> ! {
        system::defect(what)
    }

    #[cold]
    #[allow(clippy::panic, reason = "a defect of the kernel; going on would corrupt programs")]
    fn refused(self, error: Error) -> ! {
        panic!("kernel defect: a run queue refuses what the kernel asks of it: {error:?}")
    }
}

#[inline(always)]
fn context_of(here: &Here, next: Option<&'static Thread>) -> &'static Context {
    match next {
        Some(next) => next.ops.home.context().context(),
        None => here.own().machine.idle(),
    }
}

fn after_wait(_: &'static Context, thread: &'static Thread) {
    dispatch::finish_switch(Kernel, After::Wait, thread);
}

fn after_requeue(_: &'static Context, thread: &'static Thread) {
    dispatch::finish_switch(Kernel, After::Requeue, thread);
}

fn after_end(_: &'static Context, thread: &'static Thread) {
    dispatch::finish_switch(Kernel, After::End, thread);
}

/// The clock; the system does not start without one.
#[inline(always)]
pub fn clock() -> u64 {
    time::clock_ns()
}

/// The CPU this runs on.
#[inline(always)]
pub fn here() -> Here {
    Here::now(Kernel)
}

/// What a CPU does when no thread is on it. Runs on the CPU's own stack, for good.
pub fn idle() -> ! {
    loop {
        section::end("a turn of the idle loop");
        dispatch::turn_of_idle(Kernel);
    }
}

/// A deadline has passed, or a slice has ended.
pub fn timer(frame: &TrapFrame) {
    section::begin();
    if system::is_up() {
        dispatch::timer(Kernel, frame.is_from_user());
        leave_interrupt(frame.is_from_user());
    }
    section::end("the end of a timer interrupt");
}

/// Another CPU, or this one, asks for attention; or a device that nobody has a line of.
pub(crate) fn interrupt(frame: &TrapFrame) {
    if frame.vector().0 != IPI_VECTOR {
        log!(
            "trap",
            "cpu {}: interrupt on vector {} that nobody asked for",
            cpu::this().index(),
            frame.vector().0
        );
        return;
    }
    attend(frame);
}

/// A line of a program's has interrupted.
pub(crate) fn line_raised(place: u32) {
    // What comes of it belongs to a section of its own.
    section::begin();
    if system::is_up() {
        interrupt::raised(Kernel, place);
    }
    section::end("an interrupt of a program's line");
}

/// Somebody asked for this CPU's attention: another CPU, or a driver in a device's interrupt.
pub(crate) fn attend(frame: &TrapFrame) {
    section::begin();
    // Without a running system a request for attention needs no more than the wake it is.
    if system::is_up() {
        if frame.vector().0 != IPI_VECTOR {
            point(Kernel, TraceEvent::Interrupt, || (frame.vector().0.into(), 0));
        }
        dispatch::interrupt(Kernel);
        leave_interrupt(frame.is_from_user());
    }
    section::end("the end of an interrupt");
}

/// The last thing before an interrupted thread goes on in user mode; at a preemption point it gives way
/// when it goes on, and dies when it leaves.
fn leave_interrupt(from_user: bool) {
    if from_user && let Some(thread) = system::here().current() {
        while dispatch::way_out(Kernel, thread) == WayOut::Again {}
    }
}

impl kernel_ops::Machine for Kernel {
    type Context = UserContext;
    type RingMemory = PinnedRing;
    type Space = AddressSpace;
    const TRACES_SYSCALLS: bool = cfg!(any(checked, measure));
    type Other = KernelObject;

    #[inline(always)]
    fn tables(self) -> &'static Tables {
        system::rings()
    }

    #[inline(always)]
    fn process(self, slot: u32) -> Option<&'static ProcessPart<Self>> {
        RECORDS.process(slot).map(|process| &process.ops)
    }

    fn wall_clock(self) -> Option<(u64, u64)> {
        loader::wall_clock()
    }

    fn zeroed_words(self, count: usize) -> Result<Box<[u64]>, OutOfMemory> {
        try_zeroed_words(count)
    }

    fn take_line(self, place: u32, wiring: Wiring) -> bool {
        irq::delegate(lines::wiring_of(wiring), place).is_ok()
    }

    fn give_line_back(self, line: u32) {
        irq::take_back(irq::Line(line));
    }

    fn set_line_open(self, line: u32, is_open: bool) {
        irq::set_open(irq::Line(line), is_open);
    }

    fn acknowledge_line(self, line: u32) {
        irq::acknowledge(irq::Line(line));
    }

    fn claim(self, party: Party, target: Target) -> bool {
        match target {
            Target::Join { thread } => join::give_up(self, ThreadKey::from_bits(thread), party),
            Target::End { process } => handle::give_up(self, process, party),
            Target::Read => console::give_up(party),
            Target::Call { .. }
            | Target::Recv { .. }
            | Target::Sleep
            | Target::Park { .. }
            | Target::Write
            | Target::Interrupt { .. }
            | Target::Memory => system::defect("an operation of the rings waits for an object"),
        }
    }
}

impl kernel_process::Machine for Kernel {
    type UserStart = UserStart;
    const STACK_PAGES: u32 = stack::STACK_PAGES as u32;

    fn handle_to(thread: ThreadKey) -> (KernelObject, InterfaceTag) {
        (KernelObject::ThreadHandle(thread), schema::thread_handle::INTERFACE_TAG)
    }

    fn process_handle(process: ProcessKey) -> (KernelObject, InterfaceTag) {
        (KernelObject::ProcessHandle(process), schema::process_handle::INTERFACE_TAG)
    }

    fn user_session(of: ProcessKey) -> Option<KernelObject> {
        Some(KernelObject::UserSession(of))
    }

    fn granted(kind: GrantKind<'_>) -> Option<KernelObject> {
        loader::granted(kind)
    }

    fn boot_module(self, name: &str) -> Option<&'static [u8]> {
        loader::boot_module(name)
    }

    fn manifest(self) -> Option<&'static [u8]> {
        loader::boot_module(loader::MANIFEST_MODULE)
    }

    fn child_began(self) {
        shutdown::child_began();
    }

    fn create_space(
        self,
        space: &'static AddressSpace,
        ledger: &'static Ledger,
    ) -> Result<(), NoMemory> {
        space.create(ledger).map_err(no_memory)
    }

    fn fill(self, space: &'static AddressSpace, to: u64, bytes: &[u8]) -> Result<(), NotMapped> {
        space.fill(to, bytes)
    }

    fn map_read_only(self, space: &'static AddressSpace, at: u64) -> Result<(), NoMemory> {
        space.map_new(at, 1, Access::Read).map_err(no_memory)
    }

    fn map_time(self, space: &'static AddressSpace) -> Result<(), NoMemory> {
        space.map_time_page().map_err(no_memory)
    }

    fn memory_facet(object: KernelObject) -> Option<MemoryFacet> {
        match object {
            KernelObject::MemoryObject(facet) => Some(facet),
            _ => None,
        }
    }

    fn memory_object(facet: MemoryFacet) -> (KernelObject, InterfaceTag) {
        (KernelObject::MemoryObject(facet), schema::memory_object::INTERFACE_TAG)
    }

    #[inline(always)]
    fn records(self) -> &'static Records<Self> {
        &RECORDS
    }

    fn user_start(self, start: Start) -> Result<UserStart, BadStart> {
        let made = UserStart::new(start.entry, start.stack_top, start.fs_base);
        let mut user = made.map_err(|bad| match bad {
            context::BadStart::Entry => BadStart::Entry,
            context::BadStart::Stack => BadStart::Stack,
            context::BadStart::FsBase => BadStart::FsBase,
        })?;
        user.argument = start.argument;
        Ok(user)
    }

    fn new_context(self) -> UserContext {
        UserContext::new()
    }

    fn new_space(self) -> AddressSpace {
        AddressSpace::new()
    }

    fn new_shared(self) -> SharedFrames {
        SharedFrames::new()
    }

    fn free_frames(self) -> u64 {
        kernel_mm::frames::counts().free
    }

    fn new_stack(self) -> Result<KernelStack, OutOfMemory> {
        KernelStack::for_thread()
    }

    fn new_ring(
        self,
        space: &'static AddressSpace,
        address: u64,
        block: RingBlock,
    ) -> Result<PinnedRing, NoMemory> {
        let mut pinning = space.begin_pin(address, block.size()).map_err(no_memory)?;
        loop {
            match pinning.step().map_err(no_memory)? {
                Pinned::More(more) => pinning = more,
                Pinned::Done(pinned) => return pinned.into_ring(block).ok_or(NoMemory::Machine),
            }
            preemption_point(self);
        }
    }

    fn start<'s>(
        self,
        space: &'static AddressSpace,
        user: &'s mut UserStart,
        place: Place,
    ) -> kernel_mm::thread::Start<'s> {
        user.tid = u64::from(place.thread);
        user.pid = u64::from(place.process);
        user.ring = place.ring;
        user.capset = place.capset;
        kernel_mm::thread::Start::User { space, user }
    }

    fn worker_start(
        self,
        thread: &'static Thread,
        worker: Worker,
    ) -> kernel_mm::thread::Start<'static> {
        let run = match worker {
            Worker::Reaper => run_reaper,
            Worker::Drain => run_drain,
        };
        kernel_mm::thread::Start::Kernel(KernelStart::new(run, thread))
    }

    fn free_memory(self, space: &'static AddressSpace, frames: u64) -> bool {
        match space.destroy(frames) {
            Ok(freed) => freed.is_done,
            Err(StillInUse::Absent) => true,
            Err(StillInUse::Contexts(_) | StillInUse::Pins(_)) => {
                system::defect("a process without threads is in use")
            }
        }
    }

    fn process_reaped(self, process: &'static Process) {
        shutdown::process_reaped(process);
    }

    fn policy_judged(self, is_admitted: bool) {
        let cpu = here();
        let counters = &cpu.own().counters;
        match is_admitted {
            true => counters.policy_admissions.bump(),
            false => counters.policy_denials.bump(),
        }
    }

    fn console_has_room(self) -> bool {
        kernel_arch::console::has_room()
    }

    fn console_submit(self, bytes: &[u8]) -> usize {
        kernel_arch::console::submit(bytes)
    }

    fn console_paint(self) -> bool {
        kernel_arch::console::paint()
    }

    fn console_look_after(self) {
        kernel_arch::console::look_after();
    }
}

fn no_memory(error: SpaceError) -> NoMemory {
    match error {
        SpaceError::Account(error) => NoMemory::Account(error),
        _ => NoMemory::Machine,
    }
}

fn run_reaper(thread: &'static Thread) -> ! {
    end::run_reaper(Kernel, thread)
}

fn run_drain(thread: &'static Thread) -> ! {
    drain::run_drain(Kernel, thread)
}
