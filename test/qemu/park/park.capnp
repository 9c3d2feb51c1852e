@0xa4f1c0de77b0e2d3;
# A process that parks its threads, and one that parks at the same address in its own memory.

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [
  (name = "park", binary = "park.elf", essential = true, grants = [
    (name = "console", console = void),
    (name = "records", records = void),
    (name = "timer", timer = void),
    (name = "info", systemInfo = void),
    (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void),
    (name = "park", parkSpace = void),
    (name = "other", parkSpace = void),
    (name = "requests", endpoint = (name = "stranger", interfaceId = 0xa3f1c2d4e5b60718))]),
  (name = "stranger", binary = "park.elf", grants = [
    (name = "console", console = void),
    (name = "park", parkSpace = void),
    (name = "stranger", client = (endpoint = "stranger", badge = 1))]),
]);
