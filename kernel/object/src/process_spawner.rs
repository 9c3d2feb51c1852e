//! ProcessSpawner: processes that a program starts.
//!
//! What is asked is judged here, and the sentence of each refusal is in `refusals.rs`; what is to be done is the host's.

mod refusals;

use crate::refuse;
use abi_types::{CapSlot, START_BYTES, StartFull, StartWriter};
use core_cap::{Mode, Request};
use core_manifest::{GrantKind, Name, check_profile, is_variable_name};
use core_sched_policy::Weight;
use kernel_ops::capability::Object;
use kernel_ops::inherit::{InheritError, MAX_INHERITED};
use kernel_ops::object::Calling;
use kernel_process::Machine;
use kernel_process::child::{self, ChildError, ChildGrant, GrantFrom, NewChild};
use kernel_process::entry::{EntryError, spawn_entry};
use kernel_process::image::spawn_image;
use refusals::{no_child, no_entry, refused};
use schema::manifest::{Argument, ResourceProfile, Variable};
use schema::process_spawner::{
    Server, SpawnEntryParams, SpawnEntryResults, SpawnGrant, SpawnImageParams, SpawnImageResults,
    SpawnParams, SpawnResults,
};
use schema::process_spawner_capnp::GrantSource;
use schema_wire::{Answer, ExceptionKind, List, NoResult, TransferIndex};

/// What it needs of the kernel.
pub trait Host {
    /// A preemption point, between what is read of a list.
    fn pause(&self);
    /// Starts the executable of a boot module; a handle in the caller's table. `None` if there is no such module.
    fn spawn(&mut self, binary: &str, new: &NewChild<'_>) -> Option<Result<CapSlot, ChildError>>;
    /// Starts the executable in the first `bytes` of the memory object that a field of the parameters names; the same.
    /// `None` if it names none.
    fn spawn_image(
        &mut self,
        image: TransferIndex,
        bytes: u64,
        new: &NewChild<'_>,
    ) -> Option<Result<CapSlot, ChildError>>;
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

    fn spawn_image(
        &mut self,
        image: TransferIndex,
        bytes: u64,
        new: &NewChild<'_>,
    ) -> Option<Result<CapSlot, ChildError>> {
        let Object::Other(object) = self.brought(image)?.object else { return None };
        let facet = M::memory_facet(object)?;
        Some(spawn_image(self, facet, bytes, new))
    }

    fn spawn_entry(&mut self, name: &str) -> Result<CapSlot, EntryError> {
        spawn_entry(self, name)
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

/// What a child is asked to be, whatever program it runs.
struct Asked<'a> {
    name: &'a str,
    weight: u16,
    profile: ResourceProfile,
    grants: List<'a, SpawnGrant<'a>>,
    arguments: List<'a, Argument<'a>>,
    environment: List<'a, Variable<'a>>,
}

impl<H: Host> ProcessSpawner<'_, H> {
    /// Judges what is asked, reading each of it once, and has `start` do it.
    fn start(
        &mut self,
        asked: &Asked<'_>,
        start: impl FnOnce(&mut H, &NewChild<'_>) -> Answer<CapSlot>,
    ) -> Answer<CapSlot> {
        use ExceptionKind::InvalidArgument;
        if !Name::is_good(asked.name) {
            let why = "name is not 1 to 44 bytes without control characters";
            return Err(refuse(InvalidArgument, why));
        }
        let Ok(weight) = Weight::new(asked.weight) else {
            return Err(refuse(InvalidArgument, "weight is not 1 to 1024"));
        };
        let profile = check_profile(&asked.profile)
            .map_err(|error| refused(InvalidArgument, format_args!("{error}")))?;
        let nothing = ChildGrant {
            name: Name::new(""),
            interface_id: 0,
            source: GrantFrom::Own(GrantKind::ThreadControl),
        };
        let mut grants = [nothing; MAX_INHERITED];
        let count = read_grants(asked.grants, &mut grants, || self.0.pause())?;
        if count as u32 > profile.cap_slots {
            return Err(no_child(&ChildError::Inherit(InheritError::Slots)));
        }
        self.0.pause();
        let mut page = [0; START_BYTES];
        let length = read_start(asked.arguments, asked.environment, &mut page, || self.0.pause())?;
        let new = NewChild {
            name: Name::new(asked.name),
            weight,
            profile,
            grants: grants.get(..count).unwrap_or_default(),
            start_page: (&page, length),
        };
        start(self.0, &new)
    }
}

impl<H: Host> Server for ProcessSpawner<'_, H> {
    fn spawn(&mut self, params: SpawnParams<'_>) -> Answer<SpawnResults> {
        let SpawnParams { name, binary, weight, profile, grants, arguments, environment } = params;
        let asked = Asked { name, weight, profile, grants, arguments, environment };
        let handle = self.start(&asked, |host, new| match host.spawn(binary, new) {
            Some(started) => started.map_err(|error| no_child(&error)),
            None => Err(refuse(ExceptionKind::Failed, "there is no boot module of that name")),
        })?;
        Ok(SpawnResults {
            handle_index: handle.index() as u16,
            handle_generation: handle.generation(),
        })
    }

    fn spawn_image(&mut self, params: SpawnImageParams<'_>) -> Answer<SpawnImageResults> {
        let SpawnImageParams {
            name,
            image,
            image_bytes,
            weight,
            profile,
            grants,
            arguments,
            environment,
        } = params;
        let asked = Asked { name, weight, profile, grants, arguments, environment };
        let handle = self.start(&asked, |host, new| {
            let started = image.and_then(|image| host.spawn_image(image, image_bytes, new));
            match started {
                Some(started) => started.map_err(|error| no_child(&error)),
                None => Err(refuse(
                    ExceptionKind::InvalidArgument,
                    "image is no MemoryObject; send a copy of one along with the call",
                )),
            }
        })?;
        Ok(SpawnImageResults {
            handle_index: handle.index() as u16,
            handle_generation: handle.generation(),
        })
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
    use core_cap::{CapError, TransferError};
    use core_ledger::{LendError, Limit};
    use core_vm::VmError;
    use kernel_ops::paid::NoMemory;
    use kernel_process::BeginError;
    use kernel_process::change::Refused;
    use kernel_process::load::LoadError;

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
        registered_buffers: 0,
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
        fn spawn_image(
            &mut self,
            image: TransferIndex,
            bytes: u64,
            new: &NewChild<'_>,
        ) -> Option<Result<CapSlot, ChildError>> {
            if image != TransferIndex(0) {
                return None;
            }
            self.started = Some((new.name, bytes as usize, new.start_page.1));
            Some(self.refuses.map_or(Ok(CapSlot::new(5, 2)), Err))
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

    /// The same for a program in a memory object.
    fn good_image<'a>() -> SpawnImageParams<'a> {
        let SpawnParams { name, weight, profile, grants, arguments, environment, .. } = good();
        let image = Some(TransferIndex(0));
        SpawnImageParams {
            name,
            image,
            image_bytes: 77,
            weight,
            profile,
            grants,
            arguments,
            environment,
        }
    }

    #[test]
    fn an_image_is_asked_for_as_a_binary_is() {
        let mut host = One::default();
        let results = ProcessSpawner(&mut host).spawn_image(good_image()).unwrap();
        assert_eq!((results.handle_index, results.handle_generation), (5, 2));
        assert_eq!(host.started, Some((Name::new("child"), 77, 0)));
        let refusal = |params, refuses| {
            let mut host = One { refuses, ..One::default() };
            match ProcessSpawner(&mut host).spawn_image(params) {
                Err(NoResult::Exception(exception)) => {
                    assert!(exception.message().len() > 10);
                    exception.kind()
                }
                other => panic!("{other:?}"),
            }
        };
        use ExceptionKind::{Disconnected, InvalidArgument, Overloaded};
        for image in [None, Some(TransferIndex(1))] {
            let params = SpawnImageParams { image, ..good_image() };
            assert_eq!(refusal(params, None), InvalidArgument);
        }
        for params in [
            SpawnImageParams { name: "", ..good_image() },
            SpawnImageParams { weight: 0, ..good_image() },
        ] {
            assert_eq!(refusal(params, None), InvalidArgument);
        }
        for (error, kind) in [
            (Refused::Vm(VmError::ObjectTooShort), InvalidArgument),
            (Refused::ObjectGone, Disconnected),
            (Refused::TooManyObjects, Overloaded),
        ] {
            assert_eq!(refusal(good_image(), Some(ChildError::Image(error))), kind);
        }
    }

    /// One method of the kernel's takes a capability.
    #[test]
    fn capabilities_come_along_with_the_methods_that_take_some() {
        for interface in schema::INTERFACES {
            let tag = abi_types::InterfaceTag::of(interface.id).unwrap();
            for (ordinal, method) in interface.methods.iter().enumerate() {
                let takes = u16::from(interface.name == "ProcessSpawner" && ordinal == 1);
                assert_eq!(crate::takes(tag, ordinal as u16), takes, "{}", method.name);
            }
        }
    }

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
