@0xf0b90bb91d6dd9b1;
# refused: process "a": inFlightCallLimit is 0; it is 1 to 4294967295

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [(name = "a", binary = "a.elf", profile = (inFlightCallLimit = 0))]);
