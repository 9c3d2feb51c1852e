@0xb7d10c93e5a4f268;
# A process that records, one that may record too and does as it is told, and one that echoes.

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [
  (name = "echo", binary = "echo.elf", grants = [
    (name = "requests", endpoint = (name = "echo", interfaceId = 0xa3f1c2d4e5b60718))]),
  (name = "first", binary = "trace.elf", grants = [
    (name = "trace", trace = void),
    (name = "holder", endpoint = (name = "first", interfaceId = 0xa3f1c2d4e5b60718))]),
  (name = "second", binary = "trace.elf", grants = [
    (name = "trace", trace = void),
    (name = "holder", endpoint = (name = "second", interfaceId = 0xa3f1c2d4e5b60718))]),
  # It can pay for no buffer.
  (name = "poor", binary = "trace.elf", profile = (kernelBytes = 60000), grants = [
    (name = "trace", trace = void),
    (name = "holder", endpoint = (name = "poor", interfaceId = 0xa3f1c2d4e5b60718))]),
  (name = "suite", binary = "trace.elf", essential = true, grants = [
    (name = "console", console = void),
    (name = "records", records = void),
    (name = "timer", timer = void),
    (name = "info", systemInfo = void),
    (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void),
    (name = "park", parkSpace = void),
    (name = "memory", virtualMemory = void),
    (name = "trace", trace = void),
    (name = "echo", client = (endpoint = "echo", badge = 1)),
    (name = "first", client = (endpoint = "first", badge = 1)),
    (name = "second", client = (endpoint = "second", badge = 1)),
    (name = "poor", client = (endpoint = "poor", badge = 1))]),
]);
