@0xa136db457d0ddcb7;
# refused: process "a": grant "x" names no interface; `interfaceId` is the id of what its receiver serves

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [(name = "a", binary = "a.elf", grants = [(name = "x", endpoint = (name = "e"))])]);
