@0xc2a4417be09d5f33;
# One process with more threads than a table that is made at boot would hold.

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [
  (name = "crowd", binary = "crowd.elf", essential = true,
    profile = (threads = 2600, kernelStackPages = 90000, capSlots = 2700, frames = 100000, kernelBytes = 16777216,
      ringEntries = 4), grants = [
    (name = "console", console = void),
    (name = "records", records = void),
    (name = "timer", timer = void),
    (name = "info", systemInfo = void),
    (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void),
    (name = "park", parkSpace = void)]),
]);
