@0xc5c5bd4bb0f2b1a9;
# refused: list_recursion.capnp: Bad.call: node: children contains itself; messages are finite

struct Node { children @0 :List(Node); }
interface Bad { call @0 (node :Node) -> (); }
