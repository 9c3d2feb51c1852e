@0xc41a5e0b7d93f286;
# A process that looks closely; a peer that serves and revokes; three that are to be ended while they
# compute; one whose memory nobody is to see again; six that end while they make threads.

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [
  (name = "peer", binary = "exact.elf", grants = [
    (name = "console", console = void),
    (name = "peer", endpoint = (name = "peer", interfaceId = 0xa3f1c2d4e5b60718))]),
  (name = "spinner0", binary = "exact.elf", grants = [
    (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void),
    (name = "spinner", endpoint = (name = "spinner0", interfaceId = 0xa3f1c2d4e5b60718))]),
  (name = "spinner1", binary = "exact.elf", grants = [
    (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void),
    (name = "spinner", endpoint = (name = "spinner1", interfaceId = 0xa3f1c2d4e5b60718))]),
  (name = "spinner2", binary = "exact.elf", grants = [
    (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void),
    (name = "spinner", endpoint = (name = "spinner2", interfaceId = 0xa3f1c2d4e5b60718))]),
  (name = "secret", binary = "exact.elf", grants = [
    (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void),
    (name = "secret", endpoint = (name = "secret", interfaceId = 0xa3f1c2d4e5b60718))]),
  (name = "maker0", binary = "exact.elf", grants = [
    (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void),
    (name = "maker", endpoint = (name = "maker0", interfaceId = 0xa3f1c2d4e5b60718))]),
  (name = "maker1", binary = "exact.elf", grants = [
    (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void),
    (name = "maker", endpoint = (name = "maker1", interfaceId = 0xa3f1c2d4e5b60718))]),
  (name = "maker2", binary = "exact.elf", grants = [
    (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void),
    (name = "maker", endpoint = (name = "maker2", interfaceId = 0xa3f1c2d4e5b60718))]),
  (name = "maker3", binary = "exact.elf", grants = [
    (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void),
    (name = "maker", endpoint = (name = "maker3", interfaceId = 0xa3f1c2d4e5b60718))]),
  (name = "maker4", binary = "exact.elf", grants = [
    (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void),
    (name = "maker", endpoint = (name = "maker4", interfaceId = 0xa3f1c2d4e5b60718))]),
  (name = "maker5", binary = "exact.elf", grants = [
    (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void),
    (name = "maker", endpoint = (name = "maker5", interfaceId = 0xa3f1c2d4e5b60718))]),
  (name = "exact", binary = "exact.elf", essential = true, profile = (ringScratchLimitBytes = 65536), grants = [
    (name = "console", console = void),
    (name = "records", records = void),
    (name = "timer", timer = void),
    (name = "info", systemInfo = void),
    (name = "spawner", threadSpawner = void),
    (name = "control", threadControl = void),
    (name = "park", parkSpace = void),
    (name = "own", endpoint = (name = "own", interfaceId = 0xa3f1c2d4e5b60718)),
    (name = "self", client = (endpoint = "own", badge = 3)),
    (name = "other", endpoint = (name = "other", interfaceId = 0xa3f1c2d4e5b60718)),
    (name = "other-self", client = (endpoint = "other", badge = 3)),
    (name = "peer", client = (endpoint = "peer", badge = 1)),
    (name = "seven", client = (endpoint = "peer", badge = 7)),
    (name = "wide", client = (endpoint = "peer", badge = 0xfedcba9876543210)),
    (name = "spinner0", client = (endpoint = "spinner0", badge = 1)),
    (name = "spinner1", client = (endpoint = "spinner1", badge = 1)),
    (name = "spinner2", client = (endpoint = "spinner2", badge = 1)),
    (name = "secret", client = (endpoint = "secret", badge = 1)),
    (name = "maker0", client = (endpoint = "maker0", badge = 1)),
    (name = "maker1", client = (endpoint = "maker1", badge = 1)),
    (name = "maker2", client = (endpoint = "maker2", badge = 1)),
    (name = "maker3", client = (endpoint = "maker3", badge = 1)),
    (name = "maker4", client = (endpoint = "maker4", badge = 1)),
    (name = "maker5", client = (endpoint = "maker5", badge = 1))]),
]);
