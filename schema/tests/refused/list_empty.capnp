@0xf0c1f9d6a0b6a1cc;
# refused: list_empty.capnp: Bad.call: marks is a list of structs without fields; use a number

struct Mark {}
interface Bad { call @0 (marks :List(Mark)) -> (); }
