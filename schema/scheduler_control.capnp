@0xa74c8e4078f3d40b;
# Scheduling of any thread, for the policy service.

using Capos = import "capos.capnp";
using Policy = import "scheduling_policy.capnp";
using Context = import "scheduling_context.capnp";
using Lease = import "cpu_isolation_lease.capnp";

enum ControlResult @0xff7c68ce1701e976 {
  # What became of a call, beside exceptions.

  ok @0;
  staleGeneration @1;
  # The thread, context or lease is gone or was replaced; nothing was done.

  revoked @2;
}

struct ThreadName @0xbe0180c3b1952f0e {
  # A ThreadRef: which thread, and which use of its numbers.

  pid @0 :UInt32;
  processGeneration @1 :UInt32;
  tid @2 :UInt32;
  threadGeneration @3 :UInt32;
}

struct ThreadAccount @0xe28dc621c5e917cd {
  # One thread's counters since it started, as `SchedulingPolicyCap.snapshot` gives them to itself.

  pid @0 :UInt32;
  processGeneration @1 :UInt32;
  tid @2 :UInt32;
  threadGeneration @3 :UInt32;
  weight @4 :UInt16;
  class @5 :Policy.LatencyClass;

  cpu @6 :UInt16;
  # Where it ran last.

  runnable @7 :Bool;
  # Whether it runs or wants to.

  runtimeNs @8 :UInt64;
  virtualRuntimeNs @9 :UInt64;
  voluntaryBlocks @10 :UInt64;
  preemptions @11 :UInt64;
  runnableAccumulatedNs @12 :UInt64;
  contextId @13 :UInt64;
  # The context it is bound to; 0 without one.
}

interface SchedulerControl @0xb91134a95ce44886 $Capos.processLocal {
  # Held by the policy service alone: it comes from the manifest and cannot be passed on. It sets
  # parameters and is never asked when a CPU picks a thread. Nothing it can do keeps a thread
  # without a context from ever running, or takes the last housekeeping CPU.

  setWeight @0 (thread :ThreadName, weight :UInt16) -> (result :ControlResult);
  # From 1 to 1024, else `invalidArgument`. In effect when the thread is next queued.

  setLatencyClass @1 (thread :ThreadName, class :Policy.LatencyClass) -> (result :ControlResult);
  # In effect when the thread is next queued.

  snapshot @2 (thread :ThreadName) -> (result :ControlResult, account :ThreadAccount);
  # One thread's counters; all zero unless `ok`.

  threads @3 (after :ThreadName) -> (accounts :List(ThreadAccount), more :Bool);
  # The threads of the machine after that one, in the order of their names, as many as fit; from
  # the first if `after` is all zero. Threads that come and go meanwhile may be missed.

  bindContext @4 (contextId :UInt64, generation :UInt64, thread :ThreadName) -> (result :ControlResult);
  # Binds a context to a thread, as the thread could itself; `failed` as there.

  adjustContext @5 (contextId :UInt64, generation :UInt64, spec :Context.SchedulingContextSpec) -> (result :ControlResult);
  # Changes a context from its next period on; admitted as if it were new.

  revokeContext @6 (contextId :UInt64, generation :UInt64) -> (result :ControlResult);
  # As `SchedulingContext.revoke`.

  createContext @7 (spec :Context.SchedulingContextSpec) -> (contextIndex :UInt16, contextGeneration :UInt32, contextId :UInt64);
  # A context in the caller's capability table, to be given away; errors as of
  # `SchedulingContext.create`.

  grantLease @8 (spec :Lease.LeaseSpec, thread :ThreadName, contextId :UInt64, contextGeneration :UInt64) -> (result :ControlResult, label :Lease.LeaseLabel, leaseIndex :UInt16, leaseGeneration :UInt32, leaseId :UInt64);
  # A lease for that thread, paid by that context, in the caller's capability table. Unless the
  # result is `ok` and the label `ready`, nothing was granted.

  revokeLease @9 (leaseId :UInt64, generation :UInt64) -> (result :ControlResult, label :Lease.LeaseLabel);
  # As `CpuIsolationLease.revoke`.

  loads @10 (firstCpu :UInt32) -> (loads :List(CpuLoad), more :Bool);
  # How busy the CPUs from that number on are, as many as fit.

  struct CpuLoad @0xe56b9a94f5f7183c {
    cpu @0 :UInt32;
    runnable @1 :UInt32;
    # Threads that run or want to.

    idleNs @2 :UInt64;
    # Since boot.

    promisedPermille @3 :UInt16;
    # Of its time, to contexts.

    isolated @4 :Bool;
    leaseId @5 :UInt64;
  }
}
