@0xb2d8a1f04c937e65;
# Programs that end by their fibers; the name of each says how.

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [
  (name = "fiber.panic=101", binary = "ends.elf", grants = [
    (name = "console", console = void), (name = "panic", systemInfo = void),
    (name = "spawner", threadSpawner = void), (name = "control", threadControl = void), (name = "park", parkSpace = void)]),
  (name = "fiber.panic-without-console=101", binary = "ends.elf", grants = [
    (name = "panic", systemInfo = void),
    (name = "spawner", threadSpawner = void), (name = "control", threadControl = void), (name = "park", parkSpace = void)]),
  (name = "fiber.overflow=-288", binary = "ends.elf", grants = [
    (name = "console", console = void), (name = "overflow", systemInfo = void),
    (name = "spawner", threadSpawner = void), (name = "control", threadControl = void), (name = "park", parkSpace = void)]),
  (name = "fiber.overflow-by-one-frame=-288", binary = "ends.elf", grants = [
    (name = "console", console = void), (name = "large-frame", systemInfo = void),
    (name = "spawner", threadSpawner = void), (name = "control", threadControl = void), (name = "park", parkSpace = void)]),
  (name = "fiber.overflow-of-a-thread=-288", binary = "ends.elf", grants = [
    (name = "console", console = void), (name = "thread", systemInfo = void),
    (name = "spawner", threadSpawner = void), (name = "control", threadControl = void), (name = "park", parkSpace = void)]),
  (name = "fiber.too-few-thread-stacks=0", binary = "ends.elf", grants = [
    (name = "console", console = void), (name = "few-threads", systemInfo = void),
    (name = "spawner", threadSpawner = void), (name = "control", threadControl = void), (name = "park", parkSpace = void)]),
  (name = "fiber.undeclared=0", binary = "undeclared.elf", grants = [
    (name = "console", console = void),
    (name = "spawner", threadSpawner = void), (name = "control", threadControl = void), (name = "park", parkSpace = void)]),
  (name = "fiber.out-of-memory=101", binary = "ends.elf", grants = [
    (name = "console", console = void), (name = "memory", systemInfo = void),
    (name = "spawner", threadSpawner = void), (name = "control", threadControl = void), (name = "park", parkSpace = void)]),
  (name = "fiber.no-spawner=3", binary = "ends.elf", grants = [
    (name = "console", console = void), (name = "park", parkSpace = void)]),
  (name = "fiber.no-park=3", binary = "ends.elf", grants = [
    (name = "console", console = void), (name = "spawner", threadSpawner = void), (name = "control", threadControl = void)]),
  (name = "fiber.too-narrow-ring=0", binary = "ends.elf", profile = (ringEntries = 2), grants = [
    (name = "console", console = void), (name = "too-narrow", systemInfo = void),
    (name = "spawner", threadSpawner = void), (name = "control", threadControl = void), (name = "park", parkSpace = void)]),
  (name = "fiber.narrow-ring=0", binary = "ends.elf", profile = (ringEntries = 4), grants = [
    (name = "console", console = void), (name = "narrow", systemInfo = void), (name = "timer", timer = void),
    (name = "spawner", threadSpawner = void), (name = "control", threadControl = void), (name = "park", parkSpace = void)]),
  (name = "fiber.bystander=0", binary = "ends.elf", grants = [
    (name = "console", console = void),
    (name = "spawner", threadSpawner = void), (name = "control", threadControl = void), (name = "park", parkSpace = void)]),
]);
