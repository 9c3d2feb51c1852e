@0xc492ec72be589fe3;
# refused: generic.capnp: Bad has type parameters; capOS interfaces have none

interface Bad(T) { call @0 () -> (); }
