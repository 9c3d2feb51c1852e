@0xc8e3da6283c1db97;
# A CPU for one thread or poller, without its tick: placement and exclusivity, never CPU time.

using SchedulingContext = import "scheduling_context.capnp".SchedulingContext;

enum LeaseMode @0xa8836d3eabff406e {
  compute @0;
  # A thread that computes; without a ring.

  kernelSqpoll @1;
  # The kernel polls the caller's own ring.

  userPoller @2;
  deviceQueue @3;
  # Not implemented.
}

enum NamedRing @0xadacbb8b9ec05d38 {
  none @0;
  callerThread @1;
}

enum LeaseState @0xceb04418696dc394 {
  granted @0;
  # Recorded; its CPU runs as before.

  active @1;
  # Its CPU runs without a tick.

  activating @2;
  # Another CPU was asked to activate it and has not answered.

  revoked @3;
  stale @4;
  # Seen through a capability of an earlier generation.
}

enum LeaseGate @0x8fe60cb55a7bd9ba {
  # What is looked at before a CPU is isolated, and again at every interrupt while it is.

  singleRunnable @0;
  housekeeping @1;
  deferredWork @2;
  timers @3;
  polling @4;
  irq @5;
  accounting @6;
  clock @7;
  sqConsumer @8;
  revocationLatency @9;
}

enum LeaseLabel @0x93de10cb1c3fb6bd {
  # What a gate found, why a lease was refused or why its CPU got its tick back. One list for all
  # of them, because the same findings come up at each.

  ready @0;
  # Nothing stands in the way.

  exactlyOneRunnableCaller @1;
  exactlyOneRunnableRemoteTarget @2;
  noRunnable @3;
  secondRunnable @4;
  stealableWork @5;
  directIpcTarget @6;
  # How many threads want the CPU. The first two pass.

  noHousekeepingCpu @7;
  deferredWorkPending @8;
  timerNeedsCpu @9;
  pollingNeedsCpu @10;
  irqNeedsCpu @11;

  accountingTargetMissing @12;
  accountingTargetStale @13;
  accountingTargetForeign @14;
  budgetExhausted @15;

  clockNotReady @16;
  oneShotUnavailable @17;

  noRingNamed @18;
  blockedSqpollOwner @19;
  # The poller owns the ring, as it should: passes.

  staleSqConsumer @20;
  sqpollRingModeChangedOrOwnerStaled @21;
  ringUnreadable @22;

  revocationLatencyTooLong @23;
  revocationLatencyTooShort @24;

  staleLeaseGeneration @25;
  leaseExpired @26;
  # Its lifetime was over when somebody looked.

  leaseLifetimeExpired @27;
  # Its lifetime ended while its CPU was isolated.

  explicitRevoke @28;
  ownerExited @29;
  serviceReplaced @30;
  sessionLoggedOut @31;

  targetCpuMismatch @32;
  remoteSlotOccupied @33;
  remoteRaceLost @34;
  recordMissing @35;

  duplicateLease @36;
  overlappingLease @37;
  malformedCpuMask @38;
  notExactlyOneCpu @39;
  shapeNotAdmitted @40;
  # The pair of mode and ring is none of the two that exist.
}

struct LeaseSpec @0xa57a61f3f1d605d9 {
  cpuMask @0 :Data;
  # In the form of `SchedulingContextSpec.cpuMask`. Activation needs exactly one CPU.

  mode @1 :LeaseMode;
  ring @2 :NamedRing;
  # `compute` without a ring, `kernelSqpoll` with `callerThread`; no other pair is admitted.

  housekeepingExclusions @3 :Data;
  # CPUs that may not do the leased CPU's housekeeping; a mask as above.

  maxRevocationLatencyNs @4 :UInt64;
  # How soon after its end the CPU has its tick again, whatever ends it.

  lifetimeNs @5 :UInt64;
  # From its grant; 0 is until it is revoked.
}

struct GateReport @0xc2bda4fefeee7f68 {
  gate @0 :LeaseGate;
  passes @1 :Bool;
  label @2 :LeaseLabel;
}

struct LeaseInfo @0x8d00fbd79da7226a {
  leaseId @0 :UInt64;
  # Never reused.

  generation @1 :UInt64;
  state @2 :LeaseState;
  mode @3 :LeaseMode;
  ring @4 :NamedRing;

  lastLabel @5 :LeaseLabel;
  # Why it is in this state.

  ownerPid @6 :UInt32;
  ownerProcessGeneration @7 :UInt32;

  contextId @8 :UInt64;
  contextGeneration @9 :UInt64;
  # Who pays.

  maxRevocationLatencyNs @10 :UInt64;
  expiresNs @11 :UInt64;
  # By the monotonic clock; 0 is never.

  isolatedNs @12 :UInt64;
  # Time its CPU ran without a tick, in all.

  interruptions @13 :UInt64;
  # Interrupts its CPU took meanwhile.
}

interface CpuIsolationLease @0xbe057725476c1af4 {
  # Time is paid by the accounting target, a scheduling context that is bound to the leased thread;
  # when its budget ends the thread is throttled and the CPU gets its tick back. While a lease is
  # active nothing else is placed on its CPU. Whatever ends it, the tick is back within the
  # latency it was granted with.

  create @0 (spec :LeaseSpec, accountingTarget :SchedulingContext) -> (label :LeaseLabel, leaseIndex :UInt16, leaseGeneration :UInt32);
  # Records a lease, as a capability in the caller's table. Anything but `ready` is a refusal with
  # its reason, and nothing was recorded. A mode that is not implemented is `unimplemented`.

  info @1 () -> (info :LeaseInfo, cpuMask :Data);
  # What it is. Answers through a stale or revoked capability too.

  preflight @2 () -> (leaseId :UInt64, generation :UInt64, runnable :UInt32, eligible :Bool, gates :List(GateReport), housekeepingMask :Data, rollback :LeaseLabel, tickRunning :Bool);
  # Looks at every gate and changes nothing: how many threads want the CPU, what each gate found,
  # which CPUs would do its housekeeping, why the latest activation ended (`ready` without one),
  # and whether the CPU has its tick.

  activate @3 () -> (label :LeaseLabel, state :LeaseState);
  # Isolates the CPU if every gate passes: `ready` with `active`, or with `activating` if another
  # CPU has to do it. Otherwise the label of the first gate that does not, and nothing changed.

  revoke @4 () -> (label :LeaseLabel);
  # Ends it and stales every capability of it; completes when the CPU has its tick again.
}
