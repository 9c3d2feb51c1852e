@0xa5f3dd07fd5c3b1e;
# refused: list_bytes.capnp: Bad.call: bytes is a list of something else than integers and structs; use Data

interface Bad { call @0 (bytes :List(UInt8)) -> (); }
