@0xc1d2e3f405162738;
# Processes that spoil their own rings, and two that go on talking meanwhile.

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [
  (name = "echo", binary = "echo.elf", grants = [
    (name = "requests", endpoint = (name = "echo"))]),
  (name = "witness", binary = "witness.elf", essential = true, grants = [
    (name = "console", console = void),
    (name = "records", records = void),
    (name = "timer", timer = void),
    (name = "info", systemInfo = void),
    (name = "news", endpoint = (name = "news")),
    (name = "echo", client = (endpoint = "echo", badge = 1))]),
  (name = "vandal0", binary = "vandal.elf", grants = [
    (name = "news", client = (endpoint = "news", badge = 0)),
    (name = "echo", client = (endpoint = "echo", badge = 2)),
    (name = "own", endpoint = (name = "own0")),
    (name = "self", client = (endpoint = "own0", badge = 3)),
    (name = "timer", timer = void),
    (name = "info", systemInfo = void),
    (name = "park", parkSpace = void),
    (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void)]),
  (name = "vandal1", binary = "vandal.elf", profile = (ringEntries = 4, ringScratchLimitBytes = 65536), grants = [
    (name = "news", client = (endpoint = "news", badge = 1)),
    (name = "echo", client = (endpoint = "echo", badge = 2)),
    (name = "own", endpoint = (name = "own1")),
    (name = "self", client = (endpoint = "own1", badge = 3)),
    (name = "timer", timer = void),
    (name = "info", systemInfo = void),
    (name = "park", parkSpace = void),
    (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void)]),
]);
