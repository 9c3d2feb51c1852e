@0xe7346bbd8cc0b7ee;
# Makes memory objects.

interface FrameAllocator @0xbf1b1f15b1d91548 {
  # Whoever calls is charged: the holder gains no memory beyond its own profile.

  createObject @0 (bytes :UInt64) -> (objectIndex :UInt16, objectGeneration :UInt32);
  # A zeroed memory object of `bytes`, a multiple of 4096, not 0 and at most 2^30, else
  # `invalidArgument`. Its frames, and one more for each 512, are charged to the caller until it is gone. The MemoryObject, with every access, is in
  # the caller's capability table when the call completes. `overloaded`: the caller's frames or
  # capability slots are used up, or the machine's memory is.

  usage @1 () -> (used :UInt64, limit :UInt64, machineFree :UInt64);
  # Frames the caller's process uses and may use, and how many the machine has left; of 4 KiB.
}
