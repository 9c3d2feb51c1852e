@0xb20fa964ca8180eb;
# A manifest with one of everything: what the rule accepts, and a seed for the tests of its reader.

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [
  (name = "server", binary = "server.elf", weight = 128,
   profile = (threads = 4, ringEntries = 128, inFlightCallLimit = 100),
   grants = [
     (name = "requests", endpoint = (name = "echo", interfaceId = 0x88e73c551f47cb7f)),
     (name = "console", console = void),
     (name = "timer", timer = void),
   ]),
  (name = "client", binary = "client.elf", grants = [
     (name = "echo", client = (endpoint = "echo", badge = 7)),
     (name = "info", systemInfo = void),
     (name = "threads", threadSpawner = void),
     (name = "self", threadControl = void),
     (name = "park", parkSpace = void),
   ]),
  (name = "second client", binary = "client.elf", grants = [
     (name = "echo", client = (endpoint = "echo", badge = 8)),
   ]),
]);
