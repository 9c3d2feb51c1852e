@0x95a123644a926a7b;
# The monotonic clock.

interface Timer @0xf44aa4f66fc92615 {
  # Time since boot in nanoseconds. It never goes back and is the same on every CPU; the time
  # page gives the same clock without entering the kernel.

  now @0 () -> (ns :UInt64);
  # The time now.

  sleep @1 (ns :UInt64) -> ();
  # Completes once, `ns` nanoseconds from now or later, never earlier; 0 completes at once. The
  # process's profile bounds how many sleeps are pending at once, beyond it `overloaded`. A
  # sleep ends with its thread, or by CANCEL.

  sleepUntil @2 (deadlineNs :UInt64) -> ();
  # Completes once the clock reads `deadlineNs` or more; a time that has passed completes at
  # once. Otherwise as `sleep`.

  wallClock @3 () -> (unixSeconds :UInt64, nanoseconds :UInt32);
  # Time since the beginning of 1970 in UTC: what the machine's clock chip showed at boot, and the
  # monotonic clock since. It is off by up to a second from the start, and drifts with the monotonic
  # clock. `failed` on a machine whose chip showed no date.
}
