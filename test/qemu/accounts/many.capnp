@0xd7a61f3b90c42e58;
# Processes that spend time in all ways there are, with 6500 calls.

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [
  (name = "server", binary = "program.elf", grants = [(name = "serve", endpoint = (name = "server", interfaceId = 0xa3f1c2d4e5b60718))]),
  (name = "caller", binary = "program.elf", grants = [(name = "calls", client = (endpoint = "server", badge = 6500))]),
  (name = "computer", binary = "program.elf", grants = [(name = "compute", parkSpace = void)]),
  (name = "sleeper", binary = "program.elf", grants = [(name = "sleep", timer = void)]),
  (name = "yielder", binary = "program.elf", grants = [(name = "yield", parkSpace = void)]),
  (name = "leaver", binary = "program.elf", grants = [
    (name = "spawner", threadSpawner = void), (name = "control", threadControl = void)]),
  (name = "watch", binary = "program.elf", essential = true, grants = [
    (name = "console", console = void), (name = "timer", timer = void), (name = "info", systemInfo = void)]),
]);
