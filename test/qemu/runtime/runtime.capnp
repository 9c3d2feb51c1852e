@0xffdd2c1456e158ee;
# The runtime under test: one process with the suite, two services it calls.

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [
  (name = "server", binary = "server.elf", grants = [
    (name = "console", console = void),
    (name = "requests", endpoint = (name = "counter", interfaceId = 0xebf46935cb01b47b))]),
  (name = "panicker", binary = "panicker.elf", grants = [
    (name = "console", console = void),
    (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void),
    (name = "requests", endpoint = (name = "doomed", interfaceId = 0xebf46935cb01b47b))]),
  (name = "suite", binary = "suite.elf", essential = true, grants = [
    (name = "console", console = void),
    (name = "records", records = void),
    (name = "timer", timer = void),
    (name = "info", systemInfo = void),
    (name = "park", parkSpace = void),
    (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void),
    (name = "counter", client = (endpoint = "counter", badge = 1)),
    (name = "doomed", client = (endpoint = "doomed", badge = 1))]),
]);
