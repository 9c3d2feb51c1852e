@0xdab5c45337b74210;
# refused: extends.capnp: Bad extends another interface; list its methods instead, ordinals are per interface

struct S { interface Base { } }
interface Bad extends(S.Base) { call @0 () -> (); }
