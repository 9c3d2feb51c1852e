@0x9b2fd3c64ae1f580;
# A process that looks at what it was started with.

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [
  (name = "start", binary = "start.elf", essential = true, grants = [
    (name = "console", console = void),
    (name = "records", records = void),
    (name = "timer", timer = void),
    (name = "info", systemInfo = void),
    (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void),
    (name = "park", parkSpace = void),
    (name = "own", endpoint = (name = "own", interfaceId = 0xa3f1c2d4e5b60718)),
    (name = "a name of forty-four bytes, the longest here", client = (endpoint = "own", badge = 7))]),
]);
