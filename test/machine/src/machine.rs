//! What the machine owes the kernel's crates.

use crate::objects::{self, HostObject};
use crate::shared::HostShared;
use crate::space::HostSpace;
use crate::user::User;
use crate::world::{Body, Process as NewRun, Routed, World};
use abi_ring_testing::PlainMemory;
use abi_sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};
use abi_types::{InterfaceTag, RingBlock};
use core_fallible::OutOfMemory;
use core_interrupt::Trigger;
use core_ledger::Ledger;
use core_manifest::GrantKind;
use core_sched::{Charge, CpuId, CpuSet, Error};
use core_sched_policy::AnyPolicy;
use core_thread::ThreadKey;
use kernel_dispatch::{self as dispatch, After, Cpu, Here, Machine, Saw, WayOut};
use kernel_ops::capability::ProcessKey;
use kernel_ops::lines::Wiring;
use kernel_ops::machine::{CpuPart, Defect, NotMapped, ProcessPart, Tables};
use kernel_ops::paid::NoMemory;
use kernel_ops::party::Party;
use kernel_ops::shared::MemoryFacet;
use kernel_ops::{deadlines, enter, expire, interrupt};
use kernel_process::machine::{BadStart, Place, Start, Worker};
use kernel_process::{Process, Records, Thread, drain, end, handle, join};
use smp_ipi::{IdleSet, Requests};
use smp_pending::Target;
use smp_ring_testing::{HostContext, cpu_here};
use smp_timer::Deadlines;
use smp_trace::Control;
use std::convert::Infallible;
use std::sync::Mutex;

/// The machine by its place in memory.
#[derive(Clone, Copy)]
pub struct Host(pub(crate) &'static World);

/// What the machine keeps of a CPU.
pub struct Own {
    deadlines: Deadlines,
    /// An interrupt is on its way.
    pub(crate) is_interrupted: AtomicBool,
    /// When the timer fires.
    pub(crate) armed_ns: AtomicU64,
    /// Where the CPU is without threads.
    pub(crate) idle: HostContext,
    /// Threads handed to the reaper since the CPU last let interrupts in, or went to another context.
    ends: AtomicU32,
    /// What is to be done for the thread it came from.
    left: Mutex<Option<(After, &'static Thread<Host>)>>,
}

/// What passes between two looks at the clock: about what a step of the kernel takes.
const NS_PER_LOOK: u64 = 1_000;

/// Others do a call and its answer meanwhile.
const LINGER_STEPS: u32 = 6_000;

/// Threads that may be handed to the reaper in a section of kernel code: those of the two choices of an idle CPU, four
/// each, and the one that the CPU comes from.
const ENDS_PER_SECTION: u32 = 9;

/// The timer is not armed.
pub(crate) const NOT_ARMED: u64 = u64::MAX;

impl Own {
    pub(crate) fn new(cpu: usize) -> Self {
        Self {
            deadlines: Deadlines::new(cpu as u16),
            is_interrupted: AtomicBool::new(false),
            armed_ns: AtomicU64::new(NOT_ARMED),
            idle: HostContext::new(),
            ends: AtomicU32::new(0),
            left: Mutex::new(None),
        }
    }
}

impl CpuPart for Own {
    fn deadlines(&self) -> &Deadlines {
        &self.deadlines
    }
}

impl Host {
    /// The time, without letting it pass.
    pub fn now(self) -> u64 {
        self.0.clock.load(SeqCst)
    }

    /// Thread records that there are.
    pub fn records_made(self) -> usize {
        self.0.records.threads().len()
    }

    /// The name of whichever thread is in a record.
    pub fn name_of_thread(self, slot: u32) -> ThreadKey {
        self.0.records.thread(slot).expect("a record").key()
    }

    /// The console takes so many more bytes, as its interrupt says.
    pub fn console_takes(self, bytes: usize) {
        self.0.console.lock().unwrap().room += bytes;
        drain::wake(self);
    }

    /// What has come to the console.
    pub fn console_text(self) -> Vec<u8> {
        self.0.console.lock().unwrap().text.clone()
    }

    /// How often somebody looked after a console without room.
    pub fn console_looks(self) -> u32 {
        self.0.console.lock().unwrap().looks
    }

    /// Whether what a thread's record held was taken apart.
    pub fn is_taken_apart(self, slot: u32) -> bool {
        self.0.records.thread(slot).is_some_and(|thread| thread.ops.home.completions().is_none())
    }

    /// Makes more processes, which begin to run; their records.
    pub fn begin(self, processes: Vec<NewRun>) -> Vec<&'static Process<Self>> {
        self.0.begin(self, processes)
    }

    /// A device raises its line; whether anybody heard it.
    pub fn raise(self, line: u32) -> bool {
        let place = {
            let mut controller = self.0.controller.lock().unwrap();
            let Some(routed) = controller.iter_mut().find(|routed| routed.line == line) else {
                return false;
            };
            if !routed.is_open || routed.is_unanswered {
                return false;
            }
            routed.is_unanswered = routed.is_level;
            routed.place
        };
        interrupt::raised(self, place);
        true
    }

    /// Lines that are routed, and whether each is open.
    pub fn routed(self) -> Vec<(u32, bool)> {
        let controller = self.0.controller.lock().unwrap();
        controller.iter().map(|routed| (routed.line, routed.is_open)).collect()
    }

    /// Lets time pass.
    pub fn pass(self, ns: u64) {
        self.0.clock.fetch_add(ns, SeqCst);
    }

    fn change_line(self, line: u32, change: impl FnOnce(&mut Routed)) {
        let mut controller = self.0.controller.lock().unwrap();
        let routed = controller.iter_mut().find(|routed| routed.line == line);
        change(routed.expect("a line that was routed"));
    }

    /// Whether the reaper has something to do.
    pub fn has_remains(self) -> bool {
        self.0.records.remains.has_work()
    }

    /// Fails if anything is left of processes that have ended, where so many threads are left.
    pub fn check_settled(self, threads: usize) {
        self.0.check_settled(threads);
    }

    /// Memory objects can have so many frames more.
    pub fn leave_shared(self, frames: u64) {
        *self.0.shared_left.lock().unwrap() = frames;
    }

    /// Memory objects that there are.
    pub fn objects_in_use(self) -> usize {
        self.0.records.objects_in_use()
    }

    /// Frames that memory objects can still have.
    pub fn shared_left(self) -> u64 {
        *self.0.shared_left.lock().unwrap()
    }

    /// Processes that have not been taken apart.
    pub fn live(self) -> usize {
        self.0.live.load(SeqCst)
    }

    /// First of all on a stack: the switch to it is finished.
    pub(crate) fn arrive(self) {
        let left = self.cpu_here().own.left.lock().unwrap().take();
        if let Some((after, of)) = left {
            dispatch::finish_switch(self, after, of);
        }
    }

    fn context_of(self, next: Option<&'static Thread<Self>>) -> &'static HostContext {
        match next {
            Some(next) => next.ops.home.context(),
            None => &self.cpu_here().own.idle,
        }
    }

    /// Takes the interrupts that are pending on this CPU; `from_user` says that user mode was interrupted.
    pub(crate) fn take_interrupts(self, from_user: bool) {
        let own = &self.cpu_here().own;
        own.ends.store(0, SeqCst);
        if own.is_interrupted.swap(false, SeqCst) {
            dispatch::interrupt(self);
        }
        let own = &self.cpu_here().own;
        if own.armed_ns.load(SeqCst) <= self.now() {
            own.armed_ns.store(NOT_ARMED, SeqCst);
            dispatch::timer(self, from_user);
        }
    }

    /// What comes between two instructions of user mode.
    pub(crate) fn user_step(self, thread: &'static Thread<Self>) {
        self.take_interrupts(true);
        while dispatch::way_out(self, thread) == WayOut::Again {}
        self.0.check_accounts();
    }
}

impl Machine for Host {
    type Policy = AnyPolicy;
    type Thread = Thread<Self>;
    type Own = Own;
    type Gone = Infallible;

    fn cpus(self) -> &'static [Cpu<Self>] {
        &self.0.cpus
    }

    fn cpu_here(self) -> &'static Cpu<Self> {
        &self.0.cpus[cpu_here()]
    }

    fn idle_set(self) -> &'static IdleSet {
        &self.0.idle
    }

    fn online(self) -> CpuSet {
        CpuSet::first_n(self.0.cpus.len())
    }

    fn siblings(self, of: CpuId) -> CpuSet {
        CpuSet::only(of)
    }

    fn thread(self, slot: u32) -> Option<&'static Thread<Self>> {
        self.0.records.thread(slot)
    }

    fn clock(self) -> u64 {
        self.0.clock.fetch_add(NS_PER_LOOK, SeqCst)
    }

    fn arm(self, here: &Here<Self>, _: u64, at_ns: u64) {
        let armed = &here.own().armed_ns;
        if at_ns < armed.load(SeqCst) {
            armed.store(at_ns, SeqCst);
        }
    }

    fn expire(self, here: &Here<Self>, now_ns: u64) {
        expire::expire(self, here, now_ns);
    }

    fn next_deadline(self, here: &Here<Self>) -> Option<u64> {
        deadlines::next(self, here)
    }

    fn max_sleep_ns(self) -> Option<u64> {
        None
    }

    fn send_ipi(self, to: &'static Cpu<Self>) {
        to.own.is_interrupted.store(true, SeqCst);
    }

    fn serve(self, _: &Here<Self>, requests: Requests) {
        if requests.contains(Requests::TLB) {
            self.0.flushes.answer();
        }
        end::wake_reaper(self);
    }

    fn has_work(self, _: &Here<Self>) -> bool {
        self.0.is_over()
    }

    fn let_interrupts_in(self) {
        self.take_interrupts(false);
    }

    fn halt(self, here: Here<Self>) {
        self.0.halt(here.own());
        self.take_interrupts(false);
    }

    fn relax(self, here: Here<Self>) {
        here.own().ends.store(0, SeqCst);
        self.0.relax();
    }

    fn switch(
        self,
        here: Here<Self>,
        next: Option<&'static Thread<Self>>,
        after: After,
        of: &'static Thread<Self>,
    ) {
        here.own().ends.store(0, SeqCst);
        let before = here.own().left.lock().unwrap().replace((after, of));
        assert!(before.is_none(), "a switch within a switch");
        let (cpu, to) = (here.id().index(), self.context_of(next));
        of.ops.home.context().switch(|| to.resume(cpu));
        self.arrive();
    }

    fn switch_for_good(
        self,
        here: Here<Self>,
        next: Option<&'static Thread<Self>>,
        of: &'static Thread<Self>,
    ) -> Infallible {
        here.own().ends.store(0, SeqCst);
        let (cpu, to) = (here.id().index(), self.context_of(next));
        HostContext::end(move || {
            *self.0.cpus[cpu].own.left.lock().unwrap() = Some((After::End, of));
            to.resume(cpu);
        })
    }

    fn leave_idle(self, here: Here<Self>, next: &'static Thread<Self>) {
        let cpu = here.id().index();
        self.0.cpus[cpu].own.idle.switch(|| next.ops.home.context().resume(cpu));
        self.arrive();
    }

    fn timer_pass(self, _: Here<Self>, thread: &'static Thread<Self>) {
        enter::timer_pass(self, thread);
    }

    fn reap(self, thread: &'static Thread<Self>) {
        let ends = self.cpu_here().own.ends.fetch_add(1, SeqCst) + 1;
        assert!(ends <= ENDS_PER_SECTION, "{ends} threads are handed to the reaper in one section");
        end::reap(self, thread);
    }

    fn charge(self, thread: &'static Thread<Self>, charge: Charge) {
        thread.charge(charge);
    }

    fn trace(self) -> Option<&'static Control> {
        Some(&self.0.trace)
    }

    fn saw(self, _: &Here<Self>, _: Saw<Thread<Self>>) {}

    fn defect(self, what: &'static str) -> ! {
        panic!("defect: {what}")
    }

    fn refused(self, error: Error) -> ! {
        panic!("a queue refuses: {error:?}")
    }
}

impl kernel_ops::Machine for Host {
    type Context = HostContext;
    type RingMemory = &'static PlainMemory;
    type Space = HostSpace;
    const TRACES_SYSCALLS: bool = true;
    type Other = HostObject;

    fn tables(self) -> &'static Tables {
        &self.0.tables
    }

    fn process(self, slot: u32) -> Option<&'static ProcessPart<Self>> {
        self.0.records.process(slot).map(|process| &process.ops)
    }

    fn zeroed_words(self, count: usize) -> Result<Box<[u64]>, OutOfMemory> {
        self.0.allocate()?;
        Ok(vec![0; count].into_boxed_slice())
    }

    fn claim(self, party: Party, target: Target) -> bool {
        match target {
            Target::Join { thread } => join::give_up(self, ThreadKey::from_bits(thread), party),
            Target::End { process } => handle::give_up(self, process, party),
            _ => panic!("nothing waits for {target:?} here"),
        }
    }

    fn take_line(self, place: u32, wiring: Wiring) -> bool {
        let Wiring { line, trigger, .. } = wiring;
        let is_level = trigger == Trigger::Level;
        let routed = Routed { line, place, is_level, is_open: false, is_unanswered: false };
        let mut controller = self.0.controller.lock().unwrap();
        assert!(controller.iter().all(|other| other.line != line), "a line is routed twice");
        // Those below are the kernel's.
        let is_given = line > 4;
        if is_given {
            controller.push(routed);
        }
        is_given
    }

    fn give_line_back(self, line: u32) {
        self.0.controller.lock().unwrap().retain(|routed| routed.line != line);
    }

    fn set_line_open(self, line: u32, is_open: bool) {
        self.change_line(line, |routed| {
            assert_ne!(routed.is_open, is_open, "the controller is told what it knows");
            routed.is_open = is_open;
        });
    }

    fn acknowledge_line(self, line: u32) {
        self.change_line(line, |routed| {
            assert!(routed.is_unanswered, "nothing to be answered");
            routed.is_unanswered = false;
        });
    }

    fn linger(self) {
        for _ in 0..LINGER_STEPS {
            self.0.relax();
        }
    }

    fn plants(self, defect: Defect) -> bool {
        self.0.config.defect == Some(defect)
    }
}

/// How a thread starts: what it does, and with which argument.
pub struct UserStart {
    pub(crate) body: Body,
    pub(crate) argument: u64,
}

impl kernel_process::Machine for Host {
    type UserStart = UserStart;
    const STACK_PAGES: u32 = 1;

    fn handle_to(thread: ThreadKey) -> (HostObject, InterfaceTag) {
        let handle = HostObject::ThreadHandle(thread);
        (handle, handle.interface())
    }

    fn process_handle(process: ProcessKey) -> (HostObject, InterfaceTag) {
        let handle = HostObject::ProcessHandle(process);
        (handle, handle.interface())
    }

    fn user_session(of: ProcessKey) -> Option<HostObject> {
        Some(HostObject::UserSession(of))
    }

    fn granted(kind: GrantKind<'_>) -> Option<HostObject> {
        objects::granted(kind)
    }

    fn boot_module(self, name: &str) -> Option<&'static [u8]> {
        self.0.modules.iter().find(|(called, _)| *called == name).map(|(_, file)| *file)
    }

    fn manifest(self) -> Option<&'static [u8]> {
        self.boot_module("manifest.bin")
    }

    fn child_began(self) {
        self.0.live.fetch_add(1, SeqCst);
    }

    fn create_space(
        self,
        space: &'static HostSpace,
        ledger: &'static Ledger,
    ) -> Result<(), NoMemory> {
        self.0.allocate()?;
        space.create(ledger);
        Ok(())
    }

    fn fill(self, space: &'static HostSpace, to: u64, bytes: &[u8]) -> Result<(), NotMapped> {
        space.fill(to, bytes)
    }

    fn map_read_only(self, space: &'static HostSpace, at: u64) -> Result<(), NoMemory> {
        self.0.allocate()?;
        Ok(space.map_paid(at, 1, false)?)
    }

    fn map_time(self, _: &'static HostSpace) -> Result<(), NoMemory> {
        self.0.allocate()?;
        Ok(())
    }

    fn memory_facet(object: HostObject) -> Option<MemoryFacet> {
        match object {
            HostObject::MemoryObject(facet) => Some(facet),
            _ => None,
        }
    }

    fn memory_object(facet: MemoryFacet) -> (HostObject, InterfaceTag) {
        let object = HostObject::MemoryObject(facet);
        (object, object.interface())
    }

    fn records(self) -> &'static Records<Self> {
        &self.0.records
    }

    fn new_context(self) -> HostContext {
        HostContext::new()
    }

    fn new_space(self) -> HostSpace {
        HostSpace::with_flushes(&self.0.flushes)
    }

    fn may_grow(self) -> bool {
        self.0.allocate().is_ok()
    }

    fn user_start(self, start: Start) -> Result<UserStart, BadStart> {
        let body = self.0.body(start.entry).ok_or(BadStart::Entry)?;
        Ok(UserStart { body, argument: start.argument })
    }

    fn new_shared(self) -> HostShared {
        HostShared::limited(self.0.shared_left.clone())
    }

    fn free_frames(self) -> u64 {
        *self.0.shared_left.lock().unwrap()
    }

    fn new_stack(self) -> Result<(), OutOfMemory> {
        self.0.allocate()
    }

    fn new_ring(
        self,
        space: &'static HostSpace,
        address: u64,
        block: RingBlock,
    ) -> Result<&'static PlainMemory, NoMemory> {
        self.0.allocate()?;
        let make = || &*Box::leak(Box::new(PlainMemory::zeroed(block.sq_entries())));
        Ok(space.put_ring(address, block.size(), make)?)
    }

    fn start(
        self,
        space: &'static HostSpace,
        user: &mut UserStart,
        place: Place,
    ) -> smp_ring_testing::Body {
        self.0.is_in_kernel(place.thread).store(false, SeqCst);
        let (body, argument, ring) = (user.body.clone(), user.argument, space.ring(place.ring));
        self.0.guarded(move || {
            self.arrive();
            let thread = self.0.records.thread(place.thread).unwrap();
            let user = User::new(self, thread, ring, argument);
            self.user_step(thread);
            body(user);
            // User mode that comes to its end asks for one.
            self.user_step(thread);
            end::exit_thread(self, thread, 0)
        })
    }

    fn worker_start(self, thread: &'static Thread<Self>, worker: Worker) -> smp_ring_testing::Body {
        self.0.guarded(move || {
            self.arrive();
            match worker {
                Worker::Reaper => end::run_reaper(self, thread),
                Worker::Drain => drain::run_drain(self, thread),
            }
        })
    }

    fn free_memory(self, space: &'static HostSpace, frames: u64) -> bool {
        space.free(frames)
    }

    fn process_reaped(self, process: &'static Process<Self>) {
        self.0.reaped(process);
    }

    fn console_has_room(self) -> bool {
        self.0.console.lock().unwrap().room > 0
    }

    fn console_submit(self, bytes: &[u8]) -> usize {
        let mut console = self.0.console.lock().unwrap();
        let taken = bytes.len().min(console.room);
        console.room -= taken;
        console.text.extend(&bytes[..taken]);
        taken
    }

    fn console_paint(self) -> bool {
        false
    }

    fn console_look_after(self) {
        self.0.console.lock().unwrap().looks += 1;
    }
}
