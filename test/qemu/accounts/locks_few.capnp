@0xe2b7c1904fa36d15;
# 100 rounds of all that schedules.

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [
  (name = "server", binary = "program.elf", grants = [(name = "serve", endpoint = (name = "server", interfaceId = 0xa3f1c2d4e5b60718))]),
  (name = "mix", binary = "program.elf", grants = [
    (name = "mix", client = (endpoint = "server", badge = 100)), (name = "timer", timer = void),
    (name = "park", parkSpace = void), (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void)]),
]);
