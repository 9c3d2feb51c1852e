@0xe2a7c4918d5f3b06;
# A program that weighs its threads and those of another process: with a ceiling of its own, a low one, and none.

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [
  (name = "guest", binary = "policy.elf", weight = 32, profile = (threads = 4), grants = [
    (name = "guest", endpoint = (name = "guest", interfaceId = 0xa3f1c2d4e5b60718)),
    (name = "unset", schedulingPolicy = (weightCeiling = 0))]),
  (name = "policy", binary = "policy.elf", essential = true, profile = (threads = 32, kernelStackPages = 1024), grants = [
    (name = "console", console = void),
    (name = "records", records = void),
    (name = "timer", timer = void),
    (name = "info", systemInfo = void),
    (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void),
    (name = "park", parkSpace = void),
    (name = "memory", virtualMemory = void),
    (name = "policy", schedulingPolicy = (weightCeiling = 1024)),
    (name = "low", schedulingPolicy = (weightCeiling = 100)),
    (name = "unset", schedulingPolicy = (weightCeiling = 0)),
    (name = "scheduler", schedulerControl = void),
    (name = "own", endpoint = (name = "own", interfaceId = 0xa3f1c2d4e5b60718)),
    (name = "to-guest", client = (endpoint = "guest", badge = 1))]),
]);
