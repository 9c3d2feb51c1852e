//! Every method of the interfaces whose messages are made from numbers: what the client sends is
//! what the server sees, what the server answers is what the client gets.
use schema::{
    INTERFACES, cpu_isolation_lease as lease, entropy, frame_allocator, interrupt, memory_object,
    process_directory, process_handle, process_spawner, realtime_island as island,
    scheduler_control as control, scheduling_context as context, trace, user_session,
    virtual_memory,
};
use schema_testing::{Everything, Loopback, make};
use schema_wire::{CapSlot, Transfer};
use test_property::prelude::*;

const SLOT: CapSlot = CapSlot::new(3, 1);
const SENT: [Transfer; 1] = [Transfer { slot: CapSlot::new(9, 2), is_move: true }];

/// Calls methods with parameters made from `$asks` and compares answers made from `$answers`;
/// counts the methods. A method is `name(Params { fields })`, with `; caps` if capabilities
/// travel, then what it gives: `Results`, `()`, or `read Results` if they borrow.
macro_rules! calls {
    ($asks:expr, $answers:expr; $module:ident: $($method:ident
        ($($params:ident { $($field:ident),* } $(; $caps:ident)?)?) -> $kind:ident $($results:ident)?;)*) => {{
        let mut methods = 0;
        $({
            methods += 1;
            let server = &mut Everything { number: $answers, ..Everything::default() };
            let mut client = $module::Client::new(
                Loopback::new(|method, params, results| {
                    $module::dispatch(&mut *server, method, params, results)
                }),
                SLOT,
            );
            let asked: Vec<String> = vec![$(format!("{:?}", make::<$module::$params>($asks)))?];
            $(let params: $module::$params = make($asks);)?
            let got = client.$method($($(params.$field,)* $(calls!(@ $caps))?)?).unwrap();
            calls!(@ $kind $module $($results)?; got, $answers);
            prop_assert_eq!(&server.asked, &asked, "{}", stringify!($method));
        })*
        let interface = INTERFACES.iter().find(|one| one.id == $module::INTERFACE_ID).unwrap();
        prop_assert_eq!(methods, interface.methods.len(), "{}", interface.name);
    }};
    (@ caps) => { &SENT };
    (@ nothing $module:ident; $got:expr, $answers:expr) => { prop_assert_eq!($got, ()) };
    (@ plain $module:ident $results:ident; $got:expr, $answers:expr) => {
        prop_assert_eq!($got, make::<$module::$results>($answers))
    };
    (@ read $module:ident $results:ident; $got:expr, $answers:expr) => {
        let results = $got.get().unwrap();
        prop_assert_eq!(results, make::<$module::$results>($answers))
    };
}

proptest! {
    #[test]
    fn memory(asks in any::<u64>(), answers in any::<u64>()) {
        calls!(asks, answers; virtual_memory:
            map(MapParams { address, bytes, access, fixed }) -> plain MapResults;
            unmap(UnmapParams { address, bytes }) -> nothing;
            protect(ProtectParams { address, bytes, access }) -> nothing;
            reserve(ReserveParams { address, bytes, fixed }) -> plain ReserveResults;
            region(RegionParams { address }) -> plain RegionResults;
            register(RegisterParams { address, bytes, write }) -> plain RegisterResults;
            unregister(UnregisterParams { buffer }) -> nothing;
        );
        calls!(asks, answers; memory_object:
            map(MapParams { address, fixed, offset, bytes, access }) -> plain MapResults;
            unmap(UnmapParams { address, bytes }) -> nothing;
            protect(ProtectParams { address, bytes, access }) -> nothing;
            info() -> plain InfoResults;
            restrict(RestrictParams { write, execute }) -> plain RestrictResults;
        );
        calls!(asks, answers; frame_allocator:
            create_object(CreateObjectParams { bytes }) -> plain CreateObjectResults;
            usage() -> plain UsageResults;
        );
    }

    #[test]
    fn processes(asks in any::<u64>(), answers in any::<u64>()) {
        calls!(asks, answers; process_spawner:
            spawn(
                SpawnParams { name, binary, weight, profile, grants, arguments, environment }
            ) -> plain SpawnResults;
            spawn_image(
                SpawnImageParams {
                    name, image, image_bytes, weight, profile, grants, arguments, environment
                }; caps
            ) -> plain SpawnImageResults;
            spawn_entry(SpawnEntryParams { name }) -> plain SpawnEntryResults;
        );
        calls!(asks, answers; process_directory:
            processes(ProcessesParams { from }) -> read ProcessesResults;
            threads(ThreadsParams { pid, generation, from }) -> read ThreadsResults;
            capabilities(CapabilitiesParams { pid, generation, from }) -> read CapabilitiesResults;
            ledger(LedgerParams { pid, generation }) -> plain LedgerResults;
            own() -> plain OwnResults;
        );
        calls!(asks, answers; process_handle:
            wait() -> plain WaitResults;
            exit_code() -> plain ExitCodeResults;
            kill(KillParams { exit_code }) -> nothing;
            info() -> plain InfoResults;
            usage() -> plain UsageResults;
        );
        calls!(asks, answers; entropy:
            fill(FillParams { count }) -> read FillResults;
            info() -> plain InfoResults;
        );
        calls!(asks, answers; user_session:
            info() -> plain InfoResults;
            logout() -> plain LogoutResults;
        );
    }

    #[test]
    fn machine(asks in any::<u64>(), answers in any::<u64>()) {
        calls!(asks, answers; interrupt:
            wait() -> plain WaitResults;
            acknowledge() -> nothing;
            set_enabled(SetEnabledParams { enabled }) -> nothing;
            info() -> plain InfoResults;
        );
        calls!(asks, answers; trace:
            start(StartParams { categories }) -> plain StartResults;
            stop() -> plain StopResults;
            read(ReadParams { cpu, position, capacity }) -> read ReadResults;
            mark(MarkParams { value }) -> nothing;
            info() -> plain InfoResults;
        );
    }

    #[test]
    fn time_and_isolation(asks in any::<u64>(), answers in any::<u64>()) {
        calls!(asks, answers; context:
            info() -> plain InfoResults;
            create(CreateParams { spec }) -> plain CreateResults;
            bind_caller_thread() -> plain BindCallerThreadResults;
            revoke() -> plain RevokeResults;
            drain_notifications() -> plain DrainNotificationsResults;
            wait_notification() -> plain WaitNotificationResults;
        );
        calls!(asks, answers; lease:
            create(CreateParams { spec, accounting_target }; caps) -> plain CreateResults;
            info() -> read InfoResults;
            preflight() -> read PreflightResults;
            activate() -> plain ActivateResults;
            revoke() -> plain RevokeResults;
        );
        calls!(asks, answers; island:
            admit(AdmitParams {
                period_ns, members, memory, memory_bytes, interrupts, leases, overrun, shutdown
            }; caps) -> plain AdmitResults;
            start() -> plain StartResults;
            info() -> plain InfoResults;
            end() -> plain EndResults;
        );
    }

    #[test]
    fn control_of_others(asks in any::<u64>(), answers in any::<u64>()) {
        calls!(asks, answers; control:
            set_weight(SetWeightParams { thread, weight }) -> plain SetWeightResults;
            set_latency_class(SetLatencyClassParams { thread, class }) -> plain SetLatencyClassResults;
            snapshot(SnapshotParams { thread }) -> plain SnapshotResults;
            threads(ThreadsParams { after }) -> read ThreadsResults;
            bind_context(BindContextParams { context_id, generation, thread }) -> plain BindContextResults;
            adjust_context(AdjustContextParams { context_id, generation, spec }) -> plain AdjustContextResults;
            revoke_context(RevokeContextParams { context_id, generation }) -> plain RevokeContextResults;
            create_context(CreateContextParams { spec }) -> plain CreateContextResults;
            grant_lease(
                GrantLeaseParams { spec, thread, context_id, context_generation }
            ) -> plain GrantLeaseResults;
            revoke_lease(RevokeLeaseParams { lease_id, generation }) -> plain RevokeLeaseResults;
            loads(LoadsParams { first_cpu }) -> read LoadsResults;
        );
    }
}
