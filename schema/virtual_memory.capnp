@0xc443454218836f0f;
# The caller's own address space: mapping, unmapping, protecting, reserving.

using Capos = import "capos.capnp";
using Memory = import "memory.capnp";

interface VirtualMemory @0xfb01e458f69c2abf $Capos.processLocal {
  # Acts on the address space of the process that calls. Addresses and lengths are multiples of
  # 4096, lengths are at least one page, and everything lies in user memory, outside the null
  # page, the ring arena, the CapSet and the time page: anything else is `invalidArgument`. No
  # method changes anything if it does not succeed. Pages and the page tables they need are
  # charged to the process's frames before they exist; without frames, or with more regions than
  # the process may have, it is `overloaded`.

  map @0 (address :UInt64, bytes :UInt64, access :Memory.MemoryAccess, fixed :Bool) -> (mapped :UInt64);
  # Maps zeroed memory of the process's own. With `fixed` at `address`, whose pages are free or
  # reserved, else `failed`; without it at the lowest free place at or above `address`, or at the
  # lowest at all if there is none there. `mapped` is where.

  unmap @1 (address :UInt64, bytes :UInt64) -> ();
  # Frees pages, all of which are mapped or reserved, else `failed`. Completes when no CPU can
  # reach the memory any more.

  protect @2 (address :UInt64, bytes :UInt64, access :Memory.MemoryAccess) -> ();
  # Changes what may be done with pages, all of which are mapped, else `failed`. Pages of a memory
  # object are not given more than its facet allows. Completes when no CPU uses the old access any
  # more. To run generated code: map writable, write it, protect executable.

  reserve @3 (address :UInt64, bytes :UInt64, fixed :Bool) -> (reserved :UInt64);
  # Keeps free pages without access, so that nothing else is mapped there and any access to them
  # ends the process: a guard below a stack, or room for a heap. `fixed` and `reserved` as in
  # `map`. Costs no frames.

  region @4 (address :UInt64) -> (region :Memory.Region);
  # The region that holds `address`, which need not be a multiple of the page size. Free pages
  # between two regions are a region too.

  register @5 (address :UInt64, bytes :UInt64, write :Bool) -> (buffer :UInt16);
  # Registers mapped pages, at most 1048576 bytes of them, as a buffer that operations name by its
  # number: messages go through it without a walk of page tables. With `write` what comes in may go
  # there, and all of it has to be writable, else `failed`. A page is of one buffer at a time, and is
  # neither unmapped nor protected meanwhile: that is `failed`. Charged to `registeredBuffers` and
  # `kernelBytes`.

  unregister @6 (buffer :UInt16) -> ();
  # Gives a buffer up: no operation can name it from here on, and those that do go on. Completes when
  # the last of them has. No such buffer, or one that is being given up: `failed`.
}
