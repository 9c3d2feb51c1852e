@0x958d6038cde89c38;
# refused: union.capnp: Bad.call: choice has a union; use one method per case, or an enum

struct Choice { union { a @0 :UInt8; b @1 :Text; } }
interface Bad { call @0 (choice :Choice) -> (); }
