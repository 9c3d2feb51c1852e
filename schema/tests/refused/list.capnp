@0xb6b31382378b044e;
# refused: list.capnp: Bad.call: flags is a list of something else than integers and structs; make the element a field of a struct, or make one call per element

interface Bad { call @0 (flags :List(Bool)) -> (); }
