@0xd8e478ff0b301d0d;
# What the machine is and what its kernel counts. Changes nothing.

enum ImageProfile @0x9b68c94457424ee7 {
  # How the kernel was built.

  checked @0;
  # With assertions and invariant checks.

  release @1;

  measure @2;
  # With diagnostics that cost time.
}

struct Machine @0xb0441fc87f277311 {
  cpus @0 :UInt32;
  # CPUs that run threads; they are numbered from 0.

  profile @1 :ImageProfile;

  uptimeNs @2 :UInt64;
  # The monotonic clock.

  framesTotal @3 :UInt64;
  # Page frames of 4 KiB the kernel manages.

  framesFree @4 :UInt64;

  heapBytes @5 :UInt64;
  # Bytes of the kernel heap in use.

  heapFrames @6 :UInt64;
  # Page frames the kernel heap holds: those in use and, for each size of small objects, at most
  # one empty page that is kept for the next. They are not in `framesFree`.

  heapAllocations @7 :UInt64;
  # Allocations the kernel heap has served since boot. The synchronous IPC path makes none.

  accountsClosed @8 :UInt64;
  # Accounts of processes that have ended and of which nothing is left.

  accountsNotZero @9 :UInt64;
  # Those of them that did not read zero: a defect of the kernel, which lost something.
}

struct CpuCounters @0xc145d8365e8ca215 {
  # Since boot, of one CPU. Each is counted without a lock and read one after the other.

  runnable @0 :UInt32;
  # Threads in the run queue now, the running one not counted.

  runnableMax @1 :UInt32;
  # The most there ever were.

  switches @2 :UInt64;
  # From one thread to another.

  preemptions @3 :UInt64;
  # Switches because a slice ended.

  steals @4 :UInt64;
  # Threads taken from another CPU's queue.

  failedPlacements @5 :UInt64;
  # Wakes that found no better CPU than a busy one.

  rescheduleSent @6 :UInt64;
  # Reschedule interrupts sent to another CPU.

  rescheduleSkipped @7 :UInt64;
  # Not sent, because one was pending there.

  tlbRequests @8 :UInt64;
  # TLB shootdowns asked of this CPU.

  tlbFailures @9 :UInt64;
  # Shootdowns refused before anything changed, because their table was full.

  idleEntries @10 :UInt64;
  # Times the CPU halted.

  idleNs @11 :UInt64;
  # Time it was idle.

  timerInterrupts @12 :UInt64;
  oneShots @13 :UInt64;
  # Times the timer was armed.

  handoffsTaken @14 :UInt64;
  # Calls that ran their server next on this CPU.

  handoffsMissed @15 :UInt64;
  # Calls whose server was queued instead.

  syscalls @16 :UInt64;

  idleCooperative @17 :UInt64;
  # Of `idleEntries`, those by the idle loop itself: it had halted before since a thread was on the CPU, looked again
  # and found nothing.

  idleDispatchTimer @18 :UInt64;
  # Times the CPU left a thread for the idle loop because the thread was put back and might not run here.

  idleDispatchBlock @19 :UInt64;
  # The same because the thread waited.

  idleDispatchExit @20 :UInt64;
  # The same because the thread had ended.

  policyAdmissions @21 :UInt64;
  # Requests for another weight or class that were granted on this CPU.

  policyDenials @22 :UInt64;
  # Those that were refused.
}

interface SystemInfo @0xec303081c98930d0 {
  # Reading is all there is: the holder learns nothing about any single process.

  machine @0 () -> (machine :Machine);
  # The machine as a whole.

  cpu @1 (cpu :UInt32) -> (counters :CpuCounters);
  # What one CPU counts. A number that is not below `Machine.cpus` is `invalidArgument`.
}
