@0xfd77561a576438d1;
# refused: two processes are called "a"; names are unique

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [(name = "a", binary = "a.elf"), (name = "a", binary = "a.elf")]);
