@0xa6f1c2b7d3e84590;
# The program that tests its own ring, and a peer that answers calls.

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [
  (name = "echo", binary = "echo.elf", profile = (ringScratchLimitBytes = 65536), grants = [
    (name = "requests", endpoint = (name = "echo", interfaceId = 0xa3f1c2d4e5b60718))]),
  (name = "ring", binary = "ring.elf", essential = true,
   profile = (ringEntries = 16, ringScratchLimitBytes = 65536, sleepWaiters = 4,
    endpointQueueLimit = 5, inFlightCallLimit = 3, registeredBuffers = 4), grants = [
    (name = "console", console = void),
    (name = "records", records = void),
    (name = "timer", timer = void),
    (name = "info", systemInfo = void),
    (name = "park", parkSpace = void),
    (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void),
    (name = "memory", virtualMemory = void),
    (name = "frames", frameAllocator = void),
    (name = "own", endpoint = (name = "own", interfaceId = 0xa3f1c2d4e5b60718)),
    (name = "first", client = (endpoint = "own", badge = 1)),
    (name = "second", client = (endpoint = "own", badge = 0xfedcba9876543210)),
    (name = "echo", client = (endpoint = "echo", badge = 7))]),
]);
