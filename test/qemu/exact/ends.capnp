@0xd7a2c6015be8394f;
# Three processes whose end is measured, and the one that does.

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [
  (name = "crowd", binary = "exact.elf", grants = [
    (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void),
    (name = "crowd", endpoint = (name = "crowd"))]),
  (name = "small", binary = "exact.elf", profile = (threads = 1), grants = [
    (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void),
    (name = "crowd", endpoint = (name = "small"))]),
  (name = "bulk", binary = "exact.elf", profile = (threads = 1, ringEntries = 1024), grants = [
    (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void),
    (name = "crowd", endpoint = (name = "bulk"))]),
  (name = "ends", binary = "exact.elf", essential = true, grants = [
    (name = "ends", parkSpace = void),
    (name = "console", console = void),
    (name = "records", records = void),
    (name = "timer", timer = void),
    (name = "info", systemInfo = void),
    (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void),
    (name = "park", parkSpace = void),
    (name = "crowd", client = (endpoint = "crowd", badge = 1)),
    (name = "small", client = (endpoint = "small", badge = 1)),
    (name = "bulk", client = (endpoint = "bulk", badge = 1))]),
]);
