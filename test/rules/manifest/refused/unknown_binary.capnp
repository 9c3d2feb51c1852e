@0xcae47cfe0d49ebd3;
# refused: process "a": its binary "b.elf" is not among the boot modules

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [(name = "a", binary = "b.elf")]);
