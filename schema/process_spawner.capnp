@0xe9d521c23da96d59;
# Starts processes.

using Boot = import "manifest.capnp";
using MemoryObject = import "memory_object.capnp".MemoryObject;

enum GrantSource @0xba5666d3b04d8f10 {
  # Where a child's capability comes from.

  slot @0;
  # The spawner's own capability in `slotIndex` and `slotGeneration`.

  threadSpawner @1;
  threadControl @2;
  virtualMemory @3;
  # The child's own: these act on whoever calls and are never passed on.
}

struct SpawnGrant @0xe52303423870542f {
  # One entry of the child's CapSet.

  name @0 :Text;
  # What the child calls it: 1 to 44 bytes of UTF-8 without control characters, once per child.

  source @1 :GrantSource;

  slotIndex @2 :UInt16;
  slotGeneration @3 :UInt32;
  # The capability, if `source` is `slot`; else both are 0.

  moved @4 :Bool;
  # The spawner gives it up; else it keeps its own.

  interfaceId @5 :UInt64;
  # The interface that the child's CapSet names, which is the capability's own; 0 stands for it if
  # it is an interface of this folder.
}

interface ProcessSpawner @0xdf6c26f18d9e7724 {
  # A child runs a static ELF with one thread, has the capabilities it is granted and no other,
  # and may use what its profile says. What the profile counts is taken from what the spawner has
  # left and comes back when the child is gone; the limits that are not counted are at most the
  # spawner's.
  #
  # Everything is checked and charged before anything of the child exists, and either all of it
  # happens or nothing: a grant that is moved leaves the spawner's table only with the child's
  # start. `overloaded`: the spawner has not enough left of a line of its account, or the machine
  # has no memory. `invalidArgument`: a name, weight or profile outside of its range, or more than
  # 63 grants. `failed`, with a sentence that says why: no such boot module, a malformed
  # executable, a slot that is empty, stale or revoked, a capability that cannot be passed on.

  spawn @0 (name :Text, binary :Text, weight :UInt16 = 64, profile :Boot.ResourceProfile, grants :List(SpawnGrant), arguments :List(Boot.Argument), environment :List(Boot.Variable)) -> (handleIndex :UInt16, handleGeneration :UInt32);
  # Starts the executable of the boot module `binary`. `name` is for people: 1 to 44 bytes of
  # UTF-8 without control characters. `handleIndex` and `handleGeneration` name the ProcessHandle,
  # which is in the caller's capability table when the call completes. `weight` is at most the
  # spawner's. `arguments` and `environment` are what the child's start page holds, and fit a page.

  spawnImage @1 (name :Text, image :MemoryObject, imageBytes :UInt64, weight :UInt16 = 64, profile :Boot.ResourceProfile, grants :List(SpawnGrant), arguments :List(Boot.Argument), environment :List(Boot.Variable)) -> (handleIndex :UInt16, handleGeneration :UInt32);
  # As `spawn`, with the first `imageBytes` of a memory object as the executable, of which a copy is
  # sent along. What is believed of the file is copied and checked as a copy: changing the object
  # meanwhile gives the child other bytes or is `failed`, and changing it later changes no running
  # program. The caller pays for the object while it is read. `invalidArgument`: no memory object, or
  # one that is shorter. `disconnected`: it is gone.

  spawnEntry @2 (name :Text) -> (handleIndex :UInt16, handleGeneration :UInt32);
  # Starts the boot manifest's process of that name, with the manifest's grants, weight, profile and
  # arguments: what it may use is the manifest's, not the spawner's. `failed`, with a sentence: no
  # such process; it runs, or its last instance is not gone yet; the receiver of an endpoint that
  # it is a client of does not run.
}
