@0xb6b31382378b044e;
# refused: list.capnp: Bad.call: numbers is a list; messages are of bounded shape: use Data, or one call per element

interface Bad { call @0 (numbers :List(UInt32)) -> (); }
