@0xf56868407d2dc6f0;
# refused: group.capnp: Bad.call: inner: place is a group; name its fields directly

struct Inner { place :group { x @0 :UInt8; } }
interface Bad { call @0 (inner :Inner) -> (); }
