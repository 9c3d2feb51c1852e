@0xd938aca0e676cfa4;
# refused: error: Struct has no field named 'wieght'.

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [(name = "a", binary = "a.elf", wieght = 3)]);
