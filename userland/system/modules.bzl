"""The boot modules of the shipped system, and the variables that name its programs to the shell."""

load("//userland/programs:programs.bzl", "PROGRAMS")

MODULES = {
    "//userland/demo:client": "client.elf",
    "//userland/demo:server": "server.elf",
    "//userland/init": "init.elf",
    "//userland/shell": "shell.elf",
    "//userland/system:manifest": "manifest.bin",
} | {"//userland/programs:" + program: program + ".elf" for program in PROGRAMS}

# The file names alone.
BINARIES = [name for name in MODULES.values() if name.endswith(".elf")]

# As elements of a list in a manifest.
PROGRAM_VARIABLES = ",\n     ".join([
    '(name = "program/%s", value = "%s")' % (name, about)
    for name, about in PROGRAMS.items()
])
