@0xbe416743df00ff0d;
# refused: process "a": weight is 1025; it is 1 to 1024

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [(name = "a", binary = "a.elf", weight = 1025)]);
