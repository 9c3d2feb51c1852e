//! The sentences that refusals of a ProcessSpawner are told in.

use crate::refuse;
use crate::thread_spawner::Refused as NoThread;
use crate::virtual_memory::refused as memory_refused;
use core_cap::{CapError, TransferError};
use core_ledger::{LendError, Limit};
use core_vm::VmError;
use kernel_ops::inherit::{InheritError, MAX_INHERITED};
use kernel_ops::paid::NoMemory;
use kernel_process::BeginError;
use kernel_process::change::Refused;
use kernel_process::child::ChildError;
use kernel_process::entry::EntryError;
use kernel_process::load::LoadError;
use schema_wire::{Exception, ExceptionKind, NoResult};

/// An exception with a formatted sentence.
pub(super) fn refused(kind: ExceptionKind, why: core::fmt::Arguments<'_>) -> NoResult {
    NoResult::Exception(Exception::with(kind, why))
}

/// What memory is refused with.
fn no_memory(error: &NoMemory) -> NoResult {
    match error {
        NoMemory::Machine => refuse(ExceptionKind::Overloaded, "the machine has no memory left"),
        NoMemory::Account(error) => {
            refused(ExceptionKind::Overloaded, format_args!("of the child: {}", error.message()))
        }
    }
}

/// What a limit that is not counted is called.
const fn limit_name(limit: Limit) -> &'static str {
    match limit {
        Limit::RingEntries => "ringEntries",
        Limit::RingScratchBytes => "ringScratchLimitBytes",
        Limit::InFlightCalls => "inFlightCallLimit",
        Limit::EndpointQueue => "endpointQueueLimit",
    }
}

/// What is said of a child that there is not.
pub(super) fn no_child(error: &ChildError) -> NoResult {
    use ExceptionKind::{Failed, InvalidArgument, Overloaded};
    match error {
        ChildError::Ending => refuse(Failed, "the process is ending"),
        ChildError::Weight => refuse(InvalidArgument, "weight is more than the spawner's own"),
        ChildError::HandleSlot => {
            refuse(Overloaded, "the capability table has no slot for the handle")
        }
        ChildError::Lend(LendError::Line(error)) => {
            refused(Overloaded, format_args!("of the spawner: {}", error.message()))
        }
        ChildError::Lend(LendError::Above(limit)) => {
            refused(InvalidArgument, format_args!("{} is above the spawner's", limit_name(*limit)))
        }
        ChildError::Begin(BeginError::Records) => {
            refuse(Overloaded, "there are as many processes as there can be")
        }
        ChildError::Begin(BeginError::Memory(error))
        | ChildError::Load(LoadError::Memory(error)) => no_memory(error),
        ChildError::Image(Refused::Vm(VmError::ObjectTooShort)) => {
            refuse(InvalidArgument, "imageBytes is more than the memory object has")
        }
        ChildError::Image(error) => memory_refused(*error),
        ChildError::Load(LoadError::Elf(error)) => refused(Failed, format_args!("{error}")),
        ChildError::Load(LoadError::Places) => {
            refuse(Failed, "the program lies where its stack or the kernel's pages are")
        }
        ChildError::Load(LoadError::Changed) => {
            refuse(Failed, "the bytes of the executable were taken away while they were read")
        }
        ChildError::Load(LoadError::Start) => refuse(Failed, "the entry is not a user address"),
        ChildError::Interface(line) => refused(
            InvalidArgument,
            format_args!("grant {line}: interfaceId is not that of its capability"),
        ),
        ChildError::Inherit(InheritError::TooMany) => {
            refused(InvalidArgument, format_args!("more than {MAX_INHERITED} grants"))
        }
        ChildError::Inherit(InheritError::Slots) => {
            refuse(InvalidArgument, "the child's capSlots are fewer than its grants")
        }
        ChildError::Inherit(InheritError::Line(line, error)) => no_grant(*line, *error),
        ChildError::Inherit(InheritError::Memory(NoMemory::Account(error))) => {
            refused(Overloaded, format_args!("of the spawner: {}", error.message()))
        }
        ChildError::Inherit(InheritError::Memory(error)) => no_memory(error),
        ChildError::Thread(error) => {
            let (kind, why) = NoThread::from(*error).exception();
            refused(kind, format_args!("of the child: {why}"))
        }
    }
}

/// What is said of a grant that cannot be passed on.
fn no_grant(line: usize, error: TransferError) -> NoResult {
    let why = match error {
        TransferError::Unusable { error: CapError::Disconnected, .. } => {
            "its slot is empty or stale"
        }
        TransferError::Unusable { error: CapError::Revoked, .. } => "it is revoked",
        TransferError::NotTransferable { .. } => {
            "it cannot be passed on (an Endpoint stays with the process that serves it: pass a facet of it)"
        }
        TransferError::MovedTwice { .. } => "its slot is in the list twice, and moved",
        TransferError::TooMany => "the list is too long",
    };
    refused(ExceptionKind::Failed, format_args!("grant {line}: {why}"))
}

/// What is said of an entry that was not started.
pub(super) fn no_entry(error: &EntryError) -> NoResult {
    use ExceptionKind::Failed;
    match error {
        EntryError::NoManifest | EntryError::Unknown => {
            refuse(Failed, "the boot manifest has no process of that name")
        }
        EntryError::Runs => {
            refuse(Failed, "it runs, or its last instance is not gone yet: wait for its end")
        }
        EntryError::Manifest(error) => refused(Failed, format_args!("{error}")),
        EntryError::Module => refuse(Failed, "its boot module is gone"),
        EntryError::Receiver(name) => refused(
            Failed,
            format_args!("the receiver of its endpoint {name} does not run: start it first"),
        ),
        EntryError::Interface(name) => {
            refused(Failed, format_args!("its grant {name} is of an interface that nobody serves"))
        }
        EntryError::Child(error) => no_child(error),
    }
}
