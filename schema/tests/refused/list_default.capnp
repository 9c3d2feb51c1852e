@0x9cfb6e1d5a1b1d04;
# refused: list_default.capnp: Bad.call: numbers has a default; only numbers, bools and enums may

interface Bad { call @0 (numbers :List(UInt32) = [1, 2]) -> (); }
