//! What the tests share: capabilities, stacks, and looks at the machine.

use abi_types::{CapSlot, ExceptionKind, Opcode, Sqe, Status};
use capos_rt::io::Io;
use capos_rt::{Env, Error};
use schema::{park_space, system_info, thread_control, thread_handle, thread_spawner, timer};
use schema_wire::CallError;
use test_bare::raw::{By, Main, Raw, Run};

/// What the tests share.
pub struct Shared {
    pub env: &'static Env,
    pub spawner: CapSlot,
    pub control: CapSlot,
    pub park: CapSlot,
    pub timer: CapSlot,
    pub info: CapSlot,
}

/// Memory of siblings.
pub static RAWS: [Raw<16384>; 12] = [const { Raw::new() }; 12];

impl Shared {
    pub fn new(env: &'static Env) -> Result<Self, Error> {
        Ok(Self {
            env,
            spawner: env.cap("spawner", thread_spawner::INTERFACE_ID)?,
            control: env.cap("control", thread_control::INTERFACE_ID)?,
            park: env.cap("park", park_space::INTERFACE_ID)?,
            timer: env.cap("timer", timer::INTERFACE_ID)?,
            info: env.cap("info", system_info::INTERFACE_ID)?,
        })
    }

    pub fn io(&self) -> &'static Io {
        &self.env.io
    }

    pub fn by(&self) -> By {
        By { spawner: self.spawner, control: self.control }
    }

    /// Starts a thread on the memory of that number.
    pub fn spawn(&self, number: usize, main: Main, argument: u64) -> Result<CapSlot, CallError> {
        RAWS[number].start(self.io(), self.by(), Run { main, argument, fs_base: 0 })
    }

    /// Joins and gives the handle back.
    pub fn finish(&self, handle: CapSlot) -> Result<i64, CallError> {
        let code = self.join(handle)?;
        self.release(handle)?;
        Ok(code)
    }

    pub fn cpus(&self) -> u32 {
        let mut info = system_info::Client::new(self.io().large(), self.info);
        info.machine().map_or(0, |found| found.machine.cpus)
    }

    pub fn free_frames(&self) -> u64 {
        let mut info = system_info::Client::new(self.io().large(), self.info);
        info.machine().map_or(0, |found| found.machine.frames_free)
    }

    pub fn sleep(&self, ns: u64) {
        let _ = timer::Client::new(self.io().caller(), self.timer).sleep(ns);
    }

    pub fn yield_now(&self) {
        let _ = self.io().yield_now();
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

    pub fn join(&self, handle: CapSlot) -> Result<i64, CallError> {
        let joined = thread_handle::Client::new(self.io().caller(), handle).join()?;
        Ok(joined.exit_code)
    }

    pub fn release(&self, slot: CapSlot) -> Result<(), Status> {
        self.io().release(slot)
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

/// CANCEL as an SQE.
pub fn cancel_sqe(user_data: u64) -> Sqe {
    Sqe { opcode: Opcode::Cancel as u8, arg: user_data, ..Sqe::default() }
}
