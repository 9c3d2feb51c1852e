@0xbd90a1573154be4e;
# Annotations the schema compiler understands.

annotation processLocal @0x91e59366a40f74e9 (interface) :Void;
# A capability of this interface means something in one process only, or is for the manifest
# alone to give, and cannot be sent to another: CALL, RETURN and spawn refuse to pass it on.
# Interfaces without it move freely.
