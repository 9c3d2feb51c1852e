@0xd5a3c7e19b40f862;
# A process that changes its address space, with as many frames as the machine has.

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [
  (name = "memory", binary = "memory.elf", essential = true, profile = (frames = 1000000), grants = [
    (name = "console", console = void),
    (name = "records", records = void),
    (name = "timer", timer = void),
    (name = "info", systemInfo = void),
    (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void),
    (name = "park", parkSpace = void),
    (name = "memory", virtualMemory = void)]),
]);
