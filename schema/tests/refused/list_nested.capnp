@0xd1b47b32c3fd90ac;
# refused: list_nested.capnp: Bad.call: rows is a list of structs with lists; one level is what a message has

struct Row { numbers @0 :List(UInt32); }
interface Bad { call @0 (rows :List(Row)) -> (); }
