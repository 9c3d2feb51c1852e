@0xd83bedaa0c883d47;
# The kernel's trace: what each CPU did, in its own buffer.

enum TraceCategory @0xe5263e74c343aa32 {
  # Bit numbers of `categories`.

  scheduler @0;
  # Switches, wakes, migrations, steals.

  ipc @1;
  # Calls, receives, answers, hand-offs.

  syscall @2;
  interrupt @3;
  memory @4;
  # Mappings and shootdowns.

  timer @5;
  context @6;
  # Budgets, donations, leases.

  user @7;
  # Marks of user programs.
}

interface Trace @0xd84097ec93d3670b {
  # Off until it is started. A CPU writes into its own buffer without a lock; a full buffer drops
  # new events and counts them, so what is there is a whole history up to a point.

  start @0 (categories :UInt32) -> (bufferBytes :UInt32);
  # Empties the buffers and records the events of these categories; 0, or an unknown bit, is
  # `invalidArgument`. `bufferBytes` is one CPU's.

  stop @1 () -> (events :UInt64, lost :UInt64);
  # Records no more; what was recorded stays. Counts over all CPUs.

  read @2 (cpu :UInt32, position :UInt64, capacity :UInt32) -> (events :Data, next :UInt64, lost :UInt64);
  # Events of one CPU from `position` on, whole records of 32 bytes, at most `capacity` bytes and
  # what the caller has room for. `next` is the position after them; it is `position` at the end.
  # A number that is no CPU's is `invalidArgument`.

  mark @3 (value :UInt64) -> ();
  # An event of the caller's own in the category `user`.

  info @4 () -> (categories :UInt32, bufferBytes :UInt32, cpus :UInt32);
  # What is recorded; no category while it is off.
}
