@0xd3a1c0f5e7b24691;
# The boot manifest: which processes a system starts, from which binaries, with which
# capabilities. A system's manifest is a constant of this type; `capos_manifest` compiles it to
# the canonical encoding and checks it, and the kernel checks it again when it boots.
#
# Names are 1 to 44 bytes of UTF-8 without control characters. Numbers outside the range given
# with a field are refused, not clamped, except where it says so.

struct Manifest @0x99e39f54f37e0bf1 {
  processes @0 :List(Process);
  # Started in this order; 1 to 64 of them.
}

struct Process @0x880bb12b41feebdb {
  name @0 :Text;
  # Unique in the manifest.

  binary @1 :Text;
  # The boot module that holds its static ELF. Processes may share one.

  weight @2 :UInt16 = 64;
  # Scheduling weight of its initial thread, 1 to 1024.

  profile @3 :ResourceProfile;
  # What it may use; a field left out has its default.

  grants @4 :List(Grant);
  # The capabilities its CapSet names, in slot order; at most 63, and not more than its
  # profile's slots.

  essential @5 :Bool;
  # The system ends when this process does, and with its exit code: 0 is success. A system
  # without an essential process ends with its last process.

  boot @6 :Bool;
  # Started by the kernel. If no process of the manifest is marked, the kernel starts all of them;
  # the others wait for `ProcessSpawner.spawnEntry`.

  arguments @7 :List(Argument);
  environment @8 :List(Variable);
  # What its start page holds; together they fit a page (4096 bytes, 16 of them a header, 8 for
  # each entry besides its text).
}

struct Argument @0xb0b5c9a1d27e3f64 {
  # One word of what a program is started with.

  text @0 :Text;
}

struct Variable @0xc4e1f7d2a90b5836 {
  # One line of a program's environment.

  name @0 :Text;
  value @1 :Text;
}

struct ResourceProfile @0x9d00ca0439667703 {
  # What a process may use. Each line is charged before use and read back as used and limit.

  capSlots @0 :UInt32 = 64;
  # Capability table, 1 to 65536.

  threads @1 :UInt32 = 16;
  # Thread records, 1 to 4096.

  kernelStackPages @2 :UInt32 = 512;
  # Kernel-stack pages of all its threads together, 1 to 1048576.

  frames @3 :UInt32 = 4096;
  # Page frames of its memory, page tables and memory objects, 16 to 16777216.

  sleepWaiters @4 :UInt32 = 16;
  # Pending sleeps, 0 to 4096.

  ringEntries @5 :UInt32 = 64;
  # Submission queue entries per thread: a power of two, 2 to 1024.

  ringScratchLimitBytes @6 :UInt32 = 4096;
  # Parameters or results of one call, 128 to 65536.

  inFlightCallLimit @7 :UInt32 = 32;
  # Received and unanswered calls per endpoint, at least 1; more than 32 counts as 32.

  endpointQueueLimit @8 :UInt32 = 32;
  # Calls waiting per endpoint, at least 1; more than 32 counts as 32.

  kernelBytes @9 :UInt32 = 524288;
  # Bytes of the kernel's heap: the capability table, endpoints and their facets, room for the
  # pending operations of each thread (128 bytes for each of twice `ringEntries`), messages of more
  # than 128 bytes while the kernel reads them. 4096 to 1073741824.

  registeredBuffers @10 :UInt32 = 0;
  # Buffers registered by `VirtualMemory.register`, 0 to 32: memory that cannot be unmapped or
  # protected meanwhile.
}

struct Grant @0x938d3e2d907b331b {
  name @0 :Text;
  # What the process calls it; unique in the process.

  union {
    console @1 :Void;
    timer @2 :Void;
    systemInfo @3 :Void;
    threadSpawner @4 :Void;
    threadControl @5 :Void;
    parkSpace @6 :Void;

    endpoint :group {
      # The receiving side. It is what makes the endpoint exist, so there is exactly one such
      # grant for each endpoint name in the manifest.

      name @7 :Text;
      # How clients refer to it; unique in the manifest.

      interfaceId @8 :UInt64;
      # The Cap'n Proto interface its receiver serves: the CapSets of clients name it, and a call
      # must mean it. Not 0, and not one whose halves are equal: those have no tag.
    }

    client :group {
      # A client facet of the endpoint of that name.

      endpoint @9 :Text;
      badge @10 :UInt64;
      # Arrives with each call through the facet. Facets may share a badge: the receiver then
      # cannot tell them apart.
    }

    records @11 :Void;
    # A Console onto the second serial port, whose bytes a test harness reads. Nothing is ever
    # read from it.

    virtualMemory @12 :Void;
    # The process's own address space.

    processSpawner @13 :Void;
    # Starts processes, out of what its holder may use.

    frameAllocator @14 :Void;
    # Makes memory objects, which the process pays for.

    trace @15 :Void;
    # What each CPU did, of every process: for tools that look at the whole system.

    schedulingPolicy :group {
      # Weight and class of the thread that calls, and its account.

      weightCeiling @16 :UInt16;
      # The most it may weigh, 1 to 1024. Left out: as much as the process's threads weigh.
    }

    schedulerControl @17 :Void;
    # Weights, classes and accounts of all threads: for one process that is trusted with them.

    processDirectory @18 :Void;
    # What runs, to read.

    entropy @19 :Void;
    # Random bytes.

    userSession @20 :Void;
    # A session that begins with the process, for it and whatever it starts.

    interrupt :group {
      # An interrupt line, masked. Lines that the kernel keeps for itself stop the boot, and so does
      # one that two grants wire differently.

      line @21 :UInt32;
      # Its number among all lines of the machine (a global system interrupt).

      isLevel @22 :Bool;
      # By level, not by edge.

      isActiveLow @23 :Bool;
    }
  }
}
