@0xac4f62029ccc4a07;
# refused: error: Type mismatch; expected UInt16.

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [(name = "a", binary = "a.elf", weight = "heavy")]);
