@0xd9eac720ef78b2a9;
# One interrupt line of the machine.

enum TriggerMode @0xc92209726806a53e {
  edge @0;
  level @1;
}

interface Interrupt @0x9b65157395e2cfa9 {
  # Interrupts are counted by the kernel and waited for by call. A level-triggered line is masked
  # from each interrupt until it is acknowledged; an edge-triggered one is not, and what comes
  # between two waits is counted together.

  wait @0 () -> (count :UInt64);
  # Waits until there was an interrupt that no wait has reported, and takes them all; `count` is
  # how many. One call waits at a time, another is `overloaded`.

  acknowledge @1 () -> ();
  # The device is served: a level-triggered line is unmasked.

  setEnabled @2 (enabled :Bool) -> ();
  # Masks the line, or unmasks it. It is masked when the capability is made.

  info @3 () -> (line :UInt32, trigger :TriggerMode, enabled :Bool, total :UInt64);
  # Its number in the machine's interrupt controller, how it triggers, and how many interrupts
  # there were since boot.
}
