@0xf0fd9e38e22b9d43;
# A client and a server that talk.

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [
  (name = "server", binary = "server.elf", grants = [
    (name = "console", console = void),
    (name = "requests", endpoint = (name = "counter", interfaceId = 0xebf46935cb01b47b))]),
  (name = "client", binary = "client.elf", essential = true, grants = [
    (name = "console", console = void),
    (name = "info", systemInfo = void),
    (name = "counter", client = (endpoint = "counter", badge = 1))]),
]);
