@0xc06de48e1f0c4133;
# refused: process "a": the name of grant 0 is not 1 to 44 bytes without control characters

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [(name = "a", binary = "a.elf", grants = [(name = "123456789012345678901234567890123456789012345", timer = void)])]);
