//! ProcessSpawner: processes that a program starts.
//!
//! What is asked is judged here, and the sentence of each refusal is here; what is to be done is the host's.

use crate::refuse;
use abi_types::{CapSlot, START_BYTES, StartFull, StartWriter};
use core_cap::{CapError, Mode, Request, TransferError};
use core_ledger::{LendError, Limit};
use core_manifest::{GrantKind, Name, check_profile, is_variable_name};
use core_sched_policy::Weight;
use kernel_ops::inherit::{InheritError, MAX_INHERITED};
use kernel_ops::object::Calling;
use kernel_ops::paid::NoMemory;
use kernel_process::child::{self, ChildError, ChildGrant, GrantFrom, NewChild};
use kernel_process::entry::{EntryError, spawn_entry};
use kernel_process::load::LoadError;
use kernel_process::{BeginError, Machine};
use schema::manifest::{Argument, Variable};
use schema::process_spawner::{
    Server, SpawnEntryParams, SpawnEntryResults, SpawnGrant, SpawnImageParams, SpawnImageResults,
    SpawnParams, SpawnResults,
};
use schema::process_spawner_capnp::GrantSource;
use schema_wire::{Answer, Exception, ExceptionKind, List, NoResult};

use crate::thread_spawner::Refused;

/// What it needs of the kernel.
pub trait Host {
    /// A preemption point, between what is read of a list.
    fn pause(&self);
    /// Starts the executable of a boot module; a handle in the caller's table. `None` if there is no such module.
    fn spawn(&mut self, binary: &str, new: &NewChild<'_>) -> Option<Result<CapSlot, ChildError>>;
    /// Starts a process of the manifest; the same.
    fn spawn_entry(&mut self, name: &str) -> Result<CapSlot, EntryError>;
}

impl<M: Machine> Host for Calling<'_, M> {
    fn pause(&self) {
        child::pause(self);
    }

    fn spawn(&mut self, binary: &str, new: &NewChild<'_>) -> Option<Result<CapSlot, ChildError>> {
        let module = self.caller.m.boot_module(binary)?;
        Some(child::spawn(self, module, new))
    }

    fn spawn_entry(&mut self, name: &str) -> Result<CapSlot, EntryError> {
        spawn_entry(self, name)
    }
}

/// An exception with a formatted sentence.
fn refused(kind: ExceptionKind, why: core::fmt::Arguments<'_>) -> NoResult {
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
fn no_child(error: &ChildError) -> NoResult {
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
            let (kind, why) = Refused::from(*error).exception();
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
fn no_entry(error: &EntryError) -> NoResult {
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

/// The server.
#[derive(Debug)]
pub struct ProcessSpawner<'h, H>(pub &'h mut H);

/// Lines of a list that are read between two preemption points: each is looked for among those before it.
const LINES_PER_PREEMPTION_POINT: usize = 8;

/// Reads the grants, once; how many there are.
fn read_grants<'a>(
    list: List<'a, SpawnGrant<'a>>,
    grants: &mut [ChildGrant; MAX_INHERITED],
    pause: impl Fn(),
) -> Result<usize, NoResult> {
    use ExceptionKind::{Failed, InvalidArgument};
    let count = list.len();
    if count > MAX_INHERITED {
        return Err(refused(InvalidArgument, format_args!("more than {MAX_INHERITED} grants")));
    }
    for (number, grant) in list.iter().enumerate() {
        let Ok(grant) = grant else {
            return Err(refused(Failed, format_args!("grant {number} cannot be read")));
        };
        if !Name::is_good(grant.name) {
            let why = "its name is not 1 to 44 bytes without control characters";
            return Err(refused(InvalidArgument, format_args!("grant {number}: {why}")));
        }
        let is_known = |known: &&mut ChildGrant| known.name.as_str() == grant.name;
        if grants.iter_mut().take(number).find(is_known).is_some() {
            return Err(refused(InvalidArgument, format_args!("grant {number}: its name is used")));
        }
        if number % LINES_PER_PREEMPTION_POINT == LINES_PER_PREEMPTION_POINT - 1 {
            pause();
        }
        let slot = CapSlot::new(u32::from(grant.slot_index), grant.slot_generation);
        let mode = if grant.moved { Mode::Move } else { Mode::Copy };
        let source = match grant.source {
            GrantSource::Slot => GrantFrom::Slot(Request { slot, mode }),
            GrantSource::ThreadSpawner => GrantFrom::Own(GrantKind::ThreadSpawner),
            GrantSource::ThreadControl => GrantFrom::Own(GrantKind::ThreadControl),
            GrantSource::VirtualMemory => GrantFrom::Own(GrantKind::VirtualMemory),
        };
        let says_more = grant.slot_index != 0
            || grant.slot_generation != 0
            || grant.moved
            || grant.interface_id != 0;
        if matches!(source, GrantFrom::Own(_)) && says_more {
            let why = "what is the child's own has no slot, interface or move; use 0";
            return Err(refused(InvalidArgument, format_args!("grant {number}: {why}")));
        }
        if let Some(place) = grants.get_mut(number) {
            let name = Name::new(grant.name);
            *place = ChildGrant { name, interface_id: grant.interface_id, source };
        }
    }
    Ok(count)
}

/// Reads arguments and environment, once, into a start page; how many bytes of it say something.
fn read_start<'a>(
    arguments: List<'a, Argument<'a>>,
    environment: List<'a, Variable<'a>>,
    page: &mut [u8; START_BYTES],
    pause: impl Fn(),
) -> Result<usize, NoResult> {
    let full = |StartFull| {
        let why = "arguments and environment do not fit a page of 4096 bytes";
        refuse(ExceptionKind::InvalidArgument, why)
    };
    if arguments.is_empty() && environment.is_empty() {
        return Ok(0);
    }
    let unread = |_| refuse(ExceptionKind::Failed, "an argument or a variable cannot be read");
    let mut writer = StartWriter::new(page, arguments.len(), environment.len()).map_err(full)?;
    let pause_at = |number: usize| {
        if number % LINES_PER_PREEMPTION_POINT == LINES_PER_PREEMPTION_POINT - 1 {
            pause();
        }
    };
    for (number, argument) in arguments.iter().enumerate() {
        pause_at(number);
        writer.add(&[argument.map_err(unread)?.text]).map_err(full)?;
    }
    for (number, variable) in environment.iter().enumerate() {
        pause_at(number);
        let variable = variable.map_err(unread)?;
        if !is_variable_name(variable.name) {
            let why =
                "the name of a variable is not 1 to 44 bytes without '=' and control characters";
            return Err(refuse(ExceptionKind::InvalidArgument, why));
        }
        writer.add(&[variable.name, "=", variable.value]).map_err(full)?;
    }
    Ok(writer.length())
}

impl<H: Host> Server for ProcessSpawner<'_, H> {
    fn spawn(&mut self, params: SpawnParams<'_>) -> Answer<SpawnResults> {
        use ExceptionKind::{Failed, InvalidArgument};
        if !Name::is_good(params.name) {
            let why = "name is not 1 to 44 bytes without control characters";
            return Err(refuse(InvalidArgument, why));
        }
        let Ok(weight) = Weight::new(params.weight) else {
            return Err(refuse(InvalidArgument, "weight is not 1 to 1024"));
        };
        let profile = check_profile(&params.profile)
            .map_err(|error| refused(InvalidArgument, format_args!("{error}")))?;
        let nothing = ChildGrant {
            name: Name::new(""),
            interface_id: 0,
            source: GrantFrom::Own(GrantKind::ThreadControl),
        };
        let mut grants = [nothing; MAX_INHERITED];
        let count = read_grants(params.grants, &mut grants, || self.0.pause())?;
        if count as u32 > profile.cap_slots {
            return Err(no_child(&ChildError::Inherit(InheritError::Slots)));
        }
        self.0.pause();
        let mut page = [0; START_BYTES];
        let length =
            read_start(params.arguments, params.environment, &mut page, || self.0.pause())?;
        let new = NewChild {
            name: Name::new(params.name),
            weight,
            profile,
            grants: grants.get(..count).unwrap_or_default(),
            start_page: (&page, length),
        };
        match self.0.spawn(params.binary, &new) {
            Some(Ok(handle)) => Ok(SpawnResults {
                handle_index: handle.index() as u16,
                handle_generation: handle.generation(),
            }),
            Some(Err(error)) => Err(no_child(&error)),
            None => Err(refuse(Failed, "there is no boot module of that name")),
        }
    }

    fn spawn_image(&mut self, _: SpawnImageParams<'_>) -> Answer<SpawnImageResults> {
        // Memory objects are not served, so there is nothing that could be one.
        Err(refuse(ExceptionKind::Unimplemented, "this kernel serves no MemoryObject; use spawn"))
    }

    fn spawn_entry(&mut self, params: SpawnEntryParams<'_>) -> Answer<SpawnEntryResults> {
        match self.0.spawn_entry(params.name) {
            Ok(handle) => Ok(SpawnEntryResults {
                handle_index: handle.index() as u16,
                handle_generation: handle.generation(),
            }),
            Err(error) => Err(no_entry(&error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schema::manifest::ResourceProfile;

    const PROFILE: ResourceProfile = ResourceProfile {
        cap_slots: 4,
        threads: 1,
        kernel_stack_pages: 32,
        frames: 100,
        sleep_waiters: 1,
        ring_entries: 8,
        ring_scratch_limit_bytes: 4096,
        in_flight_call_limit: 1,
        endpoint_queue_limit: 1,
        kernel_bytes: 65_536,
    };

    /// A kernel with one module that starts everything it is asked to.
    #[derive(Default)]
    struct One {
        started: Option<(Name, usize, usize)>,
        refuses: Option<ChildError>,
    }

    impl Host for One {
        fn pause(&self) {}
        fn spawn(
            &mut self,
            binary: &str,
            new: &NewChild<'_>,
        ) -> Option<Result<CapSlot, ChildError>> {
            if binary != "a.elf" {
                return None;
            }
            self.started = Some((new.name, new.grants.len(), new.start_page.1));
            Some(self.refuses.map_or(Ok(CapSlot::new(7, 9)), Err))
        }
        fn spawn_entry(&mut self, name: &str) -> Result<CapSlot, EntryError> {
            if name == "known" { Ok(CapSlot::new(3, 1)) } else { Err(EntryError::Unknown) }
        }
    }

    /// What is not refused.
    fn good<'a>() -> SpawnParams<'a> {
        SpawnParams {
            name: "child",
            binary: "a.elf",
            weight: 64,
            profile: PROFILE,
            grants: List::EMPTY,
            arguments: List::EMPTY,
            environment: List::EMPTY,
        }
    }

    const SLOT: SpawnGrant<'static> = SpawnGrant {
        name: "a",
        source: GrantSource::Slot,
        slot_index: 3,
        slot_generation: 1,
        moved: false,
        interface_id: 0,
    };

    fn refusal(params: SpawnParams<'_>) -> Option<ExceptionKind> {
        let mut host = One::default();
        let answer = ProcessSpawner(&mut host).spawn(params);
        match answer {
            Err(NoResult::Exception(exception)) => {
                assert!(host.started.is_none() && exception.message().len() > 10);
                Some(exception.kind())
            }
            _ => None,
        }
    }

    #[test]
    fn what_is_asked_for_arrives_and_the_handle_is_told() {
        let mut host = One::default();
        let arguments = [Argument { text: "x" }];
        let grants = [SLOT];
        let params =
            SpawnParams { grants: List::of(&grants), arguments: List::of(&arguments), ..good() };
        let results = ProcessSpawner(&mut host).spawn(params).unwrap();
        assert_eq!((results.handle_index, results.handle_generation), (7, 9));
        assert_eq!(host.started, Some((Name::new("child"), 1, 16 + 8 + 1)));
        let entry = ProcessSpawner(&mut host).spawn_entry(SpawnEntryParams { name: "known" });
        assert_eq!(entry.unwrap().handle_index, 3);
        assert!(ProcessSpawner(&mut host).spawn_entry(SpawnEntryParams { name: "x" }).is_err());
    }

    #[test]
    fn each_wrong_argument_is_refused_before_anything_happens() {
        use ExceptionKind::{Failed, InvalidArgument};
        let twice = [SLOT, SLOT];
        let nameless = [SpawnGrant { name: "", ..SLOT }];
        let own = [SpawnGrant { source: GrantSource::VirtualMemory, ..SLOT }];
        let named = |name| [Variable { name, value: "v" }];
        let (bad_name, no_name) = (named("a=b"), named(""));
        let many = [SLOT; 5];
        assert_eq!(refusal(SpawnParams { name: "", ..good() }), Some(InvalidArgument));
        assert_eq!(refusal(SpawnParams { name: "a\n", ..good() }), Some(InvalidArgument));
        assert_eq!(refusal(SpawnParams { binary: "b.elf", ..good() }), Some(Failed));
        assert_eq!(refusal(SpawnParams { weight: 0, ..good() }), Some(InvalidArgument));
        assert_eq!(refusal(SpawnParams { weight: 1025, ..good() }), Some(InvalidArgument));
        let profile = ResourceProfile { ring_entries: 3, ..PROFILE };
        assert_eq!(refusal(SpawnParams { profile, ..good() }), Some(InvalidArgument));
        for grants in [&twice[..], &nameless, &own, &many] {
            let params = SpawnParams { grants: List::of(grants), ..good() };
            assert_eq!(refusal(params), Some(InvalidArgument));
        }
        for environment in [&bad_name[..], &no_name] {
            let params = SpawnParams { environment: List::of(environment), ..good() };
            assert_eq!(refusal(params), Some(InvalidArgument));
        }
    }

    #[test]
    fn a_refusal_of_the_kernels_has_its_kind_and_a_sentence() {
        use ExceptionKind::{Failed, InvalidArgument, Overloaded};
        let unusable = TransferError::Unusable { line: 0, error: CapError::Revoked };
        for (error, kind) in [
            (ChildError::Ending, Failed),
            (ChildError::Weight, InvalidArgument),
            (ChildError::HandleSlot, Overloaded),
            (ChildError::Lend(LendError::Above(Limit::RingEntries)), InvalidArgument),
            (ChildError::Begin(BeginError::Records), Overloaded),
            (ChildError::Begin(BeginError::Memory(NoMemory::Machine)), Overloaded),
            (ChildError::Interface(2), InvalidArgument),
            (ChildError::Inherit(InheritError::Line(2, unusable)), Failed),
            (ChildError::Inherit(InheritError::Memory(NoMemory::Machine)), Overloaded),
            (ChildError::Load(LoadError::Changed), Failed),
        ] {
            let mut host = One { refuses: Some(error), ..One::default() };
            let Err(NoResult::Exception(exception)) = ProcessSpawner(&mut host).spawn(good())
            else {
                panic!("accepted: {error:?}");
            };
            assert_eq!(exception.kind(), kind, "{error:?}");
            assert!(exception.message().len() > 10);
        }
    }
}
