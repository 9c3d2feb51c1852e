@0x9c3e5d7a1b20f846;
# A program with three lines: one by edge, another by edge that it gives on, one by level whose device is never quiet.

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [
  (name = "mortal", binary = "interrupt.elf", grants = [
    (name = "console", console = void),
    (name = "short", interrupt = (line = 22, isLevel = false, isActiveLow = false))]),
  (name = "suite", binary = "interrupt.elf", boot = true, essential = true, grants = [
    (name = "console", console = void),
    (name = "records", records = void),
    (name = "timer", timer = void),
    (name = "info", systemInfo = void),
    (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void),
    (name = "park", parkSpace = void),
    (name = "processes", processSpawner = void),
    (name = "edge", interrupt = (line = 20, isLevel = false, isActiveLow = false)),
    (name = "again", interrupt = (line = 20, isLevel = false, isActiveLow = false)),
    (name = "level", interrupt = (line = 21, isLevel = true, isActiveLow = false))]),
]);
