@0xe3a6e1a3f4ed9b27;
# refused: list_text.capnp: Bad.call: names is a list of something else than integers and structs; make the element a field of a struct, or make one call per element

interface Bad { call @0 (names :List(Text)) -> (); }
