//! A test program: its capabilities, its siblings, and looks at the machine.

use abi_types::{CapSlot, ExceptionKind, Opcode, Sqe, Status};
use capos_rt::io::Io;
use capos_rt::{Env, Error};
use schema::{park_space, system_info, thread_control, thread_handle, thread_spawner, timer};
use schema_wire::CallError;

use crate::raw::{By, Main, Raw, Run};

/// Memory of a sibling.
pub type Sibling = Raw<16384>;

/// What the tests of a program share. Its manifest grants `spawner`, `control`, `park`, `timer` and
/// `info`.
pub struct Program {
    /// Its first thread's environment.
    pub env: &'static Env,
    /// A ThreadSpawner.
    pub spawner: CapSlot,
    /// A ThreadControl.
    pub control: CapSlot,
    /// A ParkSpace.
    pub park: CapSlot,
    /// A Timer.
    pub timer: CapSlot,
    /// A SystemInfo.
    pub info: CapSlot,
    /// Memory for siblings, by number.
    pub siblings: &'static [Sibling],
}

impl Program {
    /// The program, with memory for its siblings.
    pub fn new(env: &'static Env, siblings: &'static [Sibling]) -> Result<Self, Error> {
        Ok(Self {
            env,
            spawner: env.cap("spawner", thread_spawner::INTERFACE_ID)?,
            control: env.cap("control", thread_control::INTERFACE_ID)?,
            park: env.cap("park", park_space::INTERFACE_ID)?,
            timer: env.cap("timer", timer::INTERFACE_ID)?,
            info: env.cap("info", system_info::INTERFACE_ID)?,
            siblings,
        })
    }

    /// The first thread's operations.
    pub fn io(&self) -> &'static Io {
        &self.env.io
    }

    /// The authority to make raw threads.
    pub fn by(&self) -> By {
        By { spawner: self.spawner, control: self.control }
    }

    /// Starts a thread on the memory of that number.
    pub fn spawn(&self, number: usize, main: Main, argument: u64) -> Result<CapSlot, CallError> {
        let Some(sibling) = self.siblings.get(number) else {
            return Err(Status::InvalidArgument.into());
        };
        sibling.start(self.io(), self.by(), Run { main, argument, fs_base: 0 })
    }

    /// Joins and gives the handle back.
    pub fn finish(&self, handle: CapSlot) -> Result<i64, CallError> {
        let code = self.join(handle)?;
        self.release(handle)?;
        Ok(code)
    }

    /// How many CPUs there are.
    pub fn cpus(&self) -> u32 {
        let mut info = system_info::Client::new(self.io().large(), self.info);
        info.machine().map_or(0, |found| found.machine.cpus)
    }

    /// Frames that are free.
    pub fn free_frames(&self) -> u64 {
        let mut info = system_info::Client::new(self.io().large(), self.info);
        info.machine().map_or(0, |found| found.machine.frames_free)
    }

    /// Sleeps.
    pub fn sleep(&self, ns: u64) {
        let _ = timer::Client::new(self.io().caller(), self.timer).sleep(ns);
    }

    /// Lets others run.
    pub fn yield_now(&self) {
        let _ = self.io().yield_now();
    }

    /// What a CPU counts.
    pub fn counters(&self, cpu: u32) -> Option<system_info::CpuCounters> {
        let mut info = system_info::Client::new(self.io().large(), self.info);
        Some(info.cpu(cpu).ok()?.counters)
    }

    /// The handle's exit code if its thread has exited.
    pub fn exit_code(&self, handle: CapSlot) -> Result<Option<i64>, CallError> {
        let found = thread_handle::Client::new(self.io().caller(), handle).exit_code()?;
        Ok(found.exited.then_some(found.exit_code))
    }

    /// Waits until a thread has exited, without joining it.
    pub fn until_exited(&self, handle: CapSlot) {
        while self.exit_code(handle) == Ok(None) {
            self.yield_now();
        }
    }

    /// Joins.
    pub fn join(&self, handle: CapSlot) -> Result<i64, CallError> {
        let joined = thread_handle::Client::new(self.io().caller(), handle).join()?;
        Ok(joined.exit_code)
    }

    /// Gives a slot back.
    pub fn release(&self, slot: CapSlot) -> Result<(), Status> {
        self.io().release(slot)
    }

    /// Frames that are in use, but for the kernel heap's: that keeps an empty page of each size that was ever needed, so
    /// its frames depend on how many things of one size there happened to be at once.
    pub fn used_frames(&self) -> u64 {
        let mut info = system_info::Client::new(self.io().large(), self.info);
        info.machine().map_or(0, |found| {
            let machine = found.machine;
            machine.frames_total - machine.frames_free - machine.heap_frames
        })
    }

    /// Those once nothing is taken apart in the background any more: as many for some milliseconds.
    pub fn settled_frames(&self) -> u64 {
        let mut frames = self.used_frames();
        let mut times = 0;
        while times < 30 {
            self.sleep(100_000);
            let now = self.used_frames();
            times = if now == frames { times + 1 } else { 0 };
            frames = now;
        }
        frames
    }

    /// Waits until frames are as many as they were, since ends are taken apart in the background.
    pub fn until_frames(&self, expected: u64) -> u64 {
        for _ in 0..2000 {
            if self.free_frames() == expected {
                break;
            }
            self.sleep(100_000);
        }
        self.free_frames()
    }
}

/// Whether a call was answered by an exception of that kind with those words.
pub fn is_exception<V>(result: &Result<V, CallError>, kind: ExceptionKind, words: &str) -> bool {
    matches!(result, Err(CallError::Exception(found))
        if found.kind() == kind && found.message().contains(words))
}

/// Slots looked at by [`nameless_slots`]: a table's default, twice over.
const SLOTS: u32 = 128;
/// Generations a slot may have had by then.
const GENERATIONS: u32 = 4;

/// How many slots the process holds that its CapSet does not name. Such a slot is released.
pub fn nameless_slots(env: &Env) -> u32 {
    let mut count = 0;
    for index in 0..SLOTS {
        for generation in 0..GENERATIONS {
            let slot = CapSlot::new(index, generation);
            let is_named = env.caps.iter().any(|(_, named)| named == slot);
            if !is_named && env.io.release(slot) != Err(Status::Disconnected) {
                count += 1;
            }
        }
    }
    count
}

/// CANCEL as an SQE.
pub fn cancel_sqe(user_data: u64) -> Sqe {
    Sqe { opcode: Opcode::Cancel as u8, arg: user_data, ..Sqe::default() }
}

/// Takes some instructions. Not the CPU's hint for a spin: where instructions are counted, each of
/// those ends a piece of emulation and takes longer than thousands of others.
#[inline]
pub fn work(turns: u32) {
    for turn in 0..turns {
        core::hint::black_box(turn);
    }
}
