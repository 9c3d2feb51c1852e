@0xb4ee01131bbbcbea;
# refused: process "a": no process receives on endpoint "e"; grant `endpoint` to one

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [(name = "a", binary = "a.elf", grants = [(name = "x", client = (endpoint = "e"))])]);
