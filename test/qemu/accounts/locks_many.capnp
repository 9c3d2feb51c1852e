@0x9c4d27e5ab108f63;
# 1100 rounds of all that schedules.

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [
  (name = "server", binary = "program.elf", grants = [(name = "serve", endpoint = (name = "server", interfaceId = 0xa3f1c2d4e5b60718))]),
  (name = "mix", binary = "program.elf", grants = [
    (name = "mix", client = (endpoint = "server", badge = 1100)), (name = "timer", timer = void),
    (name = "park", parkSpace = void), (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void)]),
]);
