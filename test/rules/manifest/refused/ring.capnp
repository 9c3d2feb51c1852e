@0xafe3329a2a6e2897;
# refused: process "a": ringEntries is 48; it is a power of two

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [(name = "a", binary = "a.elf", profile = (ringEntries = 48))]);
