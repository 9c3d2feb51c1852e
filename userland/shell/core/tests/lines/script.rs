//! A machine for the shell that is a script: what is typed, and programs that do one thing.

use std::collections::VecDeque;

use schema::process_directory::ThreadEntry;
use schema::process_directory_capnp::{CapabilityKind, ProcessState, ThreadState, WaitsFor};
use schema::process_handle::{InfoResults, LineUsage, ProcessUsage};
use schema::process_handle_capnp::ExitReason;
use schema::scheduling_policy_capnp::LatencyClass;
use schema::system_info::{CpuCounters, Machine};
use schema::system_info_capnp::ImageProfile;
use shell_core::Shell;
use shell_core::system::{
    Asked, CapabilityRow, Happening, Listed, ListedName, Measured, Process, ProcessRow, Program,
    Start, System,
};
use shell_core::text::{Ended, Sentence, sentence};

pub const PROGRAMS: [Program; 6] = [
    Program { name: "hello", about: "says hello" },
    Program { name: "forever", about: "never ends by itself" },
    Program { name: "keys", about: "reads a byte and ends with it" },
    Program { name: "noise", about: "writes half a line" },
    Program { name: "pieces", about: "writes its lines in pieces" },
    Program { name: "refused", about: "cannot be started" },
];

/// A thread that does nothing.
const THREAD: ThreadEntry = ThreadEntry {
    tid: 0,
    generation: 1,
    state: ThreadState::Ended,
    killed: false,
    waits_for: WaitsFor::NotWaiting,
    calls: 0,
    receives: 0,
    sleeps: 0,
    joins: 0,
    parks: 0,
    inputs: 0,
    outputs: 0,
    memory_changes: 0,
    process_ends: 0,
    weight: 64,
    class: LatencyClass::Batch,
    cpu: 1,
    runtime_ns: 1_500,
    virtual_runtime_ns: 0,
    runnable_accumulated_ns: 0,
    voluntary_blocks: 8,
    preemptions: 9,
    interrupts: 0,
};

fn listed<R, const N: usize>(rows: [R; N], next: Option<u32>) -> Listed<R> {
    Listed { rows: rows.into_iter().collect(), next }
}

/// What a process does next.
#[derive(Clone, Debug, PartialEq)]
enum Next {
    Say(Vec<u8>),
    Read,
    Reading,
    End(i64),
    Endless,
    Killed(i64),
    Gone,
}

struct Running {
    badge: u64,
    next: VecDeque<Next>,
    is_forgotten: bool,
}

/// The machine.
#[derive(Default)]
pub struct Script {
    pub typed: VecDeque<u8>,
    pub shown: Vec<u8>,
    processes: Vec<Running>,
    turn: usize,
    clock_ns: u64,
    /// Whether programs wait until all that is typed was taken.
    pub is_slow: bool,
}

impl Script {
    pub fn new(typed: &str) -> Self {
        Self { typed: typed.bytes().collect(), ..Self::default() }
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.shown).into_owned()
    }

    /// What a program does next, if one does anything.
    fn step(&mut self) -> Option<Happening> {
        for _ in 0..self.processes.len() {
            self.turn = (self.turn + 1) % self.processes.len();
            let (index, badge) = (self.turn, self.processes[self.turn].badge);
            let next = &mut self.processes[index].next;
            match next.front().cloned() {
                Some(Next::Say(bytes)) => {
                    next.pop_front();
                    let bytes = bytes.iter().copied().collect();
                    return Some(Happening::Wrote { badge, bytes });
                }
                Some(Next::Read) => {
                    next[0] = Next::Reading;
                    let asked = Asked(index as u64);
                    return Some(Happening::Reads { badge, capacity: 1, asked });
                }
                Some(Next::End(code)) => {
                    next[0] = Next::Gone;
                    let ended = Ended { code, reason: ExitReason::Exited };
                    return Some(Happening::Ended(Process(index), ended));
                }
                Some(Next::Killed(code)) => {
                    next[0] = Next::Gone;
                    let ended = Ended { code, reason: ExitReason::Killed };
                    return Some(Happening::Ended(Process(index), ended));
                }
                Some(Next::Reading | Next::Endless | Next::Gone) | None => {}
            }
        }
        None
    }
}

impl core::fmt::Write for Script {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        self.shown.extend(text.bytes());
        Ok(())
    }
}

impl System for Script {
    fn next(&mut self) -> Happening {
        self.clock_ns += 1_000_000;
        let typed_first = self.is_slow || self.clock_ns % 3_000_000 == 0;
        if !typed_first && let Some(happening) = self.step() {
            return happening;
        }
        if let Some(byte) = self.typed.pop_front() {
            return Happening::Typed(byte);
        }
        // Nothing is typed any more: what runs is ended, then the shell.
        self.step().unwrap_or(Happening::Typed(if self.clock_ns % 2_000_000 == 0 { 3 } else { 4 }))
    }

    fn show(&mut self, bytes: &[u8]) {
        self.shown.extend(bytes);
    }

    fn start(&mut self, start: &Start<'_>) -> Result<Process, Sentence> {
        let next = match start.program {
            "hello" => {
                let text = format!("hello, {}\n", start.arguments.join("+"));
                vec![Next::Say(text.into_bytes()), Next::End(0)]
            }
            "forever" | "counter-server" => vec![Next::Endless],
            "keys" => vec![Next::Read, Next::End(0)],
            "pieces" => {
                let pieces = ["one li", "ne\ntwo", " lines\nhal", "f"];
                let say = |text: &str| Next::Say(text.as_bytes().to_vec());
                pieces.map(say).into_iter().chain([Next::End(0)]).collect()
            }
            "noise" => vec![Next::Say(b"half \xff".to_vec()), Next::End(7)],
            "counter-client" => vec![Next::Say(b"press\n".to_vec()), Next::Read, Next::End(0)],
            _ => return Err(sentence(format_args!("it cannot be started"))),
        };
        assert_eq!(start.is_entry, start.program.starts_with("counter"));
        let next = next.into();
        self.processes.push(Running { badge: start.badge, next, is_forgotten: false });
        Ok(Process(self.processes.len() - 1))
    }

    fn kill(&mut self, process: Process, code: i64) {
        let next = &mut self.processes[process.0].next;
        if !matches!(next.front(), Some(Next::Gone)) {
            *next = [Next::Killed(code)].into();
        }
    }

    fn forget(&mut self, process: Process) {
        assert!(!std::mem::replace(&mut self.processes[process.0].is_forgotten, true));
    }

    fn usage(&mut self, process: Process) -> Result<ProcessUsage, Sentence> {
        assert!(!self.processes[process.0].is_forgotten);
        let line = LineUsage { used: 1, lent: 1, limit: 1000 };
        Ok(ProcessUsage {
            cap_slots: line,
            threads: line,
            kernel_stack_pages: line,
            frames: line,
            sleep_waiters: line,
            ring_entries: 64,
            ring_scratch_limit_bytes: 0,
            in_flight_call_limit: 0,
            endpoint_queue_limit: 0,
            kernel_bytes: line,
            registered_buffers: line,
        })
    }

    fn info(&mut self, process: Process) -> Result<InfoResults, Sentence> {
        assert!(!self.processes[process.0].is_forgotten);
        Ok(InfoResults { pid: 7, generation: 1, live_threads: 1, started_ns: 0 })
    }

    fn answer(&mut self, asked: Asked, typed: Result<&[u8], &str>) {
        let next = &mut self.processes[asked.0 as usize].next;
        // One that was killed while it read is not answered by anybody.
        if next.front() == Some(&Next::Reading) {
            next.pop_front();
            if let Ok([byte]) = typed {
                *next = [Next::End(i64::from(*byte))].into();
            }
        }
    }

    fn machine(&mut self) -> Result<Machine, Sentence> {
        Ok(Machine {
            cpus: 2,
            profile: ImageProfile::Checked,
            uptime_ns: 3_725_500_000_000,
            frames_total: 65_536,
            frames_free: 61_234,
            heap_bytes: 812_345,
            heap_frames: 230,
            heap_allocations: 0,
            accounts_closed: 0,
            accounts_not_zero: 0,
        })
    }

    fn cpu(&mut self, cpu: u32) -> Result<CpuCounters, Sentence> {
        Ok(CpuCounters {
            runnable: cpu,
            runnable_max: 0,
            switches: 12_345,
            preemptions: 0,
            steals: 0,
            failed_placements: 0,
            reschedule_sent: 0,
            reschedule_skipped: 0,
            tlb_requests: 0,
            tlb_failures: 0,
            idle_entries: 0,
            idle_ns: u64::MAX,
            timer_interrupts: 0,
            one_shots: 0,
            handoffs_taken: 0,
            handoffs_missed: 0,
            syscalls: 0,
            idle_cooperative: 0,
            idle_dispatch_timer: 0,
            idle_dispatch_block: 0,
            idle_dispatch_exit: 0,
            policy_admissions: 0,
            policy_denials: 0,
        })
    }

    /// Pages of one row each, with an empty one between.
    fn processes(&mut self, from: u32) -> Result<Listed<ProcessRow>, Sentence> {
        let row = |pid, name, state| ProcessRow {
            pid,
            generation: 1,
            name: ListedName::from(name).unwrap(),
            state,
            threads: 2,
            weight: 64,
            cpu_time_ns: 12_345_678,
            parent: (pid > 0).then_some(0),
        };
        Ok(match from {
            0 => listed([row(0, "init", ProcessState::Running)], Some(1)),
            1 => listed([], Some(2)),
            2..=7 => listed([row(7, "worker", ProcessState::Ending)], None),
            _ => listed([], None),
        })
    }

    fn threads(&mut self, of: (u32, u32), from: u32) -> Result<Listed<ThreadEntry>, Sentence> {
        if of == (7, 1) {
            return Err(sentence(format_args!("that process is gone: ps lists those there are")));
        }
        let thread = |tid, state, waits_for| ThreadEntry { tid, state, waits_for, ..THREAD };
        Ok(match from {
            0 => listed([thread(3, ThreadState::Running, WaitsFor::NotWaiting)], Some(4)),
            _ => listed([thread(5, ThreadState::Waiting, WaitsFor::Park)], None),
        })
    }

    fn capabilities(
        &mut self,
        _: (u32, u32),
        from: u32,
    ) -> Result<Listed<CapabilityRow>, Sentence> {
        let row = |slot, kind, interface_id, name| CapabilityRow {
            slot,
            kind,
            interface_id,
            name: ListedName::from(name).unwrap(),
        };
        Ok(match from {
            0 => listed(
                [
                    row(0, CapabilityKind::Object, schema::timer::INTERFACE_ID, "clock"),
                    row(1, CapabilityKind::Client, 0x1234_5678_9abc_def0, ""),
                ],
                Some(9),
            ),
            _ => listed([row(9, CapabilityKind::Endpoint, 0, "requests")], None),
        })
    }

    fn now_ns(&mut self) -> u64 {
        self.clock_ns
    }

    fn measure(&mut self, index: usize) -> Option<Result<Measured, Sentence>> {
        (index == 0).then_some(Ok(Measured { what: "nothing", times: 10, ns: 12_340 }))
    }
}

/// What a shell shows for what is typed, and its exit code.
pub fn session(typed: &str) -> (String, i64) {
    let mut script = Script::new(typed);
    let code = Shell::new(&mut script, &PROGRAMS).run();
    (script.text(), code)
}
