@0xb4c1d2e3f5a69788;
# The program that sends itself capabilities, and a keeper with few slots that it sends some to.

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [
  (name = "keeper", binary = "keeper.elf", profile = (capSlots = 6), grants = [
    (name = "requests", endpoint = (name = "keeper", interfaceId = 0xa3f1c2d4e5b60718)),
    (name = "timer", timer = void)]),
  (name = "mortal", binary = "keeper.elf", profile = (capSlots = 6), grants = [
    (name = "requests", endpoint = (name = "mortal", interfaceId = 0xa3f1c2d4e5b60718)),
    (name = "timer", timer = void)]),
  (name = "transfer", binary = "transfer.elf", essential = true, profile = (capSlots = 32), grants = [
    (name = "console", console = void),
    (name = "records", records = void),
    (name = "timer", timer = void),
    (name = "info", systemInfo = void),
    (name = "park", parkSpace = void),
    (name = "policy", schedulingPolicy = (weightCeiling = 64)),
    (name = "scheduler", schedulerControl = void),
    (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void),
    (name = "own", endpoint = (name = "own", interfaceId = 0xa3f1c2d4e5b60718)),
    (name = "self", client = (endpoint = "own", badge = 1)),
    (name = "spare", endpoint = (name = "spare", interfaceId = 0xa3f1c2d4e5b60718)),
    (name = "to-spare", client = (endpoint = "spare", badge = 1)),
    (name = "keeper", client = (endpoint = "keeper", badge = 1)),
    (name = "mortal", client = (endpoint = "mortal", badge = 1))]),
]);
