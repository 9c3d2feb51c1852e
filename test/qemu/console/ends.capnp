@0xc4e81f6a20b7d935;
# The system ends with `e` while `g` floods the console, and `f` has written and waits.

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [
  (name = "g", binary = "writer.elf", grants = [(name = "g", parkSpace = void), (name = "console", console = void)]),
  (name = "f", binary = "writer.elf", grants = [
    (name = "f", parkSpace = void), (name = "console", console = void),
    (name = "tell", client = (endpoint = "end", badge = 1))]),
  (name = "e", binary = "writer.elf", essential = true, grants = [
    (name = "e", parkSpace = void), (name = "console", console = void),
    (name = "ask", endpoint = (name = "end"))]),
]);
