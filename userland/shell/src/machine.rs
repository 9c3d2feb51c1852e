//! The kernel as the shell's machine.

use core::fmt;

use abi_types::CapSlot;
use arrayvec::ArrayVec;
use capos_rt::caller::{Caller, LARGE_WORDS};
use capos_rt::out::Out;
use capos_rt::process::{Child, Processes};
use capos_rt::{Env, Error, Io, Pending, now_ns};
use schema::console::methods::Read;
use schema::console::{self, ReadParams};
use schema::process_directory::{self, ThreadEntry};
use schema::process_directory_capnp::DirectoryResult;
use schema::process_handle::methods::Wait;
use schema::process_handle::{InfoResults, ProcessUsage, WaitResults};
use schema::system_info::{self, CpuCounters, Machine};
use schema::{endpoint, park_space, timer};
use shell_core::jobs::MOST_JOBS;
use shell_core::system::{
    Asked, CapabilityRow, Happening, Listed, ListedName, Measured, Process, ProcessRow, Start,
    System,
};
use shell_core::text::{Ended, Sentence, sentence};

use crate::{measure, start, terminal};

/// Bytes read from the keyboard at once, as many as the kernel's console gives.
const TYPED_BYTES: usize = 64;

/// Text that is collected before it is written.
const SHOWN_BYTES: usize = 512;

/// How long the shell leaves alone what was refused, before it asks again.
const REFUSED_NS: u64 = 50_000_000;

/// What is under way or kept for a process that was started.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) child: Child,
    pub(crate) badge: u64,
    /// The operation that waits for its end; without it, it has ended.
    pub(crate) end: Option<Pending>,
}

/// The kernel, as far as the shell's capabilities reach.
pub(crate) struct Kernel {
    pub(crate) io: &'static Io,
    pub(crate) console: CapSlot,
    pub(crate) terminal: CapSlot,
    pub(crate) timer: CapSlot,
    pub(crate) info: CapSlot,
    pub(crate) park: CapSlot,
    directory: CapSlot,
    pub(crate) processes: Processes,
    pub(crate) running: [Option<Running>; MOST_JOBS],
    shown: ArrayVec<u8, SHOWN_BYTES>,
    typed: ArrayVec<u8, TYPED_BYTES>,
    reading: Option<Pending>,
    receiving: Option<Pending>,
    /// A write that was shown and not answered yet, and its length.
    wrote: Option<(Asked, usize)>,
}

impl Kernel {
    pub(crate) fn new(env: &'static Env) -> Result<Self, Error> {
        Ok(Self {
            io: &env.io,
            console: env.cap("console", console::INTERFACE_ID)?,
            terminal: env.cap("terminal", endpoint::INTERFACE_ID)?,
            timer: env.cap("timer", timer::INTERFACE_ID)?,
            info: env.cap("info", system_info::INTERFACE_ID)?,
            park: env.cap("park", park_space::INTERFACE_ID)?,
            directory: env.cap("directory", process_directory::INTERFACE_ID)?,
            processes: Processes::of(&env.caps)?,
            running: [const { None }; MOST_JOBS],
            shown: ArrayVec::new(),
            typed: ArrayVec::new(),
            reading: None,
            receiving: None,
            wrote: None,
        })
    }

    /// Writes what was collected.
    fn flush(&mut self) {
        let mut out = Out::new(self.io, self.console);
        // A console that takes nothing cannot be told about.
        let _shown = out.push(&self.shown).and_then(|()| out.flush());
        self.shown.clear();
    }

    /// Calls on the directory.
    fn directory(&self) -> process_directory::Client<Caller<'static, LARGE_WORDS>> {
        process_directory::Client::new(self.io.large(), self.directory)
    }

    /// Waits before something is asked for again that was refused.
    fn pause(&self) {
        let _slept = timer::Client::new(self.io.caller(), self.timer).sleep(REFUSED_NS);
    }

    /// A process, as long as it is not forgotten.
    pub(crate) fn child(&self, process: Process) -> Result<Child, Sentence> {
        let running = self.running.get(process.0).and_then(Option::as_ref);
        let child = running.filter(|running| running.end.is_some()).map(|running| running.child);
        child.ok_or_else(|| sentence(format_args!("that process is gone")))
    }

    /// Starts what is to be under way whenever the shell waits.
    fn listen(&mut self) {
        if self.reading.is_none() {
            let params = ReadParams { capacity: TYPED_BYTES as u32 };
            self.reading = self.io.start::<Read>(self.console, &params).ok();
        }
        if self.receiving.is_none() {
            self.receiving = terminal::receive(self.io, self.terminal);
        }
    }

    /// What has come of the first of all that is under way to have come to something: what was typed before the
    /// ends of processes, and these before what programs write, however much that is.
    fn first(&mut self) -> Option<Happening> {
        let mut among = ArrayVec::<&Pending, { MOST_JOBS + 2 }>::new();
        let mut ends = ArrayVec::<usize, MOST_JOBS>::new();
        let reading = self.reading.as_ref();
        let receiving = self.receiving.as_ref();
        among.extend(reading);
        for (index, running) in self.running.iter().enumerate() {
            if let Some(Running { end: Some(end), .. }) = running {
                among.push(end);
                ends.push(index);
            }
        }
        among.extend(receiving);
        if among.is_empty() {
            return None;
        }
        let before_ends = usize::from(reading.is_some());
        let position = self.io.wait_any(&among);
        drop(among);
        let Some(position) = position.checked_sub(before_ends) else {
            self.read();
            return None;
        };
        match ends.get(position).copied() {
            Some(index) => self.ended(index),
            None => self.received(),
        }
    }

    fn read(&mut self) {
        let Some(reading) = self.reading.take() else { return };
        let typed = &mut self.typed;
        let read = self.io.finish::<Read, _>(reading, |read| {
            // As many bytes as were asked for fit.
            let _fits = typed.try_extend_from_slice(read.bytes);
        });
        if read.is_err() {
            self.pause();
        }
    }

    fn ended(&mut self, index: usize) -> Option<Happening> {
        let running = self.running.get_mut(index)?.as_mut()?;
        let end = running.end.take()?;
        let ended = self.io.finish::<Wait, WaitResults>(end, |ended| ended);
        start::let_go(self.io, self.terminal, running);
        let ended = match ended {
            Ok(WaitResults { exit_code: code, reason }) => Ended { code, reason },
            // Nobody can say how: the handle is the shell's own, and it waits once.
            Err(_) => Ended {
                code: shell_core::shell::REFUSED,
                reason: schema::process_handle_capnp::ExitReason::Killed,
            },
        };
        Some(Happening::Ended(Process(index), ended))
    }

    fn received(&mut self) -> Option<Happening> {
        let receiving = self.receiving.take()?;
        match terminal::take(self.io, receiving) {
            Ok(terminal::Asks::Write { badge, bytes, asked }) => {
                self.wrote = Some((asked, bytes.len()));
                Some(Happening::Wrote { badge, bytes })
            }
            Ok(terminal::Asks::Read { badge, capacity, asked }) => {
                Some(Happening::Reads { badge, capacity, asked })
            }
            Ok(terminal::Asks::Nothing) => None,
            Err(_) => {
                self.pause();
                None
            }
        }
    }
}

impl fmt::Write for Kernel {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.show(text.as_bytes());
        Ok(())
    }
}

impl System for Kernel {
    fn next(&mut self) -> Happening {
        self.flush();
        if let Some((asked, length)) = self.wrote.take() {
            terminal::answer_write(self.io, asked, length);
        }
        loop {
            if let Some(byte) = self.typed.pop_at(0) {
                return Happening::Typed(byte);
            }
            self.listen();
            if let Some(happening) = self.first() {
                return happening;
            }
        }
    }

    fn show(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if self.shown.is_full() {
                self.flush();
            }
            let _fits = self.shown.try_push(*byte);
        }
    }

    fn start(&mut self, start: &Start<'_>) -> Result<Process, Sentence> {
        start::start(self, start)
    }

    fn kill(&mut self, process: Process, code: i64) {
        if let Ok(child) = self.child(process) {
            // One that is gone meanwhile needs no more.
            let _killed = child.kill(self.io, code);
        }
    }

    fn forget(&mut self, process: Process) {
        if let Some(place) = self.running.get_mut(process.0) {
            *place = None;
        }
    }

    fn usage(&mut self, process: Process) -> Result<ProcessUsage, Sentence> {
        let child = self.child(process)?;
        child.usage(self.io).map_err(|error| sentence(format_args!("{error}")))
    }

    fn info(&mut self, process: Process) -> Result<InfoResults, Sentence> {
        let child = self.child(process)?;
        child.info(self.io).map_err(|error| sentence(format_args!("{error}")))
    }

    fn answer(&mut self, asked: Asked, typed: Result<&[u8], &str>) {
        terminal::answer_read(self.io, asked, typed);
    }

    fn machine(&mut self) -> Result<Machine, Sentence> {
        let machine = system_info::Client::new(self.io.large(), self.info).machine();
        machine.map(|machine| machine.machine).map_err(|error| sentence(format_args!("{error}")))
    }

    fn cpu(&mut self, cpu: u32) -> Result<CpuCounters, Sentence> {
        let counters = system_info::Client::new(self.io.large(), self.info).cpu(cpu);
        counters.map(|cpu| cpu.counters).map_err(|error| sentence(format_args!("{error}")))
    }

    fn processes(&mut self, from: u32) -> Result<Listed<ProcessRow>, Sentence> {
        let mut directory = self.directory();
        let message = directory.processes(from).map_err(unlisted)?;
        let page = message.get().map_err(unlisted)?;
        let mut rows = ArrayVec::new();
        for entry in page.processes.iter() {
            let entry = entry.map_err(unlisted)?;
            let row = ProcessRow {
                pid: entry.pid,
                generation: entry.generation,
                name: ListedName::from(entry.name).unwrap_or_default(),
                state: entry.state,
                threads: entry.live_threads,
                weight: entry.weight,
                cpu_time_ns: entry.cpu_time_ns,
                parent: (entry.parent_generation != 0).then_some(entry.parent_pid),
            };
            rows.try_push(row).map_err(unlisted)?;
        }
        Ok(Listed { rows, next: page.more.then_some(page.next) })
    }

    fn threads(&mut self, of: (u32, u32), from: u32) -> Result<Listed<ThreadEntry>, Sentence> {
        let mut directory = self.directory();
        let message = directory.threads(of.0, of.1, from).map_err(unlisted)?;
        let page = message.get().map_err(unlisted)?;
        is_there(page.result)?;
        let mut rows = ArrayVec::new();
        for entry in page.threads.iter() {
            rows.try_push(entry.map_err(unlisted)?).map_err(unlisted)?;
        }
        Ok(Listed { rows, next: page.more.then_some(page.next) })
    }

    fn capabilities(
        &mut self,
        of: (u32, u32),
        from: u32,
    ) -> Result<Listed<CapabilityRow>, Sentence> {
        let mut directory = self.directory();
        let message = directory.capabilities(of.0, of.1, from).map_err(unlisted)?;
        let page = message.get().map_err(unlisted)?;
        is_there(page.result)?;
        let mut rows = ArrayVec::new();
        for entry in page.capabilities.iter() {
            let entry = entry.map_err(unlisted)?;
            let row = CapabilityRow {
                slot: entry.slot,
                kind: entry.kind,
                interface_id: entry.interface_id,
                name: ListedName::from(entry.name).unwrap_or_default(),
            };
            rows.try_push(row).map_err(unlisted)?;
        }
        Ok(Listed { rows, next: page.more.then_some(page.next) })
    }

    fn now_ns(&mut self) -> u64 {
        now_ns()
    }

    fn measure(&mut self, index: usize) -> Option<Result<Measured, Sentence>> {
        measure::measure(self, index)
    }
}

/// What is said of a list that could not be read.
fn unlisted(error: impl fmt::Display) -> Sentence {
    sentence(format_args!("the directory of processes does not answer: {error}"))
}

/// A process that is gone has no list.
fn is_there(result: DirectoryResult) -> Result<(), Sentence> {
    match result {
        DirectoryResult::Ok => Ok(()),
        DirectoryResult::StaleGeneration => {
            Err(sentence(format_args!("that process is gone: ps lists those there are")))
        }
    }
}
