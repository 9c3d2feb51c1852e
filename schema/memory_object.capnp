@0x9fd53a867061985f;
# Memory that several processes can map.

using Memory = import "memory.capnp";

interface MemoryObject @0xc3d70de72cb8f96a {
  # Zeroed when it is made, and of fixed length. A word of it is the same park key in every process
  # that maps it. All of its frames are charged to whoever made it, as long as a capability of it
  # exists or a page of it is mapped anywhere, and to every process that maps some of it, as long as
  # it does, with the page tables that its mappings need. It is kept as long as somebody is charged:
  # when its maker has ended and nobody maps it, its capabilities answer `disconnected`. Addresses
  # and lengths as for `VirtualMemory`.

  map @0 (address :UInt64, fixed :Bool, offset :UInt64, bytes :UInt64, access :Memory.MemoryAccess) -> (mapped :UInt64);
  # Maps `bytes` of it from `offset`, a multiple of 4096, into the caller's address space; place
  # and errors as in `VirtualMemory.map`. Pages beyond its end are `invalidArgument`, an access
  # this facet does not allow is `failed`.

  unmap @1 (address :UInt64, bytes :UInt64) -> ();
  # Unmaps pages of the caller's, all of which are this object's, else `failed`.

  protect @2 (address :UInt64, bytes :UInt64, access :Memory.MemoryAccess) -> ();
  # Changes the access of pages of the caller's, all of which are this object's, else `failed`;
  # within what this facet allows.

  info @3 () -> (bytes :UInt64, mappedPages :UInt64, canWrite :Bool, canExecute :Bool);
  # Its length, how many pages of it are mapped in all processes together, and what this facet
  # allows beside reading.

  restrict @4 (write :Bool, execute :Bool) -> (facetIndex :UInt16, facetGeneration :UInt32);
  # A facet in the caller's capability table that allows what this one allows and, of that, only
  # what is asked for. A full table is `overloaded`.
}
