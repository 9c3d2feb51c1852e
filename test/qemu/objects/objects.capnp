@0xc69ec108a7f7f8bf;
# A program that reads what runs, and starts what it reads.

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [
  (name = "objects", binary = "objects.elf", essential = true, boot = true,
   profile = (capSlots = 256, threads = 300, kernelStackPages = 12000, frames = 60000,
     sleepWaiters = 512, kernelBytes = 33554432),
   grants = [
    (name = "console", console = void),
    (name = "records", records = void),
    (name = "timer", timer = void),
    (name = "info", systemInfo = void),
    (name = "park", parkSpace = void),
    (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void),
    (name = "processes", processSpawner = void),
    (name = "directory", processDirectory = void),
    (name = "entropy", entropy = void),
    (name = "session", userSession = void),
    (name = "own", endpoint = (name = "own", interfaceId = 0xa3f1c2d4e5b60718)),
    (name = "to-own", client = (endpoint = "own", badge = 7))]),
  (name = "login", binary = "worker.elf", arguments = [(text = "login")], grants = [
    (name = "timer", timer = void),
    (name = "session", userSession = void)]),
]);
