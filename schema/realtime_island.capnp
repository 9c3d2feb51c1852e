@0xbfbbf3fa9eff5b33;
# A graph of threads, memory, interrupts and CPUs that is admitted as a whole or not at all.

using Context = import "scheduling_context.capnp";
using MemoryObject = import "memory_object.capnp".MemoryObject;

enum ShutdownPolicy @0xabfa1c5d2c2b2665 {
  # What happens when a member fails, or the island ends.

  drain @0;
  # Members finish the period they are in.

  stop @1;
  # Members are throttled at once.
}

enum AdmissionFinding @0xf9f925fa7b4a8561 {
  # What admission found; everything but `admitted` is a refusal.

  admitted @0;
  periodTooShort @1;
  # The members' budgets do not fit the island's period.

  cpuOvercommitted @2;
  contextStale @3;
  contextNotBound @4;
  memoryNotPinned @5;
  memoryTooSmall @6;
  interruptTaken @7;
  ringTaken @8;
  leaseCollides @9;
  tooManyMembers @10;
  graphHasCycle @11;
}

enum IslandState @0xe897485357810cda {
  admitted @0;
  running @1;
  ending @2;
  ended @3;
}

struct IslandMember @0x8704ae652b4dbee5 {
  # One thread of the graph, by the context it is bound to.

  contextId @0 :UInt64;
  contextGeneration @1 :UInt64;
  wcetNs @2 :UInt64;
  # What it needs in a period, at most.

  startsAfter @3 :UInt32;
  # The number of the member it waits for in each period; its own number for none.
}

struct IslandInterrupt @0xb59ddbbbb89ce019 {
  line @0 :UInt32;
  cpu @1 :UInt32;
  # Where it is to be delivered.
}

struct IslandLease @0xdc0bd5e9b1e20053 {
  leaseId @0 :UInt64;
  generation @1 :UInt64;
}

struct IslandEvidence @0x9a40c381dd4b1e4e {
  # What the admission rested on; kept as long as the island.

  finding @0 :AdmissionFinding;
  failedMember @1 :UInt32;
  # Which one, where the finding is about a member.

  utilizationPermille @2 :UInt32;
  # Of the busiest CPU.

  longestChainNs @3 :UInt64;
  pinnedBytes @4 :UInt64;
  admittedNs @5 :UInt64;
  # When, by the monotonic clock.
}

interface RealtimeIsland @0xb968e09a56a034b8 {
  # Everything an admitted path needs is reserved when the island is admitted: on such a path
  # nothing is allocated and nothing blocks on anybody outside of it.

  admit @0 (periodNs :UInt64, members :List(IslandMember), memory :MemoryObject, memoryBytes :UInt64, interrupts :List(IslandInterrupt), leases :List(IslandLease), overrun :Context.OverrunPolicy, shutdown :ShutdownPolicy) -> (evidence :IslandEvidence, islandIndex :UInt16, islandGeneration :UInt32);
  # Admits a graph of at most 32 members, or says what does not fit; the island is a capability in
  # the caller's table if it is `admitted`. Only the capability of the manifest admits; one that
  # came out of it answers `unimplemented`.

  start @1 () -> (state :IslandState);
  # Lets the members run.

  info @2 () -> (state :IslandState, evidence :IslandEvidence, periods :UInt64, deadlineMisses :UInt64, overruns :UInt64);
  # How it is doing, and what it was admitted on.

  end @3 () -> (state :IslandState, deadlineMisses :UInt64);
  # Ends it by its shutdown policy; completes when every reservation is back.
}
