@0xb5a4938271605f4e;
# A script of calls, its servers, and a process that calls back.

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [
  (name = "echo", binary = "echo.elf", grants = [
    (name = "requests", endpoint = (name = "echo", interfaceId = 0xa3f1c2d4e5b60718))]),
  (name = "server", binary = "peer.elf", profile = (ringScratchLimitBytes = 65536), grants = [
    (name = "console", console = void), (name = "timer", timer = void),
    (name = "park", parkSpace = void), (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void),
    (name = "commands", endpoint = (name = "c0", interfaceId = 0xa3f1c2d4e5b60718)), (name = "service", endpoint = (name = "s0", interfaceId = 0xa3f1c2d4e5b60718)),
    (name = "up", client = (endpoint = "t", badge = 70))]),
  (name = "caller", binary = "peer.elf", profile = (ringScratchLimitBytes = 65536), grants = [
    (name = "console", console = void), (name = "timer", timer = void),
    (name = "park", parkSpace = void), (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void),
    (name = "commands", endpoint = (name = "c1", interfaceId = 0xa3f1c2d4e5b60718)), (name = "service", endpoint = (name = "s1", interfaceId = 0xa3f1c2d4e5b60718)),
    (name = "up", client = (endpoint = "t", badge = 71))]),
  (name = "script", binary = "script.elf", essential = true,
   profile = (ringScratchLimitBytes = 65536), grants = [
    (name = "console", console = void),
    (name = "records", records = void),
    (name = "t", endpoint = (name = "t", interfaceId = 0xa3f1c2d4e5b60718)),
    (name = "self", client = (endpoint = "t", badge = 72)),
    (name = "echo", client = (endpoint = "echo", badge = 1)),
    (name = "c0", client = (endpoint = "c0", badge = 1)),
    (name = "s0", client = (endpoint = "s0", badge = 1)),
    (name = "c1", client = (endpoint = "c1", badge = 1))]),
]);
