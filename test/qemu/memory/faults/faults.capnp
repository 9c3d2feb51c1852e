@0xc1b7d90e6a52f483;
# One process per end; the name of its first grant says which, its own name how it must end.

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [
  (name = "memory.read-unmapped=-270", binary = "faults.elf", grants = [(name = "read-unmapped", timer = void), (name = "console", console = void), (name = "memory", virtualMemory = void)]),
  (name = "memory.write-read-only=-270", binary = "faults.elf", grants = [(name = "write-read-only", timer = void), (name = "console", console = void), (name = "memory", virtualMemory = void)]),
  (name = "memory.write-code=-270", binary = "faults.elf", grants = [(name = "write-code", timer = void), (name = "console", console = void), (name = "memory", virtualMemory = void)]),
  (name = "memory.run-writable=-270", binary = "faults.elf", grants = [(name = "run-writable", timer = void), (name = "console", console = void), (name = "memory", virtualMemory = void)]),
  (name = "memory.run-read-only=-270", binary = "faults.elf", grants = [(name = "run-read-only", timer = void), (name = "console", console = void), (name = "memory", virtualMemory = void)]),
  (name = "memory.read-reserved=-270", binary = "faults.elf", grants = [(name = "read-reserved", timer = void), (name = "console", console = void), (name = "memory", virtualMemory = void)]),
  (name = "memory.run-then-write=-270", binary = "faults.elf", grants = [(name = "run-then-write", timer = void), (name = "console", console = void), (name = "memory", virtualMemory = void)]),
  (name = "memory.none=5", binary = "faults.elf", grants = [(name = "none", timer = void), (name = "console", console = void), (name = "memory", virtualMemory = void)]),
]);
