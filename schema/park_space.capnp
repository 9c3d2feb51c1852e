@0xbbcc81193caca585;
# The authority to park threads on words of memory and to wake them.

interface ParkSpace @0x901c3d26920d2179 {
  # Used by the ring operations PARK and UNPARK, which name a capability of this interface and
  # the address of a 32-bit word. Both are ring operations of their own because a lock's slow
  # path is worth the instructions a message costs; there are no methods.
}
