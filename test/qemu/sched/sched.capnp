@0xb1d04f5ce8a97c36;
# A process that watches the scheduler, and hogs it sets going: two of equal weight, one of twice that.

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [
  (name = "light", binary = "sched.elf", grants = [
    (name = "console", console = void),
    (name = "hog", endpoint = (name = "light", interfaceId = 0xa3f1c2d4e5b60718))]),
  (name = "other", binary = "sched.elf", grants = [
    (name = "console", console = void),
    (name = "hog", endpoint = (name = "other", interfaceId = 0xa3f1c2d4e5b60718))]),
  (name = "heavy", binary = "sched.elf", weight = 128, grants = [
    (name = "console", console = void),
    (name = "hog", endpoint = (name = "heavy", interfaceId = 0xa3f1c2d4e5b60718))]),
  (name = "sched", binary = "sched.elf", essential = true, grants = [
    (name = "console", console = void),
    (name = "records", records = void),
    (name = "timer", timer = void),
    (name = "info", systemInfo = void),
    (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void),
    (name = "park", parkSpace = void),
    (name = "light", client = (endpoint = "light", badge = 1)),
    (name = "other", client = (endpoint = "other", badge = 1)),
    (name = "heavy", client = (endpoint = "heavy", badge = 1))]),
]);
