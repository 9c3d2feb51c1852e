//! Values made from a number: parameters to send, results to answer with.
//!
//! The same number gives the same value, so a test knows what a server answers without asking
//! it. Text, data and lists are leaked: they live as long as any test.

use schema::cpu_isolation_lease_capnp::{LeaseGate, LeaseLabel, LeaseMode, LeaseState, NamedRing};
use schema::interrupt_capnp::TriggerMode;
use schema::memory_capnp::{MemoryAccess, RegionKind};
use schema::process_directory_capnp::{
    CapabilityKind, DirectoryResult, ProcessState, ThreadState, WaitsFor,
};
use schema::process_handle_capnp::ExitReason;
use schema::process_spawner_capnp::GrantSource;
use schema::realtime_island_capnp::{AdmissionFinding, IslandState, ShutdownPolicy};
use schema::scheduler_control_capnp::ControlResult;
use schema::scheduling_context_capnp::{
    ContextBinding, ContextLifecycle, ContextResult, Criticality, DispatchEffect, OverrunPolicy,
};
use schema::scheduling_policy_capnp::LatencyClass;
use schema::{
    cpu_isolation_lease as lease, entropy, frame_allocator, interrupt, manifest, memory,
    memory_object, process_directory, process_handle, process_spawner, realtime_island as island,
    scheduler_control as control, scheduling_context as context, trace, user_session,
    virtual_memory,
};
use schema_wire::{List, TransferIndex};

/// A sequence of numbers out of one (splitmix64).
#[derive(Clone, Debug)]
pub struct Source(u64);

impl Source {
    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// The next value.
    pub fn make<T: Made>(&mut self) -> T {
        T::made(self)
    }
}

/// The value that a number stands for.
pub fn make<T: Made>(number: u64) -> T {
    T::made(&mut Source(number))
}

/// What can be made.
pub trait Made {
    /// Makes one.
    fn made(source: &mut Source) -> Self;
}

macro_rules! numbers {
    ($($number:ident)*) => {$(
        impl Made for $number {
            fn made(source: &mut Source) -> Self {
                source.draw() as $number
            }
        }
    )*};
}
numbers!(u16 u32 u64 i64);

impl Made for bool {
    fn made(source: &mut Source) -> Self {
        source.draw() & 1 == 1
    }
}

impl Made for &[u8] {
    fn made(source: &mut Source) -> Self {
        let length = source.draw() % 20;
        (0..length).map(|_| source.draw() as u8).collect::<Vec<_>>().leak()
    }
}

impl Made for &str {
    fn made(source: &mut Source) -> Self {
        let length = source.draw() % 20;
        let letter = |source: &mut Source| match source.draw() % 4 {
            0 => 'a',
            1 => 'ß',
            2 => '∀',
            _ => ' ',
        };
        (0..length).map(|_| letter(source)).collect::<String>().leak()
    }
}

impl Made for Option<TransferIndex> {
    fn made(source: &mut Source) -> Self {
        source.make::<bool>().then(|| TransferIndex(source.draw() as u16))
    }
}

impl<'a, E: Made + schema_wire::Element<'a>> Made for List<'a, E> {
    fn made(source: &mut Source) -> Self {
        let length = source.draw() % 3;
        List::of((0..length).map(|_| source.make()).collect::<Vec<E>>().leak())
    }
}

macro_rules! enums {
    ($($name:ident)*) => {$(
        impl Made for $name {
            fn made(source: &mut Source) -> Self {
                loop {
                    if let Ok(value) = $name::try_from((source.draw() % 64) as u16) {
                        return value;
                    }
                }
            }
        }
    )*};
}
enums! {
    AdmissionFinding CapabilityKind ContextBinding ContextLifecycle ContextResult ControlResult Criticality
    DirectoryResult DispatchEffect ExitReason GrantSource IslandState LatencyClass LeaseGate LeaseLabel LeaseMode
    LeaseState MemoryAccess NamedRing OverrunPolicy ProcessState RegionKind ShutdownPolicy ThreadState TriggerMode
    WaitsFor
}

/// `module::Struct { fields }`, with its lifetime if it borrows.
macro_rules! structs {
    ($($module:ident::$name:ident $(<$life:lifetime>)? { $($field:ident),* })*) => {$(
        impl $(<$life>)? Made for $module::$name $(<$life>)? {
            fn made(source: &mut Source) -> Self {
                Self { $($field: source.make()),* }
            }
        }
    )*};
}

structs! {
    memory::Region { address, bytes, kind, access, object_offset }
    virtual_memory::MapParams { address, bytes, access, fixed }
    virtual_memory::MapResults { mapped }
    virtual_memory::UnmapParams { address, bytes }
    virtual_memory::ProtectParams { address, bytes, access }
    virtual_memory::ReserveParams { address, bytes, fixed }
    virtual_memory::ReserveResults { reserved }
    virtual_memory::RegionParams { address }
    virtual_memory::RegionResults { region }
    virtual_memory::RegisterParams { address, bytes, write }
    virtual_memory::RegisterResults { buffer }
    virtual_memory::UnregisterParams { buffer }
    memory_object::MapParams { address, fixed, offset, bytes, access }
    memory_object::MapResults { mapped }
    memory_object::UnmapParams { address, bytes }
    memory_object::ProtectParams { address, bytes, access }
    memory_object::InfoResults { bytes, mapped_pages, can_write, can_execute }
    memory_object::RestrictParams { write, execute }
    memory_object::RestrictResults { facet_index, facet_generation }
    frame_allocator::CreateObjectParams { bytes }
    frame_allocator::CreateObjectResults { object_index, object_generation }
    frame_allocator::UsageResults { used, limit, machine_free }
    manifest::ResourceProfile {
        cap_slots, threads, kernel_stack_pages, frames, sleep_waiters, ring_entries,
        ring_scratch_limit_bytes, in_flight_call_limit, endpoint_queue_limit, kernel_bytes, registered_buffers
    }
    process_spawner::SpawnGrant<'a> {
        name, source, slot_index, slot_generation, moved, interface_id
    }
    manifest::Argument<'a> { text }
    manifest::Variable<'a> { name, value }
    process_spawner::SpawnParams<'a> {
        name, binary, weight, profile, grants, arguments, environment
    }
    process_spawner::SpawnResults { handle_index, handle_generation }
    process_spawner::SpawnImageParams<'a> {
        name, image, image_bytes, weight, profile, grants, arguments, environment
    }
    process_spawner::SpawnImageResults { handle_index, handle_generation }
    process_spawner::SpawnEntryParams<'a> { name }
    process_spawner::SpawnEntryResults { handle_index, handle_generation }
    process_directory::ProcessEntry<'a> {
        pid, generation, name, state, exit_reason, exit_code, weight, live_threads, started_ns,
        cpu_time_ns, cpu_time_whole, parent_pid, parent_generation, session_id
    }
    process_directory::ThreadEntry {
        tid, generation, state, killed, waits_for, calls, receives, sleeps, joins, parks, inputs,
        outputs, memory_changes, process_ends, weight, class, cpu, runtime_ns, virtual_runtime_ns,
        runnable_accumulated_ns, voluntary_blocks, preemptions, interrupts
    }
    process_directory::CapabilityEntry<'a> {
        slot, generation, kind, interface_tag, interface_id, name
    }
    process_directory::ProcessesParams { from }
    process_directory::ProcessesResults<'a> { processes, next, more }
    process_directory::ThreadsParams { pid, generation, from }
    process_directory::ThreadsResults<'a> { result, threads, next, more }
    process_directory::CapabilitiesParams { pid, generation, from }
    process_directory::CapabilitiesResults<'a> { result, capabilities, next, more }
    process_directory::LedgerParams { pid, generation }
    process_directory::LedgerResults { result, usage }
    process_directory::OwnResults { pid, generation }
    process_handle::LineUsage { used, lent, limit }
    process_handle::ProcessUsage {
        cap_slots, threads, kernel_stack_pages, frames, sleep_waiters, ring_entries,
        ring_scratch_limit_bytes, in_flight_call_limit, endpoint_queue_limit, kernel_bytes, registered_buffers
    }
    process_handle::WaitResults { exit_code, reason }
    process_handle::ExitCodeResults { exited, exit_code, reason }
    process_handle::KillParams { exit_code }
    process_handle::InfoResults { pid, generation, live_threads, started_ns }
    process_handle::UsageResults { usage }
    interrupt::WaitResults { count }
    interrupt::SetEnabledParams { enabled }
    interrupt::InfoResults { line, trigger, enabled, total }
    context::SchedulingContextSpec<'a> {
        budget_ns, period_ns, relative_deadline_ns, cpu_mask, overrun_policy, criticality
    }
    context::SchedulingContextInfo {
        context_id, generation, lifecycle, binding, effect, consumed_ns, remaining_budget_ns,
        next_replenishment_ns, budget_ns, period_ns, relative_deadline_ns, overrun_policy,
        criticality, bound_pid, bound_process_generation, bound_tid, bound_thread_generation,
        donor_debt_ns
    }
    context::NotificationCell {
        sequence, count, holder_pid, holder_process_generation, holder_tid,
        holder_thread_generation, remaining_budget_ns, next_ns, donated
    }
    context::InfoResults { info }
    context::CreateParams<'a> { spec }
    context::CreateResults { result, context_index, context_generation }
    context::BindCallerThreadResults { result }
    context::RevokeResults { result }
    context::DrainNotificationsResults { result, budget_depleted, deadline_or_timeout }
    context::WaitNotificationResults { result, budget_depleted, deadline_or_timeout }
    lease::LeaseSpec<'a> {
        cpu_mask, mode, ring, housekeeping_exclusions, max_revocation_latency_ns, lifetime_ns
    }
    lease::GateReport { gate, passes, label }
    lease::LeaseInfo {
        lease_id, generation, state, mode, ring, last_label, owner_pid, owner_process_generation,
        context_id, context_generation, max_revocation_latency_ns, expires_ns, isolated_ns,
        interruptions
    }
    lease::CreateParams<'a> { spec, accounting_target }
    lease::CreateResults { label, lease_index, lease_generation }
    lease::InfoResults<'a> { info, cpu_mask }
    lease::PreflightResults<'a> {
        lease_id, generation, runnable, eligible, gates, housekeeping_mask, rollback, tick_running
    }
    lease::ActivateResults { label, state }
    lease::RevokeResults { label }
    control::ThreadName { pid, process_generation, tid, thread_generation }
    control::ThreadAccount {
        pid, process_generation, tid, thread_generation, weight, class, cpu, runnable, runtime_ns,
        virtual_runtime_ns, voluntary_blocks, preemptions, runnable_accumulated_ns, context_id
    }
    control::CpuLoad { cpu, runnable, idle_ns, promised_permille, isolated, lease_id }
    control::SetWeightParams { thread, weight }
    control::SetWeightResults { result }
    control::SetLatencyClassParams { thread, class }
    control::SetLatencyClassResults { result }
    control::SnapshotParams { thread }
    control::SnapshotResults { result, account }
    control::ThreadsParams { after }
    control::ThreadsResults<'a> { accounts, more }
    control::BindContextParams { context_id, generation, thread }
    control::BindContextResults { result }
    control::AdjustContextParams<'a> { context_id, generation, spec }
    control::AdjustContextResults { result }
    control::RevokeContextParams { context_id, generation }
    control::RevokeContextResults { result }
    control::CreateContextParams<'a> { spec }
    control::CreateContextResults { context_index, context_generation, context_id }
    control::GrantLeaseParams<'a> { spec, thread, context_id, context_generation }
    control::GrantLeaseResults { result, label, lease_index, lease_generation, lease_id }
    control::RevokeLeaseParams { lease_id, generation }
    control::RevokeLeaseResults { result, label }
    control::LoadsParams { first_cpu }
    control::LoadsResults<'a> { loads, more }
    island::IslandMember { context_id, context_generation, wcet_ns, starts_after }
    island::IslandInterrupt { line, cpu }
    island::IslandLease { lease_id, generation }
    island::IslandEvidence {
        finding, failed_member, utilization_permille, longest_chain_ns, pinned_bytes, admitted_ns
    }
    island::AdmitParams<'a> {
        period_ns, members, memory, memory_bytes, interrupts, leases, overrun, shutdown
    }
    island::AdmitResults { evidence, island_index, island_generation }
    island::StartResults { state }
    island::InfoResults { state, evidence, periods, deadline_misses, overruns }
    island::EndResults { state, deadline_misses }
    user_session::InfoResults { session_id, live, processes, started_ns }
    user_session::LogoutResults { revoked_contexts, skipped_donated, revoked_leases, was_live }
    entropy::FillParams { count }
    entropy::FillResults<'a> { bytes }
    entropy::InfoResults { seed_bits, generator_bits, jitter_bits, enough }
    trace::StartParams { categories }
    trace::StartResults { buffer_bytes }
    trace::StopResults { events, lost }
    trace::ReadParams { cpu, position, capacity }
    trace::ReadResults<'a> { events, next, lost }
    trace::MarkParams { value }
    trace::InfoResults { categories, buffer_bytes, cpus }
}
