@0xc7e2a90b6f13d845;
# A process without capabilities: it can end, and nothing else.

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [
  (name = "start.no_capabilities=0", binary = "no_caps.elf"),
]);
