//! A server for every interface, whose answers show what it was asked.

use schema::scheduling_policy_capnp::LatencyClass;
use schema::system_info_capnp::ImageProfile;
use schema::{
    console, cpu_isolation_lease, endpoint, entropy, frame_allocator, interrupt, memory_object,
    park_space, process_directory, process_handle, process_spawner, realtime_island,
    scheduler_control, scheduling_context, scheduling_policy, system_info, thread_control,
    thread_handle, thread_spawner, timer, trace, user_session, virtual_memory,
};
use schema_wire::{Answer, Exception, ExceptionKind, NoResult, Served, Status};

/// Serves every interface of `schema`.
#[derive(Clone, Debug, Default)]
pub struct Everything {
    /// What was asked, as text.
    pub asked: Vec<String>,
    /// The number answers are made of.
    pub number: u64,
    /// What the console reads.
    pub input: Vec<u8>,
}

/// The interfaces by name, each with its dispatch.
pub fn serve(
    server: &mut Everything,
    interface: &str,
    method: u16,
    params: &[u8],
    results: &mut [u8],
) -> Option<Result<Served, Status>> {
    Some(match interface {
        "Console" => console::dispatch(server, method, params, results),
        "CpuIsolationLease" => cpu_isolation_lease::dispatch(server, method, params, results),
        "Endpoint" => endpoint::dispatch(server, method, params, results),
        "Entropy" => entropy::dispatch(server, method, params, results),
        "FrameAllocator" => frame_allocator::dispatch(server, method, params, results),
        "Interrupt" => interrupt::dispatch(server, method, params, results),
        "MemoryObject" => memory_object::dispatch(server, method, params, results),
        "ParkSpace" => park_space::dispatch(server, method, params, results),
        "ProcessDirectory" => process_directory::dispatch(server, method, params, results),
        "ProcessHandle" => process_handle::dispatch(server, method, params, results),
        "ProcessSpawner" => process_spawner::dispatch(server, method, params, results),
        "RealtimeIsland" => realtime_island::dispatch(server, method, params, results),
        "SchedulerControl" => scheduler_control::dispatch(server, method, params, results),
        "SchedulingContext" => scheduling_context::dispatch(server, method, params, results),
        "SchedulingPolicyCap" => scheduling_policy::dispatch(server, method, params, results),
        "SystemInfo" => system_info::dispatch(server, method, params, results),
        "ThreadControl" => thread_control::dispatch(server, method, params, results),
        "ThreadHandle" => thread_handle::dispatch(server, method, params, results),
        "ThreadSpawner" => thread_spawner::dispatch(server, method, params, results),
        "Timer" => timer::dispatch(server, method, params, results),
        "Trace" => trace::dispatch(server, method, params, results),
        "UserSession" => user_session::dispatch(server, method, params, results),
        "VirtualMemory" => virtual_memory::dispatch(server, method, params, results),
        _ => return None,
    })
}

impl Everything {
    pub(crate) fn ask(&mut self, what: impl std::fmt::Debug) {
        self.asked.push(format!("{what:?}"));
    }
}

impl console::Server for Everything {
    fn write(&mut self, params: console::WriteParams<'_>) -> Answer<console::WriteResults> {
        self.ask(params);
        Ok(console::WriteResults { written: params.bytes.len() as u32 })
    }

    fn read(
        &mut self,
        params: console::ReadParams,
        room: usize,
    ) -> Answer<console::ReadResults<'_>> {
        self.ask(params);
        let length = self.input.len().min(room).min(params.capacity as usize);
        Ok(console::ReadResults { bytes: self.input.get(..length).unwrap_or_default() })
    }
}

impl timer::Server for Everything {
    fn now(&mut self) -> Answer<timer::NowResults> {
        Ok(timer::NowResults { ns: self.number })
    }

    fn sleep(&mut self, params: timer::SleepParams) -> Answer<()> {
        self.ask(params);
        if params.ns == u64::MAX { Err(NoResult::Later) } else { Ok(()) }
    }

    fn sleep_until(&mut self, params: timer::SleepUntilParams) -> Answer<()> {
        self.ask(params);
        Ok(())
    }

    fn wall_clock(&mut self) -> Answer<timer::WallClockResults> {
        Ok(timer::WallClockResults { unix_seconds: self.number, nanoseconds: self.number as u32 })
    }
}

impl endpoint::Server for Everything {
    fn mint_facet(
        &mut self,
        params: endpoint::MintFacetParams,
    ) -> Answer<endpoint::MintFacetResults> {
        self.ask(params);
        Ok(endpoint::MintFacetResults {
            facet_index: params.badge as u16,
            facet_generation: params.interface_id as u32,
        })
    }

    fn revoke_facets(
        &mut self,
        params: endpoint::RevokeFacetsParams,
    ) -> Answer<endpoint::RevokeFacetsResults> {
        self.ask(params);
        Ok(endpoint::RevokeFacetsResults { revoked: params.badge as u32 })
    }

    fn load(&mut self) -> Answer<endpoint::LoadResults> {
        let number = self.number as u32;
        Ok(endpoint::LoadResults {
            queued: number,
            queue_limit: !number,
            in_flight: number.rotate_left(8),
            in_flight_limit: number.rotate_left(16),
        })
    }
}

impl park_space::Server for Everything {}

impl thread_spawner::Server for Everything {
    fn create(
        &mut self,
        params: thread_spawner::CreateParams,
    ) -> Answer<thread_spawner::CreateResults> {
        self.ask(params);
        if params.flags != 0 {
            let message = format_args!("flags {:#x} are not 0", params.flags);
            return Err(Exception::with(ExceptionKind::Failed, message).into());
        }
        Ok(thread_spawner::CreateResults {
            handle_index: params.entry as u16,
            handle_generation: params.stack_top as u32,
        })
    }
}

impl thread_handle::Server for Everything {
    fn join(&mut self) -> Answer<thread_handle::JoinResults> {
        Ok(thread_handle::JoinResults { exit_code: self.number as i64 })
    }

    fn exit_code(&mut self) -> Answer<thread_handle::ExitCodeResults> {
        Ok(thread_handle::ExitCodeResults {
            exited: !self.number.is_multiple_of(2),
            exit_code: -(self.number as i64 >> 1),
        })
    }
}

impl thread_control::Server for Everything {
    fn get_fs_base(&mut self) -> Answer<thread_control::GetFsBaseResults> {
        Ok(thread_control::GetFsBaseResults { fs_base: self.number })
    }

    fn set_fs_base(&mut self, params: thread_control::SetFsBaseParams) -> Answer<()> {
        self.ask(params);
        Ok(())
    }

    fn exit_thread(&mut self, params: thread_control::ExitThreadParams) -> Answer<()> {
        self.ask(params);
        Err(NoResult::Later)
    }
}

impl system_info::Server for Everything {
    fn machine(&mut self) -> Answer<system_info::MachineResults> {
        Ok(system_info::MachineResults {
            machine: system_info::Machine {
                cpus: self.number as u32,
                profile: ImageProfile::Measure,
                uptime_ns: self.number,
                frames_total: self.number << 1,
                frames_free: self.number >> 1,
                heap_bytes: self.number ^ 1,
                heap_frames: self.number ^ 2,
                heap_allocations: self.number ^ 4,
                accounts_closed: self.number ^ 5,
                accounts_not_zero: self.number ^ 6,
            },
        })
    }

    fn cpu(&mut self, params: system_info::CpuParams) -> Answer<system_info::CpuResults> {
        self.ask(params);
        let at = |position: u32| self.number.rotate_left(position);
        Ok(system_info::CpuResults {
            counters: system_info::CpuCounters {
                runnable: at(0) as u32,
                runnable_max: at(1) as u32,
                switches: at(2),
                preemptions: at(3),
                steals: at(4),
                failed_placements: at(5),
                reschedule_sent: at(6),
                reschedule_skipped: at(7),
                tlb_requests: at(8),
                tlb_failures: at(9),
                idle_entries: at(10),
                idle_ns: at(11),
                timer_interrupts: at(12),
                one_shots: at(13),
                handoffs_taken: at(14),
                handoffs_missed: at(15),
                syscalls: at(16),
                idle_cooperative: at(17),
                idle_dispatch_timer: at(18),
                idle_dispatch_block: at(19),
                idle_dispatch_exit: at(20),
                policy_admissions: at(21),
                policy_denials: at(22),
            },
        })
    }
}

impl scheduling_policy::Server for Everything {
    fn set_weight(&mut self, params: scheduling_policy::SetWeightParams) -> Answer<()> {
        self.ask(params);
        Ok(())
    }

    fn set_latency_class(
        &mut self,
        params: scheduling_policy::SetLatencyClassParams,
    ) -> Answer<()> {
        self.ask(params);
        Ok(())
    }

    fn snapshot(&mut self) -> Answer<scheduling_policy::SnapshotResults> {
        let at = |position: u32| self.number.rotate_left(position);
        Ok(scheduling_policy::SnapshotResults {
            weight: at(0) as u16,
            class: LatencyClass::IpcServer,
            runtime_ns: at(1),
            virtual_runtime_ns: at(2),
            voluntary_blocks: at(3),
            preemptions: at(4),
            runnable_accumulated_ns: at(5),
        })
    }
}
