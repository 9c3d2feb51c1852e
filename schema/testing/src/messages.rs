//! A good message to every method that takes parameters, made from a number.

use schema::scheduling_policy_capnp::LatencyClass;
use schema::{
    console, cpu_isolation_lease as lease, endpoint, entropy, frame_allocator, interrupt,
    memory_object, process_directory, process_handle, process_spawner, realtime_island as island,
    scheduler_control as control, scheduling_context as context, scheduling_policy, system_info,
    thread_control, thread_spawner, timer, trace, virtual_memory,
};
use schema_wire::{Encode, Method};

use crate::{Made, Source, Words, make};

/// A call as bytes.
#[derive(Clone, Debug)]
pub struct Call {
    /// The interface's id.
    pub interface: u64,
    /// The method's number.
    pub method: u16,
    /// `Interface.method`.
    pub name: &'static str,
    /// Its parameters.
    pub params: Words,
}

impl Call {
    fn new<M: Method>(params: &impl Encode) -> Self {
        let mut words = Words::dirty(params.message_bytes());
        let written = params.encode(words.bytes_mut());
        assert_eq!(written, Ok(params.message_bytes()), "{}", M::NAME);
        Self { interface: M::INTERFACE_ID, method: M::ORDINAL, name: M::NAME, params: words }
    }
}

macro_rules! made {
    ($($module:ident::$name:ident $(<$life:lifetime>)? { $($field:ident),* })*) => {$(
        impl $(<$life>)? Made for $module::$name $(<$life>)? {
            fn made(source: &mut Source) -> Self {
                Self { $($field: source.make()),* }
            }
        }
    )*};
}

made! {
    console::WriteParams<'a> { bytes }
    console::ReadParams { capacity }
    endpoint::MintFacetParams { badge, interface_id }
    endpoint::RevokeFacetsParams { badge }
    scheduling_policy::SetWeightParams { weight }
    system_info::CpuParams { cpu }
    thread_control::SetFsBaseParams { fs_base }
    thread_control::ExitThreadParams { code }
    thread_spawner::CreateParams { entry, stack_top, arg, fs_base, flags }
    timer::SleepParams { ns }
    timer::SleepUntilParams { deadline_ns }
}

impl Made for scheduling_policy::SetLatencyClassParams {
    fn made(source: &mut Source) -> Self {
        Self { class: source.make::<LatencyClass>() }
    }
}

macro_rules! calls {
    ($number:expr; $($module:ident { $($method:ident($params:ident))* })*) => {
        vec![$($(Call::new::<$module::methods::$method>(&make::<$module::$params>($number)),)*)*]
    };
}

/// A call of every method that takes something.
pub fn calls(number: u64) -> Vec<Call> {
    calls! { number;
        console { Write(WriteParams) Read(ReadParams) }
        endpoint { MintFacet(MintFacetParams) RevokeFacets(RevokeFacetsParams) }
        scheduling_policy { SetWeight(SetWeightParams) SetLatencyClass(SetLatencyClassParams) }
        system_info { Cpu(CpuParams) }
        thread_control { SetFsBase(SetFsBaseParams) ExitThread(ExitThreadParams) }
        thread_spawner { Create(CreateParams) }
        timer { Sleep(SleepParams) SleepUntil(SleepUntilParams) }
        virtual_memory {
            Map(MapParams) Unmap(UnmapParams) Protect(ProtectParams) Reserve(ReserveParams)
            Region(RegionParams) Register(RegisterParams) Unregister(UnregisterParams)
        }
        memory_object {
            Map(MapParams) Unmap(UnmapParams) Protect(ProtectParams) Restrict(RestrictParams)
        }
        frame_allocator { CreateObject(CreateObjectParams) }
        process_spawner {
            Spawn(SpawnParams) SpawnImage(SpawnImageParams) SpawnEntry(SpawnEntryParams)
        }
        process_directory {
            Processes(ProcessesParams) Threads(ThreadsParams) Capabilities(CapabilitiesParams)
            Ledger(LedgerParams)
        }
        process_handle { Kill(KillParams) }
        interrupt { SetEnabled(SetEnabledParams) }
        context { Create(CreateParams) }
        lease { Create(CreateParams) }
        control {
            SetWeight(SetWeightParams) SetLatencyClass(SetLatencyClassParams)
            Snapshot(SnapshotParams) Threads(ThreadsParams) BindContext(BindContextParams)
            AdjustContext(AdjustContextParams) RevokeContext(RevokeContextParams)
            CreateContext(CreateContextParams) GrantLease(GrantLeaseParams)
            RevokeLease(RevokeLeaseParams) Loads(LoadsParams)
        }
        entropy { Fill(FillParams) }
        island { Admit(AdmitParams) }
        trace { Start(StartParams) Read(ReadParams) Mark(MarkParams) }
    }
}
