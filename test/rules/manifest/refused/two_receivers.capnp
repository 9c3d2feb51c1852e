@0xa136db457d0ddca8;
# refused: process "b": endpoint "e" already has its receiver; grant `client` for others

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [(name = "a", binary = "a.elf", grants = [(name = "x", endpoint = (name = "e", interfaceId = 0xa3f1c2d4e5b60718))]), (name = "b", binary = "a.elf", grants = [(name = "x", endpoint = (name = "e", interfaceId = 0xa3f1c2d4e5b60718))])]);
