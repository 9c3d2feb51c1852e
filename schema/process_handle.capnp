@0xfa0ae1132ef59ea2;
# Observes and ends one process.

enum ExitReason @0xdc25937096db1bf7 {
  # Why a process is gone.

  exited @0;
  # It called `exit`, or its last thread ended.

  faulted @1;
  # A fault of one of its threads; the report is on the console.

  killed @2;
  # `ProcessHandle.kill`.
}

struct LineUsage @0xe2beed7f1f72282b {
  # One line of a process's account.

  used @0 :UInt32;
  # Charged, with what is promised to operations under way.

  lent @1 :UInt32;
  # Given to children.

  limit @2 :UInt32;
  # Of both together.
}

struct ProcessUsage @0xa192af23d99a8474 {
  capSlots @0 :LineUsage;
  threads @1 :LineUsage;
  kernelStackPages @2 :LineUsage;
  frames @3 :LineUsage;
  sleepWaiters @4 :LineUsage;

  ringEntries @5 :UInt32;
  ringScratchLimitBytes @6 :UInt32;
  inFlightCallLimit @7 :UInt32;
  endpointQueueLimit @8 :UInt32;
  # Limits of a single ring or endpoint; not counted.

  kernelBytes @9 :LineUsage;
  registeredBuffers @10 :LineUsage;
}

interface ProcessHandle @0xfe96b93c5504fa75 {
  # The process does not depend on its handles: releasing the last one leaves it running.

  wait @0 () -> (exitCode :Int64, reason :ExitReason);
  # Waits until the process is gone: no thread of it runs, every capability of it is released and
  # its account is zero. At once if it is; the status stays with the handle, so waiting again
  # gives it again. While the process lives, one call waits per handle: another is `overloaded`.

  exitCode @1 () -> (exited :Bool, exitCode :Int64, reason :ExitReason);
  # Whether the process is gone, and how (0 and `exited` while it lives). Waits for nothing.

  kill @2 (exitCode :Int64) -> ();
  # Ends the process with `exitCode`, as if it had called `exit`; completes when its threads are
  # told. Killing one that is ending or gone changes nothing.

  info @3 () -> (pid :UInt32, generation :UInt32, liveThreads :UInt32, startedNs :UInt64);
  # Its name in a ThreadRef, how many threads live, and when it started by the monotonic clock.

  usage @4 () -> (usage :ProcessUsage);
  # Its account, line by line. Each line is read at one moment, the lines one after the other.
}
