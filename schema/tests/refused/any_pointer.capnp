@0xf57e18b5f9350f0b;
# refused: any_pointer.capnp: Bad.call: thing is AnyPointer; give it a type

interface Bad { call @0 (thing :AnyPointer) -> (); }
