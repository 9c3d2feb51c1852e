@0xa8d10f6b3c95e742;
# An observer, a server that everybody calls, and attackers: one that does as it is told, one that may have
# a single sibling, two that end.

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [
  (name = "echo", binary = "echo.elf", grants = [(name = "requests", endpoint = (name = "echo", interfaceId = 0xa3f1c2d4e5b60718))]),
  (name = "attacker", binary = "attacker.elf", profile = (ringScratchLimitBytes = 65536), grants = [
    (name = "orders", endpoint = (name = "attacker", interfaceId = 0xa3f1c2d4e5b60718)),
    (name = "timer", timer = void), (name = "park", parkSpace = void), (name = "console", console = void),
    (name = "spawner", threadSpawner = void), (name = "control", threadControl = void),
    (name = "own", endpoint = (name = "own-1", interfaceId = 0xa3f1c2d4e5b60718)), (name = "self", client = (endpoint = "own-1", badge = 1)),
    (name = "memory", virtualMemory = void), (name = "frames", frameAllocator = void), (name = "trace", trace = void),
    (name = "directory", processDirectory = void), (name = "entropy", entropy = void),
    (name = "echo", client = (endpoint = "echo", badge = 66))]),
  (name = "pair", binary = "attacker.elf", profile = (threads = 2), grants = [
    (name = "orders", endpoint = (name = "pair", interfaceId = 0xa3f1c2d4e5b60718)),
    (name = "spawner", threadSpawner = void), (name = "control", threadControl = void)]),
  (name = "mortal", binary = "attacker.elf", grants = [
    (name = "orders", endpoint = (name = "mortal", interfaceId = 0xa3f1c2d4e5b60718)),
    (name = "timer", timer = void), (name = "park", parkSpace = void),
    (name = "spawner", threadSpawner = void), (name = "control", threadControl = void),
    (name = "own", endpoint = (name = "own-2", interfaceId = 0xa3f1c2d4e5b60718)), (name = "self", client = (endpoint = "own-2", badge = 1)),
    (name = "echo", client = (endpoint = "echo", badge = 67))]),
  (name = "faulty", binary = "attacker.elf", grants = [(name = "orders", endpoint = (name = "faulty", interfaceId = 0xa3f1c2d4e5b60718))]),
  (name = "observer", binary = "observer.elf", essential = true, grants = [
    (name = "held", parkSpace = void),
    (name = "console", console = void), (name = "records", records = void),
    (name = "timer", timer = void), (name = "info", systemInfo = void),
    (name = "spawner", threadSpawner = void), (name = "control", threadControl = void),
    (name = "park", parkSpace = void),
    (name = "own", endpoint = (name = "observer", interfaceId = 0xa3f1c2d4e5b60718)),
    (name = "echo", client = (endpoint = "echo", badge = 1)),
    (name = "attacker", client = (endpoint = "attacker", badge = 1)),
    (name = "pair", client = (endpoint = "pair", badge = 1)),
    (name = "mortal", client = (endpoint = "mortal", badge = 1)),
    (name = "faulty", client = (endpoint = "faulty", badge = 1))]),
]);
