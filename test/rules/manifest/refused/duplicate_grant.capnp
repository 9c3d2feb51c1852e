@0x94e7e4e64022aff1;
# refused: process "a": two grants are called "x"; names are unique in a process

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [(name = "a", binary = "a.elf", grants = [(name = "x", timer = void), (name = "x", console = void)])]);
