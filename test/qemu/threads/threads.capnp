@0xd34cf12c9b8a6f01;
# One process that tests its own threads.

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [
  (name = "threads", binary = "threads.elf", essential = true,
    profile = (threads = 10, capSlots = 40), grants = [
    (name = "console", console = void),
    (name = "records", records = void),
    (name = "timer", timer = void),
    (name = "info", systemInfo = void),
    (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void),
    (name = "park", parkSpace = void)]),
]);
