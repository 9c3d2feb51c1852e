//! One capability of a process.

use abi_types::InterfaceTag;
use core_sched_policy::Weight;
use schema::manifest_capnp::grant;
use schema::{
    console, endpoint, entropy, frame_allocator, interrupt, park_space, process_directory,
    process_spawner, scheduler_control, scheduling_policy, system_info, thread_control,
    thread_spawner, timer, trace, user_session, virtual_memory,
};

use crate::{Error, Name};

/// A named capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant<'m> {
    /// What the process calls it.
    pub name: &'m str,
    /// What it is.
    pub kind: GrantKind<'m>,
}

/// What a grant is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantKind<'m> {
    /// The console.
    Console,
    /// The clock.
    Timer,
    /// The machine's counters.
    SystemInfo,
    /// Makes threads in the process.
    ThreadSpawner,
    /// The calling thread's own state.
    ThreadControl,
    /// Parks and wakes threads.
    ParkSpace,
    /// The process's own address space.
    VirtualMemory,
    /// Starts processes.
    ProcessSpawner,
    /// Makes memory objects.
    FrameAllocator,
    /// What each CPU did.
    Trace,
    /// The calling thread's own weight, class and account.
    SchedulingPolicy {
        /// The most it may weigh; what the process's threads weigh if there is none.
        ceiling: Option<Weight>,
    },
    /// Weights, classes and accounts of all threads.
    SchedulerControl,
    /// What runs, to read.
    ProcessDirectory,
    /// Random bytes.
    Entropy,
    /// A session of its own.
    UserSession,
    /// An interrupt line.
    Interrupt {
        /// Its number.
        line: u32,
        /// Whether it interrupts by level.
        is_level: bool,
        /// Whether its active state is low.
        is_active_low: bool,
    },
    /// The port whose bytes a test harness reads.
    Records,
    /// The receiving side of an endpoint.
    Endpoint {
        /// The endpoint's name.
        name: &'m str,
        /// What its clients call; it has a tag.
        interface_id: u64,
    },
    /// A client facet of an endpoint.
    Client {
        /// The endpoint's name.
        endpoint: &'m str,
        /// What tells its calls apart.
        badge: u64,
    },
}

impl GrantKind<'_> {
    /// The interface of the capability, as its CapSet entry names it. A client facet has the
    /// interface of its endpoint, see [`Manifest::endpoint`](crate::Manifest::endpoint).
    pub const fn interface_id(&self) -> Option<u64> {
        Some(match self {
            Self::Console | Self::Records => console::INTERFACE_ID,
            Self::Timer => timer::INTERFACE_ID,
            Self::SystemInfo => system_info::INTERFACE_ID,
            Self::ThreadSpawner => thread_spawner::INTERFACE_ID,
            Self::ThreadControl => thread_control::INTERFACE_ID,
            Self::ParkSpace => park_space::INTERFACE_ID,
            Self::VirtualMemory => virtual_memory::INTERFACE_ID,
            Self::ProcessSpawner => process_spawner::INTERFACE_ID,
            Self::FrameAllocator => frame_allocator::INTERFACE_ID,
            Self::Trace => trace::INTERFACE_ID,
            Self::SchedulingPolicy { .. } => scheduling_policy::INTERFACE_ID,
            Self::SchedulerControl => scheduler_control::INTERFACE_ID,
            Self::ProcessDirectory => process_directory::INTERFACE_ID,
            Self::Entropy => entropy::INTERFACE_ID,
            Self::UserSession => user_session::INTERFACE_ID,
            Self::Interrupt { .. } => interrupt::INTERFACE_ID,
            Self::Endpoint { .. } => endpoint::INTERFACE_ID,
            Self::Client { .. } => return None,
        })
    }
}

/// Reads grant number `index` of `process`.
pub(crate) fn read<'m>(
    reader: grant::Reader<'m>,
    process: &str,
    index: u32,
) -> Result<Grant<'m>, Error> {
    let name = reader.get_name()?.to_str()?;
    if !Name::is_good(name) {
        return Err(Error::GrantName(Name::new(process), index));
    }
    let Ok(which) = reader.which() else {
        return Err(Error::UnknownGrant(Name::new(process), Name::new(name)));
    };
    let named = |endpoint: &'m str| {
        let is_good = Name::is_good(endpoint);
        let error = || Error::EndpointName(Name::new(process), Name::new(name));
        is_good.then_some(endpoint).ok_or_else(error)
    };
    let kind = match which {
        grant::Console(()) => GrantKind::Console,
        grant::Timer(()) => GrantKind::Timer,
        grant::SystemInfo(()) => GrantKind::SystemInfo,
        grant::ThreadSpawner(()) => GrantKind::ThreadSpawner,
        grant::ThreadControl(()) => GrantKind::ThreadControl,
        grant::ParkSpace(()) => GrantKind::ParkSpace,
        grant::Records(()) => GrantKind::Records,
        grant::VirtualMemory(()) => GrantKind::VirtualMemory,
        grant::ProcessSpawner(()) => GrantKind::ProcessSpawner,
        grant::FrameAllocator(()) => GrantKind::FrameAllocator,
        grant::Trace(()) => GrantKind::Trace,
        grant::SchedulerControl(()) => GrantKind::SchedulerControl,
        grant::SchedulingPolicy(of) => {
            let ceiling = match of.get_weight_ceiling() {
                0 => None,
                number => Some(Weight::new(number).map_err(|_| {
                    Error::WeightCeiling(Name::new(process), Name::new(name), number)
                })?),
            };
            GrantKind::SchedulingPolicy { ceiling }
        }
        grant::ProcessDirectory(()) => GrantKind::ProcessDirectory,
        grant::Entropy(()) => GrantKind::Entropy,
        grant::UserSession(()) => GrantKind::UserSession,
        grant::Interrupt(of) => GrantKind::Interrupt {
            line: of.get_line(),
            is_level: of.get_is_level(),
            is_active_low: of.get_is_active_low(),
        },
        grant::Endpoint(of) => {
            let (endpoint, interface_id) =
                (named(of.get_name()?.to_str()?)?, of.get_interface_id());
            if InterfaceTag::of(interface_id).is_none() {
                return Err(Error::EndpointInterface(Name::new(process), Name::new(name)));
            }
            GrantKind::Endpoint { name: endpoint, interface_id }
        }
        grant::Client(of) => GrantKind::Client {
            endpoint: named(of.get_endpoint()?.to_str()?)?,
            badge: of.get_badge(),
        },
    };
    Ok(Grant { name, kind })
}
