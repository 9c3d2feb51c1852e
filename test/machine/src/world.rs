//! A run: processes on CPUs, from the first to the check that nothing of them is left.

use crate::PLAIN;
use crate::latch::Latch;
use crate::machine::{Host, NOT_ARMED, Own, UserStart};
use crate::objects::HostObject;
use crate::programs;
use crate::space::Flushes;
use crate::user::User;
use abi_sync::Room;
use abi_sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use abi_types::CapSlot;
use core_cap::Cap;
use core_endpoint::EndpointKey;
use core_fallible::{OutOfMemory, injection};
use core_ledger::Line;
use core_manifest::{Name, Profile};
use core_sched::CpuId;
use core_sched_policy::{PolicyKind, Weight};
use kernel_dispatch::{self as dispatch, Cpu};
use kernel_ops::capability::{FacetOf, Object};
use kernel_ops::interrupt;
use kernel_ops::lines::{Lines, Wiring};
use kernel_ops::machine::{Defect, Tables};
use kernel_ops::outlets::Outputs;
use kernel_ops::trace_owner::TraceOwner;
use kernel_process::machine::Worker;
use kernel_process::{NewProcess, Records, session, spawn};
use smp_ipi::IdleSet;
use smp_park::ParkTable;
use smp_ring::Context as _;
use smp_rq::RunQueue;
use smp_trace::Control;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex};

/// What a thread does in user mode.
pub type Body = Arc<dyn Fn(User) + Send + Sync>;

/// Records of memory objects there can be.
const OBJECTS: u32 = 64;

/// A machine.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// CPUs.
    pub cpus: usize,
    /// The policy of their queues.
    pub policy: PolicyKind,
    /// Thread records there can be, beside the drain's.
    pub threads: u32,
    /// Process records there can be.
    pub processes: u32,
    /// Whether IPC may take its fast path.
    pub fast_path: bool,
    /// By then a run is over, or will never be.
    pub patience_ns: u64,
    /// A bug that is planted.
    pub defect: Option<Defect>,
    /// Bytes the console takes before it is told to take more.
    pub console_room: usize,
    /// Frames that memory objects can have together.
    pub shared_frames: u64,
    /// The allocation that fails, counted from 0 once the processes run.
    pub out_of_memory_at: Option<usize>,
    /// Programs that can be spawned: `0.elf` and so on, each of which does what the body of its number does.
    pub programs: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            cpus: 1,
            policy: PolicyKind::Eevdf,
            threads: 32,
            processes: 8,
            fast_path: true,
            patience_ns: 1_000_000_000_000,
            defect: None,
            console_room: usize::MAX / 2,
            shared_frames: 1 << 20,
            out_of_memory_at: None,
            programs: 0,
        }
    }
}

/// What a process is given.
#[derive(Clone, Copy, Debug)]
pub enum Grant {
    /// An object of the machine's.
    Object(HostObject),
    /// The right to park.
    ParkSpace,
    /// An interrupt line.
    Line(Wiring),
    /// The receiving side of a new endpoint.
    Endpoint,
    /// A session of its own.
    Session,
    /// A facet of the endpoint that the process at that place serves, the how-manieth of its own.
    Client(usize, usize, u64),
}

/// A process of a run.
#[derive(Clone)]
pub struct Process {
    /// What it is called.
    pub name: &'static str,
    /// What it may use.
    pub profile: Profile,
    /// What it is given, by name.
    pub grants: Vec<(&'static str, Grant)>,
    /// What its first thread does.
    pub main: Body,
}

impl Process {
    /// A process with the usual objects and a small profile.
    pub fn new(name: &'static str, main: impl Fn(User) + Send + Sync + 'static) -> Self {
        let profile = Profile {
            cap_slots: 32,
            threads: 16,
            kernel_stack_pages: 16,
            frames: 64,
            sleep_waiters: 8,
            ring_entries: 8,
            ring_scratch_limit_bytes: 1 << 16,
            in_flight_call_limit: 4,
            endpoint_queue_limit: 4,
            kernel_bytes: 1 << 20,
            registered_buffers: 4,
        };
        let grants = vec![
            ("timer", Grant::Object(HostObject::Timer)),
            ("console", Grant::Object(HostObject::Console)),
            ("threads", Grant::Object(HostObject::ThreadSpawner)),
            ("control", Grant::Object(HostObject::ThreadControl)),
            ("park", Grant::ParkSpace),
        ];
        Self { name, profile, grants, main: Arc::new(main) }
    }

    /// The same with one more grant.
    pub fn with(mut self, name: &'static str, grant: Grant) -> Self {
        self.grants.push((name, grant));
        self
    }
}

/// How a run went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Each process's name and exit code, in the order they ended.
    pub ends: Vec<(String, i64)>,
    /// Allocations that were made once the processes ran.
    pub allocations: usize,
    /// Where in the kernel's crates the one that failed was asked for; `None` if it was the machine's, or none did.
    pub denied: Option<&'static Location<'static>>,
    /// What has come to the console.
    pub console: Vec<u8>,
}

/// What the console is connected with.
#[derive(Debug, Default)]
pub(crate) struct Paper {
    pub(crate) text: Vec<u8>,
    pub(crate) room: usize,
    pub(crate) looks: u32,
}

/// A line of the interrupt controller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Routed {
    pub(crate) line: u32,
    pub(crate) place: u32,
    pub(crate) is_level: bool,
    pub(crate) is_open: bool,
    pub(crate) is_unanswered: bool,
}

/// The machine.
pub struct World {
    pub(crate) cpus: Vec<Cpu<Host>>,
    pub(crate) idle: IdleSet,
    pub(crate) records: Records<Host>,
    pub(crate) tables: Tables,
    /// What is recorded.
    pub(crate) trace: Control,
    /// The interrupt controller: lines that are routed.
    pub(crate) controller: Mutex<Vec<Routed>>,
    pub(crate) clock: AtomicU64,
    pub(crate) flushes: Flushes,
    pub(crate) console: Mutex<Paper>,
    bodies: Vec<Body>,
    /// Files by name, as a boot loader has them.
    pub(crate) modules: Vec<(&'static str, &'static [u8])>,
    caps: Mutex<Vec<(u32, &'static str, CapSlot)>>,
    ends: Mutex<Vec<(String, i64)>>,
    pub(crate) live: AtomicUsize,
    is_over: AtomicBool,
    halted: AtomicUsize,
    latch: Latch,
    /// Which threads are in the kernel.
    in_kernel: Vec<AtomicBool>,
    pub(crate) config: Config,
    /// Frames that memory objects can still have.
    pub(crate) shared_left: Arc<Mutex<u64>>,
}

/// A process's record.
pub(crate) type Begun = &'static kernel_process::Process<Host>;
/// A process's record, and the endpoints it serves.
type Made = (Begun, Vec<EndpointKey>);

/// Places for so many items.
fn room<T>(most: u32) -> Room<T> {
    Room::of(Box::leak(Box::new_uninit_slice(most as usize)))
}

/// A machine on which nothing runs, for looking at its tables.
pub fn with_machine<R>(config: Config, f: impl FnOnce(Host, &'static Records<Host>) -> R) -> R {
    let world = World::new(config, 0, vec![]);
    f(Host(world), &world.records)
}

/// Runs processes until all of them have ended; threads that they make do what `bodies` say, by number.
/// Checks that nothing of them is left.
pub fn run(config: Config, processes: Vec<Process>, bodies: Vec<Body>) -> Report {
    let world = World::new(config, processes.len(), bodies);
    let m = Host(world);
    let mut boot = Some(processes);
    for (n, cpu) in world.cpus.iter().enumerate() {
        let boot = boot.take();
        let body = world.guarded(move || {
            if let Some(processes) = boot {
                world.start(m, processes);
            }
            // A worker that was woken for nothing comes to rest first.
            while !world.is_over() || cpu.queue.hint().waiting > 0 {
                dispatch::turn_of_idle(m);
            }
            world.latch.stopped();
        });
        cpu.own.idle.prepare((), body).expect("an idle context is empty");
        cpu.own.idle.resume(n);
    }
    world.latch.wait();
    // The workers wait for more, and there is none.
    for worker in [world.records.reaper(), world.records.drain()].into_iter().flatten() {
        assert!(worker.ops.home.retire().is_ok(), "the worker {} is at something", worker.slot());
    }
    world.check_nothing_is_left();
    let ends = world.ends.lock().unwrap().clone();
    let console = m.console_text();
    let allocations = &world.flushes.allocations;
    Report { ends, allocations: allocations.count(), denied: allocations.denied(), console }
}

impl World {
    /// A machine that has not begun, for so many processes.
    fn new(config: Config, processes: usize, bodies: Vec<Body>) -> &'static Self {
        let id = |cpu| CpuId::new(cpu).unwrap();
        let threads = config.threads + 1;
        let world: &'static Self = Box::leak(Box::new(Self {
            cpus: (0..config.cpus)
                .map(|cpu| {
                    Cpu::new(RunQueue::with_policy(id(cpu), config.policy, 0), Own::new(cpu))
                })
                .collect(),
            idle: IdleSet::new(),
            records: Records::new(),
            tables: Tables {
                park: ParkTable::new(room(threads), [17, 42]),
                has_fast_path: config.fast_path,
                outputs: Outputs::new(config.processes as usize).unwrap(),
                lines: Lines::new(),
                trace: TraceOwner::new(),
            },
            trace: Control::new(),
            controller: Mutex::default(),
            clock: AtomicU64::new(1),
            flushes: Flushes::new(config.cpus, config.out_of_memory_at),
            console: Mutex::new(Paper { room: config.console_room, ..Paper::default() }),
            bodies,
            modules: programs::modules(config.programs),
            caps: Mutex::default(),
            ends: Mutex::default(),
            live: AtomicUsize::new(processes),
            is_over: AtomicBool::new(false),
            halted: AtomicUsize::new(0),
            latch: Latch::new(config.cpus),
            in_kernel: (0..threads).map(|_| AtomicBool::new(false)).collect(),
            config,
            shared_left: Arc::new(Mutex::new(config.shared_frames)),
        }));
        assert!(world.records.set_rooms(room(threads), room(config.processes), room(OBJECTS)));
        world
    }

    /// A body of a context whose panic ends the run.
    pub(crate) fn guarded(
        &'static self,
        body: impl FnOnce() + Send + 'static,
    ) -> Box<dyn FnOnce() + Send> {
        Box::new(move || {
            // A model's threads share one of the host's, and its executions follow each other there.
            if cfg!(not(shuttle)) {
                injection::install(Some(self.flushes.allocations.clone()));
            }
            if let Err(unwound) = catch_unwind(AssertUnwindSafe(body)) {
                // The end of a thread, or a panic; a model reports those by itself.
                let is_panic = unwound.is::<&str>() || unwound.is::<String>();
                if is_panic && cfg!(not(shuttle)) {
                    return self.latch.panicked(unwound);
                }
                resume_unwind(unwound);
            }
        })
    }

    /// Makes the kernel's own threads and the processes, and lets them run.
    fn start(&'static self, m: Host, processes: Vec<Process>) {
        let made = self.make(m, &processes);
        spawn::spawn_worker(m, Worker::Reaper).expect("a reaper");
        spawn::spawn_worker(m, Worker::Drain).expect("a drain");
        self.let_run(m, processes, made);
        self.flushes.allocations.begin();
    }

    /// Makes more processes while others run; their records.
    pub(crate) fn begin(&'static self, m: Host, processes: Vec<Process>) -> Vec<Begun> {
        self.live.fetch_add(processes.len(), SeqCst);
        let made = self.make(m, &processes);
        let begun = made.iter().map(|(record, _)| *record).collect();
        self.let_run(m, processes, made);
        begun
    }

    /// The first threads of processes that were made.
    fn let_run(&'static self, m: Host, processes: Vec<Process>, made: Vec<Made>) {
        for (process, (record, _)) in processes.into_iter().zip(made) {
            let start = UserStart { body: process.main, argument: 0 };
            spawn::spawn(m, record, start, Weight::DEFAULT, false).expect("a first thread");
        }
    }

    /// Processes without threads, with what each is given.
    fn make(&'static self, m: Host, processes: &[Process]) -> Vec<Made> {
        let mut made: Vec<Made> = Vec::new();
        for process in processes {
            let is_served = |(_, grant): &&(_, Grant)| matches!(grant, Grant::Endpoint);
            let count = process.grants.iter().filter(is_served).count();
            let serves = vec![PLAIN; count];
            let new = NewProcess {
                name: Name::new(process.name),
                profile: process.profile,
                weight: Weight::DEFAULT,
                is_essential: false,
                serves: &serves,
                handles: 0,
                lent: None,
            };
            let made_of = self.records.begin_process(m, new);
            let (record, endpoints) = made_of.expect("a record, and memory");
            record.ops.space.create(&record.ops.ledger);
            // Those of the process that was in the record before.
            self.caps.lock().unwrap().retain(|(of, ..)| *of != record.slot());
            made.push((record, endpoints));
        }
        for (process, (record, own)) in processes.iter().zip(&made) {
            let mut own = own.iter();
            for (name, grant) in &process.grants {
                let facet = |of: usize, endpoint: EndpointKey| FacetOf {
                    process: made[of].0.key(),
                    endpoint,
                };
                let cap = match *grant {
                    Grant::Object(object) => Cap::new(Object::Other(object), object.interface()),
                    Grant::Line(wiring) => {
                        let place = interrupt::grant(m, wiring).expect("a line");
                        let line = HostObject::Interrupt(place);
                        Cap::new(Object::Other(line), line.interface())
                    }
                    Grant::ParkSpace => {
                        Cap::new(Object::ParkSpace, schema::park_space::INTERFACE_TAG)
                    }
                    Grant::Session => {
                        session::begin(record);
                        session::hold_for_capability(m, record);
                        let object = HostObject::UserSession(record.key());
                        Cap::new(Object::Other(object), object.interface())
                    }
                    Grant::Endpoint => {
                        let endpoint = *own.next().unwrap();
                        let of = FacetOf { process: record.key(), endpoint };
                        Cap::new(Object::Endpoint(of), schema::endpoint::INTERFACE_TAG)
                    }
                    Grant::Client(server, number, badge) => {
                        let of = facet(server, made[server].1[number]);
                        let mut service = made[server].0.ops.service.lock();
                        let grant = service.as_mut().unwrap().mint(of.endpoint, badge).unwrap();
                        Cap { object: Object::Facet(of), interface: PLAIN, badge, grant }
                    }
                };
                let slot = record.ops.caps.lock().as_mut().unwrap().insert(cap).unwrap();
                self.caps.lock().unwrap().push((record.slot(), name, slot));
            }
        }
        made
    }

    /// The slot that a grant of a process went to.
    pub(crate) fn cap(&self, process: u32, name: &str) -> CapSlot {
        let caps = self.caps.lock().unwrap();
        let found = caps.iter().find(|(of, called, _)| *of == process && *called == name);
        found.unwrap_or_else(|| panic!("process {process} was granted no {name}")).2
    }

    /// What threads at an entry do: of a process, or of a program.
    pub(crate) fn body(&self, entry: u64) -> Option<Body> {
        let number = entry.checked_sub(programs::FIRST_ENTRY).unwrap_or(entry);
        self.bodies.get(number as usize).cloned()
    }

    /// Counts an allocation; the one that is to fail does.
    pub(crate) fn allocate(&self) -> Result<(), OutOfMemory> {
        self.flushes.allocations.allocate()
    }

    /// Whether a thread is in the kernel: said by itself.
    pub(crate) fn is_in_kernel(&self, thread: u32) -> &AtomicBool {
        &self.in_kernel[thread as usize]
    }

    /// Whether every process has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(SeqCst)
    }

    /// A process was taken apart: nothing may be left of it but the record.
    pub(crate) fn reaped(&'static self, process: &'static kernel_process::Process<Host>) {
        assert_eq!(process.ops.sleeps(), 0, "a sleep of {process:?} is left");
        let name = process.members.lock().name;
        if let Some(service) = process.ops.service.lock().as_ref() {
            service.calls.check_invariants().unwrap();
        }
        self.ends.lock().unwrap().push((name.as_str().to_string(), process.exit_code()));
        let lines = Line::ALL.map(|line| (line, process.ops.ledger.reading(line).used));
        assert!(
            self.records.vacate(Host(self), process),
            "the account of {process:?} is not zero: {lines:?}"
        );
        if self.live.fetch_sub(1, SeqCst) == 1 {
            assert_eq!(self.records.objects_in_use(), 0, "memory objects outlive every process");
            self.is_over.store(true, SeqCst);
        }
    }

    /// Lets other threads of the host run.
    pub(crate) fn relax(&self) {
        // CPUs of a loaded host fall behind each other, and the clock is that of the first.
        let is_in_step = self.cpus.len() == 1 || cfg!(shuttle);
        if is_in_step && self.clock.load(SeqCst) > self.config.patience_ns && !self.is_over() {
            panic!("the processes do not come to an end\n{}", self.dump());
        }
        #[cfg(shuttle)]
        abi_sync::thread::yield_now();
        #[cfg(not(shuttle))]
        std::thread::yield_now();
    }

    /// Waits for an interrupt of a CPU, or for its timer. If all wait, time passes.
    pub(crate) fn halt(&self, own: &Own) {
        self.halted.fetch_add(1, SeqCst);
        while !own.is_interrupted.load(SeqCst)
            && !self.is_over()
            && own.armed_ns.load(SeqCst) > self.clock.load(SeqCst)
        {
            if self.halted.load(SeqCst) == self.cpus.len() {
                self.let_time_pass();
            }
            self.relax();
        }
        self.halted.fetch_sub(1, SeqCst);
    }

    /// Every CPU has halted: the clock goes on to the first deadline.
    fn let_time_pass(&self) {
        let is_asked = |cpu: &Cpu<Host>| cpu.own.is_interrupted.load(SeqCst);
        let first = self.cpus.iter().map(|cpu| cpu.own.armed_ns.load(SeqCst)).min();
        if self.cpus.iter().any(is_asked) || self.halted.load(SeqCst) < self.cpus.len() {
            return;
        }
        match first {
            None | Some(NOT_ARMED) => {
                panic!("a wake was lost: every CPU halts for good\n{}", self.dump())
            }
            Some(at) => drop(self.clock.fetch_max(at, SeqCst)),
        }
    }

    /// Who waits for what.
    fn dump(&self) -> String {
        let mut text = String::new();
        for thread in self.records.threads() {
            let word = thread.state.load();
            let Some(held) = thread.ops.home.completions() else { continue };
            text += &format!(
                "thread {} of process {}: {word:?}",
                thread.slot(),
                thread.ops.process_slot()
            );
            for (cell, what) in held.ring().shared.cells.busy(0) {
                text += &format!("; cell {cell} waits for {:?}", what.target());
            }
            text += "\n";
        }
        for cpu in &self.cpus {
            text += &format!("CPU {}: {:?}\n", cpu.id().index(), cpu.queue.hint());
        }
        text
    }
}
