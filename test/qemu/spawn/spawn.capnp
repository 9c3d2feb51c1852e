@0xd1f2a3b4c5968778;
# A program that starts others, and two entries that it starts by name.

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [
  (name = "spawn", binary = "spawn.elf", essential = true, boot = true,
   arguments = [(text = "first"), (text = "")], environment = [(name = "HOME", value = "/a=b")],
   profile = (capSlots = 512, threads = 200, kernelStackPages = 8192, frames = 40000,
     sleepWaiters = 512, kernelBytes = 16777216),
   grants = [
    (name = "console", console = void),
    (name = "records", records = void),
    (name = "timer", timer = void),
    (name = "info", systemInfo = void),
    (name = "park", parkSpace = void),
    (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void),
    (name = "processes", processSpawner = void),
    (name = "memory", virtualMemory = void),
    (name = "frames", frameAllocator = void),
    (name = "own", endpoint = (name = "own", interfaceId = 0xa3f1c2d4e5b60718)),
    (name = "to-own", client = (endpoint = "own", badge = 7))]),
  (name = "later", binary = "child.elf", arguments = [(text = "exit"), (text = "31")], grants = [
    (name = "control", threadControl = void),
    (name = "timer", timer = void)]),
  (name = "server", binary = "child.elf", arguments = [(text = "sleep")], grants = [
    (name = "requests", endpoint = (name = "served", interfaceId = 0xa3f1c2d4e5b60718)),
    (name = "timer", timer = void)]),
  (name = "client", binary = "child.elf", arguments = [(text = "exit"), (text = "5")], grants = [
    (name = "served", client = (endpoint = "served", badge = 1))]),
]);
