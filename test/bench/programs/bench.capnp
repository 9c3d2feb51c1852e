@0x9d16ac66f79f83ce;
# The benchmark: one process that measures, and the ones it measures against.

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [
  (name = "echo", binary = "echo.elf", grants = [
    (name = "console", console = void),
    (name = "requests", endpoint = (name = "echo", interfaceId = 0xa3f1c2d4e5b60718))]),
  (name = "typed", binary = "typed.elf", grants = [
    (name = "console", console = void),
    (name = "requests", endpoint = (name = "typed", interfaceId = 0x80d9c56f6099934a))]),
  (name = "large", binary = "large.elf", grants = [
    (name = "console", console = void),
    (name = "memory", virtualMemory = void),
    (name = "requests", endpoint = (name = "large", interfaceId = 0xa3f1c2d4e5b60718))]),
  (name = "registered", binary = "large.elf", arguments = [(text = "registered")],
   profile = (registeredBuffers = 1), grants = [
    (name = "console", console = void),
    (name = "memory", virtualMemory = void),
    (name = "requests", endpoint = (name = "registered", interfaceId = 0xa3f1c2d4e5b60718))]),
  (name = "yielder", binary = "yielder.elf", grants = [
    (name = "console", console = void),
    (name = "requests", endpoint = (name = "yielder", interfaceId = 0xa3f1c2d4e5b60718))]),
  (name = "client", binary = "client.elf", essential = true,
   profile = (registeredBuffers = 1), grants = [
    (name = "console", console = void),
    (name = "records", records = void),
    (name = "echo", client = (endpoint = "echo", badge = 1)),
    (name = "typed", client = (endpoint = "typed", badge = 1)),
    (name = "large", client = (endpoint = "large", badge = 1)),
    (name = "registered", client = (endpoint = "registered", badge = 1)),
    (name = "yielder", client = (endpoint = "yielder", badge = 1)),
    (name = "timer", timer = void),
    (name = "park", parkSpace = void),
    (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void),
    (name = "memory", virtualMemory = void)]),
]);
