@0xc13394451be928ea;
# refused: void.capnp: Bad.call: x is Void and carries nothing

interface Bad { call @0 (x :Void) -> (); }
