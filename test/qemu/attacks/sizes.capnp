@0x9c4e7d21b8f3a065;
# An observer, a server that it calls, an attacker that stays, and attackers that end or close what they have: little or
# much of it.

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [
  (name = "echo", binary = "echo.elf", grants = [(name = "requests", endpoint = (name = "echo", interfaceId = 0xa3f1c2d4e5b60718))]),
  (name = "attacker", binary = "attacker.elf", profile = (frames = 20000), grants = [
    (name = "orders", endpoint = (name = "attacker", interfaceId = 0xa3f1c2d4e5b60718)),
    (name = "own", endpoint = (name = "own-0", interfaceId = 0xa3f1c2d4e5b60718)),
    (name = "park", parkSpace = void), (name = "spawner", threadSpawner = void), (name = "control", threadControl = void),
    (name = "memory", virtualMemory = void),
    (name = "console", console = void)]),
  (name = "closes-1", binary = "attacker.elf", grants = [
    (name = "orders", endpoint = (name = "closes-1", interfaceId = 0xa3f1c2d4e5b60718)),
    (name = "own", endpoint = (name = "own-1", interfaceId = 0xa3f1c2d4e5b60718))]),
  (name = "closes-32", binary = "attacker.elf", grants = [
    (name = "orders", endpoint = (name = "closes-32", interfaceId = 0xa3f1c2d4e5b60718)),
    (name = "own", endpoint = (name = "own-32", interfaceId = 0xa3f1c2d4e5b60718))]),
  (name = "ends-2", binary = "attacker.elf", profile = (capSlots = 256, threads = 128, kernelStackPages = 4096, ringEntries = 4, kernelBytes = 1048576), grants = [
    (name = "orders", endpoint = (name = "ends-2", interfaceId = 0xa3f1c2d4e5b60718)),
    (name = "park", parkSpace = void), (name = "spawner", threadSpawner = void), (name = "control", threadControl = void)]),
  (name = "ends-100", binary = "attacker.elf", profile = (capSlots = 256, threads = 128, kernelStackPages = 4096, ringEntries = 4, kernelBytes = 1048576), grants = [
    (name = "orders", endpoint = (name = "ends-100", interfaceId = 0xa3f1c2d4e5b60718)),
    (name = "park", parkSpace = void), (name = "spawner", threadSpawner = void), (name = "control", threadControl = void)]),
  (name = "holds-16", binary = "attacker.elf", profile = (frames = 20000), grants = [
    (name = "orders", endpoint = (name = "holds-16", interfaceId = 0xa3f1c2d4e5b60718)),
    (name = "memory", virtualMemory = void)]),
  (name = "holds-16384", binary = "attacker.elf", profile = (frames = 20000), grants = [
    (name = "orders", endpoint = (name = "holds-16384", interfaceId = 0xa3f1c2d4e5b60718)),
    (name = "memory", virtualMemory = void)]),
  (name = "observer", binary = "observer.elf", essential = true, grants = [
    (name = "sizes", parkSpace = void),
    (name = "console", console = void), (name = "records", records = void),
    (name = "timer", timer = void), (name = "info", systemInfo = void),
    (name = "spawner", threadSpawner = void), (name = "control", threadControl = void),
    (name = "park", parkSpace = void),
    (name = "own", endpoint = (name = "observer", interfaceId = 0xa3f1c2d4e5b60718)),
    (name = "echo", client = (endpoint = "echo", badge = 1)),
    (name = "attacker", client = (endpoint = "attacker", badge = 1)),
    (name = "closes-1", client = (endpoint = "closes-1", badge = 1)),
    (name = "closes-32", client = (endpoint = "closes-32", badge = 1)),
    (name = "ends-2", client = (endpoint = "ends-2", badge = 1)),
    (name = "ends-100", client = (endpoint = "ends-100", badge = 1)),
    (name = "holds-16", client = (endpoint = "holds-16", badge = 1)),
    (name = "holds-16384", client = (endpoint = "holds-16384", badge = 1))]),
]);
