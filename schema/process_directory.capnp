@0xbac4824338e611c1;
# What runs: processes, their threads, their capabilities, their accounts. Changes nothing.

using Handle = import "process_handle.capnp";
using Policy = import "scheduling_policy.capnp";

enum DirectoryResult @0x8029439658f3d856 {
  # Whether the process that was meant is there, beside exceptions.

  ok @0;
  staleGeneration @1;
  # It is gone, or its number is another's by now. Nothing is told of it.
}

enum ProcessState @0xc7ee2d8f3e14e802 {
  starting @0;
  # Being made: it has no thread yet.

  running @1;
  ending @2;
  # It was told to end, or its last thread has left; what it has is being given back.

  gone @3;
  # Nothing is left but how it ended, for whoever holds a ProcessHandle of it.
}

enum ThreadState @0xafe7eb908a8755f7 {
  runnable @0;
  # It wants a CPU and has none.

  running @1;
  waiting @2;
  ended @3;
  # It runs no more; its exit code can be asked for, or it is being taken apart.
}

enum WaitsFor @0xf5e8827a05586d24 {
  # What a waiting thread waits for: the operations of its ring that are pending.

  notWaiting @0;
  time @1;
  # No operation is pending: the time limit of its `cap_enter`, or nothing at all.

  call @2;
  # The answer to a call.

  receive @3;
  # A call at an endpoint of its process.

  sleep @4;
  join @5;
  # The end of a thread.

  park @6;
  input @7;
  # What somebody types.

  output @8;
  # Room for what it writes to the console.

  memory @9;
  # A change of its address space that other CPUs have to hear of.

  processEnd @10;
  several @11;
  # Of more than one of these kinds; the counts say which.

  interrupt @12;
  # An interrupt of a line.
}

enum CapabilityKind @0xb0b53a9fc3901510 {
  object @0;
  # Of the kernel's.

  endpoint @1;
  # The receiving side of an endpoint.

  client @2;
  # A facet of an endpoint.
}

struct ProcessEntry @0xfaecb8319dc27801 {
  pid @0 :UInt32;
  generation @1 :UInt32;
  name @2 :Text;
  state @3 :ProcessState;

  exitReason @4 :Handle.ExitReason;
  exitCode @5 :Int64;
  # How it ended; of a process that is not `gone`, `exited` and 0.

  weight @6 :UInt16;
  # What its threads weigh if nothing else was asked for.

  liveThreads @7 :UInt32;
  startedNs @8 :UInt64;
  # By the monotonic clock.

  cpuTimeNs @9 :UInt64;
  cpuTimeWhole @10 :Bool;
  # Time its threads ran, each up to its last stop, those that have ended included. Of a process
  # with more than 256 live threads it is not whole: the others' is told by `threads`.

  parentPid @11 :UInt32;
  parentGeneration @12 :UInt32;
  # Who lends it what it may use; 0 and 0 if that is the boot manifest.

  sessionId @13 :UInt64;
  # The session it belongs to, as `UserSession.info` names it; 0 without one, or once it is gone.
}

struct ThreadEntry @0x9172f9ba58f54d59 {
  tid @0 :UInt32;
  generation @1 :UInt32;
  state @2 :ThreadState;
  killed @3 :Bool;
  # It ends where it next leaves the kernel.

  waitsFor @4 :WaitsFor;

  calls @5 :UInt16;
  receives @6 :UInt16;
  sleeps @7 :UInt16;
  joins @8 :UInt16;
  parks @9 :UInt16;
  inputs @10 :UInt16;
  outputs @11 :UInt16;
  memoryChanges @12 :UInt16;
  processEnds @13 :UInt16;
  # Pending operations of a waiting thread, by kind; all 0 of another.

  weight @14 :UInt16;
  class @15 :Policy.LatencyClass;
  cpu @16 :UInt16;
  # Where it ran last, or is to run.

  runtimeNs @17 :UInt64;
  # Time it ran, up to its last stop.

  virtualRuntimeNs @18 :UInt64;
  runnableAccumulatedNs @19 :UInt64;
  # Time it wanted to run and did not.

  voluntaryBlocks @20 :UInt64;
  preemptions @21 :UInt64;

  interrupts @22 :UInt16;
  # Waits for interrupts among its pending operations.
}

struct CapabilityEntry @0xdcafa0047cb0fbe5 {
  slot @0 :UInt32;
  generation @1 :UInt32;
  kind @2 :CapabilityKind;

  interfaceTag @3 :UInt32;
  # What a call of it carries.

  interfaceId @4 :UInt64;
  # Of the interface with that tag, by its CapSet name or among the kernel's own; 0 if neither knows.

  name @5 :Text;
  # Its name in the process's CapSet; empty if it came by another way.
}

interface ProcessDirectory @0xd97c7fcd4dd3b4d7 {
  # Lists come in pages: as many entries as the results have room for, at most 16. `next` is where
  # the next page begins; a page may be empty and not the last, because one call looks at no more
  # than a few thousand places. `more` says whether there is any. Results that have no room for a
  # single entry are `invalidArgument`.
  #
  # Each entry is of one process or thread at one moment; a list as a whole is not: what comes and
  # goes meanwhile may be missed.

  processes @0 (from :UInt32) -> (processes :List(ProcessEntry), next :UInt32, more :Bool);
  # The processes whose number is `from` or more, by number.

  threads @1 (pid :UInt32, generation :UInt32, from :UInt32) -> (result :DirectoryResult, threads :List(ThreadEntry), next :UInt32, more :Bool);
  # The threads of a process whose number is `from` or more, by number. None of one that is gone.

  capabilities @2 (pid :UInt32, generation :UInt32, from :UInt32) -> (result :DirectoryResult, capabilities :List(CapabilityEntry), next :UInt32, more :Bool);
  # What the slots of a process from that number on hold, by number.

  ledger @3 (pid :UInt32, generation :UInt32) -> (result :DirectoryResult, usage :Handle.ProcessUsage);
  # The account of a process, as `ProcessHandle.usage` gives it; all zero unless `ok`.

  own @4 () -> (pid :UInt32, generation :UInt32);
  # Which process calls.
}
