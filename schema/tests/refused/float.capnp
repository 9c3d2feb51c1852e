@0x890465e9955366f1;
# refused: float.capnp: Bad.call: x is a floating-point number; the kernel uses none

interface Bad { call @0 () -> (x :Float64); }
