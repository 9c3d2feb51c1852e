@0xd3f1a27c5b8e6049;
# Calls between CPUs: threads that call, and the servers they call.

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [
  (name = "echo0", binary = "echo.elf", grants = [
    (name = "console", console = void),
    (name = "requests", endpoint = (name = "echo0", interfaceId = 0xa3f1c2d4e5b60718))]),
  (name = "echo1", binary = "echo.elf", grants = [
    (name = "console", console = void),
    (name = "requests", endpoint = (name = "echo1", interfaceId = 0xa3f1c2d4e5b60718))]),
  (name = "echo2", binary = "echo.elf", grants = [
    (name = "console", console = void),
    (name = "requests", endpoint = (name = "echo2", interfaceId = 0xa3f1c2d4e5b60718))]),
  (name = "echo3", binary = "echo.elf", grants = [
    (name = "console", console = void),
    (name = "requests", endpoint = (name = "echo3", interfaceId = 0xa3f1c2d4e5b60718))]),
  (name = "calls", binary = "calls.elf", essential = true, grants = [
    (name = "console", console = void),
    (name = "records", records = void),
    (name = "timer", timer = void),
    (name = "info", systemInfo = void),
    (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void),
    (name = "park", parkSpace = void),
    (name = "echo0", client = (endpoint = "echo0", badge = 1)),
    (name = "echo1", client = (endpoint = "echo1", badge = 1)),
    (name = "echo2", client = (endpoint = "echo2", badge = 1)),
    (name = "echo3", client = (endpoint = "echo3", badge = 1))]),
]);
