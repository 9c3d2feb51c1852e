@0xcf4a6d2f9b1e7a53;
# Fibers under test: the suite, a service it calls, and programs that end while it looks.

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [
  (name = "server", binary = "server.elf", grants = [
    (name = "console", console = void),
    (name = "requests", endpoint = (name = "counter", interfaceId = 0xebf46935cb01b47b))]),
  (name = "panics", binary = "ends.elf", grants = [
    (name = "console", client = (endpoint = "panic-paper", badge = 1)),
    (name = "panic", endpoint = (name = "panics", interfaceId = 0xebf46935cb01b47b)),
    (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void),
    (name = "park", parkSpace = void)]),
  (name = "overflows", binary = "ends.elf", grants = [
    (name = "console", client = (endpoint = "overflow-paper", badge = 1)),
    (name = "overflow", endpoint = (name = "overflows", interfaceId = 0xebf46935cb01b47b)),
    (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void),
    (name = "park", parkSpace = void)]),
  (name = "suite", binary = "suite.elf", essential = true,
    profile = (threads = 24, kernelStackPages = 1024, frames = 8192, sleepWaiters = 512, kernelBytes = 1048576), grants = [
    (name = "console", console = void),
    (name = "records", records = void),
    (name = "timer", timer = void),
    (name = "info", systemInfo = void),
    (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void),
    (name = "park", parkSpace = void),
    (name = "counter", client = (endpoint = "counter", badge = 1)),
    (name = "own", endpoint = (name = "own", interfaceId = 0xebf46935cb01b47b)),
    (name = "own-client", client = (endpoint = "own", badge = 1)),
    (name = "panics", client = (endpoint = "panics", badge = 1)),
    (name = "panic-paper", endpoint = (name = "panic-paper", interfaceId = 0x88e73c551f47cb7f)),
    (name = "overflows", client = (endpoint = "overflows", badge = 1)),
    (name = "overflow-paper", endpoint = (name = "overflow-paper", interfaceId = 0x88e73c551f47cb7f))]),
]);
