//! A change of an address space that waits for other CPUs, and why one is refused.

use crate::process::Process;
use abi_ring::Room;
use abi_types::ExceptionKind;
use alloc::boxed::Box;
use core_ledger::{Charge, ChargeError, KernelBytes};
use core_vm::{Access, Over, PageRange, RangeError, VmError};
use kernel_ops::machine::{Space, Taken};
use kernel_ops::map::MapError;
use kernel_ops::object::Objects;
use kernel_ops::paid::NoMemory;
use kernel_ops::party::Party;
use kernel_ops::shared::HoldError;

/// Why the address space did not change, or is again as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The list of regions says no.
    Vm(VmError),
    /// As the range is not one of user pages.
    Range(RangeError),
    /// There is no memory for it, or nobody who pays for it.
    Memory(NoMemory),
    /// The memory object is gone.
    ObjectGone,
    /// A memory object cannot be so large.
    ObjectTooLarge,
    /// The process holds as many memory objects as it may.
    TooManyObjects,
    /// The capability table has no slot.
    Slots,
    /// There is no such registered buffer, or not for long.
    NoBuffer,
}

impl From<Over> for Refused {
    fn from(_: Over) -> Self {
        Self::ObjectGone
    }
}

impl From<HoldError> for Refused {
    fn from(error: HoldError) -> Self {
        match error {
            HoldError::Gone => Self::ObjectGone,
            HoldError::TooMany => Self::TooManyObjects,
            HoldError::Memory(error) => Self::Memory(error),
        }
    }
}

impl From<MapError> for Refused {
    fn from(error: MapError) -> Self {
        match error {
            MapError::Vm(error) => Self::Vm(error),
            MapError::Memory(error) => Self::Memory(error),
        }
    }
}

impl From<NoMemory> for Refused {
    fn from(error: NoMemory) -> Self {
        Self::Memory(error)
    }
}

impl Refused {
    /// Kind and sentence of the exception.
    pub const fn exception(self) -> (ExceptionKind, &'static str) {
        use ExceptionKind::{Disconnected, Failed, InvalidArgument, Overloaded};
        match self {
            Self::ObjectGone => {
                (Disconnected, "the memory object is gone: its maker has ended, and nobody maps it")
            }
            Self::ObjectTooLarge => (InvalidArgument, "a memory object has at most 1 GiB"),
            Self::TooManyObjects => {
                (Overloaded, "the process holds as many memory objects as it may; unmap some")
            }
            Self::NoBuffer => {
                (Failed, "no buffer of that number is registered, or it is being given up")
            }
            Self::Slots => (Overloaded, "the capability table has no slot for it"),
            Self::Range(RangeError::Empty) => {
                (InvalidArgument, "bytes is 0; ask for a page or more")
            }
            Self::Range(RangeError::Misaligned) => {
                (InvalidArgument, "address and bytes have to be multiples of 4096")
            }
            Self::Range(RangeError::NotUser) => (
                InvalidArgument,
                "the pages reach outside of user memory, which begins at 4096 and ends below 2^47",
            ),
            Self::Range(RangeError::Kernel) => (
                InvalidArgument,
                "the pages touch the ring arena, the CapSet or the time page, which are the kernel's",
            ),
            Self::Vm(VmError::Occupied) => {
                (Failed, "some page is in use; unmap it, or ask for another place")
            }
            Self::Vm(VmError::NotMapped) => (Failed, "some page is not mapped"),
            Self::Vm(VmError::Busy) => {
                (Failed, "another thread is changing some page; wait for its call to complete")
            }
            Self::Vm(VmError::Registered) => (
                Failed,
                "some page is of a registered buffer; unregister it, and wait for that to complete",
            ),
            Self::Vm(VmError::NotWritable) => (
                Failed,
                "some page cannot be written; register it for reading, or protect it first",
            ),
            Self::Vm(VmError::NotOfObject) => (Failed, "some page is not of this memory object"),
            Self::Vm(VmError::AboveCeiling) => {
                (Failed, "the memory object's facet does not allow this access")
            }
            Self::Vm(VmError::ObjectTooShort) => {
                (InvalidArgument, "the memory object ends before offset and bytes do")
            }
            Self::Vm(VmError::Full) => {
                (Overloaded, "the process has as many regions as it may; unmap or join some")
            }
            Self::Vm(VmError::NoRoom) => (Overloaded, "no free place is large enough"),
            Self::Memory(NoMemory::Machine) => {
                (Overloaded, "the machine has no memory left for it")
            }
            Self::Memory(NoMemory::Account(ChargeError::Closed)) => {
                (Failed, ChargeError::Closed.message())
            }
            Self::Memory(NoMemory::Account(error)) => (Overloaded, error.message()),
        }
    }
}

impl From<RangeError> for Refused {
    fn from(error: RangeError) -> Self {
        Self::Range(error)
    }
}

/// What a change does to the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// Pages go.
    Unmap,
    /// Pages get another access.
    Protect(Access),
}

/// A change that waits for other CPUs.
pub struct Change<M: Objects> {
    pub(crate) process: &'static Process<M>,
    /// All of it.
    pub(crate) range: PageRange,
    pub(crate) what: What,
    /// The pages that other CPUs have to forget.
    pub(crate) part: PageRange,
    /// What is kept until they have; `None` if their tables are still to be changed.
    pub(crate) taken: Option<<M::Space as Space>::Taken>,
    /// The call that it completes.
    pub(crate) party: Party,
    pub(crate) room: Room,
    /// What the call is told, if not that all is well.
    pub(crate) refused: Option<Refused>,
    /// Pays for this record.
    pub(crate) _paid: Charge<'static, KernelBytes>,
    /// The next that waits.
    pub(crate) next: Option<Box<Self>>,
}

impl<M: Objects> Change<M> {
    /// Whether it can go on.
    pub(crate) fn is_ready(&self) -> bool {
        self.taken.as_ref().is_none_or(Taken::is_flushed)
    }
}
