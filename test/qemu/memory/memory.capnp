@0xd5a3c7e19b40f862;
# A process that changes its address space, with as many frames as the machine has, and two it shares memory with.

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [
  (name = "peer", binary = "peer.elf", profile = (frames = 2000), grants = [
    (name = "requests", endpoint = (name = "peer", interfaceId = 0xa3f1c2d4e5b60718)),
    (name = "park", parkSpace = void),
    (name = "memory", virtualMemory = void),
    (name = "frames", frameAllocator = void)]),
  (name = "maker", binary = "peer.elf", grants = [
    (name = "requests", endpoint = (name = "maker", interfaceId = 0xa3f1c2d4e5b60718)),
    (name = "memory", virtualMemory = void),
    (name = "frames", frameAllocator = void)]),
  (name = "memory", binary = "memory.elf", essential = true, profile = (frames = 1000000), grants = [
    (name = "console", console = void),
    (name = "records", records = void),
    (name = "timer", timer = void),
    (name = "info", systemInfo = void),
    (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void),
    (name = "park", parkSpace = void),
    (name = "memory", virtualMemory = void),
    (name = "frames", frameAllocator = void),
    (name = "peer", client = (endpoint = "peer", badge = 1)),
    (name = "maker", client = (endpoint = "maker", badge = 1))]),
]);
