@0xcf9f05951e39e7f9;
# What may be done with pages, and what a stretch of an address space is.

enum MemoryAccess @0xa18df309f33b7468 {
  # There is no value for writable and executable: no page is both.

  read @0;
  write @1;
  # Read and write.

  execute @2;
  # Read and execute.
}

enum RegionKind @0xb7c6366b1382d2d7 {
  # What is behind pages.

  free @0;
  # Nothing; they can be mapped or reserved.

  reserved @1;
  # Nothing, kept without access: a guard, or room to map into.

  own @2;
  # Memory of the process's own.

  object @3;
  # A memory object.
}

struct Region @0xb4518e8a9d3fbb34 {
  # Pages in a row of one kind and access.

  address @0 :UInt64;
  bytes @1 :UInt64;
  kind @2 :RegionKind;

  access @3 :MemoryAccess;
  # Of mapped pages; without meaning for free and reserved ones.

  objectOffset @4 :UInt64;
  # Where in the memory object the region begins; 0 for other kinds.
}
