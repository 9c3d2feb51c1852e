@0xd3a1c0f5e7b24691;
# The boot manifest: which processes a system starts, from which binaries, with which
# capabilities. A system's manifest is a constant of this type, checked when it is built.

struct Manifest {
  processes @0 :List(Process);
}

struct Process {
  name @0 :Text;
  # Unique in the manifest; other entries refer to the process by it.

  binary @1 :Text;
  # The boot module that holds its static ELF.

  weight @2 :UInt16 = 64;
  # Scheduling weight of its initial thread, 1 to 1024.

  profile @3 :ResourceProfile;
  # What it may use; a field left out has its default.

  grants @4 :List(Grant);
  # The capabilities its CapSet names, in slot order.
}

struct ResourceProfile {
  capSlots @0 :UInt32 = 64;
  threads @1 :UInt32 = 16;
  kernelStackPages @2 :UInt32 = 32;
  # Pages per thread.

  frames @3 :UInt32 = 4096;
  sleepWaiters @4 :UInt32 = 16;
  ringEntries @5 :UInt32 = 64;
  # Submission queue entries per thread, a power of two.

  ringScratchLimitBytes @6 :UInt32 = 4096;
  inFlightCallLimit @7 :UInt32 = 32;
  endpointQueueLimit @8 :UInt32 = 32;
}

struct Grant {
  name @0 :Text;
  # What the process calls it.

  union {
    console @1 :Void;
    timer @2 :Void;
    systemInfo @3 :Void;
    threadSpawner @4 :Void;
    threadControl @5 :Void;
    parkSpace @6 :Void;
    endpoint @7 :Text;
    # The receiving side of the endpoint of that name.

    client :group {
      # A facet of the endpoint of that name, with a badge that tells its calls apart.
      endpoint @8 :Text;
      badge @9 :UInt64;
    }
  }
}
