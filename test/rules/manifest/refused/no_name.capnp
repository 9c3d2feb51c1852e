@0xac64cd30a072d1bd;
# refused: the name of process 1 is not 1 to 44 bytes without control characters

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [(name = "a", binary = "a.elf"), (binary = "a.elf")]);
