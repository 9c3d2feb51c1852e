@0xc3089cf8890f41de;
# refused: process "a" has 2 grants; it has at most 1

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [(name = "a", binary = "a.elf", profile = (capSlots = 1), grants = [(name = "x", timer = void), (name = "y", timer = void)])]);
