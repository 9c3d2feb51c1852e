//! Processes, threads and capabilities as ProcessDirectory lists them.

use crate::directory::{
    CapabilityKind, PendingKinds, ProcessState, SeenCapability, SeenProcess, SeenThread,
};
use crate::handle::exit_reason;
use core_sched_policy::LatencyClass;
use core_thread::State;
use schema::process_directory::{CapabilityEntry, ProcessEntry, ThreadEntry};
use schema::process_directory_capnp as told;
use schema::process_handle_capnp::ExitReason;
use schema::scheduling_policy_capnp as policy;

/// No process.
pub const NO_PROCESS: ProcessEntry<'static> = ProcessEntry {
    pid: 0,
    generation: 0,
    name: "",
    state: told::ProcessState::Starting,
    exit_reason: ExitReason::Exited,
    exit_code: 0,
    weight: 0,
    live_threads: 0,
    started_ns: 0,
    cpu_time_ns: 0,
    cpu_time_whole: false,
    parent_pid: 0,
    parent_generation: 0,
    session_id: 0,
};

/// A process as the interface tells it, but for its name.
pub fn process_entry(seen: &SeenProcess) -> ProcessEntry<'static> {
    ProcessEntry {
        pid: seen.key.slot,
        generation: seen.key.generation,
        name: "",
        state: match seen.state {
            ProcessState::Starting => told::ProcessState::Starting,
            ProcessState::Running => told::ProcessState::Running,
            ProcessState::Ending => told::ProcessState::Ending,
            ProcessState::Gone => told::ProcessState::Gone,
        },
        exit_reason: seen.ended.map_or(ExitReason::Exited, |ended| exit_reason(ended.reason)),
        exit_code: seen.ended.map_or(0, |ended| ended.code),
        weight: seen.weight.get(),
        live_threads: seen.live_threads,
        started_ns: seen.began_ns,
        cpu_time_ns: seen.cpu_time_ns,
        cpu_time_whole: seen.is_cpu_time_whole,
        parent_pid: seen.parent.map_or(0, |parent| parent.slot),
        parent_generation: seen.parent.map_or(0, |parent| parent.generation),
        session_id: seen.session.map_or(0, |session| session.to_bits()),
    }
}

/// No thread.
pub const NO_THREAD: ThreadEntry = ThreadEntry {
    tid: 0,
    generation: 0,
    state: told::ThreadState::Ended,
    killed: false,
    waits_for: told::WaitsFor::NotWaiting,
    calls: 0,
    receives: 0,
    sleeps: 0,
    joins: 0,
    parks: 0,
    inputs: 0,
    outputs: 0,
    memory_changes: 0,
    process_ends: 0,
    weight: 0,
    class: policy::LatencyClass::Normal,
    cpu: 0,
    runtime_ns: 0,
    virtual_runtime_ns: 0,
    runnable_accumulated_ns: 0,
    voluntary_blocks: 0,
    preemptions: 0,
    interrupts: 0,
};

/// What a thread waits for that has these operations pending.
fn waits_for(pending: &PendingKinds) -> told::WaitsFor {
    use told::WaitsFor;
    let kinds = [
        (pending.calls, WaitsFor::Call),
        (pending.receives, WaitsFor::Receive),
        (pending.sleeps, WaitsFor::Sleep),
        (pending.joins, WaitsFor::Join),
        (pending.parks, WaitsFor::Park),
        (pending.inputs, WaitsFor::Input),
        (pending.outputs, WaitsFor::Output),
        (pending.memory_changes, WaitsFor::Memory),
        (pending.process_ends, WaitsFor::ProcessEnd),
        (pending.interrupts, WaitsFor::Interrupt),
    ];
    let mut some = kinds.iter().filter(|(count, _)| *count != 0);
    match (some.next(), some.next()) {
        (None, _) => WaitsFor::Time,
        (Some((_, kind)), None) => *kind,
        (Some(_), Some(_)) => WaitsFor::Several,
    }
}

/// A thread as the interface tells it.
pub fn thread_entry(seen: &SeenThread) -> ThreadEntry {
    let pending = seen.pending.unwrap_or_default();
    let (account, share) = (&seen.account, &seen.account.share);
    ThreadEntry {
        tid: seen.key.slot,
        generation: seen.key.generation,
        state: match seen.state {
            State::Runnable | State::New => told::ThreadState::Runnable,
            State::Running => told::ThreadState::Running,
            State::AboutToWait | State::Waiting => told::ThreadState::Waiting,
            State::Dead | State::Free | State::Retired => told::ThreadState::Ended,
        },
        killed: seen.is_killed,
        waits_for: seen.pending.as_ref().map_or(told::WaitsFor::NotWaiting, waits_for),
        calls: pending.calls,
        receives: pending.receives,
        sleeps: pending.sleeps,
        joins: pending.joins,
        parks: pending.parks,
        inputs: pending.inputs,
        outputs: pending.outputs,
        memory_changes: pending.memory_changes,
        process_ends: pending.process_ends,
        weight: share.weight().get(),
        class: match share.class() {
            LatencyClass::Interactive => policy::LatencyClass::Interactive,
            LatencyClass::Normal => policy::LatencyClass::Normal,
            LatencyClass::Batch => policy::LatencyClass::Batch,
            LatencyClass::IpcServer => policy::LatencyClass::IpcServer,
        },
        cpu: seen.cpu as u16,
        runtime_ns: account.runtime_ns,
        virtual_runtime_ns: account.virtual_runtime_ns,
        runnable_accumulated_ns: account.runnable_accumulated_ns,
        voluntary_blocks: account.voluntary_blocks,
        preemptions: account.preemptions,
        interrupts: pending.interrupts,
    }
}

/// No capability.
pub const NO_CAPABILITY: CapabilityEntry<'static> = CapabilityEntry {
    slot: 0,
    generation: 0,
    kind: told::CapabilityKind::Object,
    interface_tag: 0,
    interface_id: 0,
    name: "",
};

/// A capability as the interface tells it.
pub fn capability_entry<'n>(seen: &SeenCapability, name: &'n str) -> CapabilityEntry<'n> {
    CapabilityEntry {
        slot: seen.slot.index(),
        generation: seen.slot.generation(),
        kind: match seen.kind {
            CapabilityKind::Object => told::CapabilityKind::Object,
            CapabilityKind::Endpoint => told::CapabilityKind::Endpoint,
            CapabilityKind::Client => told::CapabilityKind::Client,
        },
        interface_tag: seen.tag.to_bits(),
        interface_id: seen.interface_id,
        name,
    }
}
