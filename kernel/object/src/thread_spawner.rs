//! ThreadSpawner: threads in the caller's process.

use crate::refuse;
use core_ledger::Line;
use kernel_ops::object::Calling;
use kernel_process::Machine;
use kernel_process::machine::{BadStart, Start};
use kernel_process::process::SpawnError;
use kernel_process::spawn::spawn_held;
use schema::thread_spawner::{CreateParams, CreateResults, Server};
use schema_wire::{Answer, CapSlot, ExceptionKind};

/// What it needs of the kernel.
pub trait Host {
    /// Makes a thread and a handle to it in the caller's table; all or nothing.
    fn create(&mut self, start: Start) -> Result<CapSlot, Refused>;
}

/// Why there is no new thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The entry is no user address.
    Entry,
    /// The stack's top is no user address or not aligned.
    Stack,
    /// The FS base is no user address.
    FsBase,
    /// Thread records are used up.
    Records,
    /// Kernel-stack pages are used up.
    StackPages,
    /// Capability slots are used up.
    Slots,
    /// Page frames are used up.
    Frames,
    /// Kernel memory is used up.
    KernelBytes,
    /// No memory for the kernel stack.
    StackMemory,
    /// No memory for the ring, or no record in the system.
    Memory,
    /// The process is ending.
    Ending,
}

impl Refused {
    /// Kind and sentence of the exception.
    pub const fn exception(self) -> (ExceptionKind, &'static str) {
        use ExceptionKind::{Failed, Overloaded};
        match self {
            Self::Entry => (Failed, "entry is not a user address"),
            Self::Stack => (Failed, "stackTop is not a user address that is a multiple of 16"),
            Self::FsBase => (Failed, "fsBase is not a user address"),
            Self::Records => (Overloaded, "the process has as many threads as its profile allows"),
            Self::StackPages => (Overloaded, "the profile's kernel-stack pages are used up"),
            Self::Slots => (Overloaded, "the capability table has no slot for the handle"),
            Self::Frames => (Overloaded, Line::Frames.exhausted()),
            Self::KernelBytes => (Overloaded, Line::KernelBytes.exhausted()),
            Self::StackMemory => (Overloaded, "there is no memory for a kernel stack"),
            Self::Memory => (Overloaded, "there is no memory for a thread"),
            Self::Ending => (Failed, "the process is ending"),
        }
    }
}

impl From<BadStart> for Refused {
    fn from(bad: BadStart) -> Self {
        match bad {
            BadStart::Entry => Self::Entry,
            BadStart::Stack => Self::Stack,
            BadStart::FsBase => Self::FsBase,
        }
    }
}

impl From<SpawnError> for Refused {
    fn from(error: SpawnError) -> Self {
        match error {
            SpawnError::Closed => Self::Ending,
            SpawnError::Records => Self::Records,
            SpawnError::StackPages => Self::StackPages,
            SpawnError::Slots => Self::Slots,
            SpawnError::Frames => Self::Frames,
            SpawnError::KernelBytes => Self::KernelBytes,
            SpawnError::StackMemory => Self::StackMemory,
            SpawnError::Memory => Self::Memory,
        }
    }
}

impl<M: Machine> Host for Calling<'_, M> {
    fn create(&mut self, start: Start) -> Result<CapSlot, Refused> {
        let user = self.caller.m.user_start(start)?;
        Ok(spawn_held(self, user)?)
    }
}

/// The server.
#[derive(Debug)]
pub struct ThreadSpawner<'h, H>(pub &'h mut H);

impl<H: Host> Server for ThreadSpawner<'_, H> {
    fn create(&mut self, params: CreateParams) -> Answer<CreateResults> {
        if params.flags != 0 {
            return Err(refuse(ExceptionKind::Failed, "flags has bits without a meaning; use 0"));
        }
        let start = Start {
            entry: params.entry,
            stack_top: params.stack_top,
            argument: params.arg,
            fs_base: params.fs_base,
        };
        match self.0.create(start) {
            Ok(handle) => Ok(CreateResults {
                handle_index: handle.index() as u16,
                handle_generation: handle.generation(),
            }),
            Err(refused) => {
                let (kind, why) = refused.exception();
                Err(refuse(kind, why))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schema_wire::NoResult;

    struct One(Result<CapSlot, Refused>, Option<Start>);

    impl Host for One {
        fn create(&mut self, start: Start) -> Result<CapSlot, Refused> {
            self.1 = Some(start);
            self.0
        }
    }

    const PARAMS: CreateParams =
        CreateParams { entry: 1, stack_top: 2, arg: 3, fs_base: 4, flags: 0 };

    #[test]
    fn the_start_arrives_and_the_handle_is_told() {
        let mut host = One(Ok(CapSlot::new(7, 9)), None);
        let results = ThreadSpawner(&mut host).create(PARAMS).unwrap();
        assert_eq!((results.handle_index, results.handle_generation), (7, 9));
        assert_eq!(host.1, Some(Start { entry: 1, stack_top: 2, argument: 3, fs_base: 4 }));
    }

    #[test]
    fn flags_are_refused_before_anything_happens() {
        let mut host = One(Ok(CapSlot::new(7, 9)), None);
        assert!(ThreadSpawner(&mut host).create(CreateParams { flags: 1, ..PARAMS }).is_err());
        assert_eq!(host.1, None);
    }

    #[test]
    fn each_exhaustion_has_a_sentence_of_its_own() {
        use Refused::*;
        let mut said = [""; 11];
        for (place, refused) in said.iter_mut().zip([
            Entry,
            Stack,
            FsBase,
            Records,
            StackPages,
            Slots,
            Frames,
            KernelBytes,
            StackMemory,
            Memory,
            Ending,
        ]) {
            let (_, why) = refused.exception();
            *place = why;
            let mut host = One(Err(refused), None);
            let Err(NoResult::Exception(exception)) = ThreadSpawner(&mut host).create(PARAMS)
            else {
                panic!("accepted");
            };
            assert_eq!(exception.kind(), refused.exception().0);
        }
        for (n, why) in said.iter().enumerate() {
            assert!(!said[..n].contains(why), "{why} is said twice");
        }
    }
}
