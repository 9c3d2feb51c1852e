//! The servers whose answers are made from the server's number.

use schema::{
    cpu_isolation_lease as lease, entropy, frame_allocator, interrupt, memory_object,
    process_directory, process_handle, process_spawner, realtime_island as island,
    scheduler_control as control, scheduling_context as context, trace, user_session,
    virtual_memory,
};
use schema_wire::{Answer, Exception, ExceptionKind, Value};

use crate::{Everything, Made, make};

impl Everything {
    /// Results as large as the caller can take.
    fn within<'a, R: Value<'a> + Made>(&self, room: usize) -> Answer<R> {
        let results: R = make(self.number);
        if results.variable_bytes() > room {
            return Err(Exception::new(ExceptionKind::Overloaded, "no room").into());
        }
        Ok(results)
    }
}

/// For each method what it takes and gives: `name(Params)`, `-> Results` or `-> ()`, and `room`
/// where the size of the results depends on their value.
macro_rules! answering {
    ($($module:ident { $($method:ident ( $($params:ident $(<$life:lifetime>)?)? ) -> $results:tt $(<$room:lifetime>)?;)* })*) => {$(
        impl $module::Server for Everything {
            $(answering!(@ $module $method ( $($params $(<$life>)?)? ) $results $(<$room>)?);)*
        }
    )*};
    (@ $module:ident $method:ident () ()) => {
        fn $method(&mut self) -> Answer<()> {
            Ok(())
        }
    };
    (@ $module:ident $method:ident () $results:ident) => {
        fn $method(&mut self) -> Answer<$module::$results> {
            Ok(make(self.number))
        }
    };
    (@ $module:ident $method:ident () $results:ident <$room:lifetime>) => {
        fn $method(&mut self, room: usize) -> Answer<$module::$results<'_>> {
            self.within(room)
        }
    };
    (@ $module:ident $method:ident ($params:ident $(<$life:lifetime>)?) ()) => {
        fn $method(&mut self, params: $module::$params $(<$life>)?) -> Answer<()> {
            self.ask(params);
            Ok(())
        }
    };
    (@ $module:ident $method:ident ($params:ident $(<$life:lifetime>)?) $results:ident) => {
        fn $method(&mut self, params: $module::$params $(<$life>)?) -> Answer<$module::$results> {
            self.ask(params);
            Ok(make(self.number))
        }
    };
    (@ $module:ident $method:ident ($params:ident) $results:ident <$room:lifetime>) => {
        fn $method(
            &mut self,
            params: $module::$params,
            room: usize,
        ) -> Answer<$module::$results<'_>> {
            let answer = self.within(room);
            self.ask(params);
            answer
        }
    };
}

answering! {
    virtual_memory {
        map(MapParams) -> MapResults;
        unmap(UnmapParams) -> ();
        protect(ProtectParams) -> ();
        reserve(ReserveParams) -> ReserveResults;
        region(RegionParams) -> RegionResults;
        register(RegisterParams) -> RegisterResults;
        unregister(UnregisterParams) -> ();
    }
    memory_object {
        map(MapParams) -> MapResults;
        unmap(UnmapParams) -> ();
        protect(ProtectParams) -> ();
        info() -> InfoResults;
        restrict(RestrictParams) -> RestrictResults;
    }
    frame_allocator {
        create_object(CreateObjectParams) -> CreateObjectResults;
        usage() -> UsageResults;
    }
    process_spawner {
        spawn(SpawnParams<'_>) -> SpawnResults;
        spawn_image(SpawnImageParams<'_>) -> SpawnImageResults;
        spawn_entry(SpawnEntryParams<'_>) -> SpawnEntryResults;
    }
    process_directory {
        processes(ProcessesParams) -> ProcessesResults<'_>;
        threads(ThreadsParams) -> ThreadsResults<'_>;
        capabilities(CapabilitiesParams) -> CapabilitiesResults<'_>;
        ledger(LedgerParams) -> LedgerResults;
        own() -> OwnResults;
    }
    process_handle {
        wait() -> WaitResults;
        exit_code() -> ExitCodeResults;
        kill(KillParams) -> ();
        info() -> InfoResults;
        usage() -> UsageResults;
    }
    interrupt {
        wait() -> WaitResults;
        acknowledge() -> ();
        set_enabled(SetEnabledParams) -> ();
        info() -> InfoResults;
    }
    context {
        info() -> InfoResults;
        create(CreateParams<'_>) -> CreateResults;
        bind_caller_thread() -> BindCallerThreadResults;
        revoke() -> RevokeResults;
        drain_notifications() -> DrainNotificationsResults;
        wait_notification() -> WaitNotificationResults;
    }
    lease {
        create(CreateParams<'_>) -> CreateResults;
        info() -> InfoResults<'_>;
        preflight() -> PreflightResults<'_>;
        activate() -> ActivateResults;
        revoke() -> RevokeResults;
    }
    control {
        set_weight(SetWeightParams) -> SetWeightResults;
        set_latency_class(SetLatencyClassParams) -> SetLatencyClassResults;
        snapshot(SnapshotParams) -> SnapshotResults;
        threads(ThreadsParams) -> ThreadsResults<'_>;
        bind_context(BindContextParams) -> BindContextResults;
        adjust_context(AdjustContextParams<'_>) -> AdjustContextResults;
        revoke_context(RevokeContextParams) -> RevokeContextResults;
        create_context(CreateContextParams<'_>) -> CreateContextResults;
        grant_lease(GrantLeaseParams<'_>) -> GrantLeaseResults;
        revoke_lease(RevokeLeaseParams) -> RevokeLeaseResults;
        loads(LoadsParams) -> LoadsResults<'_>;
    }
    island {
        admit(AdmitParams<'_>) -> AdmitResults;
        start() -> StartResults;
        info() -> InfoResults;
        end() -> EndResults;
    }
    entropy {
        fill(FillParams) -> FillResults<'_>;
        info() -> InfoResults;
    }
    user_session {
        info() -> InfoResults;
        logout() -> LogoutResults;
    }
    trace {
        start(StartParams) -> StartResults;
        stop() -> StopResults;
        read(ReadParams) -> ReadResults<'_>;
        mark(MarkParams) -> ();
        info() -> InfoResults;
    }
}
