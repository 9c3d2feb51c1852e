@0xf408704a9f638b72;
# The calling thread's own scheduling: weight, latency class, account.

using Capos = import "capos.capnp";

enum LatencyClass @0xcd690517b48db170 {
  # How soon a thread wants to run after it wakes; not how much it runs.

  interactive @0;
  # Half a slice: sooner, more often.

  normal @1;
  batch @2;
  # Four slices: later, longer.

  ipcServer @3;
  # As normal; marks threads that work for their callers.
}

interface SchedulingPolicyCap @0xd568e7755266ee60 $Capos.processLocal {
  # Each method acts on the thread that calls. The capability comes from the manifest only, stays
  # in its process and carries a ceiling for the weight.

  setWeight @0 (weight :UInt16) -> ();
  # Sets the caller's weight, from 1 to 1024 and not above the ceiling; 64 is the default.
  # Anything else is `invalidArgument`, nothing is clamped. In effect when the thread is next
  # queued.

  setLatencyClass @1 (class :LatencyClass) -> ();
  # Sets the caller's class. In effect when the thread is next queued.

  snapshot @2 () -> (weight :UInt16, class :LatencyClass, runtimeNs :UInt64, virtualRuntimeNs :UInt64, voluntaryBlocks :UInt64, preemptions :UInt64, runnableAccumulatedNs :UInt64);
  # The caller's account since it started: time it ran, the same divided by its weight, how
  # often it gave the CPU up and how often it lost it, and how long it was ready without
  # running. Raw counters; rates are the reader's to make.
}
