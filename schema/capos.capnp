@0xbd90a1573154be4e;
# Annotations the schema compiler understands.

annotation processLocal @0x91e59366a40f74e9 (interface) :Void;
# A capability of this interface names something inside one process and cannot be sent to
# another: CALL and RETURN refuse to transfer it. Interfaces without it move freely.
