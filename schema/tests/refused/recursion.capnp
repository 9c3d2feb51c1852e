@0xdb5180ed661d1ce5;
# refused: recursion.capnp: Bad.call: node: next contains itself; messages are finite

struct Node { next @0 :Node; }
interface Bad { call @0 (node :Node) -> (); }
