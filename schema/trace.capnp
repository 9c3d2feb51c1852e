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
  #
  # The buffers are the process's that started, and it pays for them (`kernelBytes`), until it ends,
  # releases a capability of this interface, or another starts after it has stopped. Then nothing
  # can be read of it any more.

  start @0 (categories :UInt32) -> (bufferBytes :UInt32);
  # Empties the buffers and records the events of these categories; 0, or an unknown bit, is
  # `invalidArgument`. `bufferBytes` is one CPU's. While another process records it is `overloaded`.

  stop @1 () -> (events :UInt64, lost :UInt64);
  # Records no more; what was recorded stays. Counts over all CPUs. While another process records it
  # is `failed`.

  read @2 (cpu :UInt32, position :UInt64, capacity :UInt32) -> (events :Data, next :UInt64, lost :UInt64);
  # Events of one CPU from `position` on, whole records of 32 bytes, at most `capacity` bytes and
  # what the caller has room for. `next` is the position after them; it is `position` at the end.
  # A number that is no CPU's is `invalidArgument`.

  mark @3 (value :UInt64) -> ();
  # An event of the caller's own in the category `user`.

  info @4 () -> (categories :UInt32, bufferBytes :UInt32, cpus :UInt32);
  # What is recorded; no category while it is off.
}

enum TraceEvent @0x9a4c17e2d05b83f6 {
  # What a record tells. A record is 32 bytes, little-endian: the monotonic clock in ns (64 bits), this
  # number (16), its category (16), the thread that ran (32; all ones: none), and two values, a and b
  # (64 each). Threads are numbered as in reports; a number may be another thread's after an end.

  switched @0;
  # scheduler: the CPU leaves the thread for a (all ones: it is idle), because b: 0 it waits, 1 it is
  # queued again, 2 it has ended, 3 the CPU was idle, 4 it handed over.

  woke @1;
  # scheduler: thread a can run, in the queue of CPU b.

  migrated @2;
  # scheduler: thread a went to CPU b.

  stolen @3;
  # scheduler: thread a was taken from CPU b.

  call @4;
  # ipc: a call goes to thread a (all ones: it waits for a receiver) of the process at position b.

  receive @5;
  # ipc: a receive, of a call from thread a (all ones: it waits for one).

  answer @6;
  # ipc: thread a (all ones: nobody waits any more) has its answer; b is 1 if the next call is received
  # with it.

  handOff @7;
  # ipc: the thread waits and a runs at once in its place.

  enter @8;
  # syscall: `cap_enter` with min_complete a and timeout_ns b. In checked and measure images alone.

  leave @9;
  # syscall: it returns a.

  interrupt @10;
  # interrupt: a is the vector of a device's line; or 0, and b is what another CPU asks for, as bits.

  map @11;
  # memory: b pages from address a on.

  unmap @12;
  # memory: b pages from address a on.

  protect @13;
  # memory: b pages from address a on.

  shootdown @14;
  # memory: a CPUs are asked to forget translations.

  armed @15;
  # timer: a deadline of thread a, at b ns.

  fired @16;
  # timer: the CPU's timer.

  expired @17;
  # timer: a deadline of thread a has passed.

  mark @18;
  # user: a is the mark's value.
}
