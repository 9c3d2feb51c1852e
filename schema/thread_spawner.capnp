@0xd820c87f3505bbd8;
# Makes threads in the caller's own process.

using Capos = import "capos.capnp";

interface ThreadSpawner @0xf93d955b5115259d $Capos.processLocal {
  # Grants nothing over other processes: whoever calls it, the thread is the caller's sibling.

  create @0 (entry :UInt64, stackTop :UInt64, arg :UInt64, fsBase :UInt64, flags :UInt64) -> (handleIndex :UInt16, handleGeneration :UInt32);
  # Starts a thread at `entry` with RSP = `stackTop`, RDI = `arg` and the FS base `fsBase`; the
  # other entry registers are those of every thread. The caller provides stack and thread-local
  # storage. `handleIndex` and `handleGeneration` name the ThreadHandle, which is in the
  # caller's capability table when the call completes.
  #
  # `failed`: `entry`, `stackTop` or `fsBase` is not a user address, `stackTop` is not 16-byte
  # aligned, or `flags` is not 0. Whether the addresses are mapped is not asked: a thread that
  # starts at an unmapped one faults, and its process ends.
  #
  # `overloaded`, each with a message of its own and nothing changed: the process's thread
  # records, its kernel-stack pages or its capability slots are used up, or there is no memory
  # for the stack.
}
