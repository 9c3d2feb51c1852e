@0xa1d07b5c93e2f648;
# Three processes that flood the console, one that cancels its writes, and one that ends with some pending.

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [
  (name = "a", binary = "writer.elf", grants = [(name = "a", parkSpace = void), (name = "console", console = void)]),
  (name = "b", binary = "writer.elf", grants = [(name = "b", parkSpace = void), (name = "console", console = void)]),
  (name = "c", binary = "writer.elf", grants = [(name = "c", parkSpace = void), (name = "console", console = void)]),
  (name = "x", binary = "writer.elf", grants = [(name = "x", parkSpace = void), (name = "console", console = void)]),
  (name = "d", binary = "writer.elf", grants = [(name = "d", parkSpace = void), (name = "console", console = void)]),
]);
