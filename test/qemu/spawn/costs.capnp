@0xd1f2a3b4c5968779;
# The program that starts others, where instructions are counted.

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [
  (name = "spawn", binary = "spawn.elf", essential = true,
   environment = [(name = "LANE", value = "exact")],
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
    (name = "processes", processSpawner = void)]),
]);
